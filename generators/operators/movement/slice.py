"""Slice-1, 10, 11, 13 -> DML_SLICE1_OPERATOR_DESC.

Sources: the operator pages Slice-1 (attributes), Slice-10 (steps; axes and steps become inputs), Slice-11 and Slice-13
(the clamping rules, written out). How the DML EP lowers it: SliceHelper in ONNX Runtime's OperatorHelper.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from epcheck.generators import data, graph
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.claims import newest_claimed_version
from epcheck.generators.declaration.interaction import ABOVE_GROUPS, DISPATCHED, Arange, Interaction, int64s
from epcheck.generators.declaration.parameter_space import Parts, Values
from epcheck.generators.directml import Slice1, TensorDesc
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.families.movement import AXES, first_input, make_movement_space, make_ramp
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import Operator, declare, spread
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("Slice",)

INT32, INT64 = np.iinfo(np.int32), np.iinfo(np.int64)
LENGTH = 6
RULES_WRITTEN_OUT = 11
"""Slice-11 is the first page that states what is refused: repeated axes, axes out of range, steps of 0."""

CLAMPING_WRITTEN_OUT = 13
"""Slice-13 clamps a start before the axis to 0 when stepping backward; older pages say no more than 'similar to numpy',
which selects nothing there."""


@dataclass(frozen=True, kw_only=True)
class SliceSample(Sample):
    """starts, ends, axes, steps as ONNX has them; None omits the input. boundary_data: every special value."""

    shape: tuple[int, ...] = (LENGTH,)
    starts: tuple[int, ...] = (0,)
    ends: tuple[int, ...] = (INT64.max,)
    axes: tuple[int, ...] | None = (0,)
    steps: tuple[int, ...] | None = None
    index_dtype: str = "int64"
    boundary_data: bool = False


def samples() -> Iterator[SliceSample]:
    yield from _steps()
    yield from _starts_and_ends()
    yield from _axes()
    yield from _ranks()
    yield from _list_empty()
    yield from _int32_indices()
    yield SliceSample(name="every_value_forward", boundary_data=True, starts=(1,), every_dtype=True)
    yield SliceSample(
        name="every_value_backward", boundary_data=True, starts=(-1,), ends=(INT64.min,), steps=(-1,), every_dtype=True
    )
    yield from map(expect_refusal, _list_refused())


def _steps() -> Iterator[SliceSample]:
    common = {2, -1, -2}
    for step in (1, 2, 3, LENGTH - 1, LENGTH, LENGTH + 1, INT32.max, INT32.max + 1, INT64.max):
        for signed in (step, -step):
            start, end = (0, INT64.max) if signed > 0 else (-1, INT64.min)
            yield SliceSample(
                name=f"whole_axis_step_{_label(signed)}",
                starts=(start,),
                ends=(end,),
                steps=(signed,),
                every_dtype=signed in common,
            )
    yield SliceSample(name="whole_axis_step_int64_min", starts=(-1,), ends=(INT64.min,), steps=(INT64.min,))
    for length in (7, 8, 9):
        yield SliceSample(
            name=f"backward_by_3_over_{length}", shape=(length,), starts=(-1,), ends=(-length - 1,), steps=(-3,)
        )
        yield SliceSample(name=f"forward_by_3_over_{length}", shape=(length,), starts=(1,), ends=(length,), steps=(3,))


def _starts_and_ends() -> Iterator[SliceSample]:
    positions: tuple[int, ...] = (0, 1, LENGTH - 1, LENGTH, LENGTH + 1, -1, -2, -LENGTH, -LENGTH - 1)
    positions += (INT32.max, INT32.min, INT64.max, INT64.min, INT32.max + 1, INT32.min - 1)
    for step in (1, 2, -1, -2):
        whole_start, whole_end = (0, INT64.max) if step > 0 else (INT64.max, INT64.min)
        for position in positions:
            label = _label(position)
            if position != (0 if step > 0 else -1):
                yield SliceSample(
                    name=f"start_{label}_step_{_label(step)}", starts=(position,), ends=(whole_end,), steps=(step,)
                )
            if position != whole_end:
                yield SliceSample(
                    name=f"end_{label}_step_{_label(step)}", starts=(whole_start,), ends=(position,), steps=(step,)
                )
    inner = {"inner_forward": (1, 4, 1), "inner_forward_by_2": (1, 5, 2), "inner_backward": (4, 1, -1)}
    inner |= {"inner_backward_by_2": (5, 0, -2), "negative_ends_inside": (-5, -2, 1), "negative_backward": (-2, -5, -1)}
    inner |= {"last_element": (-1, LENGTH, 1), "first_element_backward": (0, -LENGTH - 1, -1)}
    for name, (start, end, step) in inner.items():
        yield SliceSample(
            name=name, starts=(start,), ends=(end,), steps=(step,), every_dtype=name == "inner_backward_by_2"
        )
    yield SliceSample(
        name="negative_step_past_both_ends", starts=(LENGTH + 4,), ends=(-LENGTH - 5,), steps=(-1,), every_dtype=True
    )
    yield SliceSample(name="steps_omitted", starts=(1,), ends=(-1,), every_dtype=True)
    yield SliceSample(name="steps_omitted_past_the_end", starts=(-4,), ends=(1000,))


def _axes() -> Iterator[SliceSample]:
    matrix = (4, 5)
    yield SliceSample(name="axes_omitted", shape=matrix, starts=(1, 2), ends=(3, 5), axes=None, every_dtype=True)
    yield SliceSample(name="axes_omitted_steps", shape=matrix, starts=(3, 0), ends=(0, 5), axes=None, steps=(-2, 2))
    yield SliceSample(name="axes_omitted_fewer_than_rank", shape=matrix, starts=(1,), ends=(3,), axes=None)
    yield SliceSample(name="axes_reversed", shape=matrix, starts=(1, 0), ends=(4, 3), axes=(1, 0))
    yield SliceSample(name="axes_negative", shape=matrix, starts=(1, 0), ends=(4, 3), axes=(-1, -2), every_dtype=True)
    yield SliceSample(name="axes_mixed_signs", shape=(3, 4, 5), starts=(1, 1), ends=(9, 3), axes=(0, -1), steps=(1, 2))
    yield SliceSample(name="axis_negative_forward", shape=matrix, starts=(0,), ends=(9,), axes=(-1,), steps=(2,))
    yield SliceSample(name="last_axis_backward", shape=matrix, starts=(-1,), ends=(-9,), axes=(-1,), steps=(-1,))
    yield SliceSample(name="first_axis_backward", shape=matrix, starts=(-1,), ends=(-9,), axes=(0,), steps=(-1,))
    yield SliceSample(
        name="all_axes_backward", shape=(2, 3, 4), starts=(-1,) * 3, ends=(-9,) * 3, axes=(0, 1, 2), steps=(-1, -2, -3),
        every_dtype=True,
    )  # fmt: skip
    yield SliceSample(
        name="signs_differ_by_axis",
        shape=(4, 4, 4),
        starts=(0, -1, 1),
        ends=(4, -9, 4),
        axes=(0, 1, 2),
        steps=(3, -3, 2),
    )
    yield SliceSample(name="middle_axis_only", shape=(3, 5, 3), starts=(1,), ends=(4,), axes=(1,))
    yield SliceSample(name="no_axis_at_all", shape=matrix, starts=(), ends=(), axes=())


def _ranks() -> Iterator[SliceSample]:
    for rank in range(1, 9):
        shape = tuple(2 + axis % 2 for axis in range(rank))
        yield SliceSample(
            name=f"rank_{rank}_last_axis",
            rank=rank,
            shape=shape,
            starts=(1,),
            ends=(INT64.max,),
            axes=(-1,),
            every_dtype=rank == 8,
        )
        yield SliceSample(
            name=f"rank_{rank}_all_backward",
            rank=rank,
            shape=shape,
            starts=(-1,) * rank,
            ends=(INT64.min,) * rank,
            axes=tuple(range(rank)),
            steps=(-1,) * rank,
        )
    yield SliceSample(name="size_1_dimensions", shape=(1, 3, 1), starts=(0, 1, 0), ends=(1, 3, 1), axes=(0, 1, 2))
    yield SliceSample(
        name="size_1_dimensions_backward",
        shape=(1, 3, 1),
        starts=(-1,) * 3,
        ends=(-9,) * 3,
        axes=(0, 1, 2),
        steps=(-1,) * 3,
    )
    yield SliceSample(
        name="more_than_a_thread_group", shape=(3, 1031), starts=(-2,), ends=(-1031,), axes=(1,), steps=(-2,)
    )


def _list_empty() -> Iterator[SliceSample]:
    yield SliceSample(name="empty_start_equals_end", starts=(3,), ends=(3,), every_dtype=True)
    yield SliceSample(name="empty_start_after_end", starts=(4,), ends=(2,))
    yield SliceSample(name="empty_start_at_length", starts=(LENGTH,), ends=(LENGTH + 3,))
    yield SliceSample(name="empty_end_before_begin", starts=(0,), ends=(-LENGTH - 2,))
    yield SliceSample(name="empty_backward_start_before_end", starts=(1,), ends=(4,), steps=(-1,))
    yield SliceSample(name="empty_backward_end_minus_1_is_last", starts=(-1,), ends=(-1,), steps=(-1,))
    yield SliceSample(name="empty_one_axis_of_two", shape=(3, 4), starts=(0, 2), ends=(3, 2), axes=(0, 1))
    yield SliceSample(name="size_0_axis_sliced", shape=(0, 3), starts=(0,), ends=(5,), axes=(0,))
    yield SliceSample(
        name="size_0_axis_sliced_backward", shape=(0, 3), starts=(-1,), ends=(-5,), axes=(0,), steps=(-1,)
    )
    yield SliceSample(name="size_0_axis_beside", shape=(0, 3), starts=(1,), ends=(3,), axes=(1,))


def _int32_indices() -> Iterator[SliceSample]:
    cases = {
        "forward": ((1,), (5,), (2,)),
        "backward": ((-1,), (-LENGTH - 1,), (-1,)),
        "max_end": ((0,), (INT32.max,), (1,)),
        "min_end_backward": ((INT32.max,), (INT32.min,), (-1,)),
        "max_step": ((0,), (INT32.max,), (INT32.max,)),
        "min_step": ((-1,), (INT32.min,), (INT32.min,)),
        "min_start": ((INT32.min,), (3,), (1,)),
        "empty": ((3,), (3,), (1,)),
    }
    for name, (starts, ends, steps) in cases.items():
        yield SliceSample(name=f"int32_indices_{name}", starts=starts, ends=ends, steps=steps, index_dtype="int32")


def _list_refused() -> Iterator[SliceSample]:
    matrix = (4, 5)
    yield SliceSample(name="step_0", starts=(0,), ends=(4,), steps=(0,))
    yield SliceSample(name="repeated_axis", shape=matrix, starts=(0, 1), ends=(2, 3), axes=(1, 1))
    yield SliceSample(name="repeated_axis_by_sign", shape=matrix, starts=(0, 1), ends=(2, 3), axes=(1, -1))
    yield SliceSample(name="axis_at_rank", shape=matrix, starts=(0,), ends=(1,), axes=(2,))
    yield SliceSample(name="axis_below_rank", shape=matrix, starts=(0,), ends=(1,), axes=(-3,))
    yield SliceSample(name="axis_of_a_scalar", shape=(), starts=(0,), ends=(1,), axes=(0,))
    yield SliceSample(name="fewer_ends", shape=matrix, starts=(0, 0), ends=(1,), axes=(0, 1))
    yield SliceSample(name="fewer_axes", shape=matrix, starts=(0, 0), ends=(1, 1), axes=(0,))
    yield SliceSample(name="fewer_steps", shape=matrix, starts=(0, 0), ends=(1, 1), axes=(0, 1), steps=(1,))
    yield SliceSample(name="more_than_rank", shape=matrix, starts=(0, 0, 0), ends=(1, 1, 1), axes=None)


def _label(value: int) -> str:
    named = {INT32.max: "int32_max", INT32.min: "int32_min", INT64.max: "int64_max", INT64.min: "int64_min"}
    named |= {INT32.max + 1: "int32_max_plus_1", INT32.min - 1: "int32_min_minus_1", -INT32.max - 1: "int32_min"}
    named |= {-INT32.max: "minus_int32_max", -INT64.max: "minus_int64_max", LENGTH: "length", -LENGTH: "minus_length"}
    return named.get(value, f"minus_{-value}" if value < 0 else str(value))


def bindings(sample: SliceSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if sample.refused and since_version < RULES_WRITTEN_OUT:
        return ()
    if since_version < CLAMPING_WRITTEN_OUT and _starts_before_the_axis(sample):
        return ()
    first = dtypes == ("float32",)
    if since_version == 1:
        expressible = sample.steps is None and sample.index_dtype == "int64"
        return (graph.RUNTIME,) if expressible and (first or sample.every_dtype) else ()
    return spread(sample, first=first, newest=since_version == newest_claimed_version("Slice"), scalar=not sample.shape)


def _starts_before_the_axis(sample: SliceSample) -> bool:
    axes = range(len(sample.starts)) if sample.axes is None else sample.axes
    if sample.steps is None or sample.refused:
        return False
    pairs = zip(sample.starts, sample.steps, axes, strict=True)
    return any(step < 0 and start < -sample.shape[axis] for start, step, axis in pairs)


def node(sample: SliceSample, context: CaseContext) -> Node:
    """data [d0, ..., dr-1] of any dtype; starts, ends, axes, steps 1-D int32 or int64 (attributes in Slice-1)."""
    values = (
        data.every_value(context.dtype)
        if sample.boundary_data
        else data.distinct(sample.shape, context.dtype, context.rng)
    )
    tensor = Operand("data", values)
    parameters = {"starts": sample.starts, "ends": sample.ends, "axes": sample.axes, "steps": sample.steps}
    if context.since_version == 1:
        attributes: dict[str, Attribute] = {name: value for name, value in parameters.items() if value is not None}
        return Node("Slice", "", 1, (tensor,), ("output",), attributes)
    operands = tuple(
        None if value is None else Operand(name, np.array(value, sample.index_dtype), parameter=True)
        for name, value in parameters.items()
    )
    while operands[-1] is None:
        operands = operands[:-1]
    return Node("Slice", "", context.since_version, (tensor, *operands), ("output",))


@dataclass(frozen=True)
class _Range:
    """The effective, clamped start, end and step along one axis."""

    start: int
    end: int
    step: int

    @property
    def indices(self) -> range:
        return range(self.start, self.end, self.step)


def truth(node: Node) -> Truth:
    """The text of Slice-13, to the letter; Slice-1, 10 and 11 say the same where they say anything."""
    ranges = _effective(node)
    if isinstance(ranges, str):
        return Refusal(ranges)
    result = first_input(node)
    for axis, effective in enumerate(ranges):
        result = result.take(effective.indices, axis=axis)
    return Outputs((Output("output", result),))


def _effective(node: Node) -> tuple[_Range, ...] | str:
    """One range per axis of `data`, or the sentence of the standard that the node breaks."""
    dims = first_input(node).shape
    rank = len(dims)
    starts, ends, axes, steps = (_parameter(node, name) for name in ("starts", "ends", "axes", "steps"))
    if starts is None or ends is None or len(starts) != len(ends):
        return "starts and ends must have one element for each sliced axis"
    axes = tuple(range(rank))[: len(starts)] if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    if not len(starts) == len(axes) == len(steps):
        return "starts, axes and steps must have the same length"
    if any(not -rank <= axis < rank for axis in axes):
        return f"axes must be within [{-rank}, {rank - 1}] for rank {rank}"
    if len({axis % rank for axis in axes}) != len(axes):
        return "an axis is repeated, which the standard leaves undefined"
    if 0 in steps:
        return "'steps' cannot be 0"
    ranges = [_Range(0, dim, 1) for dim in dims]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        dim = dims[axis]
        start, end = (value + dim if value < 0 else value for value in (start, end))
        start = min(max(start, 0), dim if step > 0 else dim - 1)
        end = min(max(end, 0 if step > 0 else -1), dim if step > 0 else dim - 1)
        ranges[axis] = _Range(start, end, step)
    return tuple(ranges)


def _parameter(node: Node, name: str) -> tuple[int, ...] | None:
    if name in node.attributes:
        return node.integers(name, ())
    operand = node.value(name)
    return None if operand is None else tuple(int(v) for v in operand)


def lower(node: Node) -> Lowering | None:
    """A window that ends at the last element read, walked with the signed step; None for an empty result."""
    ranges = _effective(node)
    tensor = first_input(node)
    if isinstance(ranges, str) or tensor.ndim == 0 or any(len(r.indices) == 0 for r in ranges):
        return None
    desc = Slice1(
        input_tensor=TensorDesc.of(tensor),
        output_tensor=TensorDesc.of(tensor, sizes=tuple(len(r.indices) for r in ranges)),
        input_window_offsets=tuple(r.start if r.step > 0 else r.end + 1 for r in ranges),
        input_window_sizes=tuple(abs(r.end - r.start) for r in ranges),
        input_window_strides=tuple(min(max(r.step, INT32.min), INT32.max) for r in ranges),
    )
    return Lowering(desc, (tensor,))


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "Slice": (
        Interaction("start_int64_min_and_end_below_0", (Arange((6,)), int64s(INT64.min), int64s(-2), int64s(0))),
        Interaction(ABOVE_GROUPS, (Arange((DISPATCHED, 65)), int64s(-1), int64s(-66), int64s(1), int64s(-1)),
                {}, "int32"),
        Interaction("three_axes_unsorted_with_steps",
                (Arange((6, 2, 6)), int64s(0, 0), int64s(6, 6), int64s(2, 0), int64s(2, 3))),
        Interaction("outer_axes_unsorted", (Arange((4, 2, 5)), int64s(1, 0), int64s(5, 3), int64s(2, 0))),
        Interaction("last_axis_of_16_backward", (Arange((2, 16)), int64s(-1), int64s(-17), int64s(1), int64s(-1))),
        Interaction("last_axis_of_128_by_2", (Arange((2, 128)), int64s(0), int64s(128), int64s(1), int64s(2))),
        Interaction("last_axis_by_2_of_64_bits", (Arange((4, 7), 2**40), int64s(1), int64s(7), int64s(1), int64s(2)),
                {}, "int64"),
    ),
}  # fmt: skip


def _make_parts(values: Values, _: np.random.Generator) -> Parts:
    parameters = (np.array([values[name]], np.int64) for name in ("start", "end", "axis", "step"))
    return Parts((make_ramp(values), *parameters), {}, (1, 2, 3, 4))


PARAMETER_SPACES = {
    "Slice": make_movement_space(
        _make_parts, {"axis": AXES, "start": (0, 1, -2, -100), "end": (100, -1, 3), "step": (1, 2, -1, -2)}
    )
}

OPERATORS = declare(
    (Operator("Slice", samples, bindings, node, truth, lower),),
    interactions=INTERACTIONS,
    parameter_spaces=PARAMETER_SPACES,
)
