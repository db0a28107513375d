"""The wrong nodes in the bodies of a wrong If, Loop, Scan or SequenceMap.

Each execution of a body runs as a model of its own, on the baseline's values. The first that is not right there is
searched as a whole model is. Where each is right, the fault shows only in the node that holds the bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from epcheck.models.accuracy import closeness
from epcheck.models.execution.body_runs import BodyRun, visit
from epcheck.models.execution.model_outcome import DONE
from epcheck.models.execution.runner import RunResult
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.subgraph import SubgraphError
from epcheck.models.graph.values import bodies
from epcheck.models.wrong_nodes.culprit import Culprit
from epcheck.models.wrong_nodes.search import LimitsReached, Search, SessionFailed

TURNS = 32
"""Executions of the bodies of one node that are tried at most."""

SearchAll = Callable[[Search, RunResult], tuple[Culprit, ...]]
"""Every culprit of a search whose candidate gave that outcome for the whole model."""


class _NotRight(Exception):  # noqa: N818  (it ends the executions)
    """An execution that is not right on the candidate."""

    def __init__(self, run: BodyRun, outcome: RunResult) -> None:
        super().__init__()
        self.run, self.outcome = run, outcome


class _EnoughTurns(Exception):  # noqa: N818  (it ends the executions)
    """All executions that are tried were right."""


def with_inside(search: Search, culprit: Culprit, search_all: SearchAll) -> Culprit:
    """The culprit with those in its bodies, where it is one node that holds graphs; else as it is."""
    if not culprit.is_named or len(culprit.nodes) != 1:
        return culprit
    node = culprit.nodes[0].index
    if not any(bodies(search.wiring.model.graph.node[node])):
        return culprit
    try:
        search.expect(name for name in search.wiring.list_received_values(node) if name in search.wiring.producer)
        values = {**search.constants([node]), **search.expected, **culprit.received}
        visit(search.wiring, node, values, lambda run: _outputs(search, run))
    except _NotRight as found:
        return _inside(search, culprit, found, search_all)
    except (_EnoughTurns, LimitsReached, SessionFailed, SubgraphError):
        return culprit
    return replace(culprit, words=f"{culprit.words}; as models of their own its bodies are right")


def _outputs(search: Search, run: BodyRun) -> Mapping[str, Feed]:
    """The baseline's outputs of an execution. Raises _NotRight where the candidate's are others."""
    right = search.baseline(run.model, run.feeds)
    if right.stage != DONE:
        raise SessionFailed(right)
    got = search.candidate(run.model, run.feeds)
    noise = closeness.noise(run.model, right.outputs.values())
    if got.stage != DONE or got.repeat_differs or _apart(right.outputs, got.outputs) > noise:
        raise _NotRight(run, got)
    if run.turn + 1 >= TURNS:
        raise _EnoughTurns
    return right.outputs


def _apart(right: Mapping[str, Feed], got: Mapping[str, Feed]) -> float:
    return closeness.farthest(right, got, list(right))


def _inside(search: Search, culprit: Culprit, found: _NotRight, search_all: SearchAll) -> Culprit:
    inner = search.of_body(found.run.model, found.run.feeds)
    named = tuple(each for each in search_all(inner, found.outcome) if each.is_named)
    if not named:
        return culprit
    turn = f" (execution {found.run.turn})" if found.run.turn else ""
    words = "; ".join(each.words for each in named)
    (holder,) = culprit.nodes
    return replace(
        culprit,
        words=f"{holder} is wrong by what is in its {found.run.attribute}{turn}: {words}",
        inside=named,
        body=found.run.attribute,
    )
