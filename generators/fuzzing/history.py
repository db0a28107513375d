"""What earlier searches of a target drew, so that the next one goes where nothing ran before."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from epcheck.generators.fuzzing.node_digest import digest
from epcheck.generators.node import Node

MOST_NODES = 1 << 19
"""Nodes that are remembered; the oldest are forgotten first."""

KEY_BYTES = 6
"""Of a node: of two million nodes one is mistaken for another of half a million with a probability of 0.4 %."""

LEAD = 64
"""Turns that an operator has before all others, at most, since earlier searches drew it less often."""


@dataclass
class SearchHistory:
    """searches: how many there were. turns: key of an operator -> how often a node of it was asked for. nodes: keys of
    the nodes that the target computed right, the latest last."""

    searches: int = 0
    turns: Counter[str] = field(default_factory=Counter)
    nodes: dict[bytes, None] = field(default_factory=dict)

    def has(self, node: Node, binding: str) -> bool:
        """Whether the node was judged before."""
        return key_of(node, binding) in self.nodes

    def add(self, node: Node, binding: str) -> None:
        """The node was judged."""
        self.nodes[key_of(node, binding)] = None
        if len(self.nodes) > MOST_NODES:
            del self.nodes[next(iter(self.nodes))]

    def leads(self, operators: Iterable[str]) -> dict[str, int]:
        """The turns that each of these operators has before the others: as many as it is behind."""
        turns = {key: self.turns[key] for key in operators}
        most = max(turns.values(), default=0)
        return {key: min(LEAD, most - count) for key, count in turns.items() if count < most}


def key_of(node: Node, binding: str) -> bytes:
    """What tells a node from others, and from itself with another binding."""
    return hashlib.blake2b(f"{digest(node)}{binding}".encode(), digest_size=KEY_BYTES).digest()
