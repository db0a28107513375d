"""The nodes at which right becomes wrong, by themselves, on the values that they received in the whole model.

They run without graph optimisation first: what is wrong then is wrong whatever the optimiser does. The baseline is
asked about the same values only where the operator's oracle has not decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from epcheck.models.accuracy import closeness
from epcheck.models.bisection.culprit import Culprit, Kind
from epcheck.models.bisection.node_judgement import BASELINE, ORACLE, Judgement, judge, kind_of_difference
from epcheck.models.bisection.search import Search, Unanswered
from epcheck.models.execution.session import DONE, Level
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.values import bodies


def confirm(search: Search, nodes: Sequence[int]) -> Culprit | None:
    """The nodes as the culprit where they are wrong by themselves. Raises Unanswered where they end their session."""
    levels: dict[str, str] = {}
    tried: tuple[Level, ...] = ("disabled", search.level)
    for level in dict.fromkeys(tried):
        said = _alone(search, nodes, level)
        levels[level] = "wrong" if said.wrong else "right"
        if said.wrong:
            named = ", ".join(map(str, search.places(nodes)))
            only = "; without graph optimisation it is right" if "right" in levels.values() else ""
            words = f"{named} is wrong on the values that it received: {said.words} ({said.judge}){only}"
            received = search.part(nodes, search.seen)[1]
            return search.found(Kind.NODE, nodes, words, difference=said.kind, levels=levels, received=received)
    return None


def is_wrong_inside(search: Search, nodes: Sequence[int]) -> bool:
    """Whether what they made inside the whole model is wrong, for the values that they received there."""
    made = {name: search.seen[name] for node in nodes for name in search.wiring.made_by(node) if name in search.seen}
    return _judged(search, nodes, made, search.seen, _by_baseline(search, nodes)).wrong


def _alone(search: Search, nodes: Sequence[int], level: Level) -> Judgement:
    answer = search.candidate(*search.part(nodes, search.seen), level)
    if answer.stage != DONE:
        raise Unanswered(answer)
    inside = {name: search.expected[name] for node in nodes for name in search.wiring.made_by(node)
              if name in search.expected}  # fmt: skip
    said = _judged(search, nodes, answer.outputs, search.seen, inside)
    if said.wrong and said.judge == ORACLE:
        return said  # of the baseline, whose inputs were all but the same, the oracle says that it is right
    return _judged(search, nodes, answer.outputs, search.seen, _by_baseline(search, nodes))


def _by_baseline(search: Search, nodes: Sequence[int]) -> Mapping[str, Feed]:
    """What the baseline makes of the values that the nodes received. Raises Unanswered."""
    answer = search.baseline(*search.part(nodes, search.seen))
    if answer.stage != DONE:
        raise Unanswered(answer)
    return answer.outputs


def _judged(
    search: Search,
    nodes: Sequence[int],
    got: Mapping[str, Feed],
    received: Mapping[str, Feed],
    expected: Mapping[str, Feed],
) -> Judgement:
    """One node by its oracle; several, or one with bodies, by what the baseline makes of the same."""
    if len(nodes) == 1 and not any(bodies(search.wiring.model.graph.node[nodes[0]])):
        return judge(search.wiring, nodes[0], {**search.constants(nodes), **received}, got, expected)
    for name, value in got.items():
        kind = kind_of_difference(expected.get(name), value)
        if kind != "right" and closeness.distance(expected[name], value) > search.tolerance:
            return Judgement(kind, f"'{name}' differs from the baseline", BASELINE)
    return Judgement("right", judge=BASELINE)
