"""A node in which several conditions meet: its inputs, how each is made, and its attributes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Attribute


@dataclass(frozen=True)
class Random:
    """Random numbers from [low, high), of an integer dtype from low to high. dtype: the case's where it is empty."""

    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0
    dtype: str = ""


@dataclass(frozen=True)
class Literal:
    """These values, in this shape where one is given. dtype: that of the case where it is empty."""

    values: Sequence[Any] | float
    dtype: str = ""
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Arange:
    """start, start + 1, ..."""

    shape: tuple[int, ...]
    start: int = 0
    dtype: str = ""


Input = Random | Literal | Arange


@dataclass(frozen=True)
class Interaction:
    """name: what meets, in words. inputs: in the order of the schema, None for one that is left out; all but the first
    enter the model as initializers. dtype: of the case, as in its id; its first part is that of inputs without one of
    their own. outputs: how many are asked for; 0 for those that are not optional. version: 0 for the one that is tried
    in every way."""

    name: str
    inputs: tuple[Input | None, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    dtype: str = "float32"
    outputs: int = 0
    version: int = 0


DISPATCHED = 65_537
"""More groups of threads than one dimension of a dispatch may have: D3D12_CS_DISPATCH_MAX_THREAD_GROUPS_PER_DIMENSION,
WebGPU's maxComputeWorkgroupsPerDimension."""

ABOVE_GROUPS = "above_65535_groups"
"""The name of an interaction whose data has so many groups of 64 elements, or so many rows."""


def int64s(*values: int) -> Literal:
    """int64, as positions, axes and sizes are."""
    return Literal(values, "int64", (len(values),))


BESIDE_INT32 = (2**31, 1, -(2**31) - 1, 2**31 - 1, -1, 2**32 + 1, -(2**31), 7)
"""int64 whose order is another one where only the lower 32 bits count, or where they are float32."""


def make_input(declared: Input, dtype: str, rng: np.random.Generator) -> Array:
    """The array of an input. dtype: a numpy name, for inputs without one of their own."""
    kind = np.dtype(declared.dtype or dtype)
    match declared:
        case Random(shape, low, high) if kind.kind in "iu":
            return rng.integers(int(low), int(high), shape, dtype=kind, endpoint=True)
        case Random(shape, low, high):
            return rng.uniform(low, high, shape).astype(kind)
        case Arange(shape, start):
            return (np.arange(math.prod(shape), dtype=np.int64) + start).astype(kind).reshape(shape)
        case Literal(values, _, shape):
            array = np.asarray(values, kind)
            return array if shape is None else array.reshape(shape)
