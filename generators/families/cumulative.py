"""What CumSum and CumProd share: an axis, the direction along it, and whether an element counts for itself.

Source: the operator pages. `axis` is a 0-D tensor of int32 or int64; `exclusive` leaves the element itself out, and
`reverse` begins at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.node import Attribute, Node, Operand


@dataclass(frozen=True, kw_only=True)
class CumulativeSample(Sample):
    """exclusive, reverse: None leaves the attribute out. values: what the data looks like. axis_shape: of the axis."""

    shape: tuple[int, ...] = (3, 4, 5)
    axis: int = 0
    axis_dtype: str = "int64"
    axis_shape: tuple[int, ...] = ()
    exclusive: int | None = None
    reverse: int | None = None
    values: str = "plain"


def samples() -> Iterator[CumulativeSample]:
    """Axes, attributes and shapes."""
    for axis in (0, 1, 2, -1, -3):
        name = f"axis_{'minus_' if axis < 0 else ''}{abs(axis)}"
        yield CumulativeSample(name=name, axis=axis, every_dtype=axis == 1)
        yield CumulativeSample(name=f"{name}_int32", axis=axis, axis_dtype="int32")
        if axis != 1:
            yield CumulativeSample(name=f"{name}_exclusive_reverse", axis=axis, exclusive=1, reverse=1)
    for exclusive in (0, 1):
        for reverse in (0, 1):
            name = f"exclusive_{exclusive}_reverse_{reverse}"
            yield CumulativeSample(name=name, axis=1, exclusive=exclusive, reverse=reverse, every_dtype=True)
    yield CumulativeSample(name="exclusive", axis=1, exclusive=1)
    yield CumulativeSample(name="reverse", axis=1, reverse=1)
    yield from _shapes()


def _shapes() -> Iterator[CumulativeSample]:
    for rank in range(1, 9):
        shape = tuple(2 + axis % 2 for axis in range(rank))
        yield CumulativeSample(name=f"rank_{rank}_last_axis", rank=rank, shape=shape, axis=-1)
        yield CumulativeSample(name=f"rank_{rank}_first_axis_reverse", rank=rank, shape=shape, axis=0, reverse=1)
    yield CumulativeSample(name="size_1_axis", shape=(4, 1), axis=1)
    yield CumulativeSample(name="size_1_axis_exclusive", shape=(4, 1), axis=1, exclusive=1)
    yield CumulativeSample(name="size_1_elsewhere", shape=(1, 6, 1), axis=1)
    yield CumulativeSample(name="size_0_axis", shape=(3, 0), axis=1)
    yield CumulativeSample(name="size_0_elsewhere", shape=(0, 5), axis=1)
    for length in (31, 33, 127, 257, 1025, 4097):
        shape = (2, length)
        yield CumulativeSample(name=f"length_{length}", shape=shape, axis=1)
        yield CumulativeSample(name=f"length_{length}_exclusive_reverse", shape=shape, axis=1, exclusive=1, reverse=1)
    yield CumulativeSample(name="length_1025_first_axis", shape=(1025, 3), axis=0)


def list_refused() -> Iterator[CumulativeSample]:
    """Axes that a tensor of three dimensions does not have."""
    yield expect_refusal(CumulativeSample(name="axis_at_rank", axis=3))
    yield expect_refusal(CumulativeSample(name="axis_below_rank", axis=-4))
    yield expect_refusal(CumulativeSample(name="axis_at_rank_of_size_0", shape=(3, 0), axis=3))


def node(operator: str, sample: CumulativeSample, context: CaseContext, x: Array) -> Node:
    """x of any number type; axis int32 or int64 [], a parameter. y has shape and dtype of x."""
    settings = {"exclusive": sample.exclusive, "reverse": sample.reverse}
    attributes: dict[str, Attribute] = {key: value for key, value in settings.items() if value is not None}
    axis = Operand("axis", np.full(sample.axis_shape, sample.axis, sample.axis_dtype), parameter=True)
    return Node(operator, "", context.since_version, (Operand("x", x), axis), ("y",), attributes)
