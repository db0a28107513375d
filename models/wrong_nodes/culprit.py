"""What a search for wrong nodes finds: the nodes at fault, what is wrong with them, and the errors along the graph."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import onnx

from epcheck.models.graph.feed import Feed
from epcheck.models.graph.inlining import WORDS
from epcheck.models.placement.change import Advice


class Kind(StrEnum):
    """What is wrong with the nodes that are named."""

    NODE = "node"
    """One node gives a wrong result, alone as well, on the values that it received."""
    FUSION = "fusion"
    """Each node is right alone; together, at the optimisation level that fuses them, they are wrong."""
    ACCUMULATED = "accumulated"
    """Every node is right within its bounds; their errors add up."""
    CRASH = "crash"
    """It ends the process."""
    TIMEOUT = "timeout"
    """It does not come to an end."""
    REFUSED = "refused"
    """The session is not created, or its run ends with an error."""
    UNSTEADY = "unsteady"
    """A second run of the same session gives something else."""
    RANDOM = "random"
    """It draws random numbers: no two runs need to agree."""
    UNEXPLAINED = "unexplained"
    """The error comes up at these nodes, but neither they alone nor a fusion of them show it."""
    RIGHT = "right"
    """Nothing is wrong: neither the outputs nor any node."""


NAMED = (Kind.NODE, Kind.FUSION, Kind.CRASH, Kind.TIMEOUT, Kind.REFUSED, Kind.UNSTEADY)
"""Kinds of culprits that name the nodes at fault; these fail alone."""

SHOWN = 3
"""Names that a sentence has of what is alike, at most."""

ENDS = {
    "create": "refused in session creation",
    "run": "ended by an error in the run",
    "crash": "ended with its process",
    "timeout": "without an end",
}
"""Stage at which a session fails -> the session in words."""


@dataclass(frozen=True)
class GraphNode:
    """A node of the main graph. index: its place there, from 0, with the model's functions in place of their calls.
    outputs: names of the values that it makes. words: the node in a sentence, as the model calls it: with the function
    that it is in; empty for a model without functions."""

    index: int
    name: str
    op_type: str
    domain: str
    outputs: tuple[str, ...]
    words: str = ""

    def __str__(self) -> str:
        """``node 17 `Conv_17` (Conv)``, or what it makes where it has no name."""
        return self.words or f"node {self.index} {self.called} ({self.op_type})"

    @property
    def called(self) -> str:
        """Its name, or what it makes where it has none."""
        return f"`{self.name}`" if self.name else f"that makes `{self.outputs[0] if self.outputs else ''}`"


def graph_node(model: onnx.ModelProto, index: int) -> GraphNode:
    """The node of the model's main graph at that index."""
    node = model.graph.node[index]
    words = next((entry.value for entry in node.metadata_props if entry.key == WORDS), "")
    return GraphNode(index, node.name, node.op_type, node.domain, tuple(filter(None, node.output)), words)


@dataclass(frozen=True)
class ErrorPoint:
    """The error of one value of the graph. node: index of the node that makes it. error: `closeness.distance` from the
    baseline's value."""

    node: int
    value: str
    error: float


@dataclass(frozen=True)
class Effect:
    """What a wrong node alone does to the outputs of the model, whose other nodes are the baseline's.

    output: the one that comes farthest beyond its threshold. error: as its threshold counts it: relative, or the share
    of elements that differ; infinite for a NaN or another shape. allowed: the threshold. `times`: error over threshold.
    node: of nodes that are wrong alike the one whose effect it is, in a sentence; empty where there is one alone.
    """

    output: str
    error: float
    allowed: float
    node: str = ""

    @property
    def times(self) -> float:
        return self.error / self.allowed if self.allowed else math.inf if self.error else 0.0

    @property
    def matters(self) -> bool:
        """Whether the output is beyond its threshold."""
        return self.times > 1

    @property
    def words(self) -> str:
        """A part of a sentence."""
        who = self.node or "it"
        if not self.error:
            return f"alone {who} changes no output"
        if math.isinf(self.error):
            return f"alone {who} makes '{self.output}' another shape, NaN or infinite"
        times = f"{self.times:.3g} times what is allowed" if self.allowed else "where nothing is allowed"
        return f"alone {who} changes '{self.output}' by {self.error:.2g}, {times}"


@dataclass(frozen=True)
class Culprit:
    """The result of `first_wrong_node`.

    nodes: those at fault, in the order of the graph; for `accumulated` the one at which the error passes `tolerance`;
    empty for `right`. words: one sentence. difference: its kind, as in `node_check.NodeCheck`.
    levels: optimisation level -> the result of the nodes alone ('right', 'wrong', 'crash' ...), for each level that was
    tried. points: errors of the values that were compared, by node. received: the values that the nodes received from
    the rest of the model. sessions: how many it took, of candidate and baseline. effect: on the outputs of the model;
    None where it was not measured, or there is none to measure. advice: what the provider takes in place of a node that
    it refuses; None where that was not looked for. inside: of a node that holds graphs the culprits in its body, whose
    nodes have their indices there; body: the attribute that holds it. Both are empty where none was found. count: how
    often the pattern is there, each time with its share of the nodes: 24 nodes that are wrong alike are one culprit.
    """

    kind: Kind
    nodes: tuple[GraphNode, ...]
    words: str
    difference: str = ""
    levels: Mapping[str, str] = field(default_factory=dict)
    points: tuple[ErrorPoint, ...] = ()
    tolerance: float = 0.0
    received: Mapping[str, Feed] = field(default_factory=dict, repr=False)
    sessions: tuple[int, int] = (0, 0)
    effect: Effect | None = None
    advice: Advice | None = None
    inside: tuple[Culprit, ...] = ()
    body: str = ""
    count: int = 1

    @property
    def is_named(self) -> bool:
        """Whether its nodes fail alone, or together at every level of optimisation."""
        return self.kind in NAMED or (self.kind == Kind.UNEXPLAINED and bool(self.levels))

    @property
    def plain(self) -> Culprit:
        """The culprit without the values that its nodes received."""
        return replace(self, received={}, inside=tuple(culprit.plain for culprit in self.inside))

    @property
    def parts(self) -> tuple[tuple[GraphNode, ...], ...]:
        """The nodes of each occurrence of the pattern. A count that does not fit the nodes is a stranger's."""
        size = max(len(self.nodes) // max(self.count, 1), 1)
        return tuple(self.nodes[at : at + size] for at in range(0, len(self.nodes), size))

    @property
    def innermost(self) -> tuple[GraphNode, ...]:
        """The nodes at fault, those in bodies in place of the nodes that hold them."""
        return tuple(node for culprit in self.inside for node in culprit.innermost) or self.nodes

    @property
    def places(self) -> tuple[str, ...]:
        """Each of the innermost nodes in a sentence, with the bodies that it is in."""
        if not self.inside:
            return tuple(map(str, self.nodes))
        return tuple(f"{place} in the {self.body} of {self.nodes[0]}" for each in self.inside for place in each.places)

    @property
    def named(self) -> str:
        """The nodes in a part of a sentence: those that are wrong together with that word, and those that are wrong
        alike by their number and the first names."""
        if self.count <= 1 or not self.nodes:
            return f"{', '.join(self.places)}{' together' if len(self.nodes) > 1 and not self.inside else ''}"
        operators = " and ".join(node.op_type for node in self.parts[0])
        together = " together" if len(self.parts[0]) > 1 else ""
        what = "groups of nodes" if together else "nodes"
        names = [" and ".join(node.called for node in part) for part in self.parts]
        return f"{self.count} {what} alike: {operators}{together} ({list_some(names)})"


def list_some(names: Sequence[str], most: int = SHOWN) -> str:
    """The first names and the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def join_alike(culprits: Sequence[Culprit]) -> Culprit:
    """Culprits of one pattern as one; its words, levels and values are those of the first."""
    first = culprits[0]
    if len(culprits) == 1:
        return first
    nodes = tuple(node for culprit in culprits for node in culprit.nodes)
    joined = replace(first, nodes=nodes, count=sum(culprit.count for culprit in culprits))
    return replace(joined, words=f"{joined.named}. The first: {first.words}")


def name_culprits(culprits: Iterable[Culprit], most: int = SHOWN) -> str:
    """The nodes of several culprits in a part of a sentence: the first by name, and the number of the other nodes."""
    listed = list(culprits)
    rest = sum(len(culprit.innermost) for culprit in listed[most:])
    return ", ".join(culprit.named for culprit in listed[:most]) + (f" and {rest} more" if rest else "")
