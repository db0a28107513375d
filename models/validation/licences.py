"""Is an error of the outputs that of nodes which a published table allows it?

In a shader Atan may be 4096 ULP off (Vulkan), and the threshold of an output counts one rounding for each node. So the
oracle computes the model once more, and the candidate computes the nodes in it that only such a table makes right, each
alone on the values that it receives there. An output that keeps its threshold beside that is right: these nodes explain
its whole error. The threshold stays the same, and so does the bound of each node, which is checked on these values.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from epcheck.models.accuracy import verdict
from epcheck.models.accuracy.metrics import measure
from epcheck.models.accuracy.thresholds import Threshold
from epcheck.models.accuracy.verdict import Verdict
from epcheck.models.execution.model_outcome import DONE, ModelOutcome
from epcheck.models.execution.runner import Runner, make_runner
from epcheck.models.execution.session import Level, ModelSessions
from epcheck.models.feeds.trials import Trial
from epcheck.models.graph import values
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.subgraph import SubgraphError, disconnect_nodes
from epcheck.models.graph.wiring import Wiring, wire
from epcheck.models.oracle import oracle
from epcheck.models.oracle.node import OracleError, widen_value
from epcheck.models.validation.truth import ORACLE_S, tensors_by_name
from epcheck.models.validation.validation import WRONG, Validation
from epcheck.models.wrong_nodes.culprit import graph_node
from epcheck.models.wrong_nodes.judged_nodes import JudgedNodes
from epcheck.models.wrong_nodes.node_check import check_node

MOST = 40
"""Nodes that the candidate computes at most, each in a session of its own."""


@dataclass(frozen=True)
class Licences:
    """Nodes that a published table makes right. model: with its small weights in it. thresholds: of its outputs.
    judged: all nodes, each alone. sessions: of the candidate. folder: where the model's large weights are; None where
    it has none."""

    model: onnx.ModelProto
    thresholds: Mapping[str, Threshold]
    judged: JudgedNodes
    sessions: ModelSessions
    folder: Path | None

    def explain(
        self, found: Validation, tried: Sequence[Trial], outcomes: Sequence[ModelOutcome], seconds: float
    ) -> Validation:
        """The validation, in which outputs are right that these nodes explain. outcomes: of the candidate in the
        trials. seconds: at most."""
        until = time.monotonic() + min(seconds, ORACLE_S)
        if found.status != WRONG or self.judged.wrong != () or not 0 < len(self.judged.licensed) <= MOST:
            return found
        verdicts: list[Verdict] = []
        for trial, outcome in zip(tried, outcomes, strict=False):
            judged = [each for each in found.verdicts if each.trial == trial.name]
            if any(map(_can_be_explained, judged)):
                judged = self._explain_trial(trial, outcome, judged, found.level, until - time.monotonic())
            verdicts += judged
        return replace(found, verdicts=tuple(verdicts))

    def _explain_trial(
        self, trial: Trial, outcome: ModelOutcome, judged: list[Verdict], level: Level, seconds: float
    ) -> list[Verdict]:
        taking = self._take_nodes(trial, level)
        try:
            known = oracle.evaluate(
                self.model, trial.inputs, max_seconds=seconds, disturbance=taking, folder=self.folder
            ).values
        except (OracleError, SubgraphError):
            return judged
        beside = {
            each.output: each.why
            for each in verdict.judge(trial.name, outcome.outputs, None, dict(tensors_by_name(known)), self.thresholds)
            if each.right
        }
        reason = "; ".join(taking.words)
        return [
            _explain(each, reason, beside[each.output]) if _can_be_explained(each) and each.output in beside else each
            for each in judged
        ]

    def _take_nodes(self, trial: Trial, level: Level) -> _CandidateNodes:
        wiring = wire(self.model, trial.inputs)
        types = values.of_graph(values.infer_types(self.model, trial.shapes).graph)
        dtypes = {name: np.dtype(kind.dtype) for name, kind in types.items() if kind.dtype in ("float16", "float32")}
        indices = {wiring.list_outputs(found.node)[0]: found.node for found in self.judged.licensed}
        return _CandidateNodes(wiring, indices, dtypes, make_runner(self.sessions, self.folder, once=True), level)


def _can_be_explained(judged: Verdict) -> bool:
    """Whether an output is wrong beside the truth, by a threshold that the user has not chosen."""
    kept = judged.metrics is not None and not judged.metrics.nonfinite and not judged.threshold.chosen
    return judged.wrong and kept and judged.against != verdict.EXPECTED


def _explain(judged: Verdict, reason: str, why: str) -> Verdict:
    """The same output, which is right. reason: the nodes. why: it is right with their results."""
    words = f"{judged.why}, within the bounds of its nodes: {reason}; with what they gave, the output is right: {why}"
    return replace(judged, right=True, undecided=False, why=words, within_bounds=reason)


@dataclass
class _CandidateNodes:
    """A disturbance of the oracle in which the candidate computes some nodes. nodes: first output -> index. dtypes: of
    the values that are widened. words: what each of these nodes was off, and what allows it."""

    wiring: Wiring
    nodes: Mapping[str, int]
    dtypes: Mapping[str, np.dtype[Any]]
    ask: Runner
    level: Level
    words: list[str] = field(default_factory=list)
    _inputs: Sequence[Feed] = ()

    def operands(self, node: onnx.NodeProto, inputs: Sequence[Feed]) -> Sequence[Feed]:  # noqa: ARG002
        self._inputs = inputs
        return inputs

    def results(self, node: onnx.NodeProto, values: Sequence[Feed]) -> Sequence[Feed]:
        at = self.nodes.get(next(filter(None, node.output), ""))
        if at is None:
            return values
        received = {name: self._narrow(name, each) for name, each in zip(node.input, self._inputs, strict=True) if name}
        alone, feeds = disconnect_nodes(self.wiring, [at], received)
        outcome = self.ask(alone, feeds, level=self.level)
        check = check_node(self.wiring, at, received, outcome.outputs, {}) if outcome.stage == DONE else None
        got = [outcome.outputs.get(name) for name in node.output]
        if check is None or check.wrong or any(value is None for value in got):
            raise OracleError(f"{graph_node(self.wiring.model, at)} is beyond its bound on these values")
        if check.licence:
            off = max(_measure_ulps(value, true) for value, true in zip(got, values, strict=True))
            self.words.append(
                f"{graph_node(self.wiring.model, at)} is up to {off:.0f} ULP off, within its bound ({check.licence})"
            )
        return [widen_value(value) for value in got]

    def _narrow(self, name: str, value: Feed) -> Feed:
        dtype = self.dtypes.get(name)
        return value.astype(dtype) if isinstance(value, np.ndarray) and dtype is not None else value


def _measure_ulps(value: Feed, true: Feed) -> float:
    assert isinstance(value, np.ndarray)
    assert isinstance(true, np.ndarray)
    return measure(value, true).max_ulp or 0.0
