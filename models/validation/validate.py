"""Does a model run on a provider, where does each node run, and are its outputs right.

validation = validate_model(ValidationRequest(Path("model.onnx"), choose("dml", None)))
validation.status                     # "right", "wrong", "fails", "refused", "unjudged"
validation.placement.elsewhere        # nodes that are not on the provider, and why
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from epcheck.conformance.targets.target import Target
from epcheck.conformance.test_data import model_file
from epcheck.generators.array import Array
from epcheck.models.accuracy import thresholds, verdict
from epcheck.models.accuracy.thresholds import Override, Threshold, ThresholdSource
from epcheck.models.accuracy.verdict import Verdict
from epcheck.models.execution.evaluators import Evaluators
from epcheck.models.execution.model_outcome import CREATE, RUN, ModelOutcome
from epcheck.models.execution.model_source import LARGE_BYTES
from epcheck.models.execution.runner import make_runners
from epcheck.models.execution.session import DEADLINE_S, Level, ModelSessions
from epcheck.models.feeds.trials import Feeding, Trial, trials
from epcheck.models.graph import values
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.subgraph import with_outputs
from epcheck.models.graph.wiring import wire
from epcheck.models.inspection import inspect
from epcheck.models.inspection.inspect import Inspection
from epcheck.models.placement import placement
from epcheck.models.placement.placement import Placement
from epcheck.models.validation import speed, truth
from epcheck.models.validation.advising import Adviser
from epcheck.models.validation.departures import Comparison, compare_with_reference
from epcheck.models.validation.node_judging import TrialNodes, judge_trial_nodes
from epcheck.models.validation.runnable import RunnableModel, has_external_data, runnable
from epcheck.models.validation.speed import Speed, Speeds
from epcheck.models.validation.truth import Truth
from epcheck.models.validation.validation import RIGHT, UNJUDGED, Step, Validation
from epcheck.models.wrong_nodes.all_wrong_nodes import all_wrong_nodes
from epcheck.models.wrong_nodes.culprit import Culprit, Kind
from epcheck.models.wrong_nodes.node_check import is_random
from epcheck.models.wrong_nodes.options import SearchOptions


@dataclass(frozen=True)
class ValidationRequest:
    """A model, the targets that it runs on, and how it is run and judged.

    model: an ONNX file; its external data lies beside it. level: of graph optimisation. override: of thresholds.
    culprit: whether to look for the node at fault. deadline_s: seconds for each step of a session: its creation, its
    first run, its second. speed: whether to measure how fast both targets are. advice: whether to try what would place
    nodes that are not on the provider. reference: the model that this one was made from; None without one.
    """

    model: Path
    evaluators: Evaluators
    feeding: Feeding = field(default_factory=Feeding)
    level: Level = "all"
    override: Override = field(default_factory=Override)
    culprit: bool = True
    deadline_s: float = DEADLINE_S
    speed: bool = False
    advice: bool = True
    reference: Path | None = None


def validate_model(request: ValidationRequest, report: Callable[[str], None] = lambda _phase: None) -> Validation:
    """Inspect a model, run it on two targets, place its nodes, judge its outputs, and find the node at fault.

    report: called with the name of each phase as it begins.

    Raises ModelFileError, FeedError and DimsError for files and options that cannot be used, and TargetDown for a
    target that cannot be started.
    """
    path = request.model.absolute()
    proto = model_file.parse(path)
    phases = _Phases(report)
    with phases.time_phase("inspecting the file"):
        inspection = inspect.inspect(path, proto)
        subject = runnable(path, proto)
        tried = tuple(trials(subject.graph, request.feeding))
    with ExitStack() as resources:
        return _Validator(request, subject, tried, phases, resources).run(inspection)


class _Phases:
    """Reports each phase as it begins and keeps how long it took."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.seconds: dict[str, float] = {}
        self._report = report

    @contextmanager
    def time_phase(self, phase: str) -> Iterator[None]:
        self._report(phase)
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[phase] = time.monotonic() - started


class _Validator:
    """One validation. resources: end the workers of both targets."""

    def __init__(
        self,
        request: ValidationRequest,
        model: RunnableModel,
        tried: Sequence[Trial],
        phases: _Phases,
        resources: ExitStack,
    ) -> None:
        self._request, self._model, self._trials = request, model, list(tried)
        self._phases, self._resources = phases, resources
        self._steps: list[Step] = []
        self._chance: set[str] = set()
        """Outputs that differ, and depend on random numbers."""
        self._whole = model.graph
        """The model with its weights in it, as an oracle needs it."""

    def run(self, inspection: Inspection) -> Validation:
        """The result. inspection: of the file; what the candidate's runtime adds to it is in the result."""
        candidate, level = self._request.evaluators.candidate, self._request.level
        sessions = self._sessions(candidate)
        with self._phases.time_phase(f"running on {candidate.name}"):
            outcomes = self._run(sessions, self._trials, level)  # which may add trials
            inspection = _with_runtime_findings(inspection, sessions, self._model)
            inspection = inspection.with_findings(inspect.casts(self._model.cast))
            inspection = inspection.with_findings(inspect.undeclared_shapes(self._model.graph, _shapes(outcomes)))
            fast = self._speed(sessions, outcomes, level)
            _free_memory(sessions, inspection)
        facts = {candidate.name: sessions.facts}
        baseline, baseline_level = self._request.evaluators.unlike(level)
        baseline_sessions, expected, baseline_fast = None, [], None
        if baseline is not None:
            baseline_sessions = self._sessions(baseline)
            with self._phases.time_phase(f"running on {baseline.name}"):
                expected = self._run(baseline_sessions, self._trials[: len(outcomes)], baseline_level)
                baseline_fast = self._speed(baseline_sessions, outcomes, baseline_level) if fast else None
            facts[baseline.name] = baseline_sessions.facts
            _free_memory(baseline_sessions, inspection)
        with self._phases.time_phase("computing the truth"):
            known = self._truth(inspection, outcomes, baseline_sessions)
        with self._phases.time_phase("judging"):
            placed, verdicts = self._placement(outcomes), self._verdicts(outcomes, expected, known)
        with self._phases.time_phase("judging the nodes"):
            nodes = judge_trial_nodes(self._model, inspection.bytes, level, self._trials, (outcomes, expected), known,
                                      (sessions, baseline_sessions))  # fmt: skip
        adviser = Adviser(sessions, baseline_sessions, self._model, level)
        if placed is not None and placed.elsewhere and self._request.advice and inspection.bytes <= LARGE_BYTES:
            with self._phases.time_phase("trying changes that place nodes"):
                placed = adviser.on_placement(placed, self._trials, outcomes)
        found = Validation(
            inspection.path, candidate.name, baseline.name if baseline else None, candidate.provider, level, facts,
            inspection, placed, tuple(self._steps), verdicts, known.words, None,
            feeds_generated=self._trials[0].is_generated, same_runtime=self._request.evaluators.compares_with_itself,
            seconds=self._phases.seconds, random=tuple(sorted(self._chance)),
            speeds=Speeds(self._name_timed_trial(outcomes), fast, baseline_fast) if fast else None,
            configuration=self._request.evaluators.configuration, wrong_nodes=nodes.judged.culprits,
            nodes_judged=nodes.judged.words, reference=self._compare_with_reference(),
        )  # fmt: skip
        if found.status in (RIGHT, UNJUDGED) or found.is_model_at_fault:
            return found
        found = self._explain_failure(found, outcomes, sessions, baseline_sessions, nodes)
        return adviser.on_culprits(found) if self._request.advice else found

    def _sessions(self, target: Target) -> ModelSessions:
        return self._resources.enter_context(ModelSessions(target, self._request.deadline_s))

    def _run(self, sessions: ModelSessions, tried: Sequence[Trial], level: Level) -> list[ModelOutcome]:
        """The outcomes of the trials, up to the first whose session is refused or lost: the next would end alike. What
        is tried instead of a trial that ends with an error follows it in `tried`."""
        outcomes: list[ModelOutcome] = []
        for at, trial in enumerate(tried):  # which grows on the way
            outcome = sessions.run(self._model.run, trial.inputs, level=level, folder=self._model.folder)
            outcomes.append(outcome)
            self._steps.append(_step(trial, sessions.target, outcome, self._find_changed_outputs(outcome)))
            if outcome.stage == RUN and trial.instead is not None and tried is self._trials:
                self._trials.insert(at + 1, trial.instead)
            if outcome.stage == CREATE or not sessions.has_worker:
                break
        return outcomes

    def _speed(self, sessions: ModelSessions, outcomes: Sequence[ModelOutcome], level: Level) -> Speed | None:
        """How fast a target runs the first trial that the candidate ran; None where none was, or it is not asked."""
        at = next((at for at, outcome in enumerate(outcomes) if outcome.is_done), None)
        if at is None or not self._request.speed:
            return None
        inputs, folder = self._trials[at].inputs, self._model.folder
        outcome = sessions.run(self._model.run, inputs, level=level, folder=folder, seconds=speed.SECONDS)
        return speed.speed(sessions.target.name, outcome, sessions.resident_bytes())

    def _name_timed_trial(self, outcomes: Sequence[ModelOutcome]) -> str:
        return next((trial.name for trial, outcome in zip(self._trials, outcomes, strict=False) if outcome.is_done), "")

    def _truth(self, inspection: Inspection, outcomes: Sequence[ModelOutcome], baseline: ModelSessions | None) -> Truth:
        """The truth of the trials that the candidate ran."""
        if not any(outcome.is_done for outcome in outcomes):
            return truth.make_unknown_truth(
                len(outcomes), "the model has no outputs on the candidate, so that none were computed"
            )
        if inspection.bytes > LARGE_BYTES:
            return truth.make_unknown_truth(len(outcomes), "the model is too large for an oracle")
        if has_external_data(self._whole):
            try:
                self._whole = model_file.load(inspection.path)
            except model_file.ModelFileError as error:
                return truth.make_unknown_truth(len(outcomes), f"no oracle for this model: {error}")
        done = {at: self._trials[at] for at, outcome in enumerate(outcomes) if outcome.is_done}

        def ask(trial: Trial, names: Sequence[str]) -> Mapping[str, Feed]:
            assert baseline is not None
            model = with_outputs(wire(self._model.graph, trial.inputs), names)
            outcome = baseline.run(model, trial.inputs, level="disabled", folder=self._model.data_folder, once=True)
            return {name: value for name, value in outcome.outputs.items() if name in names}

        return truth.of_trials(self._whole, done, len(outcomes), ask if baseline else None)

    def _compare_with_reference(self) -> Comparison | None:
        """The model beside the one that it was made from, in the first trial; None where none is named."""
        if self._request.reference is None:
            return None
        with self._phases.time_phase("comparing with the reference"):
            return compare_with_reference(self._whole, self._trials[0], self._request.reference)

    def _placement(self, outcomes: Sequence[ModelOutcome]) -> Placement | None:
        provider = self._request.evaluators.candidate.provider
        if provider is None:
            return None
        assignment = next((outcome.assignment for outcome in outcomes if outcome.assignment is not None), None)
        return placement.place(self._model.graph, provider, assignment, self._trials[0].shapes)

    def _verdicts(
        self, outcomes: Sequence[ModelOutcome], expected: Sequence[ModelOutcome], known: Truth
    ) -> tuple[Verdict, ...]:
        """expected: of the baseline, fewer where it failed, none without one. Where a trial is not right, or far off by
        a coarse threshold, the model's sensitivity or noise is measured, and the trial judged again."""
        found: list[Verdict] = []
        seconds = truth.ORACLE_S
        for at, candidate in enumerate(outcomes):
            if not candidate.is_done:
                continue
            trial, substitutes = self._trials[at], known.substitutes[at] if known.substitutes else {}
            baseline = expected[at].outputs if at < len(expected) and expected[at].is_done else None
            asked = trial.name, candidate.outputs, baseline, known.values[at], self._thresholds
            judged = list(verdict.judge(*asked))
            if any(each.is_far_off for each in judged):
                started = time.monotonic()
                noisy = list(truth.evaluate_with_rounding(self._whole, trial, substitutes, seconds, once=True))
                judged = list(verdict.judge(*asked, noisy=noisy))
                seconds -= time.monotonic() - started
            elif any(not each.right and each.against == verdict.ORACLE and each.metrics for each in judged):
                started = time.monotonic()
                rounded: list[Mapping[str, Feed]] = []
                for outputs in truth.evaluate_with_rounding(self._whole, trial, substitutes, seconds):
                    rounded.append(outputs)
                    judged = list(verdict.judge(*asked, rounded))
                    if all(each.right for each in judged):
                        break  # further runs can but extend the thresholds further
                seconds -= time.monotonic() - started
            if trial.expected:
                known_values = baseline, known.values[at]
                judged += self._compare_expected(trial, candidate.outputs, known_values, substitutes, seconds)
            found += (each for each in judged if each.right or not self._differs_by_chance(each.output))
        return tuple(found)

    def _compare_expected(
        self,
        trial: Trial,
        outputs: Mapping[str, Array],
        known: tuple[Mapping[str, Array] | None, Mapping[str, Feed] | None],
        substitutes: Mapping[str, Feed],
        seconds: float,
    ) -> list[Verdict]:
        """The outputs of the candidate beside those that the user's files expect. known: of baseline and oracle."""
        renamed = {self._model.cast.get(name, name): value for name, value in trial.expected.items()}
        asked = trial.name, outputs, dict(truth.tensors_by_name(renamed)), known, self._thresholds
        judged = list(verdict.judge_expected(*asked))
        if any(each.is_far_off for each in judged):
            noisy = list(truth.evaluate_with_rounding(self._whole, trial, substitutes, seconds, once=True))
            judged = list(verdict.judge_expected(*asked, noisy))
        return judged

    def _find_changed_outputs(self, outcome: ModelOutcome) -> tuple[str, ...]:
        """The outputs that a second run changed, but for those that depend on random numbers."""
        return tuple(name for name in outcome.repeat_differs if not self._differs_by_chance(name))

    def _differs_by_chance(self, output: str) -> bool:
        """Whether an output that differs depends on random numbers: then nothing is wrong, and it is kept in mind."""
        if output in self._random:
            self._chance.add(output)
        return output in self._random

    @cached_property
    def _random(self) -> frozenset[str]:
        """The outputs that depend on random numbers."""
        wiring = wire(self._model.graph)
        reached: set[str] = set()
        for at in range(wiring.nodes):
            if not reached.isdisjoint(wiring.reads[at]) or is_random(wiring, at):
                reached.update(wiring.list_outputs(at))
        return frozenset(reached.intersection(wiring.outputs))

    @cached_property
    def _thresholds(self) -> dict[str, Threshold]:
        inferred = values.infer_types(self._model.graph, self._trials[0].shapes)
        return {name: self._request.override.apply(bound) for name, bound in thresholds.of_outputs(inferred).items()}

    def _explain_failure(
        self,
        found: Validation,
        outcomes: Sequence[ModelOutcome],
        candidate: ModelSessions,
        baseline: ModelSessions | None,
        nodes: TrialNodes,
    ) -> Validation:
        """The validation of a model that is not right, with the node at fault and how to show the failure again."""
        at = _first_failing(found, self._trials, outcomes)
        arguments = reduce_arguments(self._request.evaluators, self._request.level, self._request.deadline_s)
        found = replace(found, reduce_args=(*arguments, *self._trials[at].arguments))
        if not self._request.culprit or baseline is None:
            return found
        with self._phases.time_phase("searching for the wrong node"):
            allowed = _extend_thresholds(found, self._trials[at], self._thresholds)
            inner, alone = nodes.known_in(at)
            options = SearchOptions(level=self._request.level, folder=self._model.data_folder, thresholds=allowed,
                                    truth=inner, wrong_alone=alone)  # fmt: skip
            ask = make_runners(candidate, baseline, self._model.data_folder, found.inspection.bytes)
            wrong = all_wrong_nodes(self._model.graph, self._trials[at].inputs, *ask, options, outcomes[at])
        first, *further = wrong.culprits
        return replace(found, culprit=in_agreement(first, found), other_culprits=tuple(further),
                       benign_nodes=wrong.harmless, unexplained=wrong.remainder)  # fmt: skip


def reduce_arguments(evaluators: Evaluators, level: Level, deadline_s: float) -> tuple[str, ...]:
    """Arguments of `epcheck reduce`, without those of a trial, that ask what a validation asks. deadline_s: seconds of
    a step."""
    arguments = ["--target", evaluators.candidate.name]
    if evaluators.baseline is not None:
        arguments += ["--baseline", evaluators.baseline.name]
    if level != "all":
        arguments += ["--level", level]
    if deadline_s != DEADLINE_S:
        arguments += ["--timeout", f"{deadline_s:g}"]
    if evaluators.vulkan is not None:
        arguments += ["--vulkan", str(evaluators.vulkan)]
    return tuple(arguments)


def _with_runtime_findings(inspection: Inspection, sessions: ModelSessions, model: RunnableModel) -> Inspection:
    """The inspection with what the candidate's runtime and provider say of the model; a callable says nothing."""
    provider = sessions.target.provider
    if not provider:
        return inspection
    inspection = inspection.with_findings(inspect.against(inspection, inspect.limits(sessions)))
    inspection = inspection.with_findings(inspect.cost_of_dimensions(inspection, provider))
    return inspection.with_findings(inspect.unresolved_reshapes(model.graph, provider))


def _shapes(outcomes: Sequence[ModelOutcome]) -> dict[str, tuple[int, ...]]:
    """Output -> its shape in the first trial that has it."""
    return {name: value.shape for outcome in reversed(outcomes) for name, value in outcome.outputs.items()}


def _free_memory(sessions: ModelSessions, inspection: Inspection) -> None:
    """End the session of a large model, so that there is memory for the next one."""
    if inspection.bytes > LARGE_BYTES:
        sessions.end_worker()


def _step(trial: Trial, target: Target, outcome: ModelOutcome, changed: tuple[str, ...]) -> Step:
    """changed: outputs that the second run changed and had to keep."""
    return Step(trial.name, target.name, outcome.stage, outcome.during, outcome.message, outcome.create_s,
                outcome.run_s, outcome.unwritten, changed, tuple(outcome.outputs),
                trial.instead is not None)  # fmt: skip


def _extend_thresholds(found: Validation, trial: Trial, bounds: Mapping[str, Threshold]) -> dict[str, Threshold]:
    """The thresholds of the outputs, extended by the model's sensitivity, or replaced by its noise, where that was
    measured in this trial."""
    judged = [each for each in found.verdicts if each.trial == trial.name and each.against == verdict.ORACLE]
    sensitive = {
        each.output: verdict.extend_threshold(each.threshold, each.sensitivity)
        for each in judged
        if each.sensitivity is not None
    }
    noisy = {each.output: each.threshold for each in judged if each.threshold.source is ThresholdSource.NOISE}
    return {**bounds, **sensitive, **noisy}


def _first_failing(found: Validation, tried: Sequence[Trial], outcomes: Sequence[ModelOutcome]) -> int:
    """The index of the first trial that is not right."""
    wrong = {judged.trial for judged in found.verdicts if judged.wrong}
    steady = {step.trial for step in found.steps if step.target == found.target
              and not (step.unwritten or step.repeat_differs)}  # fmt: skip
    return next(
        index
        for index, outcome in enumerate(outcomes)
        if not outcome.is_done or tried[index].name not in steady or tried[index].name in wrong
    )


def in_agreement(culprit: Culprit, found: Validation) -> Culprit:
    """The culprit, which says why no node is named where an output is wrong nevertheless."""
    if culprit.kind not in (Kind.RIGHT, Kind.ACCUMULATED):
        return culprit
    why = next((f"'{judged.output}' ({judged.trial}): {judged.why}" for judged in found.verdicts if judged.wrong), "")
    by_truth = all(judged.against == verdict.ORACLE for judged in found.verdicts if judged.wrong)
    if culprit.kind == Kind.RIGHT and by_truth:
        words = (
            "no node is named: nodes are compared with the baseline, with which the candidate agrees. The oracle finds "
            f"the outputs wrong: {why}"
        )
    else:
        words = f"no single node is wrong, but the outputs are: {why}. {culprit.words[:1].upper()}{culprit.words[1:]}"
    return replace(culprit, words=words)
