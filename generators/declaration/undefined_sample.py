"""A node for some of whose elements the standard defines nothing, and what is known of the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Attribute

PREFIX = "undefined_"
"""What the names of the samples begin with."""


FLOATS = ("float32", "float16")

LENGTH = "a length beyond the time steps: the page says that lengths lie between 0 and the number of steps"
NOWHERE = "a position that is NaN, infinite or beyond all integers: the page computes an element's index of it"
NO_IDENTITY = "an extremum, an index or a mean of no elements"
NAN_LEVEL = "NaN has no quantised level: the page clamps and rounds numbers"

EMPTY_ROWS = np.zeros((2, 0, 3), np.float32)
"""Data for NO_IDENTITY, along axis 1."""


def ramp(shape: tuple[int, ...], dtype: str, start: float = 1.0) -> Array:
    """Values that no other operand of the node has, none of them 0."""
    return (start + np.arange(int(np.prod(shape)))).reshape(shape).astype(dtype)


def strange_positions(dtype: str) -> Array:
    """Shape [8]: NaN, infinities, and numbers beyond int32 and int64, for NOWHERE."""
    with np.errstate(over="ignore"):
        return np.array((np.nan, np.inf, -np.inf, 1e30, -1e30, 3e9, -3e9, 65504.0)).astype(dtype)


@dataclass(frozen=True)
class Answer:
    """One output. value: the truth where there is one. undefined: bool of its shape, where there is none; True
    for all of it. moved: the operator only moves data, so that an undefined element is one of an input, or 0."""

    value: Array
    undefined: Array | bool = True
    moved: bool = False


@dataclass(frozen=True)
class UndefinedSample:
    """dtype: as in the case's id. why: what is undefined, and who says so. inputs: in the order of
    the schema, None for an omitted one. answers: in the order of the schema's outputs. version: since_version; None for
    the one that is tried in every way (`claims.newest_claimed_version`)."""

    name: str
    dtype: str
    why: str
    inputs: tuple[Array | None, ...]
    answers: tuple[Answer, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    version: int | None = None

    @property
    def sample(self) -> str:
        """The name in case ids: `undefined_divisor_0`."""
        return f"{PREFIX}{self.name}"


UndefinedSamples = Iterator[UndefinedSample]
