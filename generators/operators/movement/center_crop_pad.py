"""CenterCropPad-18: the middle of a tensor, cut out or padded with zeros until it has the sizes that are asked for.

Source: the CenterCropPad page. A window that is cut out begins at the difference of the sizes, halved and rounded down;
of an odd number of zeros the additional one comes last. `shape` is of int32 or int64 and about all axes, or about those
in `axes`. An axis that is repeated, and a size below 0, have no case: the page calls the one undefined and is silent on
the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import expect_refusal
from epcheck.generators.families.movement import (
    Argument,
    MovementSample,
    RefusedError,
    first_input,
    movement,
    normalize_axis,
    shape_of_rank,
)
from epcheck.generators.node import Node
from epcheck.generators.operator import NO_KERNEL, OTHER_RANK

DECLARES = ("CenterCropPad",)

Shape = tuple[int, ...]


def _center(name: str, size: Shape, target: Shape, axes: Shape | None = None, *, dtype: str = "int64",
             every_dtype: bool = False, special: bool = False) -> MovementSample:  # fmt: skip
    arguments: dict[str, Argument] = {"shape": np.array(target, dtype)}
    if axes is not None:
        arguments["axes"] = axes
    return MovementSample(name=name, shape=size, arguments=arguments, every_dtype=every_dtype, special=special)


def samples() -> Iterator[MovementSample]:
    for name, target in (("crop", 4), ("crop_odd", 3), ("crop_to_1", 1), ("pad", 10), ("pad_odd", 11), ("same", 8)):
        yield _center(name, (8,), (target,), every_dtype=name in ("crop_odd", "pad_odd"))
        yield _center(f"{name}_of_odd", (7,), (target,))
    yield _center("crop_and_pad", (6, 5), (3, 8), every_dtype=True)
    yield _center("crop_and_pad_int32", (6, 5), (3, 8), dtype="int32")
    yield _center("every_value", (2, 16), (3, 15), every_dtype=True, special=True)
    for axes in ((0,), (1,), (2,), (-1,), (-3,), (0, 2), (2, 0), (-1, 1)):
        words = "_".join(f"minus_{-axis}" if axis < 0 else str(axis) for axis in axes)
        yield _center(f"axes_{words}", (4, 5, 6), (7, 3)[: len(axes)], axes, every_dtype=axes == (2, 0))
    for rank in range(1, 9):
        size = shape_of_rank(rank)
        yield replace(_center(f"rank_{rank}", size, tuple(5 - length for length in size)), rank=rank)
    yield _center("to_size_0", (4, 3), (0, 3))
    yield _center("from_size_0", (0, 3), (2, 3), every_dtype=True)
    yield _center("one_element", (1,), (1,))
    yield _center("crop_1025", (4097,), (1025,))
    yield _center("pad_1025", (3, 2), (3, 1025))
    yield expect_refusal(_center("fewer_sizes", (4, 5), (3,)))
    yield expect_refusal(_center("more_sizes_than_axes", (4, 5), (3, 3), (1,)))
    yield expect_refusal(_center("axis_at_rank", (4, 5), (3,), (2,)))
    yield expect_refusal(_center("axis_below_minus_rank", (4, 5), (3,), (-3,)))


def center_data(node: Node) -> Array:
    """Each axis cropped or padded, one after the other."""
    values = first_input(node)
    target = [int(size) for size in node.array("shape")]
    axes = [normalize_axis(axis, values.ndim) for axis in node.integers("axes", tuple(range(values.ndim)))]
    if len(axes) != len(target):
        raise RefusedError(f"shape has {len(target)} sizes for {len(axes)} axes")
    for axis, size in zip(axes, target, strict=True):
        more = size - values.shape[axis]
        if more >= 0:
            width = [(more // 2, more - more // 2) if at == axis else (0, 0) for at in range(values.ndim)]
            values = np.pad(values, width)
        else:
            begin = -more // 2
            values = np.take(values, range(begin, begin + size), axis)
    return values


OPERATORS = (
    replace(movement("CenterCropPad", samples, center_data, NO_KERNEL, established=18), without_rank_9=OTHER_RANK),
)
