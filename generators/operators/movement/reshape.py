"""Reshape-5 ... 25, Flatten-1 ... 25, Squeeze-1 ... 25, Unsqueeze-1 ... 25 -> DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC.

Sources: the operator pages. The elements stay where they are, only the shape changes; inside a fused graph the DML EP
uses an identity, outside a copy of the buffer. Left out, because the pages do not define it: a 0 beside a -1 where the
0 copies a size of 0; Squeeze of an empty list of axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

from epcheck.generators.array import Array
from epcheck.generators.case import expect_refusal
from epcheck.generators.declaration.optional_io import OptionalIO, each_alone
from epcheck.generators.directml.descriptions.movement.layout import identity
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.families.movement import (
    MovementSample,
    RefusedError,
    first_input,
    label,
    movement,
    normalize_axis,
    parameter,
    shape_of_rank,
)
from epcheck.generators.node import Node
from epcheck.generators.operator import OTHER_RANK, declare

DECLARES = (
    "Reshape",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
)

NEGATIVE_AXES = 11
"""The first version of Flatten, Squeeze and Unsqueeze whose page counts axes from the back."""


def _reshape(name: str, shape: tuple[int, ...], target: tuple[int, ...], allowzero: int | None = None,
             every_dtype: bool = False, special: bool = False) -> MovementSample:  # fmt: skip
    arguments: dict[str, int | tuple[int, ...]] = {"shape": target}
    if allowzero is not None:
        arguments["allowzero"] = allowzero
    return MovementSample(name=name, shape=shape, arguments=arguments, every_dtype=every_dtype, special=special)


def reshape_samples() -> Iterator[MovementSample]:
    yield _reshape("other_rank", (2, 3, 4), (6, 4), every_dtype=True)
    yield _reshape("special_values", (5, 6), (3, 10), special=True, every_dtype=True)
    yield _reshape("same_shape", (2, 3), (2, 3))
    yield _reshape("dimensions_exchanged", (2, 3), (3, 2))
    yield _reshape("minus_1_alone", (2, 3, 4), (-1,))
    yield _reshape("minus_1_first", (2, 3, 4), (-1, 4))
    yield _reshape("minus_1_middle", (2, 3, 4), (2, -1, 2))
    yield _reshape("minus_1_of_1", (2, 3), (2, 3, -1))
    yield _reshape("zero_copies", (2, 3, 4), (0, 12))
    yield _reshape("zero_copies_last", (2, 3, 4), (3, 2, 0))
    yield _reshape("zero_and_minus_1", (2, 3, 4), (0, -1))
    yield _reshape("all_zeros", (2, 3), (0, 0))
    yield _reshape("zero_copies_size_0", (0, 3), (0, 3))
    yield _reshape("minus_1_is_0", (0, 3), (-1, 3))
    yield _reshape("scalar_to_1d", (), (1,))
    yield _reshape("scalar_to_minus_1", (), (-1,))
    yield _reshape("to_scalar", (1, 1), ())
    yield _reshape("scalar_to_scalar", (), ())
    yield _reshape("allowzero_0", (2, 3), (0, 3), 0)
    yield _reshape("allowzero_1_without_zero", (2, 3), (3, 2), 1)
    yield _reshape("allowzero_1", (0, 3), (3, 0), 1)
    yield _reshape("allowzero_1_infers_a_size", (2, 3, 2), (-1, 4), 1)
    yield _reshape("allowzero_1_new_rank", (0, 3, 4), (5, 0, 2, 2), 1)
    for rank in (1, 2, 3, 5, 6, 7, 8):
        yield replace(_reshape(f"to_rank_{rank}", (2**rank,), (2,) * rank), rank=rank)
        if rank > 1:
            yield replace(_reshape(f"from_rank_{rank}", shape_of_rank(rank), (-1, 2)), rank=rank)
    yield _reshape("more_than_a_thread_group", (3, 1031), (1031, 3))
    yield expect_refusal(_reshape("two_minus_1", (2, 3), (-1, -1)))
    yield expect_refusal(_reshape("other_count", (2, 3), (4, 2)))
    yield expect_refusal(_reshape("minus_1_indivisible", (2, 3), (4, -1)))
    yield expect_refusal(_reshape("zero_beyond_rank", (2, 3), (2, 3, 0)))
    # DirectML's process ends: a case of one version says it.
    yield replace(expect_refusal(_reshape("zero_of_a_scalar", (), (0,))), since=21)
    yield expect_refusal(_reshape("minus_2", (2, 3), (-2, 3)))
    yield expect_refusal(_reshape("allowzero_and_minus_1", (0, 3), (0, -1), 1))


def reshape_data(node: Node) -> Array:
    """`data` in the shape that the input asks for."""
    values = node.array("data")
    target = [int(size) for size in node.array("shape")]
    if min((0, *target)) < -1 or target.count(-1) > 1:
        raise RefusedError("a dimension must not be below -1, and at most one may be -1")
    if node.integer("allowzero", 0):
        if 0 in target and -1 in target:
            raise RefusedError("with allowzero the shape must not contain both a zero value and -1")
    else:
        if any(size == 0 for size in target[values.ndim :]):
            raise RefusedError("a 0 beyond the rank of the input has no dimension to copy")
        target = [values.shape[i] if size == 0 else size for i, size in enumerate(target)]
    if -1 in target:
        known = prod(size for size in target if size != -1)
        if known == 0 or values.size % known:
            raise RefusedError(f"-1 cannot be inferred: {values.size} elements, {known} in the other dimensions")
        target[target.index(-1)] = values.size // known
    if prod(target) != values.size:
        raise RefusedError(f"{values.size} elements do not fit the shape {target}")
    return values.reshape(target)


def _flatten(name: str, shape: tuple[int, ...], axis: int | None, every_dtype: bool = False,
             special: bool = False) -> MovementSample:  # fmt: skip
    return MovementSample(
        name=name,
        shape=shape,
        arguments={} if axis is None else {"axis": axis},
        since=NEGATIVE_AXES if (axis or 0) < 0 else 1,
        every_dtype=every_dtype,
        special=special,
    )


def flatten_samples() -> Iterator[MovementSample]:
    yield _flatten("default_axis", (2, 3, 4), None, every_dtype=True)
    yield _flatten("special_values", (3, 2, 5), 2, special=True, every_dtype=True)
    for axis in (0, 1, 3, 4, -1, -2, -4):
        yield _flatten(f"axis_{label(axis)}", (2, 3, 4, 5), axis)
    for rank in (1, 2, 5, 8):
        yield replace(_flatten(f"rank_{rank}_default_axis", shape_of_rank(rank), None), rank=rank)
        yield replace(_flatten(f"rank_{rank}_last_axis", shape_of_rank(rank), rank - 1), rank=rank)
    yield _flatten("scalar_axis_0", (), 0)
    yield _flatten("size_0_first", (0, 3, 4), 1)
    yield _flatten("size_0_last", (3, 0), 1)
    yield _flatten("size_0_axis_0", (0, 3), 0)
    yield _flatten("size_1_dimensions", (1, 1, 1), 2)
    yield _flatten("more_than_a_thread_group", (3, 5, 101), 2)
    yield expect_refusal(_flatten("axis_beyond_rank", (2, 3), 3))
    yield expect_refusal(_flatten("axis_below_rank", (2, 3), -3))


def flatten_data(node: Node) -> Array:
    """Two dimensions: those before the axis, and those from it on. The axis may be the rank itself."""
    values, axis = first_input(node), node.integer("axis", 1)
    least = -values.ndim if node.since_version >= NEGATIVE_AXES else 0
    if not least <= axis <= values.ndim:
        raise RefusedError(f"axis {axis} must be within [{least}, {values.ndim}]")
    cut = axis + values.ndim if axis < 0 else axis
    return values.reshape(prod(values.shape[:cut]), prod(values.shape[cut:]))


def _axes(name: str, shape: tuple[int, ...], axes: tuple[int, ...] | None, every_dtype: bool = False,
          special: bool = False) -> MovementSample:  # fmt: skip
    return MovementSample(
        name=name,
        shape=shape,
        arguments={} if axes is None else {"axes": axes},
        since=NEGATIVE_AXES if min((0, *(axes or ()))) < 0 else 1,
        every_dtype=every_dtype,
        special=special,
    )


def squeeze_samples() -> Iterator[MovementSample]:
    yield _axes("one_axis", (3, 1, 4), (1,), every_dtype=True)
    yield _axes("special_values", (1, 30), (0,), special=True, every_dtype=True)
    yield _axes("all_of_size_1", (1, 3, 1, 4, 1), None)
    yield _axes("none_of_size_1", (2, 3), None)
    yield _axes("several_axes", (1, 3, 1, 4, 1), (0, 4))
    yield _axes("axes_in_reverse", (1, 3, 1, 4), (2, 0))
    yield _axes("negative_axis", (3, 4, 1), (-1,))
    yield _axes("axes_of_both_signs", (1, 3, 1), (0, -1))
    yield _axes("to_scalar", (1, 1), (0, 1))
    yield _axes("to_scalar_by_default", (1, 1, 1), None)
    yield replace(_axes("scalar", (), None), rank=0)
    yield _axes("size_0_stays", (0, 1, 3), (1,))
    for rank in (2, 5, 8):
        shape = (1, *shape_of_rank(rank - 1))
        yield replace(_axes(f"rank_{rank}", shape, (0,)), rank=rank)
    yield replace(_axes("rank_8_to_2", (1, 1, 2, 1, 1, 3, 1, 1), None), rank=8)
    yield _axes("more_than_a_thread_group", (1, 1031, 1, 3), (0, 2))
    yield expect_refusal(_axes("axis_of_size_2", (2, 1), (0,)))
    yield expect_refusal(_axes("axis_of_size_0", (0, 1), (0,)))
    yield expect_refusal(_axes("axis_at_rank", (1, 2), (2,)))
    yield expect_refusal(_axes("axis_below_rank", (1, 2), (-3,)))


def squeeze_data(node: Node) -> Array:
    """Without the named dimensions of size 1, or without all of them."""
    values = node.array("data")
    listed = parameter(node, "axes")
    if listed is None:
        axes = {axis for axis, size in enumerate(values.shape) if size == 1}
    else:
        axes = {normalize_axis(axis, values.ndim) for axis in listed}
    if any(values.shape[axis] != 1 for axis in axes):
        raise RefusedError("an axis to be squeezed must have size 1")
    return values.reshape(tuple(size for axis, size in enumerate(values.shape) if axis not in axes))


def unsqueeze_samples() -> Iterator[MovementSample]:
    yield _axes("first", (3, 4), (0,), every_dtype=True)
    yield _axes("special_values", (30,), (1,), special=True, every_dtype=True)
    yield _axes("last", (3, 4), (2,))
    yield _axes("middle", (3, 4), (1,))
    yield _axes("several", (3, 4), (0, 3))
    yield _axes("unsorted", (3, 4, 5), (5, 4, 2))
    yield _axes("negative", (3, 4), (-1,))
    yield _axes("negative_first", (3, 4), (-3,))
    yield _axes("both_signs", (3, 4), (0, -1))
    yield replace(_axes("scalar", (), (0,)), rank=0)
    yield replace(_axes("scalar_to_rank_3", (), (0, 1, 2)), rank=3)
    yield replace(_axes("scalar_to_rank_8", (), tuple(range(8))), rank=8)
    yield _axes("size_0", (0, 3), (1,))
    for rank in (2, 5, 8):
        yield replace(_axes(f"to_rank_{rank}", shape_of_rank(rank - 1), (1,)), rank=rank)
    yield _axes("more_than_a_thread_group", (3, 1031), (1,))
    yield expect_refusal(_axes("repeated", (3, 4), (1, 1)))
    yield expect_refusal(_axes("repeated_by_sign", (3, 4), (0, -4)))
    yield expect_refusal(_axes("axis_at_output_rank", (3, 4), (3,)))
    yield expect_refusal(_axes("axis_below_output_rank", (3, 4), (-4,)))


def unsqueeze_data(node: Node) -> Array:
    """With a dimension of size 1 at each of the axes, which count the output's dimensions."""
    values = node.array("data")
    listed = parameter(node, "axes")
    assert listed is not None
    rank = values.ndim + len(listed)
    axes = {normalize_axis(axis, rank) for axis in listed}
    if len(axes) != len(listed):
        raise RefusedError("axes must not contain duplicates")
    sizes = iter(values.shape)
    return values.reshape(tuple(1 if axis in axes else next(sizes) for axis in range(rank)))


def lower(node: Node, outputs: tuple[Array, ...]) -> Lowering | None:
    """An identity between tensors of the output's shape."""
    return identity(first_input(node).reshape(outputs[0].shape), outputs[0].shape)


OPTIONAL_IO: Mapping[str, tuple[OptionalIO, ...]] = {
    "Squeeze": (OptionalIO("one_axis", inputs=each_alone("axes"), versions=(23, 24, 25)),),
}

OPERATORS = declare(
    (
        replace(movement("Reshape", reshape_samples, reshape_data, lower), without_rank_9=OTHER_RANK),
        movement("Flatten", flatten_samples, flatten_data, lower),
        movement("Squeeze", squeeze_samples, squeeze_data, lower),
        replace(movement("Unsqueeze", unsqueeze_samples, unsqueeze_data, lower), without_rank_9=OTHER_RANK),
    ),
    optional_io=OPTIONAL_IO,
)
