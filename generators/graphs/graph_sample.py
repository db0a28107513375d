"""A fixed graph of the suite: a name, what kind of graph it is, and how it is written down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from epcheck.generators.graphs.node_graph import OPSET
from epcheck.generators.graphs.sketch import Sketch

KINDS = {
    "chain": "nodes one after the other",
    "diamond": "a value that several nodes read, whose results meet again",
    "ends": "dead ends, inputs and initializers that nobody reads, values that are outputs and inner at once",
    "shared": "initializers and nodes that are there twice or are read by several",
    "fusion": "what optimisers make one node of",
    "apart": "what looks like a fusion, and is none: another axis, another constant, a second reader",
    "folding": "nodes whose inputs are all constant, and shapes that are known",
    "neutral": "nodes that change nothing, or nearly: adding 0, transposing twice, padding by 0",
    "moved": "casts, transposes and reshapes that optimisers move past other nodes",
    "quantized": "groups of DequantizeLinear, an operator and QuantizeLinear",
    "rule": "what a rewrite rule of an optimiser or a provider applies to",
    "broken": "what a rewrite rule does not apply to, since one of its preconditions does not hold",
    "between": "a node that the provider leaves to the CPU, between two that it takes",
}
"""What a graph is aimed at -> in words."""

PREFIX = "graph_"
"""What the names of the samples begin with."""

FLOAT32, BOTH = ("float32",), ("float32", "float16")
"""Graphs that round more than once are of float32: errors of float16 leave nothing to judge (`graph_truth`)."""


@dataclass(frozen=True)
class GraphSample:
    """kind: one of KINDS. write: puts the graph into a sketch. dtypes: numpy names, of the graph's numbers.

    elsewhere: op_types of nodes that need not be on the provider. opset: of ai.onnx, where the graph is about another.
    special: values between nodes may be infinite, no number, or large. last: operator and domain of the last node,
    where they are known before the graph is written.
    """

    kind: str
    name: str
    write: Callable[[Sketch], None]
    dtypes: tuple[str, ...] = FLOAT32
    elsewhere: tuple[str, ...] = ()
    opset: int = OPSET
    special: bool = False
    last: tuple[str, str] | None = None

    @property
    def sample(self) -> str:
        """The name in case ids: `graph_fusion_conv_relu`."""
        return f"{PREFIX}{self.kind}_{self.name}"


Samples = Iterator[GraphSample]
