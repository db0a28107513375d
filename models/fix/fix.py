"""Change a model so that a target takes it and computes it right: every change that was tried and helps.

    fixed = fix_model(FixRequest(ValidationRequest(Path("model.onnx"), choose("dml", None))))
    fixed.status, fixed.kept              # what was changed; fixed.model is the model, serialized

The changes are those that a validation tried on the target, node by node, and what the doctor finds. They are applied
to the whole model, all together, and that is validated on the truth of the original; where it is not better, they are
applied one after the other, and those that do not help are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from epcheck.conformance.targets.target import Target
from epcheck.conformance.test_data import model_file
from epcheck.generators.claims import claims_of
from epcheck.models.execution.model_outcome import ModelOutcome
from epcheck.models.execution.session import Level, ModelSessions, share_workers
from epcheck.models.feeds.trials import Trial, trials
from epcheck.models.fix.difference import list_differences, name_node
from epcheck.models.fix.fixed import Fixed, FixStep, describe_placement
from epcheck.models.fix.plan import Key, LoneNodes, Plan, Whole, apply_plans, list_advice, list_alike, make_plans
from epcheck.models.graph.external_data import DataPart, pack
from epcheck.models.graph.feed import Feed, shapes
from epcheck.models.graph.inlining import inline_file
from epcheck.models.graph.order import order_nodes
from epcheck.models.graph.subgraph import SubgraphError
from epcheck.models.graph.wiring import wire
from epcheck.models.placement import placement
from epcheck.models.placement.apply import ApplyError, AskLone
from epcheck.models.placement.placement import NodePlacement
from epcheck.models.precision.diagnosis import Diagnosis
from epcheck.models.precision.doctor import DiagnosisRequest, DoctorError, diagnose, embed_weights
from epcheck.models.quantization import examination
from epcheck.models.quantization.correction import correct
from epcheck.models.quantization.result import Quantization
from epcheck.models.validation.runnable import RunnableModel, runnable
from epcheck.models.validation.validate import ValidationRequest, validate_changed, validate_model
from epcheck.models.validation.validation import FAILS, REFUSED, RIGHT, UNJUDGED, WRONG, Validation
from epcheck.models.wrong_nodes.culprit import graph_node
from epcheck.models.wrong_nodes.options import Limits

ROUNDS = 6
"""A model that runs for the first time after a change gets advice then; so often at most."""

RANKS = (REFUSED, FAILS, WRONG, UNJUDGED, RIGHT)
"""Statuses of a validation, the worst first."""

HALF = 0.5
"""A wrong output is better where its error is at most so much of what it was."""


@dataclass(frozen=True)
class FixRequest:
    """validation: of the model, as it is asked for. sizes: whether the sizes of its inputs may be fixed. data_name: of
    the file of external data beside the fixed model."""

    validation: ValidationRequest
    sizes: bool = True
    data_name: str = "model.onnx.data"


def fix_model(request: FixRequest, report: Callable[[str], None] = lambda _phase: None) -> Fixed:
    """Validate a model, apply what helps, and validate what comes of it. report: called with the name of each phase.

    Raises what `validate_model` does.
    """
    path = request.validation.model.absolute()
    with ExitStack() as resources:
        resources.enter_context(share_workers(request.validation.evaluators.targets))
        before = validate_model(request.validation, report)
        fixer = _Fixer(request, before, resources, report)
        fixer.mend_numbers()
        for _ in range(ROUNDS):
            if not fixer.apply_advice():
                break
        return fixer.result(path)


class _Fixer:
    """One fix. The model as it is so far, and its validation."""

    def __init__(
        self, request: FixRequest, before: Validation, resources: ExitStack, report: Callable[[str], None]
    ) -> None:
        self._request, self._before, self._now = request, before, before
        self._resources, self._report = resources, report
        self._path = request.validation.model.absolute()
        parsed = model_file.parse(self._path)
        self._original = runnable(self._path, parsed)
        self._trials: Sequence[Trial] = tuple(trials(self._original.graph, request.validation.feeding))
        self._first = placement.name_nodes(order_nodes(inline_file(self._path, parsed)))
        self._model = self._first
        self._claims = claims_of(before.provider) if before.provider else None
        self._open: dict[str, ModelSessions] = {}
        self._steps: list[FixStep] = []
        self._tried: set[object] = set()
        self._errors: tuple[float | None, float | None] = (None, None)

    def result(self, path: Path) -> Fixed:
        model: bytes | None = None
        parts: tuple[DataPart, ...] = ()
        if any(step.kept for step in self._steps):
            model, parts = pack(self._model, path, self._request.data_name)
        differences = tuple(list_differences(self._first, self._model, (self._before.placement, self._now.placement)))
        return Fixed(path, self._before, self._now, tuple(self._steps), differences, model, parts, *self._errors)

    def mend_numbers(self) -> None:
        """What the doctor finds: wrong scales of quantisers, and nodes that need float32."""
        nodes = self._original.graph.graph.node
        is_quantized = any(node.op_type in ("QuantizeLinear", "DequantizeLinear") for node in nodes)
        is_wrong = self._now.status in (WRONG, UNJUDGED) and not self._now.is_model_at_fault
        if not is_quantized and not (is_wrong and _has_float16(self._original)):
            return
        asked = self._request.validation
        request = DiagnosisRequest(asked.model, asked.evaluators.candidate, asked.feeding, level=asked.level,
                                   override=asked.override, deadline_s=asked.deadline_s, mended=True)  # fmt: skip
        try:
            found = diagnose(request, self._report)
        except DoctorError:
            return
        if found.quantization is not None and found.quantization.faults:
            self._correct_quantizers(found.quantization)
        elif is_wrong and found.keep and found.mended is not None:
            self._widen_nodes(found)

    def _widen_nodes(self, found: Diagnosis) -> None:
        """Compute the nodes that need it in float32."""
        assert found.mended is not None
        changed = onnx.ModelProto.FromString(found.mended)
        names = tuple(map(str, found.keep))
        least = "the smallest set" if found.is_minimal else "a set"
        words = f"compute in float32, between casts: {least} of nodes with which the outputs are right"
        self._accept(changed, self._trials, [(words, names, frozenset())])

    def _correct_quantizers(self, found: Quantization) -> None:
        """Correct scales, zero points and biases, as long as fewer are at fault."""
        whole = onnx.ModelProto()
        whole.CopyFrom(self._model)
        whole = embed_weights(whole, self._path, self._before.inspection.bytes)
        folder = self._path.parent
        first, steps, faulty = found, [], found
        sessions = self._sessions(self._request.validation.evaluators.candidate)
        for _ in range(ROUNDS):
            changed, done = correct(whole, faulty.faults, folder)
            if not done:
                break
            self._report("checking the corrected quantisers")
            limits = Limits()
            asked = wire(changed, folder=folder)
            again = examination.examine(asked, sessions, self._trials, self._request.validation.level, limits)
            is_better = again is not None and _worth(again) < _worth(faulty)
            wrong = {each.node.index: each for each in faulty.faults}
            for at, words in done.items():
                result = wrong[at].words if at in wrong else "its scale was the product of others"
                steps.append(FixStep(words, (str(graph_node(whole, at)),), is_better, f"before: {result}"))
            if not is_better or again is None:
                break
            whole, faulty = changed, again
        for each in faulty.faults:
            if not any(str(each.node) in step.nodes and not step.kept for step in steps):
                steps.append(
                    FixStep("correct it", (str(each.node),), False, f"{each.words}; what is right is not known")
                )
        self._steps += steps
        if faulty is first:
            return
        self._errors = first.error, faulty.error
        self._model, self._original = whole, self._make_runnable(whole)
        self._trials = tuple(trials(self._original.graph, self._request.validation.feeding))
        self._now = self._validate(whole, self._trials)

    def apply_advice(self) -> bool:
        """Apply what the last validation advises; whether anything was changed."""
        advice = list_advice(self._now)
        if not advice:
            return False
        feeds = self._trials[0].inputs
        try:
            ask = self._look(feeds)(self._model)
            alike = list_alike(self._model, self._now)
            plans, lost = make_plans(self._model, {**alike, **advice}, ask, self._claims)
        except SubgraphError as error:
            plans, lost = [], dict.fromkeys(advice, str(error))
        for key, why in ((key, why) for key, why in lost.items() if key in advice):
            self._leave_out(advice[key], [key], why)
        new = [plan for plan in plans if plan.identity not in self._tried]
        self._tried.update(plan.identity for plan in new)
        if not self._request.sizes:
            for plan in (plan for plan in new if plan.whole is Whole.SIZES):
                self._leave_out(plan.words, list(plan.nodes), "sizes are not to be fixed")
            new = [plan for plan in new if plan.whole is not Whole.SIZES]
        if not new:
            return False
        if self._try_plans(new, feeds, is_last=len(new) == 1):
            return True
        kept = [self._try_plans([plan], feeds, is_last=True) for plan in new] if len(new) > 1 else []
        return any(kept)

    def _try_plans(self, plans: Sequence[Plan], feeds: Mapping[str, Feed], is_last: bool) -> bool:
        """Apply plans together; whether they were kept. is_last: what does not help is left out for good."""
        self._report(f"applying {len(plans)} change{'s' if len(plans) > 1 else ''}")
        try:
            changed = apply_plans(self._model, plans, self._look(feeds), feeds, self._claims)
        except (ApplyError, SubgraphError) as error:
            if is_last:
                for plan in plans:
                    self._leave_out(plan.words, list(plan.nodes), str(error))
            return False
        tried = self._trials
        if any(plan.whole is Whole.SIZES for plan in plans):
            tried = tuple(select_trials(self._trials, feeds))
        named = [(plan.words, self._name_nodes(list(plan.nodes)), frozenset(plan.nodes)) for plan in plans]
        return self._accept(changed, tried, named, is_last)

    def _accept(
        self,
        changed: onnx.ModelProto,
        tried: Sequence[Trial],
        plans: Sequence[tuple[str, tuple[str, ...], frozenset[Key]]],
        is_last: bool = True,
    ) -> bool:
        """Validate a changed model and go on with it where it is better. plans: words, nodes in words, and nodes."""
        try:
            found = self._validate(changed, tried)
            why = explain_no_gain(self._now, found)
        except model_file.ModelFileError as error:
            found, why = self._now, str(error)
        if not why:
            for words, nodes, keys in plans:
                self._steps.append(FixStep(words, nodes, True, _describe_gain(keys, self._now, found)))
            self._model, self._now, self._trials = changed, found, tried
        elif is_last:
            self._steps += (FixStep(words, nodes, False, why) for words, nodes, _ in plans)
        return not why

    def _validate(self, changed: onnx.ModelProto, tried: Sequence[Trial]) -> Validation:
        models = self._original, self._make_runnable(changed)
        return validate_changed(self._request.validation, models, tried, self._report)

    def _make_runnable(self, model: onnx.ModelProto) -> RunnableModel:
        """A changed model, which is in no file."""
        ready = runnable(self._path, model)
        return replace(ready, run=ready.graph, folder=ready.data_folder)

    def _look(self, feeds: Mapping[str, Feed]) -> Callable[[onnx.ModelProto], AskLone]:
        evaluators = self._request.validation.evaluators
        sessions = self._sessions(evaluators.baseline or evaluators.candidate)
        known = {name: value for culprit in self._now.culprits for name, value in culprit.received.items()}

        def look(model: onnx.ModelProto) -> AskLone:
            ready = self._make_runnable(model)

            def run(asked: onnx.ModelProto, values: Mapping[str, Feed], level: Level) -> ModelOutcome:
                return sessions.run(asked, values, level=level, folder=ready.data_folder)

            return LoneNodes(ready.graph, feeds, run, known).ask

        return look

    def _sessions(self, target: Target) -> ModelSessions:
        if target.name not in self._open:
            sessions = ModelSessions(target, self._request.validation.deadline_s)
            self._open[target.name] = self._resources.enter_context(sessions)
        return self._open[target.name]

    def _leave_out(self, words: str, keys: Sequence[Key], why: str) -> None:
        self._steps.append(FixStep(words, self._name_nodes(keys), False, why))

    def _name_nodes(self, keys: Sequence[Key]) -> tuple[str, ...]:
        return tuple(name_node(self._model, *key) for key in keys)


def select_trials(tried: Sequence[Trial], feeds: Mapping[str, Feed]) -> Iterator[Trial]:
    """The trials whose feeds have the sizes of these, or what is tried in place of others."""
    wanted = shapes(feeds)
    for trial in tried:
        for each in (trial, trial.instead):
            if each is not None and each.shapes == wanted:
                yield replace(each, instead=None)
                break


def explain_no_gain(before: Validation, after: Validation) -> str:
    """Why a changed model is no better; empty where it is."""
    ranks = [RANKS.index(found.status) for found in (before, after)]
    if ranks[1] != ranks[0]:
        return "" if ranks[1] > ranks[0] else f"the model with it: {after.statement}"
    if after.status in (REFUSED, FAILS):
        named = [{node.name for culprit in found.culprits for node in culprit.nodes} for found in (before, after)]
        is_better = bool(named[1]) and not named[0] & named[1]  # it ends at other nodes
    elif after.status == WRONG and _count_wrong(after) != _count_wrong(before):
        is_better = _count_wrong(after) < _count_wrong(before)
    elif after.status == WRONG and (after.error or 0.0) <= HALF * (before.error or 0.0):
        is_better = True
    else:
        return _explain_same_places(before, after)
    return "" if is_better else f"it changes nothing: {after.statement}"


def _count_wrong(found: Validation) -> int:
    return sum(verdict.wrong for verdict in found.verdicts)


def _explain_same_places(before: Validation, after: Validation) -> str:
    """Why no more nodes of the model before are on the provider; empty where more are."""
    here, there = (_list_elsewhere(found) for found in (before, after))
    known = {(node.scope, node.name) for node in before.placement.nodes} if before.placement else set()
    gained, lost = here.keys() - there.keys(), (there.keys() - here.keys()) & known
    if len(gained) > len(lost):
        return ""
    if not gained:
        return "in the whole model it places no node"
    return f"in the whole model it places {len(gained)} nodes and takes {len(lost)} off the provider"


def _list_elsewhere(found: Validation) -> dict[Key, NodePlacement]:
    return {(node.scope, node.name): node for node in found.placement.elsewhere} if found.placement else {}


def _describe_gain(keys: frozenset[Key], before: Validation, after: Validation) -> str:
    """What a change did, in words."""
    still = keys & _list_elsewhere(after).keys()
    if before.status != after.status or not keys:
        return f"{describe_placement(before)} before, {describe_placement(after)} after"
    return f"{len(keys) - len(still)} of {len(keys)} placed"


def _has_float16(model: RunnableModel) -> bool:
    graph = model.graph.graph
    types = [kind.tensor_type.elem_type for kind in wire(model.graph).types.values()]
    types += (tensor.data_type for tensor in graph.initializer)
    return onnx.TensorProto.FLOAT16 in types


def _worth(found: Quantization) -> tuple[int, float]:
    """Less is better: faults, and the error of the outputs."""
    return len(found.faults), float("inf") if found.error is None else found.error
