"""Reduce a model to the smallest part that still fails, with the values that this part received.

Reduction starts from the nodes that the search names, mostly a single one, and removes nodes as long as the rest fails
with the same status and the same kind of difference (`node_check.kind_of_difference`). Where it names none, as
when small errors accumulate, it starts from the whole model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from epcheck.conformance.test_data import model_file
from epcheck.generators.error import EpcheckError
from epcheck.generators.truth import Output
from epcheck.models.accuracy import closeness
from epcheck.models.execution.model_outcome import DONE
from epcheck.models.execution.runner import Runner, RunResult
from epcheck.models.execution.session import Level
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.subgraph import SubgraphError
from epcheck.models.graph.values import bodies
from epcheck.models.wrong_nodes.culprit import NAMED, Culprit, GraphNode, Kind
from epcheck.models.wrong_nodes.delta_debugging import minimize
from epcheck.models.wrong_nodes.first_wrong_node import find
from epcheck.models.wrong_nodes.node_check import NodeCheck, check_node, kind_of_difference
from epcheck.models.wrong_nodes.options import SearchOptions
from epcheck.models.wrong_nodes.search import LimitsReached, Search, SessionFailed

MISMATCH, UNSTEADY = "mismatch", "unsteady"
"""Statuses of a part whose session ends regularly; other statuses are stages of model outcomes."""


class ReduceError(EpcheckError, ValueError):
    """There is nothing to reduce, or it cannot be reduced; the message says why."""


@dataclass(frozen=True)
class Reduced:
    """A part that fails.

    content: its model, serialized: one that a stranger's process made is not parsed by ours. inputs, outputs: names of
    the graph's. status: `mismatch`, `unsteady`, or the stage at which the candidate's session fails. difference: its
    kind. feeds: of the part. expected: the baseline's outputs. got: the candidate's, empty where its session fails.
    truth: what its outputs were judged by, tensors alone.
    """

    content: bytes = field(repr=False)
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[GraphNode, ...]
    status: str
    difference: str
    feeds: Mapping[str, Feed]
    expected: Mapping[str, Feed]
    got: Mapping[str, Feed]
    level: Level
    truth: tuple[Output, ...]
    culprit: Culprit

    @property
    def model(self) -> onnx.ModelProto:
        """The part, parsed at each call."""
        model: onnx.ModelProto = onnx.ModelProto.FromString(self.content)
        return model


def reduce_model(
    model: onnx.ModelProto,
    feeds: Mapping[str, Feed],
    candidate: Runner,
    baseline: Runner,
    options: SearchOptions | None = None,
    outcome: RunResult | None = None,
) -> Reduced:
    """The smallest part of a model on which the candidate fails as it does on the whole model.

    Parameters as those of `first_wrong_node`. The same targets give the same part. Raises ReduceError where
    nothing fails, or where the model does not fail when its nodes receive the baseline's values.
    """
    search = Search(model, feeds, candidate, baseline, options or SearchOptions())
    culprit = find(search, outcome)
    if culprit.kind in (Kind.RIGHT, Kind.RANDOM):
        raise ReduceError(f"nothing to reduce: {culprit.words}")
    try:
        return _Reduction(search, culprit).result()
    except (LimitsReached, SessionFailed, SubgraphError) as obstacle:
        raise ReduceError(f"it cannot be reduced: {obstacle or 'search limit reached'}; {culprit.words}") from None


@dataclass(frozen=True)
class _Status:
    status: str
    difference: str = ""


class _Reduction:
    def __init__(self, search: Search, culprit: Culprit) -> None:
        self._search, self._culprit = search, culprit
        self._values = {**search.expected, **culprit_values(search, culprit)}
        self._outcomes: dict[tuple[int, ...], RunResult] = {}

    def result(self) -> Reduced:
        search, named = self._search, tuple(node.index for node in self._culprit.nodes)
        whole = tuple(node for node in range(search.wiring.nodes) if not search.is_constant(node))
        start = named if self._culprit.kind in NAMED else whole
        wanted = self._failure(start)
        if wanted is None and start != whole:
            start, wanted = whole, self._failure(whole)
        if wanted is None:
            raise ReduceError(f"no part of the model fails by itself; {self._culprit.words}")
        nodes = minimize(start, lambda part: self._failure(part) == wanted)
        part, feeds = search.part(nodes, self._values)
        outcome, expected = self._outcomes[nodes], search.baseline(part, feeds)
        if search.options.folder is not None:
            model_file.embed_data(part, search.options.folder / "model.onnx")
        try:
            content = part.SerializeToString()
        except Exception as error:  # protobuf's own type depends on its version
            raise ReduceError(f"the part cannot be written, probably because it is too large: {error}") from None
        return Reduced(
            content=content,
            inputs=tuple(value.name for value in part.graph.input),
            outputs=tuple(value.name for value in part.graph.output),
            nodes=search.graph_nodes(nodes),
            status=wanted.status,
            difference=wanted.difference,
            feeds=feeds,
            expected=expected.outputs if expected.stage == DONE else {},
            got=outcome.outputs if outcome.stage == DONE else {},
            level=search.options.level,
            truth=self._truth(nodes, outcome.outputs, expected.outputs if expected.stage == DONE else {}),
            culprit=self._culprit,
        )

    def _failure(self, nodes: Sequence[int]) -> _Status | None:
        """How the nodes fail alone; None where they do not, or are no model of their own."""
        try:
            part, feeds = self._search.part(nodes, self._values)
        except SubgraphError:
            return None
        outcome = self._outcomes[tuple(nodes)] = self._search.candidate(part, feeds)
        if outcome.stage != DONE:
            return _Status(outcome.stage)
        if self._culprit.kind == Kind.UNSTEADY:
            return _Status(UNSTEADY) if outcome.repeat_differs else None
        expected = self._search.baseline(part, feeds)
        return self._compare_outputs(nodes, outcome.outputs, expected.outputs) if expected.stage == DONE else None

    def _compare_outputs(
        self, nodes: Sequence[int], got: Mapping[str, Feed], expected: Mapping[str, Feed]
    ) -> _Status | None:
        if self._is_plain(nodes):
            check = self._check(nodes, got, expected)
            return _Status(MISMATCH, check.kind) if check.wrong else None
        apart = {name: closeness.distance(expected[name], got[name]) for name in expected if name in got}
        worst = max(apart, key=lambda name: apart[name], default="")
        if not worst or apart[worst] <= self._allowed([expected[worst]]):
            return None
        return _Status(MISMATCH, kind_of_difference(expected[worst], got[worst]))

    def _is_plain(self, nodes: Sequence[int]) -> bool:
        """Whether they are one node without graphs of its own, which is judged by its operator's bound."""
        return len(nodes) == 1 and not any(bodies(self._search.wiring.model.graph.node[nodes[0]]))

    def _check(self, nodes: Sequence[int], got: Mapping[str, Feed], expected: Mapping[str, Feed]) -> NodeCheck:
        values = {**self._search.constants(nodes), **self._values}
        return check_node(self._search.wiring, nodes[0], values, got, expected)

    def _truth(self, nodes: Sequence[int], got: Mapping[str, Feed], expected: Mapping[str, Feed]) -> tuple[Output, ...]:
        """What the outputs of the part are judged by."""
        if self._is_plain(nodes) and got and expected:
            return self._check(nodes, got, expected).truth
        tolerance = self._allowed(expected.values())
        found = ((name, value) for name, value in expected.items() if isinstance(value, np.ndarray))
        return tuple(closeness.within(name, value, tolerance) for name, value in found)

    def _allowed(self, values: Iterable[Feed]) -> float:
        """The distance up to which outputs of several nodes are right: the tolerance of the search, or the noise of the
        dtype where that is more."""
        return max(self._search.tolerance, closeness.noise(self._search.wiring.model, values))


def culprit_values(search: Search, culprit: Culprit) -> dict[str, Feed]:
    """Values for the nodes of a culprit: the candidate's where it was found with them, else the baseline's."""
    if culprit.kind in (Kind.FUSION, Kind.ACCUMULATED, Kind.UNEXPLAINED):
        search.expect(search.possible_outputs())
        return dict(search.expected)
    return {
        **search.expected,
        **search.candidate_values,
        **culprit.received,
    }
