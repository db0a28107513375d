"""Scatter-9 and ScatterElements-11 ... 18 -> DML_SCATTER_OPERATOR_DESC; ScatterND-11 ... 18 -> DML_SCATTER_ND.

Sources: the operator pages. Without a reduction no two updates meet, since the order is not defined; with one (`add`
and `mul` from 16, `max` and `min` from 18 on) they do, on small integers, so that sums and products are exact in every
dtype and order. Reductions of bool are left out: the pages do not say what + is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import expect_refusal
from epcheck.generators.declaration.interaction import Arange, Interaction, Literal, Random, int64s
from epcheck.generators.declaration.parameter_space import ParameterSpace, Parts, Values
from epcheck.generators.declaration.undefined_sample import FLOATS, Answer, UndefinedSample, UndefinedSamples, ramp
from epcheck.generators.directml.descriptions.movement.gathering import Scatter, ScatterND
from epcheck.generators.directml.lowering import Lowering, pad_rank
from epcheck.generators.directml.tensor import TensorDesc
from epcheck.generators.families.movement import (
    AXES,
    LENGTHS,
    Argument,
    Drawn,
    MovementSample,
    RefusedError,
    axis_of,
    label,
    movement,
    shape_of_rank,
)
from epcheck.generators.node import Node
from epcheck.generators.operator import OTHER_RANK, declare
from epcheck.generators.operators.movement.gather import check_indices, draw_indices

DECLARES = (
    "Scatter",
    "ScatterElements",
    "ScatterND",
)

MAX_AND_MIN = 18
"""The first version with these two reductions."""

REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scatter(name: str, shape: tuple[int, ...], indices: Any, updates: tuple[int, ...] | None = None,
               dtype: str = "int64", every_dtype: bool = False, special: bool = False,
               **arguments: Argument) -> MovementSample:  # fmt: skip
    reduction = arguments.get("reduction", "none")
    small = reduction in REDUCTIONS
    array = np.array(indices, dtype)
    new = Drawn(array.shape if updates is None else updates, special=special, small=small)
    return MovementSample(
        name=name, shape=shape, arguments={"indices": array, "updates": new, **arguments}, every_dtype=every_dtype,
        small=small, kinds="fiu" if small else "bfiu", since=MAX_AND_MIN if reduction in ("max", "min") else 1,
    )  # fmt: skip


def scatter_samples() -> Iterator[MovementSample]:
    """Of Scatter, which has no reduction."""
    return (sample for sample in scatter_elements_samples() if "reduction" not in sample.arguments)


def scatter_elements_samples() -> Iterator[MovementSample]:
    yield _scatter("default_axis", (3, 3), ((1, 0, 2), (0, 2, 1)), every_dtype=True)
    yield _scatter("special_values", (17,), tuple(reversed(range(16))), special=True, every_dtype=True)
    permuted = np.argsort((np.arange(27) * 11 % 27).reshape(3, 3, 3), axis=0)
    for axis in (0, 1, 2, -1, -2, -3):
        indices = np.moveaxis(permuted, 0, axis % 3)
        yield _scatter(f"axis_{label(axis)}", (3, 3, 3), indices, axis=axis)
    yield _scatter("last_axis", (1, 5), ((1, 3),), axis=1, every_dtype=True)
    yield _scatter("int32_indices", (3, 3), ((1, 0, 2), (0, 2, 1)), dtype="int32")
    yield _scatter("negative_indices", (4, 3), ((-1, 0, -4), (-2, -1, 2)), every_dtype=True)
    yield _scatter("int32_negative_indices", (4,), (-1, -4), dtype="int32")
    yield _scatter("fewer_updates_elsewhere", (4, 5), ((3, 1), (0, 2)))
    yield _scatter("one_update", (4, 5), ((2,),))
    yield _scatter("no_updates", (3, 3), np.zeros((0, 3)))
    yield _scatter("size_1_dimensions", (1, 3, 1), np.array([2, 0]).reshape(1, 2, 1), axis=1)
    for rank in range(1, 9):
        shape = shape_of_rank(rank)
        yield replace(_scatter(f"rank_{rank}_first", shape, np.ones((1, *shape[1:]))), rank=rank)
        if rank > 1:
            yield replace(_scatter(f"rank_{rank}_last", shape, np.ones((*shape[:-1], 1)), axis=-1), rank=rank)
    many = np.argsort((np.arange(37 * 41) * 101 % 1517).reshape(37, 41), axis=0)
    yield _scatter("more_than_a_thread_group", (37, 41), many)
    yield _scatter("reduction_none", (3, 3), ((1, 0, 2), (0, 2, 1)), reduction="none")
    for reduction in REDUCTIONS:
        yield _scatter(f"{reduction}", (3, 3), ((1, 0, 2), (0, 2, 1)), reduction=reduction, every_dtype=True)
        yield _scatter(f"{reduction}_repeated", (3, 4), ((1, 1, 1), (2, 0, 2)), axis=1, reduction=reduction,
                         every_dtype=True)  # fmt: skip
        yield _scatter(f"{reduction}_repeated_negative", (5,), (-1, 4, -1, 0), reduction=reduction)
    yield expect_refusal(_scatter("index_at_length", (3, 2), ((0, 3),)))
    yield expect_refusal(_scatter("index_below_length", (3, 2), ((-4, 0),)))
    yield expect_refusal(_scatter("updates_of_another_shape", (3, 2), ((0, 1),), (1, 1)))
    yield expect_refusal(_scatter("ranks_differ", (3, 2), (0, 1)))
    yield expect_refusal(_scatter("axis_at_rank", (3, 2), ((0, 1),), axis=2))


def scatter_elements(node: Node) -> Array:
    """A copy of data, with the updates at their indices along the axis."""
    values, indices, updates = node.array("data"), node.array("indices"), node.array("updates")
    if values.ndim == 0 or values.ndim != indices.ndim or indices.shape != updates.shape:
        raise RefusedError("data, indices and updates must have the same rank, 1 or more, and the latter one shape")
    axis = axis_of(node, values.ndim, 0)
    places: list[Array] = list(np.indices(indices.shape, sparse=True))
    places[axis] = check_indices(indices, values.shape[axis])
    return _update(node, values, tuple(np.broadcast_arrays(*places)), updates)


def _update(node: Node, values: Array, places: tuple[Array, ...], updates: Array) -> Array:
    reduction = node.text("reduction", "none")
    result = values.copy()
    if reduction == "none":
        result[places] = updates
    else:
        REDUCTIONS[reduction].at(result, places, updates)
    return result


def scatter_nd_samples() -> Iterator[MovementSample]:
    yield _scatter("elements", (8,), ((4,), (3,), (1,), (7,)), (4,), every_dtype=True)
    yield _scatter("special_values", (17,), [[i] for i in reversed(range(16))], (16,), special=True, every_dtype=True)
    yield _scatter("elements_of_2d", (3, 4), ((0, 3), (2, 1), (1, 0)), (3,))
    yield _scatter("slices", (4, 4, 3), ((0,), (2,)), (2, 4, 3), every_dtype=True)
    yield _scatter("slices_of_last_axis", (3, 4, 5), ((2, 1), (0, 3)), (2, 5))
    yield replace(_scatter("indices_of_rank_3", (4, 5), (((0, 1), (1, 2)), ((2, 3), (3, 4))), (2, 2)), rank=3)
    yield _scatter("one_tuple", (3, 4), (2, 1), ())
    yield _scatter("one_tuple_slice", (3, 4), (2,), (4,))
    yield _scatter("negative_indices", (3, 4), ((-1, -4), (0, -1), (-2, 2)), (3,), every_dtype=True)
    yield _scatter("no_updates", (3, 4), np.zeros((0, 2)), (0,))
    yield _scatter("all_elements", (2, 3), [[i, j] for i in (1, 0) for j in (2, 0, 1)], (6,))
    for rank in range(1, 9):
        shape = shape_of_rank(rank)
        yield replace(_scatter(f"rank_{rank}_elements", shape, [[1] * rank, [0] * rank], (2,)), rank=rank)
        if rank > 1:
            yield replace(_scatter(f"rank_{rank}_slices", shape, [[1]], (1, *shape[1:])), rank=rank)
    yield _scatter("more_than_a_thread_group", (37, 41), [[i * 7 % 37, i * 11 % 41] for i in range(1100)], (1100,))
    yield _scatter("reduction_none", (8,), ((4,), (3,)), (2,), reduction="none")
    for reduction in REDUCTIONS:
        yield _scatter(f"{reduction}", (3, 4), ((0, 3), (2, 1)), (2,), reduction=reduction, every_dtype=True)
        yield _scatter(f"{reduction}_repeated", (4, 3), ((1,), (3,), (1,)), (3, 3), reduction=reduction,
                         every_dtype=True)  # fmt: skip
        yield _scatter(f"{reduction}_repeated_negative", (5,), ((-1,), (4,), (0,)), (3,), reduction=reduction)
    yield expect_refusal(_scatter("index_at_length", (3, 2), ((0, 2),), (1,)))
    yield expect_refusal(_scatter("index_below_length", (3, 2), ((-4, 0),), (1,)))
    yield expect_refusal(_scatter("tuples_longer_than_rank", (3, 2), ((0, 1, 0),), (1,)))
    yield expect_refusal(_scatter("updates_of_another_shape", (3, 2), ((0,), (1,)), (2, 3)))
    yield expect_refusal(_scatter("scalar_data", (), ((0,),), (1,)))


def scatter_slices(node: Node) -> Array:
    """A copy of data, with the updates at the slices that the index tuples name."""
    values, indices, updates = node.array("data"), node.array("indices"), node.array("updates")
    if values.ndim == 0 or indices.ndim == 0 or indices.shape[-1] > values.ndim:
        raise RefusedError(
            "data and indices must have rank 1 or more, and index tuples at most one value per dimension"
        )
    depth = indices.shape[-1]
    if updates.shape != indices.shape[:-1] + values.shape[depth:]:
        raise RefusedError(f"updates must have shape {indices.shape[:-1] + values.shape[depth:]}")
    places = tuple(check_indices(indices[..., i], values.shape[i]) for i in range(depth))
    return _update(node, values, places, updates)


def _describe(tensors: list[Array]) -> tuple[TensorDesc, TensorDesc, TensorDesc, TensorDesc]:
    values, indices, updates, output = map(TensorDesc.of, tensors)
    return values, indices, updates, output


def lower_elements(node: Node, outputs: tuple[Array, ...]) -> Lowering | None:
    """Rank padded to four; the provider leaves reductions to others, and copies the data where nothing is updated."""
    values = node.array("data")
    if node.text("reduction", "none") != "none" or node.array("updates").size == 0:
        return None
    inputs = tuple(pad_rank(node.array(name)) for name in ("data", "indices", "updates"))
    axis = axis_of(node, values.ndim, 0) + inputs[0].ndim - values.ndim
    return Lowering(Scatter(*_describe([*inputs, pad_rank(outputs[0])]), axis=axis), inputs)


def lower_slices(node: Node, outputs: tuple[Array, ...]) -> Lowering | None:
    """All tensors have the rank of the largest, four at least; the true ranks stand beside them."""
    inputs = tuple(node.array(name) for name in ("data", "indices", "updates"))
    if node.text("reduction", "none") != "none" or inputs[2].size == 0:
        return None
    rank = max(4, *(tensor.ndim for tensor in inputs))
    tensors = [pad_rank(tensor, rank) for tensor in (*inputs, outputs[0])]
    desc = ScatterND(*_describe(tensors), input_dimension_count=inputs[0].ndim, indices_dimension_count=inputs[1].ndim)
    return Lowering(desc, tuple(tensors[:3]))


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "ScatterElements": (
        Interaction("fewer_indices_beside_the_axis_of_rank_3",
                (Arange((3, 2, 4)), Literal([2, 0, 1, 0, 1, 2, 0, 2, 0, 1, 0, 1], "int64", (2, 2, 3)), Random((2, 2,
                3))),
                {"axis": 0}),
        Interaction("sum_of_fewer_indices_of_rank_3",
                (Random((3, 2, 4)), Literal([2, 0, 1, 0, 1, 2, 0, 2, 1, 1, 0, 2], "int64", (2, 2, 3)),
                 Random((2, 2, 3))),
                {"axis": 0, "reduction": "add"}),
        Interaction("sum_beyond_32_bits", (Literal([2**31, 1], shape=(2,)), int64s(0),
                Literal([2**31], shape=(1,))), {"axis": 0, "reduction": "add"}, "int64"),
        Interaction("least_of_two_negative_numbers",
                (Literal([-1.0, 1.0]), int64s(0), Literal([-2.0])), {"axis": 0, "reduction": "min"}, "float16"),
    ),
    "ScatterND": (
        Interaction("greatest_of_two_negative_numbers",
                (Literal([-1.0, 1.0]), Literal([[0]], "int64"), Literal([-2.0])), {"reduction": "max"}),
    ),
}  # fmt: skip

TWICE = "one element is written twice without a reduction: the page leaves open which update stays"


def _list_written_twice() -> UndefinedSamples:
    for dtype in (*FLOATS, "int32"):
        data, updates = ramp((3, 4), dtype), ramp((2, 4), dtype, 51)
        indices = np.array([[0, 1, 2, 0], [0, 2, 2, 1]], np.int64)
        right, bad = data.copy(), np.zeros(data.shape, bool)
        for column in range(4):
            for row in range(2):
                right[indices[row, column], column] = updates[row, column]
            bad[indices[0, column], column] = indices[0, column] == indices[1, column]
        yield UndefinedSample("index_twice", dtype, TWICE, (data, indices, updates), (Answer(right, bad, moved=True),))


def _rows_written_twice() -> UndefinedSamples:
    for dtype in (*FLOATS, "int32"):
        data, updates = ramp((3, 4), dtype), ramp((2, 4), dtype, 51)
        rows = np.array([[1], [1]], np.int64)
        right, bad = data.copy(), np.zeros(data.shape, bool)
        right[1], bad[1] = updates[1], True
        yield UndefinedSample("index_twice", dtype, TWICE, (data, rows, updates), (Answer(right, bad, moved=True),))


UNDEFINED = {"ScatterElements": _list_written_twice, "Scatter": _list_written_twice, "ScatterND": _rows_written_twice}


def _make_scatter_elements(values: Values, rng: np.random.Generator) -> Parts:
    """Small integers, of which every order of a reduction gives the same."""
    indices = draw_indices(values, rng)
    shape = tuple(values[name] for name in ("outer", "length", "inner"))
    data, updates = (rng.integers(-4, 5, size).astype(np.float32) for size in (shape, indices.shape))
    return Parts((data, indices, updates), {"axis": values["axis"], "reduction": values["reduction"]}, (1,))


PARAMETER_SPACES = {
    "ScatterElements": ParameterSpace(
        {"outer": 2, "length": 5, "inner": 3},
        _make_scatter_elements,
        {
            "axis": AXES,
            "index": ("int64", "int32"),
            "indices": ("permuted", "negative", "fewer", "repeated"),
            "reduction": ("none", "add", "mul", "max", "min"),
        },
        {"length": LENGTHS, "inner": LENGTHS},
        ("outer", "inner"),
        lambda values: values["indices"] != "repeated" or values["reduction"] != "none",
    )
}

OPERATORS = declare(
    (
        replace(movement("Scatter", scatter_samples, scatter_elements, lower_elements), new_axis_last=True),
        replace(
            movement("ScatterElements", scatter_elements_samples, scatter_elements, lower_elements),
            new_axis_last=True,
        ),
        replace(movement("ScatterND", scatter_nd_samples, scatter_slices, lower_slices), without_rank_9=OTHER_RANK),
    ),
    interactions=INTERACTIONS,
    undefined=UNDEFINED,
    parameter_spaces=PARAMETER_SPACES,
)
