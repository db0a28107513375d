"""Check every node in isolation, all in one session: each receives the baseline's values, not those of another node.

This finds what halving cannot: a node whose error is within the noise at first and grows along the graph. Where no
node is wrong, the error of the model is the sum of many small ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from epcheck.models.accuracy import closeness
from epcheck.models.execution.model_outcome import DONE
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.subgraph import disconnect_nodes
from epcheck.models.graph.values import bodies
from epcheck.models.wrong_nodes.culprit import Culprit, Kind
from epcheck.models.wrong_nodes.node_check import NodeCheck, check_node, is_random
from epcheck.models.wrong_nodes.search import Search


@dataclass(frozen=True)
class WrongAlone:
    """A node that is not like the baseline's on the baseline's values. node: its index. error: the `closeness.distance`
    of its outputs `got` from the baseline's."""

    node: int
    check: NodeCheck
    error: float
    got: Mapping[str, Feed] = field(repr=False)


def check_isolated_nodes(search: Search) -> Culprit | None:
    """The node that is wrong on the baseline's values, of several the one with the largest error; None where each is
    right. Raises LimitsReached, and SessionFailed where the baseline returns no values."""
    wrong = wrong_alone(search)
    return as_culprit(search, max(wrong, key=lambda found: (found.error, -found.node))) if wrong else None


def wrong_alone(search: Search) -> list[WrongAlone]:
    """Every node that is wrong on the baseline's values, in the order of the graph. Raises as `check_isolated_nodes`
    does."""
    return [found for found in unlike_alone(search) if found.check.wrong]


def unlike_alone(search: Search) -> list[WrongAlone]:
    """Every node whose outputs are not the baseline's on the baseline's values, also where it is within its bound; in
    the order of the graph. Raises as `check_isolated_nodes` does."""
    search.expect(search.possible_outputs())
    found = [each for nodes in _groups(search, _nodes_to_check(search)) for each in _unlike(search, nodes)]
    return sorted(found, key=lambda each: each.node)


def as_culprit(search: Search, wrong: WrongAlone) -> Culprit:
    """The result that names this node."""
    check = wrong.check
    received = search.part([wrong.node], search.expected)[1]
    words = f"{search.named([wrong.node])} is wrong on the values that it should receive: {check.words} ({check.judge})"
    return search.culprit(Kind.NODE, [wrong.node], words, difference=check.kind, received=received)


def _nodes_to_check(search: Search) -> Iterator[int]:
    """The nodes whose inputs and outputs are known, that hold no graphs and draw no random numbers."""
    wiring = search.wiring
    known = search.expected.keys() | wiring.constants
    for node, proto in enumerate(wiring.model.graph.node):
        names = {*wiring.reads[node], *(name for name in wiring.list_outputs(node) if name in wiring.last_read)}
        if names <= known and not search.is_constant(node) and not any(bodies(proto)) and not is_random(wiring, node):
            yield node


def _groups(search: Search, nodes: Iterator[int]) -> Iterator[list[int]]:
    """The nodes in groups, each as large as the limit of bytes allows and of at least one node."""
    group: list[int] = []
    room, sizes = search.options.limits.bytes, search.sizes()
    for node in nodes:
        names = (*search.wiring.list_received_values(node), *search.wiring.list_outputs(node))
        size = sum(sizes.get(name, 0) for name in names)
        if group and size > room:
            yield group
            group, room = [], search.options.limits.bytes
        group.append(node)
        room -= size
    if group:
        yield group


def _unlike(search: Search, nodes: Sequence[int]) -> Iterator[WrongAlone]:
    """The nodes that are not like the baseline's. The nodes of a session that fails are divided between two."""
    outcome = search.candidate(*disconnect_nodes(search.wiring, nodes, search.expected))
    if outcome.stage != DONE:
        if len(nodes) > 1:
            half = len(nodes) // 2
            yield from _unlike(search, nodes[:half])
            yield from _unlike(search, nodes[half:])
        return
    for node in nodes:
        made = [name for name in search.wiring.list_outputs(node) if name in search.expected]
        apart = closeness.farthest(search.expected, outcome.outputs, made)
        if apart == 0:
            continue
        got = {name: outcome.outputs[name] for name in made if name in outcome.outputs}
        values = {**search.constants([node]), **search.expected}
        check = check_node(search.wiring, node, values, got, search.expected)
        yield WrongAlone(node, check, apart, got)
