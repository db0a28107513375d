"""What would place a node on a provider: a change of its model, and what became of trying it there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import onnx

from epcheck.models.graph.feed import Feed

_NAMES = re.compile("'[^']*'")
"""What the words of a change quote: names of the values of one node."""


def kind_of(words: str) -> str:
    """The words of a change without the names of values: equal for nodes that are alike."""
    return _NAMES.sub("''", words)


def opset_of(model: onnx.ModelProto, domain: str = "") -> int:
    """The version of a domain that a model imports; 0 for none."""
    wanted = "" if domain == "ai.onnx" else domain
    return next((e.version for e in model.opset_import if e.domain.replace("ai.onnx", "", 1) == wanted), 0)


@dataclass(frozen=True)
class LoneNode:
    """A node as a model of its own, with the values that it received in a run.

    at: its index in that model, which may have `Constant` nodes besides.
    """

    model: onnx.ModelProto = field(repr=False)
    feeds: Mapping[str, Feed] = field(repr=False)
    at: int

    @property
    def node(self) -> onnx.NodeProto:
        node: onnx.NodeProto = self.model.graph.node[self.at]
        return node

    @property
    def opset(self) -> int:
        """Of the node's domain."""
        return opset_of(self.model, self.node.domain)

    def copy(self) -> onnx.ModelProto:
        """A model that may be changed."""
        changed = onnx.ModelProto()
        changed.CopyFrom(self.model)
        return changed


@dataclass(frozen=True)
class Change:
    """words: what to do, as a sentence without its point. model: the lone node with it; the same inputs and outputs.
    exempt: nodes that may be on the CPU, those that convert. narrow: the floating-point dtype that the node's values
    pass on the way; empty where it is none but the outputs' own."""

    words: str
    model: onnx.ModelProto = field(repr=False)
    exempt: frozenset[str] = frozenset()
    narrow: str = ""

    def combine(self, other: Change) -> Change:
        """Both, where `other` was made of this one's model."""
        return Change(f"{self.words}, and {other.words}", other.model, self.exempt | other.exempt,
                      other.narrow or self.narrow)  # fmt: skip

    def on(self, alone: LoneNode) -> LoneNode:
        """The lone node of the changed model, as long as it is still there by its name."""
        name = alone.node.name
        at = next((at for at, node in enumerate(self.model.graph.node) if node.name == name), -1)
        return replace(alone, model=self.model, at=at)


@dataclass(frozen=True)
class Advice:
    """What to do about a node that is not on the provider.

    change: what places it, tried on the provider itself; empty where nothing does. result: what became of trying it, or
    why nothing does. alone: whether the provider takes the node alone, unchanged; None where that was not asked.
    error: the largest difference from the unchanged node's outputs, relative to their range; None where nothing was
    compared. sessions: how many it took.
    """

    change: str
    result: str
    alone: bool | None = None
    error: float | None = None
    sessions: int = 0

    @property
    def words(self) -> str:
        """A sentence or two."""
        if self.change:
            return f"{self.change[:1].upper()}{self.change[1:]}. Tried on the provider: {self.result}"
        return f"{self.result[:1].upper()}{self.result[1:]}"
