"""In which order the providers have their turn: runs of nodes on one provider, and the copies between them.

ONNX Runtime runs nodes in a topological order of its own. Here they are in one in which the provider changes as rarely
as the graph allows: all nodes of one provider that can run, then all of the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from epcheck.models.graph.wiring import Wiring

TO_EP, FROM_EP = "to the provider", "from the provider"


@dataclass(frozen=True)
class Copy:
    """A tensor that travels between the provider's memory and the CPU's in each run. bytes: None where a size is not
    known."""

    value: str
    direction: str
    bytes: int | None


class Copying:
    """What has copies between devices, which each run makes."""

    copies: tuple[Copy, ...]

    @property
    def copied_bytes(self) -> int:
        """Of the copies whose size is known."""
        return sum(copy.bytes or 0 for copy in self.copies)

    @property
    def is_exact(self) -> bool:
        """Whether the size of every copy is known."""
        return all(copy.bytes is not None for copy in self.copies)


@dataclass(frozen=True)
class Segment(Copying):
    """Nodes of the main graph that run on one provider before another has its turn.

    nodes: names, in the order of the graph; empty for the outputs of the model, which are in the CPU's memory.
    operators: how many nodes each has, the most frequent first. copies: what is copied for these nodes, and was not
    copied for an earlier segment. flops: operations, as far as they are known.
    """

    provider: str
    nodes: tuple[str, ...]
    operators: Mapping[str, int]
    copies: tuple[Copy, ...]
    flops: float


@dataclass(frozen=True)
class SegmentNode:
    """index: in the main graph. provider: empty for a node that the session has no more."""

    index: int
    name: str
    operator: str
    provider: str
    flops: float | None


def segments(
    wiring: Wiring, nodes: Sequence[SegmentNode], copies: Sequence[Copy], provider: str, cpu: str
) -> tuple[Segment, ...]:
    """The segments of a main graph. copies: all that there are; each is in the first segment that needs it."""
    providers = sorted({node.provider for node in nodes if node.provider})
    orders = [_order(wiring, nodes, start) for start in providers]
    if not orders:
        return ()
    found, left = [], list(copies)
    for group in min(orders, key=len):
        read = {name for node in group for name in wiring.reads[node.index]}
        direction = TO_EP if group[0].provider == provider else FROM_EP
        goes_there = [copy for copy in left if copy.value in read and copy.direction == direction]
        left = [copy for copy in left if copy not in goes_there]
        found.append(_segment(group, goes_there))
    if left:
        found.append(Segment(cpu, (), {}, tuple(left), 0.0))
    return tuple(found)


def _order(wiring: Wiring, nodes: Sequence[SegmentNode], start: str) -> list[list[SegmentNode]]:
    """The nodes that have a provider, in groups; that of the first is `start`, where one of its nodes can run."""
    by_index = {node.index: node for node in nodes}
    waits = {
        node.index: {made for name in wiring.reads[node.index]
                     if (made := wiring.producer.get(name, -1)) in by_index and made != node.index}
        for node in nodes
    }  # fmt: skip
    readers: dict[int, list[int]] = {}
    for index, makers in waits.items():
        for maker in makers:
            readers.setdefault(maker, []).append(index)
    missing = {index: len(makers) for index, makers in waits.items()}
    ready: dict[str, list[int]] = {}
    _make_ready(ready, by_index, (index for index, count in missing.items() if not count))
    groups: list[list[SegmentNode]] = []
    turn = start
    while any(ready.values()):
        group: list[SegmentNode] = []
        while pending := ready.pop("", []) + ready.pop(turn, []):
            group += [by_index[index] for index in pending if by_index[index].provider]
            for index in (reader for done in pending for reader in readers.get(done, ())):
                missing[index] -= 1
                if not missing[index]:
                    _make_ready(ready, by_index, (index,))
        if group:
            groups.append(sorted(group, key=lambda node: node.index))
        turn = next((provider for provider, waiting in ready.items() if waiting), turn)
    return groups


def _make_ready(ready: dict[str, list[int]], nodes: Mapping[int, SegmentNode], indices: Iterable[int]) -> None:
    for index in indices:
        ready.setdefault(nodes[index].provider, []).append(index)


def _segment(group: Sequence[SegmentNode], copies: Sequence[Copy]) -> Segment:
    operators = dict(Counter(node.operator for node in group).most_common())
    flops = sum(node.flops or 0.0 for node in group)
    return Segment(group[0].provider, tuple(node.name for node in group), operators, tuple(copies), flops)
