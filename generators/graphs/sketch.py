"""Writing a graph down: its inputs, initializers and nodes in order, by the operators and names of the schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import onnx.defs

from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.graphs.node_graph import OPSET, Step
from epcheck.generators.node import Attribute, Node, Operand, qualified_name

Data = Array | float | Sequence[Any]


@dataclass
class Sketch:
    """A graph while it is written down. dtype: of its floating-point values. rng: what its data is drawn from.
    opset: of ai.onnx, for all nodes.

    Methods that add something return the name of its value, which later nodes read.
    """

    dtype: np.dtype[Any]
    rng: np.random.Generator
    opset: int = OPSET
    steps: list[Step] = field(default_factory=list)
    sources: list[Operand] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    def input(self, *shape: int, low: float = -2.0, high: float = 2.0) -> str:
        """A graph input with numbers from [low, high)."""
        return self._source("x", self.draw(shape, low, high), parameter=False)

    def feed(self, values: Data, dtype: str = "") -> str:
        """A graph input with these values, in the graph's dtype or another."""
        return self._source("x", np.asarray(values, dtype or self.dtype), parameter=False)

    def weight(self, *shape: int, low: float = -1.0, high: float = 1.0) -> str:
        """An initializer with numbers from [low, high)."""
        return self._source("w", self.draw(shape, low, high), parameter=True)

    def constant(self, values: Data, dtype: str = "") -> str:
        """An initializer with these values, in the graph's dtype or another."""
        return self._source("w", np.asarray(values, dtype or self.dtype), parameter=True)

    def bytes(self, *shape: int, dtype: str = "uint8", is_input: bool = True) -> str:
        """A graph input, or an initializer, of quantised numbers from the whole range of the dtype."""
        limits = np.iinfo(dtype)
        values = self.rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
        return self._source("x" if is_input else "w", values, parameter=not is_input)

    def draw(self, shape: Sequence[int], low: float, high: float) -> Array:
        """Numbers from [low, high), in the graph's dtype."""
        return np.asarray(self.rng.uniform(low, high, shape)).astype(self.dtype)

    def node(self, operator: str, *inputs: str | None, outputs: int = 1, domain: str = "", **attributes: Any) -> str:
        """A node and the name of its first output; the others are that name with 1, 2, ... in place of 0."""
        revision = _revision(operator, domain, self.opset)
        number = len(self.steps)
        placeholder = np.zeros((), self.dtype)
        operands = tuple(
            None if name is None else Operand(formal, placeholder)
            for name, formal in zip(inputs, _names(revision.inputs, len(inputs)), strict=True)
        )
        made: dict[str, Attribute] = {name: _attribute(value) for name, value in attributes.items()}
        own = tuple(_names(revision.outputs, outputs))
        node = Node(operator, domain, revision.since_version, operands, own, made)
        named = tuple(f"v{number}_{index}" for index in range(outputs))
        self.steps.append(Step(qualified_name(operator, domain), node, inputs, named))
        return named[0]

    def chain(self, value: str, *operators: str) -> str:
        """Nodes without attributes, each of which reads what the one before it makes."""
        for operator in operators:
            value = self.node(operator, value)
        return value

    def leave(self, *values: str) -> None:
        """Make these values outputs of the graph."""
        self.outputs += values

    def _source(self, kind: str, value: Array, parameter: bool) -> str:
        name = f"{kind}{len(self.sources)}"
        self.sources.append(Operand(name, value, parameter))
        return name


@dataclass(frozen=True)
class _Formals:
    """The names of the inputs or outputs of an operator. variadic: the last stands for any number of them."""

    names: tuple[str, ...]
    variadic: bool


@dataclass(frozen=True)
class _Revision:
    """The revision of an operator that an opset has."""

    since_version: int
    inputs: _Formals
    outputs: _Formals


@cache
def _revision(operator: str, domain: str, opset: int) -> _Revision:
    found = schema.schema(operator, 1, domain) if domain else onnx.defs.get_schema(operator, opset, "")
    return _Revision(found.since_version, _formals(found.inputs), _formals(found.outputs))


def find_version(operator: str, domain: str, opset: int) -> int:
    """The version of the operator that nodes of a sketch with this opset have."""
    return _revision(operator, domain, opset).since_version


def _formals(formals: Sequence[onnx.defs.OpSchema.FormalParameter]) -> _Formals:
    variadic = bool(formals) and formals[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic
    return _Formals(tuple(formal.name for formal in formals), variadic)


def _names(formals: _Formals, count: int) -> Sequence[str]:
    """The names of `count` inputs or outputs; those of a variadic one are numbered."""
    if not formals.variadic:
        return formals.names[:count]
    *fixed, variadic = formals.names
    return [*fixed, *(f"{variadic}_{index}" for index in range(count - len(fixed)))]


def _attribute(value: Any) -> Attribute:
    found: Attribute = tuple(value) if isinstance(value, list) else value
    return found
