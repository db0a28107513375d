"""Which nodes of a model float16 harms on a target, the smallest set of them that has to stay in float32, and which of
its quantisers are at fault.

    diagnosis = diagnose(DiagnosisRequest(Path("model.onnx"), target, converted=True))
    diagnosis.keep                        # the nodes; empty where float16 is right as it is

The truth is the oracle's, in float64. Whether a model is right is decided by the target itself, run with one set of
nodes in float32 after the other.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import onnx

from epcheck.conformance.records.error import EpcheckError
from epcheck.conformance.targets.target import Target
from epcheck.conformance.test_data import model_file
from epcheck.models.accuracy import thresholds, verdict
from epcheck.models.accuracy.thresholds import Override, Threshold
from epcheck.models.accuracy.verdict import CEILING
from epcheck.models.execution.model_outcome import RUN
from epcheck.models.execution.model_source import LARGE_BYTES
from epcheck.models.execution.runner import make_runner
from epcheck.models.execution.session import DEADLINE_S, Level, ModelSessions
from epcheck.models.feeds.trials import Feeding, Trial, trials
from epcheck.models.graph import values
from epcheck.models.graph.external_data import DataPart, pack
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.inlining import inline_file
from epcheck.models.graph.wiring import wire
from epcheck.models.oracle import oracle
from epcheck.models.oracle.node import OracleError
from epcheck.models.placement import placement
from epcheck.models.precision import node_precision
from epcheck.models.precision.diagnosis import Attempt, Diagnosis
from epcheck.models.precision.node_precision import NodePrecision, Observed
from epcheck.models.precision.ranges import Range, Recorder, join_ranges
from epcheck.models.precision.smallest_set import SmallestSet, smallest_set
from epcheck.models.precision.subject import Subject, subject
from epcheck.models.quantization import examination
from epcheck.models.quantization.result import Quantization
from epcheck.models.validation.truth import ORACLE_S, tensors_by_name
from epcheck.models.wrong_nodes.options import Limits, SearchOptions
from epcheck.models.wrong_nodes.search import LimitsReached, Search


class DoctorError(EpcheckError, ValueError):
    """A model in which there is nothing to look for; the message says what to do."""


@dataclass(frozen=True)
class DiagnosisRequest:
    """A model, the target that it runs on, and how it is run and judged.

    model: an ONNX file; its external data lies beside it. converted: ask of a float32 model what it were in float16.
    level: of graph optimisation. override: of thresholds. limits: of the search for the smallest set. deadline_s:
    seconds for each step of a session. mended: give the model that is right, checked as the bytes of its file.
    data_name: of the file of external data that will be beside it; None where it stays beside the model of the request.
    """

    model: Path
    target: Target
    feeding: Feeding = field(default_factory=Feeding)
    converted: bool = False
    level: Level = "all"
    override: Override = field(default_factory=Override)
    limits: Limits = field(default_factory=Limits)
    deadline_s: float = DEADLINE_S
    mended: bool = False
    data_name: str | None = None


@dataclass(frozen=True)
class KnownTrial:
    """A trial with its truth. outputs: by name, those of sequences one by one. inner: of values within the graph."""

    trial: Trial
    outputs: Mapping[str, Feed]
    inner: Mapping[str, Feed] = field(repr=False)


def diagnose(request: DiagnosisRequest, report: Callable[[str], None] = lambda _phase: None) -> Diagnosis:
    """Run a model in float16 on a target, and look for the nodes that need float32.

    report: called with the name of each phase as it begins.

    Raises DoctorError where no node computes in float16 or quantises; ModelFileError, FeedError and DimsError for files
    and options that cannot be used, TargetDown for a target that cannot be started.
    """
    path, target = request.model.absolute(), request.target
    report("inspecting the file")
    parsed = model_file.parse(path)
    whole = embed_weights(parsed, path, model_file.bytes_of(parsed, path))
    folder = path.parent if any(True for _ in model_file.external_tensors(whole)) else None
    graph = placement.name_nodes(inline_file(request.model, whole))
    asked = subject(graph, request.converted, folder)
    tried = tuple(trials(graph, request.feeding))
    with ExitStack() as resources:
        sessions = resources.enter_context(ModelSessions(target, request.deadline_s))
        report("checking its quantisers")
        quantization = examination.examine(wire(graph, folder=folder), sessions, tried, request.level, request.limits)
        if asked.nodes:
            found = _Doctor(asked, sessions, tried, request).diagnosis(path, report)
        elif quantization is not None:
            found = _of_quantizers(quantization, Diagnosis(
                path, target.name, target.provider, request.level, request.converted, sessions.facts, "", (), Attempt(),
                None, False, 0, feeds_generated=tried[0].is_generated,
            ))  # fmt: skip
        else:
            what = "in float32 that could be in float16" if request.converted else "in float16"
            ask = "" if request.converted else " or quantisation; --float16 checks it as converted to float16"
            raise DoctorError(f"'{request.model}' has no node {what}{ask}")
        return replace(found, quantization=quantization, sessions=sessions.created)


def embed_weights(model: onnx.ModelProto, path: Path, size: int) -> onnx.ModelProto:
    """The model of a file with its weights in it; the same object. Of a large one, of so many bytes, those from
    MAPPED_BYTES on stay where they are. Raises ModelFileError."""
    return model_file.embed_data(model, path, model_file.MAPPED_BYTES if size > LARGE_BYTES else math.inf)


def _of_quantizers(quantization: Quantization, found: Diagnosis) -> Diagnosis:
    """The diagnosis of a model without float16."""
    obstacle = quantization.obstacle
    if not obstacle and quantization.error is None:
        obstacle = quantization.failure or "it has no comparable output"
    truth = f"no oracle: {quantization.obstacle}" if quantization.obstacle else "an oracle in float64"
    return replace(found, truth=truth, obstacle=obstacle)


class _Doctor:
    """One diagnosis. sessions: of the target."""

    def __init__(
        self, asked: Subject, sessions: ModelSessions, tried: Sequence[Trial], request: DiagnosisRequest
    ) -> None:
        self._subject, self._sessions, self._trials, self._request = asked, sessions, tried, request
        self._until = time.monotonic() + request.limits.seconds
        self._known: list[KnownTrial] = []
        self._ranges: dict[str, Range] = {}
        inferred = values.infer_types(asked.narrow, tried[0].shapes)
        self._thresholds = {name: _loosen_threshold(bound, request.override)
                            for name, bound in thresholds.of_outputs(inferred).items()}  # fmt: skip

    def diagnosis(self, path: Path, report: Callable[[str], None]) -> Diagnosis:
        target = self._sessions.target
        report("computing the truth")
        obstacle = self._compute_truth()
        words = "an oracle in float64" if self._known else f"no oracle: {obstacle}"
        found = Diagnosis(
            path, target.name, target.provider, self._request.level, self._request.converted, {}, words, (), Attempt(),
            None, False, 0, obstacle=obstacle, feeds_generated=self._trials[0].is_generated,
        )  # fmt: skip
        if obstacle:
            return found
        report(f"running on {target.name}")
        before = self._attempt(self._subject.narrow)
        report("checking each node")
        nodes = self._nodes()
        found = replace(found, nodes=nodes, before=before)
        smallest: SmallestSet | None = SmallestSet((), is_minimal=True)
        if not before.right:
            report("searching for the smallest set of nodes that need float32")
            try:
                smallest = smallest_set(*node_precision.suspects(self._subject, nodes), self._is_right)
            except LimitsReached:
                found = replace(found, obstacle="search limit reached; raise --sessions or --seconds")
                smallest = None
        if smallest is not None:
            found = self._with_set(found, smallest)
        return replace(found, facts=self._sessions.facts, sessions=self._sessions.created)

    def _with_set(self, found: Diagnosis, smallest: SmallestSet) -> Diagnosis:
        """The diagnosis with the smallest set, whose model is checked again as a file has it."""
        kept = set(smallest.nodes)
        nodes = tuple(replace(each, keeps=each.node.index in kept) for each in found.nodes)
        model = self._subject.with_wide(smallest.nodes)
        mended = model.SerializeToString() if self._request.mended else None
        again = model if mended is None else onnx.ModelProto.FromString(mended)
        after = self._attempt(again) if kept or mended is not None else None
        parts: tuple[DataPart, ...] = ()
        if mended is not None and self._request.data_name is not None and self._subject.folder is not None:
            mended, parts = pack(model, found.path, self._request.data_name)
        return replace(found, nodes=nodes, after=after, is_minimal=smallest.is_minimal, mended=mended, data=parts)

    def _compute_truth(self) -> str:
        """Why there is none; empty where there is."""
        until = time.monotonic() + ORACLE_S
        for trial in self._trials:
            recorder = Recorder()
            left = until - time.monotonic()
            try:
                evaluation = oracle.evaluate(self._subject.model, trial.inputs, max_seconds=left, disturbance=recorder,
                                             folder=self._subject.folder)  # fmt: skip
            except OracleError as error:
                return "" if self._known else f"no oracle for this model: {error}"
            recorder.add({name: value for name, value in trial.inputs.items() if isinstance(value, np.ndarray)})
            self._known.append(KnownTrial(trial, dict(tensors_by_name(evaluation.values)), recorder.values))
            for name, found in recorder.ranges.items():
                self._ranges[name] = join_ranges((self._ranges.get(name, Range()), found))
        return ""

    def _attempt(self, model: onnx.ModelProto, is_search: bool = False) -> Attempt:
        """A model on the target. is_search: stop at the first trial that is not right."""
        found: list[verdict.Verdict] = []
        for known in self._known:
            outcome = self._sessions.run(
                model, known.trial.inputs, level=self._request.level, folder=self._subject.folder
            )
            if outcome.stage == RUN and known.trial.instead is not None:
                continue  # a batch that the model does not take
            if not outcome.is_done:
                return Attempt(tuple(found), f"{known.trial.name}: {outcome.during or outcome.stage} ends with: "
                                             f"{outcome.message}")  # fmt: skip
            found += verdict.judge(known.trial.name, outcome.outputs, None, known.outputs, self._thresholds)
            if is_search and not all(each.right for each in found):
                break
        return Attempt(tuple(found))

    def _is_right(self, nodes: Collection[int]) -> bool:
        if self._sessions.created >= self._request.limits.sessions or time.monotonic() > self._until:
            raise LimitsReached
        return self._attempt(self._subject.with_wide(nodes), is_search=True).right

    def _nodes(self) -> tuple[NodePrecision, ...]:
        """Each node in float16, as the trials show it."""
        single: dict[str, Observed] = {}
        whole: dict[str, Observed] = {}
        ask = make_runner(self._sessions, self._subject.folder)
        options = SearchOptions(self._request.level, self._request.limits, self._subject.folder)
        for known in self._known:
            search = Search(self._subject.narrow, known.trial.inputs, ask, ask, options)
            try:
                single = node_precision.worse(single, node_precision.alone(self._subject, search, known.inner))
                whole = node_precision.worse(whole, node_precision.inside(self._subject, search, known.inner))
            except LimitsReached:
                break
        return node_precision.of_nodes(self._subject, self._ranges, single, whole)


def _loosen_threshold(bound: Threshold, override: Override) -> Threshold:
    """The threshold of an output: that of a validation, but at least a relative error of CEILING: what a deep model
    makes of honest rounding in float16. What the user chose is not extended."""
    chosen = override.apply(bound)
    if chosen.chosen or not bound.relative:
        return chosen
    return replace(bound, relative=max(bound.relative, CEILING))
