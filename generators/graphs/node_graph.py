"""A graph of several nodes: which value each of them reads, and what is right of every value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from epcheck.generators.array import Array
from epcheck.generators.node import Node, Operand
from epcheck.generators.truth import Outputs

OPSET = 17
"""Of ai.onnx, for the nodes of most graphs: the newest that the releases of the last three years read."""


@dataclass(frozen=True)
class Step:
    """A node of the graph.

    node: its inputs by the names of the schema; their values are those that the step reads. inputs: the values of the
    graph that it reads, by name, None for an omitted input. outputs: the values that it makes.
    """

    key: str
    node: Node
    inputs: tuple[str | None, ...]
    outputs: tuple[str, ...]

    def reading(self, values: Mapping[str, Array]) -> Node:
        """The node with these values in place of its own."""
        node = self.node
        operands = tuple(
            [
                None if operand is None or name is None else Operand(operand.name, values[name], operand.parameter)
                for operand, name in zip(node.inputs, self.inputs, strict=True)
            ]
        )
        return Node(
            node.op_type, node.domain, node.since_version, operands, node.outputs, node.attributes, node.surroundings
        )


@dataclass(frozen=True)
class NodeGraph:
    """steps: in an order in which each reads what earlier ones make. sources: what enters the graph: `parameter` for
    an initializer; some may be read by nobody. outputs: the values that leave the graph. truth: of these outputs.
    values: of every name. opset: of ai.onnx, for all nodes.
    """

    steps: tuple[Step, ...]
    sources: tuple[Operand, ...]
    outputs: tuple[str, ...]
    truth: Outputs
    values: Mapping[str, Array] = field(compare=False, repr=False)
    opset: int = OPSET

    @cached_property
    def operators(self) -> tuple[str, ...]:
        """The keys of the operators, in the order of the steps."""
        return tuple(step.key for step in self.steps)

    @property
    def shape(self) -> str:
        """`Conv → Relu, Add`, as a person reads it."""
        return " → ".join(self.operators)
