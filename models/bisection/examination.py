"""Every node by itself in one session: each receives the baseline's values, and nothing that another node makes.

It finds what a bisection cannot: a node whose error is too small to tell from noise where it is born, and has grown by
the end. Where no node is wrong, an error can only have added up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from epcheck.models.accuracy import closeness
from epcheck.models.bisection.culprit import Culprit, Kind
from epcheck.models.bisection.node_judgement import Judgement, is_random, judge
from epcheck.models.bisection.search import Search
from epcheck.models.execution.session import DONE
from epcheck.models.graph.subgraph import disconnected
from epcheck.models.graph.values import bodies


def examine(search: Search) -> Culprit | None:
    """The node that is wrong by itself on the baseline's values: of several the one whose error is largest; None where
    each is right. Raises Spent, and Unanswered when the baseline gives no values."""
    search.expect(search.tensors())
    wrong: list[tuple[float, int, Judgement]] = []
    for nodes in _groups(search, _examined(search)):
        wrong.extend(_wrong(search, nodes))
    if not wrong:
        return None
    _, node, said = max(wrong, key=lambda one: (one[0], -one[1]))
    received = search.part([node], search.expected)[1]
    named = search.places([node])[0]
    words = f"{named} is wrong on the values that it should receive: {said.words} ({said.judge})"
    return search.found(Kind.NODE, [node], words, difference=said.kind, received=received)


def _examined(search: Search) -> Iterator[int]:
    """The nodes that take and give tensors that are known, hold no graphs and draw no random numbers."""
    wiring = search.wiring
    known = search.expected.keys() | wiring.constants
    for node, proto in enumerate(wiring.model.graph.node):
        names = {*wiring.reads[node], *(name for name in wiring.made_by(node) if name in wiring.last_read)}
        if names <= known and not search.is_constant(node) and not any(bodies(proto)) and not is_random(wiring, node):
            yield node


def _groups(search: Search, nodes: Iterator[int]) -> Iterator[list[int]]:
    """As many nodes at once as the limit of bytes allows; at least one."""
    group: list[int] = []
    room, sizes = search.limits.bytes, search.sizes()
    for node in nodes:
        names = (*search.wiring.received_by(node), *search.wiring.made_by(node))
        size = sum(sizes.get(name, 0) for name in names)
        if group and size > room:
            yield group
            group, room = [], search.limits.bytes
        group.append(node)
        room -= size
    if group:
        yield group


def _wrong(search: Search, nodes: Sequence[int]) -> Iterator[tuple[float, int, Judgement]]:
    """(distance, node, judgement) of those that are wrong. A session that fails is divided until it does not."""
    answer = search.candidate(*disconnected(search.wiring, nodes, search.expected))
    if answer.stage != DONE:
        if len(nodes) > 1:
            half = len(nodes) // 2
            yield from _wrong(search, nodes[:half])
            yield from _wrong(search, nodes[half:])
        return
    for node in nodes:
        made = [name for name in search.wiring.made_by(node) if name in search.expected]
        apart = closeness.farthest(search.expected, answer.outputs, made)
        if apart == 0:
            continue
        got = {name: answer.outputs[name] for name in made if name in answer.outputs}
        values = {**search.constants([node]), **search.expected}
        said = judge(search.wiring, node, values, got, search.expected)
        if said.wrong:
            yield apart, node, said
