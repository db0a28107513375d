"""Nodes that are wrong together and right alone: a fusion at fault, or what else a provider makes of neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from epcheck.models.accuracy import closeness
from epcheck.models.bisection.culprit import ENDS, Culprit, Kind
from epcheck.models.bisection.delta_debugging import shrink
from epcheck.models.bisection.search import Search
from epcheck.models.execution.asking import LEVELS
from epcheck.models.execution.session import DONE, Level
from epcheck.models.graph.subgraph import SubgraphError


def name_company(search: Search, nodes: Sequence[int], why: str, stage: str = DONE) -> Culprit:
    """Name the smallest set of nodes around these that fails by itself on the baseline's values, and at which levels.

    stage: how the whole model's session ends; `done` where its values are wrong. A set that is right at a lower level
    is a fusion. Raises Spent and Unanswered.
    """
    search.expect(search.tensors())

    def fails(part: Sequence[int], level: Level | None = None) -> bool:
        return _does(search, part, level, stage) == ("wrong" if stage == DONE else stage)

    window = _failing_window(search, nodes, fails)
    if window is None:
        words = (
            f"the error comes up at {_named(search, nodes)}, but {why}, and no part of the model around them shows it"
        )
        return search.found(Kind.UNEXPLAINED, nodes, words)
    smallest = shrink(window, fails)
    levels = {level: _does(search, smallest, level, stage) for level in LEVELS[: LEVELS.index(search.level) + 1]}
    right = [level for level, does in levels.items() if does == "right"]
    received = search.part(smallest, search.expected)[1]
    together = _named(search, smallest)
    if not right:
        does = ENDS.get(levels[search.level], levels[search.level])
        words = f"{together}: together {does} at every optimisation level, and {why}"
        return search.found(Kind.UNEXPLAINED, smallest, words, levels=levels, received=received)
    first = LEVELS[LEVELS.index(right[-1]) + 1]
    does = ENDS.get(levels[first], levels[first])
    words = f"{together}: right at level '{right[-1]}', {does} at level '{first}', which fuses them"
    return search.found(Kind.FUSION, smallest, words, difference=levels[first], levels=levels, received=received)


def _failing_window(
    search: Search, nodes: Sequence[int], fails: Callable[[Sequence[int]], bool]
) -> tuple[int, ...] | None:
    """Ever more nodes before and behind these, until they fail; None when the whole model does not."""
    reach, count = 1, search.wiring.nodes
    while True:
        first, last = max(0, nodes[0] - reach), min(count, nodes[-1] + 1 + reach)
        window = tuple(node for node in range(first, last) if not search.is_constant(node))
        if fails(window):
            return window
        if (first, last) == (0, count):
            return None
        reach *= 2


def _does(search: Search, nodes: Sequence[int], level: Level | None, stage: str) -> str:
    """What the nodes do by themselves: 'right', 'wrong', or the stage at which they end. Where the whole model ends at
    a `stage`, whatever comes to its end is right."""
    try:
        part, feeds = search.part(nodes, search.expected)
    except SubgraphError:
        return "unknown"
    answer = search.candidate(part, feeds, level)
    if answer.stage != DONE or stage != DONE:
        return "right" if answer.stage == DONE else answer.stage
    names = [output.name for output in part.graph.output if output.name in search.expected]
    return "wrong" if closeness.farthest(search.expected, answer.outputs, names) > search.tolerance else "right"


def _named(search: Search, nodes: Sequence[int]) -> str:
    return ", ".join(map(str, search.places(nodes)))
