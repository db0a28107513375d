"""A node of a case's model: its inputs with their values, its attributes, and what stands around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from epcheck.generators.array import Array

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TypeProto

Attribute = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Array
"""The value of an attribute. An array is a tensor; an empty tuple is one of integers."""


def qualified_name(operator: str, domain: str) -> str:
    """How a user names an operator: `Slice`, `com.microsoft::Gelu`; the domain of ai.onnx is ''."""
    return f"{domain}::{operator}" if domain else operator


def split_name(key: str) -> tuple[str, str]:
    """(operator, domain) of a `qualified_name`."""
    domain, _, operator = key.rpartition("::")
    return operator, domain


@dataclass(frozen=True)
class Operand:
    """One input of a node.

    parameter: the input says *how* to compute (starts, K, a scale), so exporters write it as an initializer.
    """

    name: str
    value: Array
    parameter: bool = False

    def __post_init__(self) -> None:
        """Hold an array: arithmetic makes a number of an array without dimensions, which no session takes."""
        if not isinstance(self.value, np.ndarray):
            object.__setattr__(self, "value", np.asarray(self.value))


@dataclass(frozen=True)
class Surroundings:
    """What stands around a node that takes or gives sequences or optionals, or has branches: a case's model has
    tensors at its ends.

    inputs, outputs: what the node under test itself reads and writes, by name; empty names are omitted ones.
    results: name -> numpy dtype name of the tensors that leave the model, in the order of `Node.outputs`.
    types: type constraint of the node under test -> numpy dtype name, or a type as ONNX spells it (`seq(float)`).
    before: nodes that make what the node reads of the tensors that enter the model, the `Node.inputs`.
    level: of graph optimisation, at which the session runs; empty for none. elsewhere: op_types of nodes around it that
    need not be on the provider.
    after: nodes that make tensors of what it writes. graphs: the attributes of the node that are graphs. type: its
    attribute of that name, a type. evaluated: all nodes of a graph whose values are known, in order.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    results: Mapping[str, str]
    types: Mapping[str, str]
    before: tuple[NodeProto, ...] = ()
    after: tuple[NodeProto, ...] = ()
    graphs: Mapping[str, GraphProto] = field(default_factory=dict)
    type: TypeProto | None = None
    level: str = ""
    elsewhere: tuple[str, ...] = ()
    evaluated: tuple[EvaluatedNode, ...] = ()


@dataclass(frozen=True)
class Node:
    """The node under test with the values of its inputs; None stands for an omitted optional input, and an empty name
    for an omitted optional output.

    With surroundings, `inputs` are the tensors that enter the model and `outputs` the names of those that leave it.
    """

    op_type: str
    domain: str
    since_version: int
    inputs: tuple[Operand | None, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    surroundings: Surroundings | None = None

    @property
    def results(self) -> tuple[str, ...]:
        """The names of the outputs that are not omitted."""
        return tuple(filter(None, self.outputs))

    def value(self, name: str) -> Array | None:
        """The value of the input of that name; None when it is omitted."""
        return next((operand.value for operand in self.inputs if operand is not None and operand.name == name), None)

    def array(self, name: str) -> Array:
        """The value of an input that is there. Raises KeyError when it is omitted."""
        value = self.value(name)
        if value is None:
            raise KeyError(f"{self.op_type} has no input '{name}'")
        return value

    def integer(self, name: str, default: int) -> int:
        """The value of an attribute that is an integer."""
        return int(self.attributes.get(name, default))  # type: ignore[arg-type]

    def number(self, name: str, default: float) -> float:
        """The value of an attribute that is a float: float32 in the model, so rounded to it."""
        return float(np.float32(self.attributes.get(name, default)))  # type: ignore[arg-type]

    def text(self, name: str, default: str) -> str:
        """The value of an attribute that is a string."""
        return str(self.attributes.get(name, default))

    def integers(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """The value of an attribute that is a list of integers."""
        return tuple(int(value) for value in self.attributes.get(name, default))  # type: ignore[union-attr]


@dataclass(frozen=True)
class EvaluatedNode:
    """A node of a graph with the values that it reads and makes; `parameter` tells the inputs that are initializers.
    The names are the schema's."""

    node: Node
    outputs: tuple[Operand, ...]
