"""Gather-1, 11, 13, GatherElements-11, 13 and GatherND-11, 12, 13 -> DML_GATHER, DML_GATHER_ELEMENTS, DML_GATHER_ND1.

Sources: the operator pages. An index out of bounds is an error by all of them; indices count from the back from version
11 of Gather on, in GatherElements and GatherND from the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import expect_refusal
from epcheck.generators.declaration.interaction import (
    ABOVE_GROUPS,
    DISPATCHED,
    Arange,
    Interaction,
    Literal,
    Random,
    int64s,
)
from epcheck.generators.declaration.parameter_space import Parts, Values
from epcheck.generators.directml.descriptions.movement.gathering import Gather, GatherElements, GatherND1
from epcheck.generators.directml.lowering import Lowering, pad_rank
from epcheck.generators.directml.tensor import TensorDesc
from epcheck.generators.families.contrib_twin import make_twin
from epcheck.generators.families.movement import (
    AXES,
    Argument,
    MovementSample,
    RefusedError,
    axis_of,
    label,
    make_movement_space,
    make_ramp,
    movement,
    shape_of_rank,
)
from epcheck.generators.node import Node
from epcheck.generators.operator import declare

DECLARES = (
    "Gather",
    "GatherElements",
    "GatherND",
    "com.microsoft::GatherND",
)

NEGATIVE_INDICES = 11
"""Gather-11 is the first page whose bounds include negative indices."""

LAST_OF_7 = 6


def _gather(name: str, shape: tuple[int, ...], indices: Any, dtype: str = "int64", since: int = 1,
             every_dtype: bool = False, special: bool = False, **arguments: Argument) -> MovementSample:  # fmt: skip
    return MovementSample(
        name=name, shape=shape, arguments={"indices": np.array(indices, dtype), **arguments}, since=since,
        every_dtype=every_dtype, special=special,
    )  # fmt: skip


def gather_samples() -> Iterator[MovementSample]:
    yield _gather("default_axis", (4, 3), (2, 0, 3), every_dtype=True)
    yield _gather("special_values", (16,), tuple(reversed(range(16))), special=True, every_dtype=True)
    for axis in (0, 1, 2, -1, -2, -3):
        yield _gather(f"axis_{label(axis)}", (4, 5, 6), ((1, 3), (0, 2)), axis=axis, every_dtype=axis == -1)
    yield _gather("int32_indices", (4, 3), (3, 1, 1, 0), "int32")
    yield _gather("int32_negative_indices", (4, 3), (-1, -4, 2), "int32", NEGATIVE_INDICES)
    yield _gather("repeated_indices", (4, 3), (1, 1, 1, 1, 1), axis=1)
    yield _gather("negative_indices", (4, 3), (-1, -4, 2, -2), since=NEGATIVE_INDICES, every_dtype=True)
    yield _gather("negative_indices_last_axis", (3, 4), ((-1, 0), (-4, 3)), since=NEGATIVE_INDICES, axis=1)
    yield _gather("scalar_index", (4, 3), 2)
    yield _gather("scalar_index_last_axis", (4, 3), 1, axis=1)
    yield _gather("scalar_index_of_1d", (7,), LAST_OF_7)
    yield _gather("scalar_negative_index", (4, 3), -1, since=NEGATIVE_INDICES)
    yield _gather("one_index", (4, 3), (3,))
    yield replace(_gather("indices_of_rank_3", (4, 3), (((0, 1), (2, 3)), ((3, 2), (1, 0)))), rank=3)
    yield _gather("no_indices", (4, 3), ())
    yield _gather("size_0_elsewhere", (4, 0), (1, 2))
    yield _gather("size_0_axis_no_indices", (0, 3), ())
    yield _gather("axis_of_size_1", (1, 3), (0, 0, 0))
    for rank in range(1, 9):
        yield replace(_gather(f"rank_{rank}_first", shape_of_rank(rank), (1, 0)), rank=rank)
        if rank > 1:
            yield replace(_gather(f"rank_{rank}_last", shape_of_rank(rank), (1, 0, 1), axis=rank - 1), rank=rank)
    yield replace(_gather("output_of_rank_8", (2, 3, 2, 3), np.arange(16).reshape(2, 1, 2, 2, 2) % 3, axis=1), rank=8)
    yield _gather("more_than_a_thread_group", (1031, 3), (np.arange(1500) * 7) % 1031)
    yield _gather("long_rows", (5, 1031), (4, 0, 2))
    yield expect_refusal(_gather("index_at_length", (4, 3), (0, 4)))
    yield expect_refusal(_gather("index_below_length", (4, 3), (-5, 0), since=NEGATIVE_INDICES))
    yield expect_refusal(_gather("index_int64_max", (4, 3), (2**63 - 1,)))
    yield expect_refusal(_gather("index_2_to_the_32", (4, 3), (2**32,)))
    yield expect_refusal(_gather("axis_at_rank", (4, 3), (0,), axis=2))
    yield expect_refusal(_gather("axis_below_rank", (4, 3), (0,), axis=-3))
    yield expect_refusal(_gather("scalar_data", (), (0,)))


def check_indices(indices: Array, length: int) -> Array:
    """The indices as they count from the front, int64. Raises RefusedError for one out of bounds."""
    if indices.size and not (-length <= int(indices.min()) and int(indices.max()) < length):
        raise RefusedError(f"all indices must be within [{-length}, {length - 1}]")
    wide = indices.astype(np.int64)
    return np.where(wide < 0, wide + length, wide)


def gather_slices(node: Node) -> Array:
    """The slices along the axis at the indices, in the indices' shape."""
    values = node.array("data")
    if values.ndim == 0:
        raise RefusedError("data must have rank 1 or more")
    axis = axis_of(node, values.ndim, 0)
    return values.take(check_indices(node.array("indices"), values.shape[axis]), axis)


def gather_elements_samples() -> Iterator[MovementSample]:
    yield _gather("default_axis", (3, 3), ((1, 2, 0), (2, 0, 0)), every_dtype=True)
    yield _gather("special_values", (16,), tuple(reversed(range(16))), special=True, every_dtype=True)
    for axis in (0, 1, 2, -1, -2, -3):
        indices = (np.arange(27).reshape(3, 3, 3) * 5) % 3
        yield _gather(f"axis_{label(axis)}", (3, 3, 3), indices, axis=axis)
    yield _gather("int32_indices", (2, 3), ((1, 0, 1), (0, 0, 1)), "int32")
    yield _gather("negative_indices", (3, 3), ((-1, -2, 0), (2, 0, -3)), every_dtype=True)
    yield _gather("int32_negative_indices", (3, 2), ((-1, -2), (-3, 2)), "int32")
    yield _gather("more_indices_than_data", (2, 2), ((0, 1), (1, 0), (1, 1), (0, 0), (1, 0)))
    yield _gather("fewer_indices_elsewhere", (4, 5), ((3, 1), (0, 2)))
    yield _gather("fewer_indices_last_axis", (4, 5), ((4, 1, 0), (0, 2, 2)), axis=1)
    yield _gather("no_indices", (3, 3), np.zeros((0, 3)))
    yield _gather("size_1_dimensions", (1, 3, 1), np.array([0, 2, 1]).reshape(1, 3, 1), axis=1)
    for rank in range(1, 9):
        shape = shape_of_rank(rank)
        parity = np.arange(np.prod(shape)).reshape(shape) % 2
        yield replace(_gather(f"rank_{rank}_first", shape, parity), rank=rank)
        if rank > 1:
            yield replace(_gather(f"rank_{rank}_last", shape, 1 - parity, axis=-1), rank=rank)
    yield _gather("more_than_a_thread_group", (37, 41), (np.arange(37 * 41).reshape(37, 41) * 11) % 37)
    yield expect_refusal(_gather("index_at_length", (3, 2), ((0, 3),)))
    yield expect_refusal(_gather("index_below_length", (3, 2), ((-4, 0),)))
    yield expect_refusal(_gather("ranks_differ", (3, 2), (0, 1)))
    yield expect_refusal(_gather("axis_at_rank", (3, 2), ((0, 0),), axis=2))
    yield expect_refusal(_gather("axis_below_rank", (3, 2), ((0, 0),), axis=-3))


def elements(node: Node) -> Array:
    """The element that the index names along the axis, at the place of the index along the others."""
    values, indices = node.array("data"), node.array("indices")
    if values.ndim == 0 or values.ndim != indices.ndim:
        raise RefusedError("data and indices must have the same rank, 1 or more")
    axis = axis_of(node, values.ndim, 0)
    places: list[Array] = list(np.indices(indices.shape, sparse=True))
    places[axis] = check_indices(indices, values.shape[axis])
    return values[tuple(places)]


def gather_nd_samples() -> Iterator[MovementSample]:
    yield _gather("elements", (2, 3), ((0, 2), (1, 0)), every_dtype=True)
    yield _gather("special_values", (16,), [[i] for i in reversed(range(16))], special=True, every_dtype=True)
    yield _gather("slices", (3, 4), ((2,), (0,)))
    yield _gather("slices_of_3d", (2, 3, 4), ((0, 1), (1, 2), (1, 0)))
    yield replace(_gather("indices_of_rank_3", (2, 2, 3), (((0, 1),), ((1, 0),))), rank=3)
    yield _gather("one_tuple", (2, 3), (1, 2))
    yield _gather("one_tuple_slice", (2, 3), (1,))
    yield _gather("negative_indices", (3, 4), ((-1, -4), (0, -1), (-3, 2)), every_dtype=True)
    yield _gather("repeated_tuples", (3, 4), ((1, 1), (1, 1), (1, 1)))
    yield _gather("no_tuples", (3, 4), np.zeros((0, 2)))
    yield _gather("size_0_slices", (3, 0), ((1,), (2,)))
    yield _gather("batch_dims_0", (2, 3), ((0, 2), (1, 0)), batch_dims=0)
    yield _gather("batch_dims_1", (2, 3, 4), ((1,), (0,)), batch_dims=1)
    yield _gather("batch_dims_1_elements", (2, 3, 4), ((1, 3), (0, 2)), batch_dims=1)
    yield _gather("batch_dims_1_many", (2, 3, 4), (((1,), (2,)), ((0,), (-1,))), batch_dims=1)
    yield _gather("batch_dims_2", (2, 3, 4), [[[i + j] for j in range(3)] for i in range(2)], batch_dims=2)
    yield _gather("batch_dims_2_negative", (2, 2, 3, 2), -np.ones((2, 2, 1)), batch_dims=2)
    for rank in range(1, 9):
        shape = shape_of_rank(rank)
        yield replace(_gather(f"rank_{rank}_elements", shape, [[1] * rank, [0] * rank]), rank=rank)
        if rank > 1:
            yield replace(_gather(f"rank_{rank}_slices", shape, [[1], [0]]), rank=rank)
    yield _gather("more_than_a_thread_group", (37, 41), [[i * 7 % 37, i * 11 % 41] for i in range(1100)])
    yield _gather("long_slices", (5, 1031), [[4], [0]])
    yield expect_refusal(_gather("index_at_length", (2, 3), ((0, 3),)))
    yield expect_refusal(_gather("index_below_length", (2, 3), ((-3, 0),)))
    yield expect_refusal(_gather("tuples_longer_than_rank", (2, 3), ((0, 1, 0),)))
    yield expect_refusal(_gather("batches_differ", (2, 3, 4), [[1], [0], [1]], batch_dims=1))
    yield expect_refusal(_gather("batch_dims_at_rank", (2, 3), ((0, 1), (1, 0)), batch_dims=2))
    yield expect_refusal(_gather("scalar_data", (), (0,)))


def slices(node: Node) -> Array:
    """For each index tuple the slice of data that it names, batch by batch."""
    values, indices, batches = node.array("data"), node.array("indices"), node.integer("batch_dims", 0)
    if values.ndim == 0 or indices.ndim == 0 or not 0 <= batches < min(values.ndim, indices.ndim):
        raise RefusedError("data and indices must have rank 1 or more, and batch_dims must be less than both ranks")
    if values.shape[:batches] != indices.shape[:batches]:
        raise RefusedError(f"the first {batches} dimensions of indices and data must be equal")
    depth = indices.shape[-1]
    if not 1 <= depth <= values.ndim - batches:
        raise RefusedError(f"index tuples have {depth} values; 1 to {values.ndim - batches} are possible")
    places = [check_indices(indices[..., i], values.shape[batches + i]) for i in range(depth)]
    grid = list(np.indices(indices.shape[:-1], sparse=True))[:batches]
    result: Array = values[(*grid, *places)]
    return result


def _describe(tensors: list[Array]) -> tuple[TensorDesc, TensorDesc, TensorDesc]:
    values, indices, output = map(TensorDesc.of, tensors)
    return values, indices, output


def lower_gather(node: Node, outputs: tuple[Array, ...]) -> Lowering | None:
    """All tensors have the rank of the largest, four at least; IndexDimensions is the indices' own rank."""
    values, indices = node.array("data"), node.array("indices")
    rank = max(4, values.ndim, indices.ndim, outputs[0].ndim)
    tensors = [pad_rank(tensor, rank) for tensor in (values, indices, outputs[0])]
    axis = axis_of(node, values.ndim, 0) + rank - values.ndim
    desc = Gather(*_describe(tensors), axis=axis, index_dimensions=indices.ndim)
    return Lowering(desc, tuple(tensors[:2]))


def lower_elements(node: Node, outputs: tuple[Array, ...]) -> Lowering | None:
    """Rank padded to four."""
    values = node.array("data")
    tensors = [pad_rank(tensor) for tensor in (values, node.array("indices"), outputs[0])]
    axis = axis_of(node, values.ndim, 0) + tensors[0].ndim - values.ndim
    return Lowering(GatherElements(*_describe(tensors), axis=axis), tuple(tensors[:2]))


def lower_slices(node: Node, outputs: tuple[Array, ...]) -> Lowering | None:
    """All tensors have the rank of the largest, four at least; the true ranks stand beside them."""
    values, indices = node.array("data"), node.array("indices")
    rank = max(4, values.ndim, indices.ndim, outputs[0].ndim)
    tensors = [pad_rank(tensor, rank) for tensor in (values, indices, outputs[0])]
    desc = GatherND1(
        *_describe(tensors),
        input_dimension_count=values.ndim,
        indices_dimension_count=indices.ndim,
        batch_dimension_count=node.integer("batch_dims", 0),
    )
    return Lowering(desc, tuple(tensors[:2]))


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "Gather": (
        Interaction(ABOVE_GROUPS, (Arange((5, 64)), Random((DISPATCHED,), 0, 4, "int64")), {}, "int32"),
        Interaction("one_index_of_a_negative_axis", (Arange((3, 4)), Literal(1, "int64")), {"axis": -2}),
        Interaction("indices_of_rank_3_inside",
                (Arange((2, 5, 3)), Literal([4, 0, 2, 3, 1, 0, 2, 2, 4, 1, 3, 0], "int64", (2, 3, 2))), {"axis": 1}),
        Interaction("index_beyond_16_bits", (Arange((65540,)), int64s(65537, 3, 65539))),
    ),
    "GatherElements": (
        Interaction("fewer_indices_beside_the_axis_of_rank_3",
                (Arange((3, 2, 4)), Random((2, 2, 3), 0, 2, "int64")), {"axis": 0}),
    ),
}  # fmt: skip


def _make_gather(values: Values, _: np.random.Generator) -> Parts:
    data, axis = make_ramp(values), values["axis"]
    indices = np.array(values["indices"], np.int64)
    return Parts((data, np.minimum(indices, data.shape[axis] - 1)), {"axis": axis}, (1,))


def draw_indices(values: Values, rng: np.random.Generator) -> Array:
    """Indices along the axis; without `repeated` and `more` no two elements of a line have the same."""
    shape = tuple(values[name] for name in ("outer", "length", "inner"))
    axis, kind = values["axis"], values["indices"]
    length = shape[axis]
    lines = rng.permuted(np.broadcast_to(np.arange(length), (*np.delete(shape, axis), length)), axis=-1)
    if kind == "negative":
        lines = lines - length
    elif kind == "repeated":
        lines = lines // 2
    elif kind == "fewer":
        lines = lines[..., : length // 2]
    elif kind == "more":
        lines = np.concatenate([lines, lines[..., ::-1]], axis=-1)
    return np.ascontiguousarray(np.moveaxis(lines, -1, axis)).astype(values["index"])


def _make_gather_elements(values: Values, rng: np.random.Generator) -> Parts:
    return Parts((make_ramp(values), draw_indices(values, rng)), {"axis": values["axis"]}, (1,))


PARAMETER_SPACES = {
    # The usual indices take the first and the last element of a row.
    "Gather": make_movement_space(
        _make_gather,
        {"axis": AXES, "indices": ((4, 0, -1), (), (0,), ((1, 2), (0, 1)))},
        extremes=("nan", "inf", "minus_zero"),
    ),
    "GatherElements": make_movement_space(
        _make_gather_elements,
        {
            "axis": AXES,
            "index": ("int64", "int32"),
            "indices": ("permuted", "negative", "repeated", "fewer", "more"),
        },
    ),
}

GATHER_ND = movement("GatherND", gather_nd_samples, slices, lower_slices)

OPERATORS = declare(
    (
        movement("Gather", gather_samples, gather_slices, lower_gather),
        movement("GatherElements", gather_elements_samples, elements, lower_elements),
        GATHER_ND,
        make_twin(GATHER_ND, 11),
    ),
    interactions=INTERACTIONS,
    parameter_spaces=PARAMETER_SPACES,
)
