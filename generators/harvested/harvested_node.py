"""A node that was found in models of a user: how it computes, and how its values are spread."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.harvested.value_spread import Spread, draw_tensor
from epcheck.generators.node import Attribute, Node, Operand, qualified_name
from epcheck.generators.serialization.node_json import dtype_of

MOST_ELEMENTS = 1 << 22
"""Elements of a tensor, at most: 16 MiB in float32."""


@dataclass(frozen=True)
class HarvestedInput:
    """An input of a node, named as in the schema. dtype: by its numpy name. values: themselves, or their spread.
    parameter: whether the model has them as a constant."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    values: Array | Spread
    parameter: bool

    @property
    def size(self) -> int:
        """Elements."""
        return prod(self.shape)


@dataclass(frozen=True)
class HarvestedNode:
    """A node of one or several models.

    dtypes: of the type constraints that its operator varies. models: the name of each that has it -> how many of its
    nodes compute alike.
    """

    op_type: str
    domain: str
    since_version: int
    dtypes: tuple[str, ...]
    inputs: tuple[HarvestedInput | None, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    models: Mapping[str, int] = field(default_factory=dict)

    @property
    def operator(self) -> str:
        """The key of the operator that it is a node of."""
        return qualified_name(self.op_type, self.domain)

    @property
    def present(self) -> tuple[HarvestedInput, ...]:
        """The inputs that are not omitted."""
        return tuple(each for each in self.inputs if each is not None)

    def node(self, rng: np.random.Generator) -> Node:
        """The node with values: those that were kept, and others that are spread alike."""
        return Node(
            self.op_type,
            self.domain,
            self.since_version,
            tuple(None if each is None else _operand(each, rng) for each in self.inputs),
            self.outputs,
            self.attributes,
        )

    def join(self, other: HarvestedNode) -> HarvestedNode:
        """The same node with the values and the models of both."""
        inputs = tuple(
            None if mine is None or its is None else replace(mine, values=_join_values(mine.values, its.values))
            for mine, its in zip(self.inputs, other.inputs, strict=True)
        )
        return replace(self, inputs=inputs, models=dict(Counter(self.models) + Counter(other.models)))


def digest(node: HarvestedNode) -> str:
    """Twelve hexadecimal digits that say how the node computes: all but how values are spread, and where it was found.
    So the case keeps its id when a model is trained further."""
    found = hashlib.sha256(f"{node.domain}:{node.op_type}:{node.since_version}:{node.outputs}".encode())
    for name, value in sorted(node.attributes.items()):
        found.update(f"{name}={_make_plain(value)!r};".encode())
    for each in node.inputs:
        if each is None:
            found.update(b"-")
            continue
        found.update(f"{each.name}:{each.dtype}{each.shape}{each.parameter}".encode())
        if not isinstance(each.values, Spread):
            found.update(np.ascontiguousarray(each.values).tobytes())
    return found.hexdigest()[:12]


def _make_plain(value: Attribute) -> Any:
    return (value.dtype.name, value.shape, value.tolist()) if isinstance(value, np.ndarray) else value


def _operand(each: HarvestedInput, rng: np.random.Generator) -> Operand:
    values = each.values
    if isinstance(values, Spread):
        values = draw_tensor(values, each.shape, dtype_of(each.dtype), rng)
    return Operand(each.name, values, each.parameter)


def _join_values(mine: Array | Spread, its: Array | Spread) -> Array | Spread:
    return mine.join(its) if isinstance(mine, Spread) and isinstance(its, Spread) else mine
