"""Check every node in isolation, all in one session: each receives the baseline's values, not those of another node.

This finds what halving cannot: a node whose error is within the noise at first and grows along the graph. Where no
node is wrong, the error of the model is the sum of many small ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from epcheck.models.accuracy import closeness
from epcheck.models.execution.model_outcome import DONE
from epcheck.models.graph.subgraph import disconnected
from epcheck.models.graph.values import bodies
from epcheck.models.wrong_nodes.culprit import Culprit, Kind
from epcheck.models.wrong_nodes.node_check import NodeCheck, check_node, is_random
from epcheck.models.wrong_nodes.search import Search


def check_isolated_nodes(search: Search) -> Culprit | None:
    """The node that is wrong on the baseline's values, of several the one with the largest error; None where each is
    right. Raises LimitsReached, and SessionFailed where the baseline returns no values."""
    search.expect(search.possible_outputs())
    wrong: list[tuple[float, int, NodeCheck]] = []
    for nodes in _groups(search, _nodes_to_check(search)):
        wrong.extend(_wrong(search, nodes))
    if not wrong:
        return None
    _, node, check = max(wrong, key=lambda entry: (entry[0], -entry[1]))
    received = search.part([node], search.expected)[1]
    words = f"{search.named([node])} is wrong on the values that it should receive: {check.words} ({check.judge})"
    return search.culprit(Kind.NODE, [node], words, difference=check.kind, received=received)


def _nodes_to_check(search: Search) -> Iterator[int]:
    """The nodes whose inputs and outputs are known, that hold no graphs and draw no random numbers."""
    wiring = search.wiring
    known = search.expected.keys() | wiring.constants
    for node, proto in enumerate(wiring.model.graph.node):
        names = {*wiring.reads[node], *(name for name in wiring.made_by(node) if name in wiring.last_read)}
        if names <= known and not search.is_constant(node) and not any(bodies(proto)) and not is_random(wiring, node):
            yield node


def _groups(search: Search, nodes: Iterator[int]) -> Iterator[list[int]]:
    """The nodes in groups, each as large as the limit of bytes allows and of at least one node."""
    group: list[int] = []
    room, sizes = search.options.limits.bytes, search.sizes()
    for node in nodes:
        names = (*search.wiring.received_by(node), *search.wiring.made_by(node))
        size = sum(sizes.get(name, 0) for name in names)
        if group and size > room:
            yield group
            group, room = [], search.options.limits.bytes
        group.append(node)
        room -= size
    if group:
        yield group


def _wrong(search: Search, nodes: Sequence[int]) -> Iterator[tuple[float, int, NodeCheck]]:
    """(distance, node, check) of the nodes that are wrong. The nodes of a session that fails are divided between
    two."""
    outcome = search.candidate(*disconnected(search.wiring, nodes, search.expected))
    if outcome.stage != DONE:
        if len(nodes) > 1:
            half = len(nodes) // 2
            yield from _wrong(search, nodes[:half])
            yield from _wrong(search, nodes[half:])
        return
    for node in nodes:
        made = [name for name in search.wiring.made_by(node) if name in search.expected]
        apart = closeness.farthest(search.expected, outcome.outputs, made)
        if apart == 0:
            continue
        got = {name: outcome.outputs[name] for name in made if name in outcome.outputs}
        values = {**search.constants([node]), **search.expected}
        check = check_node(search.wiring, node, values, got, search.expected)
        if check.wrong:
            yield apart, node, check
