"""Compress-9 and Compress-11: the slices along an axis at which a condition holds.

Source: the Compress page, which says that it behaves like numpy.compress. A condition may be shorter than the axis;
what lies behind its end is left out. Of a longer one the page says nothing: there is no case. Nor are there any of rank
0, which the page excludes, or of what numpy cannot hold (string, complex).
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
    axis_of,
    first_input,
    movement,
    shape_of_rank,
)
from epcheck.generators.node import Node
from epcheck.generators.operator import NO_KERNEL

DECLARES = ("Compress",)

ESTABLISHED = 11
"""The newest version that a provider has; Compress-28 adds types that numpy cannot hold."""

NEGATIVE_AXES = 11
"""Compress-11 is the first page that counts negative axes from the back and states the range of an axis."""


def _compress(name: str, shape: tuple[int, ...], condition: str, axis: int | None = None, *,
              every_dtype: bool = False, special: bool = False) -> MovementSample:  # fmt: skip
    """condition: `1` for what is selected, `0` for what is not. Without an axis the input is flattened."""
    holds = np.array([flag == "1" for flag in condition], bool)
    arguments: dict[str, Argument] = {"condition": holds}
    if axis is not None:
        arguments["axis"] = axis
    since = NEGATIVE_AXES if axis is not None and not 0 <= axis < len(shape) else 1
    return MovementSample(
        name=name, shape=shape, arguments=arguments, since=since, every_dtype=every_dtype, special=special
    )


def samples() -> Iterator[MovementSample]:
    yield _compress("axis_0", (3, 4), "101", 0, every_dtype=True)
    yield _compress("axis_1", (3, 4), "0110", 1, every_dtype=True)
    yield _compress("flattened", (3, 4), "011000010001", every_dtype=True)
    yield _compress("axis_minus_1", (3, 4), "1001", -1, every_dtype=True)
    yield _compress("axis_minus_rank", (2, 3, 4), "01", -3)
    for rank in range(1, 9):
        shape = shape_of_rank(rank)
        yield replace(_compress(f"rank_{rank}_first_axis", shape, "01", 0), rank=rank)
        yield replace(_compress(f"rank_{rank}_last_axis", shape, "101"[: shape[-1]], rank - 1), rank=rank)
        yield replace(_compress(f"rank_{rank}_flattened", shape, "01101"[: shape[0] * max(1, rank - 1)]), rank=rank)
    yield _compress("inner_axis", (2, 5, 3), "10110", 1)
    yield from _lengths()
    yield _compress("every_value", (4, 16), "1101", 0, every_dtype=True, special=True)
    yield _compress("every_value_flattened", (32,), "1" * 32, every_dtype=True, special=True)
    for length in (257, 1025, 4097):
        yield _compress(f"length_{length}", (length,), "110" * (length // 3), 0)
        yield _compress(f"length_{length}_of_columns", (2, length), "01" * (length // 2), 1)
    yield from map(expect_refusal, _list_refused())


def _lengths() -> Iterator[MovementSample]:
    """How much of an axis is selected, and how long the condition is."""
    for name, axis, length in (("", 1, 4), ("_flattened", None, 12)):
        yield _compress(f"all{name}", (3, 4), "1" * length, axis, every_dtype=True)
        yield _compress(f"none{name}", (3, 4), "0" * length, axis, every_dtype=True)
        yield _compress(f"only_the_first{name}", (3, 4), "1" + "0" * (length - 1), axis)
        yield _compress(f"only_the_last{name}", (3, 4), "0" * (length - 1) + "1", axis)
        yield _compress(f"condition_shorter{name}", (3, 4), "011", axis, every_dtype=True)
        yield _compress(f"condition_of_1{name}", (3, 4), "1", axis)
        yield _compress(f"condition_of_1_not_met{name}", (3, 4), "0", axis)
        yield _compress(f"condition_of_0{name}", (3, 4), "", axis)
    yield _compress("size_1", (1, 1), "1", 0)
    yield _compress("size_1_not_met", (1, 1), "0", 1)
    yield _compress("size_0", (0,), "", 0)
    yield _compress("size_0_flattened", (2, 0, 3), "")
    yield _compress("size_0_along_the_axis", (2, 0), "", 1)
    yield _compress("size_0_beside_the_axis", (3, 0), "101", 0)


def _list_refused() -> Iterator[MovementSample]:
    yield _compress("axis_at_rank", (3, 4), "101", 2)
    yield _compress("axis_below_minus_rank", (3, 4), "101", -3)
    for name, condition in (("matrix", np.ones((3, 1), bool)), ("scalar", np.ones((), bool))):
        yield MovementSample(name=f"condition_{name}", shape=(3, 4), arguments={"condition": condition, "axis": 0})


def compress_data(node: Node) -> Array:
    """The elements, or the slices along the axis, at which the condition holds."""
    values, condition = first_input(node), node.array("condition")
    if condition.ndim != 1:
        raise RefusedError(f"condition must have one dimension, not {condition.ndim}")
    if "axis" not in node.attributes:
        return np.compress(condition, values)
    return np.compress(condition, values, axis_of(node, values.ndim, 0))


OPERATORS = (movement("Compress", samples, compress_data, NO_KERNEL, established=ESTABLISHED),)
