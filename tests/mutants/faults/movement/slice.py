"""Slice-1, 10, 11 and 13 in plain numpy, and implementations that are wrong in one way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from tests.mutants.mutant import implemented
from tests.mutants.one_node import RefusedError, parse

Position = Callable[[int, int], int]
"""(a start or an end, the length of its axis) -> a position on the axis."""


def from_the_end_if_negative(value: int, dim: int) -> int:
    return value + dim if value < 0 else value


def between(low: int, value: int, high: int) -> int:
    return min(max(low, value), high)


def count_of(start: int, end: int, step: int) -> int:
    """How many elements start, start + step, ... come before end."""
    distance = end - start if step > 0 else start - end
    return max(0, -(-distance // abs(step)))


def check(axes: Sequence[int], steps: Sequence[int], lengths: set[int], rank: int) -> None:
    if len(lengths) != 1:
        raise RefusedError("starts, ends, axes and steps differ in length")
    if any(axis < -rank or axis >= rank for axis in axes):
        raise RefusedError("an axis is out of range")
    if len({axis + rank if axis < 0 else axis for axis in axes}) < len(axes):
        raise RefusedError("an axis is repeated")
    if 0 in steps:
        raise RefusedError("a step is 0")


@dataclass(frozen=True)
class Slice:
    """Every field is one step of the computation."""

    parameter: Callable[[Array], Sequence[int]] = lambda values: values.tolist()
    default_axes: Callable[[int, int], Sequence[int]] = lambda rank, count: range(min(rank, count))
    check: Callable[[Sequence[int], Sequence[int], set[int], int], None] = check
    axis: Callable[[int, int], int] = lambda axis, rank: axis + rank if axis < 0 else axis
    step: Callable[[int], int] = lambda step: step
    start_from_end: Position = from_the_end_if_negative
    end_from_end: Position = from_the_end_if_negative
    forward_start: Position = lambda start, dim: between(0, start, dim)
    forward_end: Position = lambda end, dim: between(0, end, dim)
    backward_start: Position = lambda start, dim: between(0, start, dim - 1)
    backward_end: Position = lambda end, dim: between(-1, end, dim - 1)
    count: Callable[[int, int, int], int] = count_of
    walk: Callable[[int, int, int], Sequence[int]] = lambda start, step, count: [start + step * i for i in range(count)]
    sliced: Callable[[Sequence[Any]], Sequence[Any]] = lambda plan: plan
    element: Callable[[Array], Array] = lambda data: data

    def __call__(self, model: bytes, feeds: Mapping[str, Array]) -> tuple[Array]:
        node = parse(model)
        data, *parameters = node.values(feeds, 5)
        assert data is not None
        if node.opset < 10:
            parameters = [node.attributes.get(name) for name in ("starts", "ends", "axes")] + [None]
        starts, ends, axes, steps = (None if v is None else self.parameter(np.asarray(v)) for v in parameters)
        assert starts is not None
        assert ends is not None
        if axes is None:
            axes = list(self.default_axes(data.ndim, len(starts)))
        if steps is None:
            steps = [1] * len(starts)
        self.check(axes, steps, {len(starts), len(ends), len(axes), len(steps)}, data.ndim)
        output = self.element(data)
        for start, end, axis, step in self.sliced(list(zip(starts, ends, axes, steps, strict=False))):
            output = self.along(output, start, end, self.axis(axis, data.ndim), self.step(step))
        return (output,)

    def along(self, data: Array, start: int, end: int, axis: int, step: int) -> Array:
        dim = data.shape[axis]
        start, end = self.start_from_end(start, dim), self.end_from_end(end, dim)
        if step > 0:
            start, end = self.forward_start(start, dim), self.forward_end(end, dim)
        else:
            start, end = self.backward_start(start, dim), self.backward_end(end, dim)
        indices = np.array(self.walk(start, step, self.count(start, end, step)), np.int64)
        return np.take(data, indices, axis, mode="wrap")


CORRECT = Slice()


def wrapped_to_int32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def check_all_but_repeated(axes: Sequence[int], steps: Sequence[int], lengths: set[int], rank: int) -> None:
    check(range(len(axes)) if len(axes) <= rank else axes, steps, lengths, rank)


def check_all_but_the_step(axes: Sequence[int], steps: Sequence[int], lengths: set[int], rank: int) -> None:
    check(axes, [step or 1 for step in steps], lengths, rank)


def check_all_but_the_lengths(axes: Sequence[int], steps: Sequence[int], _lengths: set[int], rank: int) -> None:
    check(axes, steps, {1}, rank)


def check_all_but_the_range(axes: Sequence[int], steps: Sequence[int], lengths: set[int], rank: int) -> None:
    check([axis % rank for axis in axes], steps, lengths, rank)


def flushed(data: Array) -> Array:
    if data.dtype.kind != "f":
        return data
    return np.where(np.abs(data) < np.finfo(data.dtype).tiny, data.dtype.type(0), data)


def picked_forward_then_reversed(start: int, step: int, count: int) -> list[int]:
    """The window of a negative step is walked from its other end."""
    walked = [start + step * i for i in range(count)]
    return walked if step > 0 or count < 2 else [position + step + 1 for position in walked[:-1]] + walked[-1:]


INDEX_0_NEVER_COPIED = Slice(backward_end=lambda end, dim: between(0, end, dim - 1))
"""A mutant that is run as a target, by its name."""

MUTANTS = [
    implemented(
        "Slice",
        "an end beyond the axis becomes its last index instead of its length",
        Slice(forward_end=lambda end, dim: between(0, end, dim - 1)),
        "Slice-13/float32/end_length_step_1[initializer]",
    ),
    implemented(
        "Slice",
        "an end beyond the axis reads on",
        Slice(forward_end=lambda end, dim: between(0, end, dim + 1)),
        "Slice-13/float32/end_7_step_1[initializer]",
    ),
    implemented(
        "Slice",
        "an end before the axis, forward, counts from the end once more",
        Slice(forward_end=lambda end, dim: min(end if end >= 0 else max(0, end + dim), dim)),
        "Slice-13/float32/empty_end_before_begin[initializer]",
    ),
    implemented(
        "Slice",
        "a start beyond the axis, forward, is clamped to the last index: one element instead of none",
        Slice(forward_start=lambda start, dim: between(0, start, dim - 1)),
        "Slice-13/float32/empty_start_at_length[initializer]",
    ),
    implemented(
        "Slice",
        "a start before the axis wraps around instead of being clamped to 0",
        Slice(start_from_end=lambda start, dim: start % dim if dim else 0),
        "Slice-13/float32/start_minus_7_step_1[initializer]",
    ),
    implemented(
        "Slice",
        "a negative start is clamped to 0 before it is counted from the end",
        Slice(start_from_end=lambda start, _dim: start),
        "Slice-13/float32/start_minus_2_step_1[initializer]",
    ),
    implemented(
        "Slice",
        "a negative end is clamped before it is counted from the end",
        Slice(end_from_end=lambda end, _dim: end),
        "Slice-13/float32/end_minus_2_step_1[initializer]",
    ),
    implemented(
        "Slice",
        "backward, the element at index 0 is never copied",
        INDEX_0_NEVER_COPIED,
        "Slice-13/float32/whole_axis_step_minus_1[initializer]",
    ),
    implemented(
        "Slice",
        "backward, an end beyond the axis becomes -1, as if it were INT_MIN",
        Slice(backward_end=lambda end, dim: between(-1, end, dim - 1) if end < dim else -1),
        "Slice-13/float32/end_int64_max_step_minus_1[initializer]",
    ),
    implemented(
        "Slice",
        "backward, a start beyond the axis begins one past the last index",
        Slice(backward_start=lambda start, dim: between(0, start, dim)),
        "Slice-13/float32/start_length_step_minus_1[initializer]",
    ),
    implemented(
        "Slice",
        "backward, a start before the axis is not clamped to 0 (numpy's rule)",
        Slice(backward_start=lambda start, dim: between(-1, start, dim - 1)),
        "Slice-13/float32/start_minus_7_step_minus_1[initializer]",
    ),
    implemented(
        "Slice",
        "starts, ends and steps lose their upper half",
        Slice(parameter=lambda values: values.astype(np.int32).tolist()),
        "Slice-13/float32/end_int32_max_plus_1_step_1[initializer]",
    ),
    implemented(
        "Slice",
        "a negative int32 is a large number",
        Slice(parameter=lambda values: (values.view(np.uint32) if values.dtype == np.int32 else values).tolist()),
        "Slice-13/float32/int32_indices_backward[initializer]",
    ),
    implemented(
        "Slice",
        "steps are looked for among the initializers only",
        lambda model, feeds: CORRECT(model, {name: value for name, value in feeds.items() if name != "steps"}),
        "Slice-13/float32/whole_axis_step_2[runtime]",
    ),
    implemented(
        "Slice",
        "a step beyond int32 turns its sign",
        Slice(step=lambda step: wrapped_to_int32(step) or 1),
        "Slice-13/float32/whole_axis_step_int64_max[initializer]",
    ),
    implemented(
        "Slice",
        "every step is 1 or -1",
        Slice(step=lambda step: 1 if step > 0 else -1),
        "Slice-13/float32/whole_axis_step_2[initializer]",
    ),
    implemented(
        "Slice",
        "backward is forward",
        Slice(step=abs),
        "Slice-13/float32/inner_backward[initializer]",
    ),
    implemented(
        "Slice",
        "the last element is lost when the step does not divide the distance",
        Slice(count=lambda start, end, step: max(0, (end - start) // step) if end != start else 0),
        "Slice-13/float32/whole_axis_step_5[initializer]",
    ),
    implemented(
        "Slice",
        "one element too many when the step divides the distance",
        Slice(count=lambda start, end, step: (end - start) // step + 1 if (end - start) * step > 0 else 0),
        "Slice-13/float32/whole_axis_step_2[initializer]",
    ),
    implemented(
        "Slice",
        "an empty axis is not possible",
        Slice(count=lambda start, end, step: max(1, count_of(start, end, step))),
        "Slice-13/float32/empty_start_equals_end[initializer]",
    ),
    implemented(
        "Slice",
        "a negative step takes the elements that the positive one would, in reverse",
        Slice(walk=picked_forward_then_reversed),
        "Slice-13/float32/whole_axis_step_minus_2[initializer]",
    ),
    implemented(
        "Slice",
        "without axes, fewer starts than dimensions slice the last dimensions",
        Slice(default_axes=lambda rank, count: range(max(0, rank - count), max(rank, count))),
        "Slice-13/float32/axes_omitted_fewer_than_rank[initializer]",
    ),
    implemented(
        "Slice",
        "axis -1 is read as axis 1",
        Slice(axis=lambda axis, rank: abs(axis) % rank),
        "Slice-13/float32/rank_3_last_axis[initializer]",
    ),
    implemented(
        "Slice",
        "axes are taken in ascending order, starts and ends are not",
        Slice(
            sliced=lambda plan: [(s, e, a, t) for (s, e, _, t), a in zip(plan, sorted(p[2] for p in plan), strict=True)]
        ),
        "Slice-13/float32/axes_reversed[initializer]",
    ),
    implemented(
        "Slice",
        "only one axis is sliced",
        Slice(sliced=lambda plan: plan[:1]),
        "Slice-13/float32/signs_differ_by_axis[initializer]",
    ),
    implemented(
        "Slice",
        "an axis beyond the fourth is taken for the fourth",
        Slice(axis=lambda axis, rank: min(3, axis + rank if axis < 0 else axis)),
        "Slice-13/float32/rank_8_last_axis[initializer]",
    ),
    implemented(
        "Slice",
        "elements make a detour through float64",
        Slice(element=lambda data: data if data.dtype.kind in "fb" else data.astype(np.float64).astype(data.dtype)),
        "Slice-13/int64/steps_omitted[initializer]",
    ),
    implemented(
        "Slice",
        "elements make a detour through float32",
        Slice(element=lambda data: data.astype(np.float32).astype(data.dtype) if data.dtype == np.float64 else data),
        "Slice-13/float64/steps_omitted[initializer]",
    ),
    implemented(
        "Slice",
        "-0 becomes +0",
        Slice(element=lambda data: data + data.dtype.type(0) if data.dtype.kind == "f" else data),
        "Slice-13/float16/every_value_forward[initializer]",
    ),
    implemented(
        "Slice",
        "denormals become 0",
        Slice(element=flushed),
        "Slice-13/float32/every_value_backward[initializer]",
    ),
    implemented(
        "Slice",
        "an axis may come twice; both slices are applied",
        Slice(check=check_all_but_repeated),
        "Slice-13/float32/refused_repeated_axis_by_sign[initializer]",
    ),
    implemented(
        "Slice",
        "a step of 0 counts as 1",
        Slice(check=check_all_but_the_step, step=lambda step: step or 1),
        "Slice-13/float32/refused_step_0[runtime]",
    ),
    implemented(
        "Slice",
        "starts, ends, axes and steps may differ in length; the shortest counts",
        Slice(check=check_all_but_the_lengths),
        "Slice-13/float32/refused_fewer_steps[runtime]",
    ),
    implemented(
        "Slice",
        "axis 2 of a matrix is axis 0",
        Slice(check=check_all_but_the_range, axis=lambda axis, rank: axis % rank),
        "Slice-13/float32/refused_axis_at_rank[runtime]",
    ),
]
