"""Concat-4, 11, 13 -> DML_JOIN_OPERATOR_DESC; Split-2, 11, 13, 18 -> DML_SPLIT_OPERATOR_DESC.

Sources: the operator pages; Split-18 writes down how an uneven division into `num_outputs` comes out. Lengths of 0 are
allowed from Split-11 on ("Values should be >= 0"), negative axes from version 11 of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.declaration.interaction import ABOVE_GROUPS, DISPATCHED, Arange, Interaction, int64s
from epcheck.generators.declaration.parameter_space import Parts, Values
from epcheck.generators.directml.descriptions.movement.layout import Join, Split
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.directml.tensor import TensorDesc
from epcheck.generators.families.movement import (
    AXES,
    Drawn,
    MovementSample,
    RefusedError,
    axis_of,
    draw_values,
    first_input,
    label,
    make_movement_space,
    make_ramp,
    movement,
    normalize_axis,
    parameter,
    shape_of_rank,
)
from epcheck.generators.node import Node, Operand
from epcheck.generators.operator import declare

DECLARES = (
    "Concat",
    "Split",
)

NEGATIVE_AXES = 11
"""The first version whose page counts axes from the back."""


@dataclass(frozen=True, kw_only=True)
class ConcatSample(MovementSample):
    """shapes: of the inputs, in their order."""

    shapes: tuple[tuple[int, ...], ...]


def _concat(name: str, axis: int, *shapes: tuple[int, ...], **more: bool) -> ConcatSample:
    since = NEGATIVE_AXES if axis < 0 else 1
    return ConcatSample(name=name, shapes=shapes, shape=shapes[0], arguments={"axis": axis}, since=since, **more)  # type: ignore[arg-type]


def concat_samples() -> Iterator[ConcatSample]:
    yield _concat("two", 0, (2, 3), (4, 3), every_dtype=True)
    yield _concat("special_values", 1, (2, 11), (2, 5), special=True, every_dtype=True)
    yield _concat("one_input", 0, (3, 2))
    yield _concat("three_of_different_lengths", 1, (2, 1), (2, 4), (2, 2))
    for axis in (0, 1, 2, -1, -2, -3):
        shapes = tuple(tuple(n if i == axis % 3 else d for i, d in enumerate((2, 3, 4))) for n in (3, 1, 2))
        yield _concat(f"axis_{label(axis)}", axis, *shapes, every_dtype=axis == -1)
    for rank in range(1, 9):
        shape = shape_of_rank(rank)
        yield replace(_concat(f"rank_{rank}_first_axis", 0, shape, (1, *shape[1:]), (2, *shape[1:])), rank=rank)
        if rank > 1:
            yield replace(
                _concat(f"rank_{rank}_last_axis", rank - 1, shape, (*shape[:-1], 1), (*shape[:-1], 2)), rank=rank
            )
    for position in range(3):
        lengths = tuple(0 if i == position else 2 + i for i in range(3))
        yield _concat(f"empty_part_{position}", 0, *((n, 3) for n in lengths), every_dtype=position == 1)
    yield _concat("empty_part_last_axis", -1, (3, 2), (3, 0))
    yield _concat("empty_beside_one", 0, (0,), (5,))
    yield _concat("all_empty", 0, (0, 3), (0, 3))
    yield _concat("size_0_elsewhere", 1, (0, 3), (0, 2))
    yield _concat("size_1_dimensions", 2, (1, 1, 1, 1), (1, 1, 1, 1))
    yield _concat("seventeen_inputs", 1, *((2, 1 + i % 3) for i in range(17)))
    yield _concat("more_than_a_thread_group", 1, (3, 1031), (3, 7), (3, 130))
    yield _concat("inner_blocks_of_odd_size", 1, (5, 3, 7), (5, 2, 7))
    yield expect_refusal(_concat("axis_at_rank", 2, (2, 3), (2, 3)))
    yield expect_refusal(_concat("axis_below_rank", -3, (2, 3), (2, 3)))
    yield expect_refusal(_concat("other_dimensions_differ", 0, (2, 3), (2, 4)))
    yield expect_refusal(_concat("ranks_differ", 0, (2, 3), (6,)))
    yield expect_refusal(_concat("scalars", 0, (), ()))


def concat_node(sample: MovementSample, context: CaseContext) -> Node:
    """inputs_0 ... inputs_n-1 of the case's dtype; axis is an attribute."""
    assert isinstance(sample, ConcatSample)
    operands = tuple(
        Operand(f"inputs_{i}", draw_values(Drawn(s, sample.special), context)) for i, s in enumerate(sample.shapes)
    )
    attributes = {"axis": sample.arguments["axis"]}
    return Node("Concat", "", context.since_version, operands, ("concat_result",), attributes)  # type: ignore[arg-type]


def concatenate_inputs(node: Node) -> Array:
    """The inputs one after the other along the axis."""
    parts = [operand.value for operand in node.inputs if operand is not None]
    rank = parts[0].ndim
    axis = axis_of(node, rank, 0)
    if any(part.ndim != rank for part in parts):
        raise RefusedError("all inputs must have the same rank")
    if len({part.shape[:axis] + part.shape[axis + 1 :] for part in parts}) > 1:
        raise RefusedError("all inputs must have the same shape, except for the dimension of the axis")
    return np.concatenate(parts, axis)


def lower_concat(node: Node, outputs: tuple[Array, ...]) -> Lowering | None:
    """The parts that have elements; DirectML has no tensor without."""
    parts = tuple(o.value for o in node.inputs if o is not None and o.value.size)
    axis = axis_of(node, parts[0].ndim, 0)
    return Lowering(Join(tuple(map(TensorDesc.of, parts)), TensorDesc.of(outputs[0]), axis), parts)


def _split(name: str, shape: tuple[int, ...], lengths: tuple[int, ...], axis: int | None = None, since: int = 1,
           every_dtype: bool = False, special: bool = False) -> MovementSample:  # fmt: skip
    arguments = {"split": lengths} | ({} if axis is None else {"axis": axis})
    since = max(since, NEGATIVE_AXES if (axis or 0) < 0 else 1, EMPTY_PARTS if 0 in lengths else 1)
    return MovementSample(
        name=name,
        shape=shape,
        arguments=arguments,
        outputs=len(lengths),
        since=since,
        every_dtype=every_dtype,
        special=special,
    )


EMPTY_PARTS = 11
NUM_OUTPUTS = 18
"""Split-18 has `num_outputs`; before, the number of outputs alone says into how many equal parts to divide."""


def split_samples() -> Iterator[MovementSample]:
    yield _split("two_of_different_lengths", (5, 3), (2, 3), every_dtype=True)
    yield _split("special_values", (30,), (7, 23), special=True, every_dtype=True)
    yield _split("three", (7,), (1, 4, 2))
    yield _split("one_output", (4, 2), (4,))
    for axis in (0, 1, 2, -1, -2, -3):
        yield _split(f"axis_{label(axis)}", (4, 5, 6), (1, (4, 5, 6)[axis] - 1), axis)
    for rank in range(2, 9):
        shape = shape_of_rank(rank)
        yield replace(_split(f"rank_{rank}_first_axis", shape, (1, 1), 0), rank=rank)
        yield replace(_split(f"rank_{rank}_last_axis", shape, (shape[-1] - 1, 1), rank - 1), rank=rank)
    for position in range(3):
        lengths = tuple(0 if i == position else 2 for i in range(3))
        yield _split(f"empty_part_{position}", (4, 3), lengths, every_dtype=position == 1)
    yield _split("empty_part_of_two", (3, 4), (4, 0), 1)
    yield _split("two_empty_parts_of_four", (5, 2), (2, 0, 3, 0))
    yield _split("empty_axis", (0, 3), (0, 0))
    yield _split("size_0_elsewhere", (0, 5), (2, 3), 1)
    yield _split("size_1_parts", (5, 1), (1,) * 5)
    yield _split("more_than_a_thread_group", (2, 2100), (1031, 1, 1068), 1)
    yield _split("seventeen_outputs", (17, 3), (1,) * 17)
    for count, length in ((2, 6), (3, 6), (1, 4)):
        equal = MovementSample(name=f"equal_{count}", shape=(length, 2), outputs=count, until=NUM_OUTPUTS - 1)
        yield equal
        yield MovementSample(
            name=f"num_outputs_{count}", shape=(length, 2), outputs=count, arguments={"num_outputs": count}
        )
    yield MovementSample(name="equal_last_axis", shape=(2, 6), outputs=3, arguments={"axis": 1}, until=NUM_OUTPUTS - 1)
    for count, length in ((3, 7), (2, 5), (4, 10)):
        yield MovementSample(
            name=f"num_outputs_{count}_of_{length}", shape=(2, length), outputs=count,
            arguments={"num_outputs": count, "axis": -1},
        )  # fmt: skip
    yield expect_refusal(_split("sum_too_small", (5, 3), (2, 2)))
    yield expect_refusal(_split("sum_too_large", (5, 3), (3, 3)))
    yield expect_refusal(_split("negative_length", (5, 3), (6, -1), since=EMPTY_PARTS))
    yield expect_refusal(_split("axis_at_rank", (5, 3), (2, 3), 2))
    yield expect_refusal(_split("axis_below_rank", (5, 3), (2, 3), -3))
    yield expect_refusal(MovementSample(name="unequal", shape=(5, 2), outputs=2, until=NUM_OUTPUTS - 1))
    yield expect_refusal(
        MovementSample(
            name="split_and_num_outputs", shape=(4, 2), outputs=2, arguments={"split": (2, 2), "num_outputs": 2}
        )
    )
    yield expect_refusal(
        MovementSample(name="neither_split_nor_num_outputs", shape=(4, 2), outputs=2, since=NUM_OUTPUTS)
    )


def parts(node: Node) -> tuple[Array, ...]:
    """The parts along the axis, of the given or of equal lengths."""
    values = first_input(node)
    axis = axis_of(node, values.ndim, 0)
    bounds = tuple(accumulate(_lengths(node, values.shape[axis])))
    return tuple(np.split(values, bounds[:-1], axis))


def _lengths(node: Node, dim: int) -> tuple[int, ...]:
    lengths, count = parameter(node, "split"), node.integer("num_outputs", 0)
    if lengths is not None and count:
        raise RefusedError("either input 'split' or the attribute 'num_outputs' should be specified, but not both")
    if lengths is None and not count and node.since_version >= NUM_OUTPUTS:
        raise RefusedError("either input 'split' or the attribute 'num_outputs' should be specified")
    if lengths is None and count:
        chunk = -(-dim // count)
        return (*(chunk,) * (count - 1), dim - chunk * (count - 1))
    if lengths is None:
        count = len(node.outputs)
        if dim % count:
            raise RefusedError(f"{dim} elements cannot be split into {count} equal parts")
        return (dim // count,) * count
    if min(lengths) < 0 or sum(lengths) != dim:
        raise RefusedError(f"the lengths {lengths} must not be negative and add up to {dim}")
    return lengths


def lower_split(node: Node, outputs: tuple[Array, ...]) -> Lowering | None:
    """The axis and the outputs' sizes."""
    values = first_input(node)
    axis = normalize_axis(node.integer("axis", 0), values.ndim)
    return Lowering(Split(TensorDesc.of(values), tuple(map(TensorDesc.of, outputs)), axis), (values,))


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "Concat": (
        Interaction(ABOVE_GROUPS, (Arange((DISPATCHED, 63)), Arange((DISPATCHED, 1))), {"axis": 1}, "int32"),
        Interaction("third_axis_of_rank_4_unequal", (Arange((2, 2, 3, 2)), Arange((2, 2, 1, 2), 99)),
                {"axis": 2}),
        Interaction("33_inputs", tuple(Arange((2, 1 + i % 2), 10 * i) for i in range(33)), {"axis": 1}),
    ),
    "Split": (
        Interaction("second_axis_of_rank_4_unevenly", (Arange((2, 5, 2, 2)), int64s(2, 3)), {"axis": 1},
                "float32", 2),
    ),
}  # fmt: skip


def _make_concat(values: Values, _: np.random.Generator) -> Parts:
    """Inputs of different sizes along the axis, where that is not the dimension which is empty or large."""
    data = make_ramp(values)
    inputs = [data + 1000 * i for i in range(values["count"])]
    inputs[-1] = np.take(inputs[-1], range(0, data.shape[values["axis"]], 2), values["axis"])
    return Parts(tuple(inputs), {"axis": values["axis"]})


PARTS = {"uneven": (2, 3, 1), "equal": (2, 2, 2), "single": (6,), "many": (1,) * 6}
"""How an axis of six elements is split."""


def _is_split(values: Values) -> bool:
    """Without lengths the parts are equal; the number of outputs says how many."""
    return values["given"] == "split" or values["parts"] in ("equal", "single", "many")


def _make_split(values: Values, _: np.random.Generator) -> Parts:
    """The axis has six elements, or a border size, which is split into three parts. num_outputs stands for lengths."""
    shape, axis, sizes = [values[name] for name in ("outer", "length", "inner")], values["axis"], PARTS[values["parts"]]
    if shape[axis] in (2, 3, 5):
        shape[axis] = sum(sizes)
    else:
        third = shape[axis] // 3
        sizes = (third, shape[axis] - 2 * third, third)
    data = np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)
    outputs = (True,) * len(sizes)
    if values["given"] == "split":
        return Parts((data, np.array(sizes, np.int64)), {"axis": axis}, (1,), outputs)
    return Parts((data,), {"axis": axis, "num_outputs": len(sizes)}, (), outputs)


PARAMETER_SPACES = {
    "Concat": make_movement_space(_make_concat, {"axis": AXES, "count": (2, 1, 3, 5)}, ("outer", "length", "inner")),
    "Split": make_movement_space(
        _make_split, {"axis": AXES, "parts": tuple(PARTS), "given": ("split", "")}, is_valid=_is_split
    ),
}

OPERATORS = declare(
    (
        movement("Concat", concat_samples, concatenate_inputs, lower_concat, node=concat_node),
        movement("Split", split_samples, parts, lower_split),
    ),
    interactions=INTERACTIONS,
    parameter_spaces=PARAMETER_SPACES,
)
