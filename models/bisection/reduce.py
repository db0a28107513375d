"""The smallest part of a model that still fails, with the values that it really received.

It starts from the nodes that bisection names, which are one mostly, and leaves out what can be left out while the part
fails with the same status and the same kind of difference (`judgement.kind_of_difference`). Where bisection names none,
as when errors only add up, it starts from the whole model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from epcheck.generators.error import EpcheckError
from epcheck.models.accuracy import closeness
from epcheck.models.bisection.bisect import find
from epcheck.models.bisection.culprit import Culprit, Kind, Place
from epcheck.models.bisection.delta_debugging import shrink
from epcheck.models.bisection.node_judgement import judge, kind_of_difference
from epcheck.models.bisection.search import Limits, Search, Spent, Unanswered
from epcheck.models.execution.asking import Answered, Ask
from epcheck.models.execution.session import DONE, Level
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.subgraph import SubgraphError
from epcheck.models.graph.values import bodies

MISMATCH, UNSTEADY = "mismatch", "unsteady"
"""Statuses of a part whose session comes to its end; the others are the stages of answers."""

NAMED = (Kind.NODE, Kind.FUSION, Kind.CRASH, Kind.TIMEOUT, Kind.REFUSED, Kind.UNSTEADY)
"""What bisection finds that fails by itself."""


class ReduceError(EpcheckError, ValueError):
    """There is nothing to reduce, or it cannot be; the message says why."""


@dataclass(frozen=True)
class Reduced:
    """A part that fails.

    status: `mismatch`, `unsteady`, or the stage at which the candidate ends. difference: of what kind it is. feeds:
    what the part received; expected: what the baseline makes of that; got: what the candidate does, empty where it
    ends. tolerance: how far from what is expected is right, as `closeness.distance` has it.
    """

    model: onnx.ModelProto
    nodes: tuple[Place, ...]
    status: str
    difference: str
    feeds: Mapping[str, Feed]
    expected: Mapping[str, Feed]
    got: Mapping[str, Feed]
    level: Level
    tolerance: float
    culprit: Culprit


def reduce_model(
    model: onnx.ModelProto,
    feeds: Mapping[str, Feed],
    candidate: Ask,
    baseline: Ask,
    *,
    level: Level = "all",
    answer: Answered | None = None,
    limits: Limits | None = None,
    folder: Path | None = None,
) -> Reduced:
    """The smallest part of a model on which the candidate fails as it does on the whole; parameters as those of
    `bisect.first_wrong_node`. The same targets give the same part. Raises ReduceError where nothing fails, or where not
    even the whole model does when its nodes receive the baseline's values.
    """
    search = Search(model, feeds, candidate, baseline, level, limits or Limits(), folder)
    culprit = find(search, answer)
    if culprit.kind in (Kind.RIGHT, Kind.RANDOM):
        raise ReduceError(f"there is nothing to reduce: {culprit.words}")
    try:
        return _Reduction(search, culprit).result()
    except (Spent, Unanswered, SubgraphError) as obstacle:
        raise ReduceError(f"it cannot be reduced: {obstacle or 'the limits were reached'}; {culprit.words}") from None


@dataclass(frozen=True)
class _Status:
    status: str
    difference: str = ""


class _Reduction:
    def __init__(self, search: Search, culprit: Culprit) -> None:
        self._search, self._culprit = search, culprit
        self._values = {**search.expected, **culprit_values(search, culprit)}
        self._said: dict[tuple[int, ...], Answered] = {}

    def result(self) -> Reduced:
        search, named = self._search, tuple(one.index for one in self._culprit.nodes)
        whole = tuple(node for node in range(search.wiring.nodes) if not search.is_constant(node))
        start = named if self._culprit.kind in NAMED else whole
        wanted = self._does(start)
        if wanted is None and start != whole:
            start, wanted = whole, self._does(whole)
        if wanted is None:
            raise ReduceError(f"no part of the model fails by itself; {self._culprit.words}")
        nodes = shrink(start, lambda part: self._does(part) == wanted)
        part, feeds = search.part(nodes, self._values)
        said, expected = self._said[nodes], search.baseline(part, feeds)
        if search.folder is not None:
            onnx.load_external_data_for_model(part, str(search.folder))
        return Reduced(
            model=part,
            nodes=search.places(nodes),
            status=wanted.status,
            difference=wanted.difference,
            feeds=feeds,
            expected=expected.outputs if expected.stage == DONE else {},
            got=said.outputs if said.stage == DONE else {},
            level=search.level,
            tolerance=self._allowed(expected.outputs.values()),
            culprit=self._culprit,
        )

    def _does(self, nodes: Sequence[int]) -> _Status | None:
        """How the nodes fail by themselves; None where they do not, or cannot be taken by themselves."""
        try:
            part, feeds = self._search.part(nodes, self._values)
        except SubgraphError:
            return None
        said = self._said[tuple(nodes)] = self._search.candidate(part, feeds)
        if said.stage != DONE:
            return _Status(said.stage)
        if self._culprit.kind == Kind.UNSTEADY:
            return _Status(UNSTEADY) if said.repeat_differs else None
        expected = self._search.baseline(part, feeds)
        return self._compared(nodes, said.outputs, expected.outputs) if expected.stage == DONE else None

    def _compared(self, nodes: Sequence[int], got: Mapping[str, Feed], expected: Mapping[str, Feed]) -> _Status | None:
        search = self._search
        if len(nodes) == 1 and not any(bodies(search.wiring.model.graph.node[nodes[0]])):
            values = {**search.constants(nodes), **self._values}
            said = judge(search.wiring, nodes[0], values, got, expected)
            return _Status(MISMATCH, said.kind) if said.wrong else None
        apart = {name: closeness.distance(expected[name], got[name]) for name in expected if name in got}
        worst = max(apart, key=lambda name: apart[name], default="")
        if not worst or apart[worst] <= self._allowed([expected[worst]]):
            return None
        return _Status(MISMATCH, kind_of_difference(expected[worst], got[worst]))

    def _allowed(self, values: Iterable[Feed]) -> float:
        """What several nodes may be off by: what the search took for right, or the noise of the dtype."""
        return max(self._search.tolerance, closeness.noise(self._search.wiring.model, values))


def culprit_values(search: Search, culprit: Culprit) -> dict[str, Feed]:
    """What nodes received: of the candidate where they were judged by that, else of the baseline."""
    if culprit.kind in (Kind.FUSION, Kind.ACCUMULATED, Kind.UNEXPLAINED):
        search.expect(search.tensors())
        return dict(search.expected)
    return {
        **search.expected,
        **search.seen,
        **culprit.received,
    }
