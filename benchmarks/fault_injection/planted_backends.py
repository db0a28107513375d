"""40 simulated ONNX backends with planted faults, as drivers, kernels and execution providers have them.

They were written by somebody who knew public documentation alone (the operators' pages, bugs of GPUs and drivers),
neither the suite nor the search for causes. `benchmarks/conditions.py` runs the suite on them through
`faulty_nodes.py`, which imports a copy of this file as `backends`.

A fault is wrong only where its condition holds, and plainly so. `when` reads one call: a node with the values of its
inputs. `effect` makes new outputs of the same dtypes from the right ones, or raises RuntimeError as a crash does.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes  # noqa: F401  (NumPy knows bfloat16, float8 and int4 by it)
import numpy as np
from onnx import helper

Array = Any
"""A NumPy array of any dtype, or None where an input is absent."""


@dataclass(frozen=True)
class Call:
    """A node as a fault sees it. attributes: those that are present. inputs: None of one that is absent or no tensor.
    constant: of each input, whether it is an initializer."""

    op_type: str
    domain: str
    since_version: int
    attributes: dict[str, Any]
    inputs: list[Array]
    constant: list[bool]


Condition = Callable[[Call], Any]
"""Its truth is what counts."""

Effect = Callable[[Call, Sequence[Array]], Sequence[Array]]
"""The outputs that are present -> what the backend gives in their place."""

Change = Callable[[Call, Array], Array]
"""The right output -> the wrong one."""

Axis = int | Callable[[Call], int | None]


@dataclass(frozen=True)
class Fault:
    """What a backend does wrongly. condition: in an engineer's words what `when` asks."""

    name: str
    operators: tuple[str, ...]
    condition: str
    when: Condition
    effect: Effect


Row = tuple[str, str | tuple[str, ...], str, Condition, Effect]
"""A fault without the backend's name, which its name begins with."""

BACKENDS: dict[str, tuple[Fault, ...]] = {}


def _backend(name: str, *rows: Row) -> None:
    """Add a backend."""
    faults = []
    for short, operators, condition, when, effect in rows:
        of_fault = (operators,) if isinstance(operators, str) else operators
        faults.append(Fault(f"{name}-{short}", of_fault, condition, _guard(of_fault, when), effect))
    BACKENDS[name] = tuple(faults)


def _guard(operators: tuple[str, ...], condition: Condition) -> Callable[[Call], bool]:
    """The condition, false where it cannot be read: cases also have inputs of a dtype, rank or size, or lack some, for
    which it makes no sense, and one of them must not end a run of all."""

    def when(call: Call) -> bool:
        if call.op_type not in operators:
            return False
        try:
            with np.errstate(all="ignore"):
                return bool(condition(call))
        except Exception:
            return False

    return when


# What a condition reads of a call.


def input_at(call: Call, place: int = 0) -> Array:
    found = call.inputs[place] if place < len(call.inputs) else None
    return found if isinstance(found, np.ndarray | np.generic) else None


def has_input(call: Call, place: int) -> bool:
    return place < len(call.inputs) and call.inputs[place] is not None


def is_constant(call: Call, place: int) -> bool:
    return has_input(call, place) and place < len(call.constant) and bool(call.constant[place])


def input_arrays(call: Call) -> list[Array]:
    """The inputs that are present."""
    return [array for array in (input_at(call, place) for place in range(len(call.inputs))) if array is not None]


def real_input(call: Call, place: int = 0) -> Array:
    """The input as float64, as `as_float64` has it."""
    return as_float64(input_at(call, place))


def shape(call: Call, place: int = 0) -> Any:
    """The shape of the input; None where it is absent."""
    array = input_at(call, place)
    return None if array is None else tuple(array.shape)


def dimension(call: Call, place: int, axis: int) -> int:
    """The size of the input on the axis; -1 where there is none."""
    sizes = shape(call, place)
    return -1 if sizes is None or not -len(sizes) <= axis < len(sizes) else sizes[axis]


def rank(call: Call, place: int = 0) -> int:
    """The rank of the input; -1 where it is absent."""
    sizes = shape(call, place)
    return -1 if sizes is None else len(sizes)


def size(call: Call, place: int = 0) -> int:
    """The number of elements of the input; -1 where it is absent."""
    sizes = shape(call, place)
    return -1 if sizes is None else math.prod(sizes)


def dtype_name(call: Call, place: int = 0) -> str:
    array = input_at(call, place)
    return "" if array is None else array.dtype.name


def shapes_differ(call: Call, first: int = 0, second: int = 1) -> bool:
    """Whether both inputs are present, and one is broadcast."""
    sizes, others = shape(call, first), shape(call, second)
    return sizes is not None and others is not None and sizes != others


def first_value(call: Call, place: int) -> float | None:
    """The first element of the input: of a parameter its value."""
    values = real_input(call, place)
    return None if values is None or values.size == 0 else float(values.reshape(-1)[0])


def integers(call: Call, place: int) -> Any:
    """The elements of an input of integers; None where it is none."""
    array = input_at(call, place)
    return None if array is None or not is_integer(array) else [int(value) for value in array.reshape(-1)]


def has_attribute(call: Call, name: str) -> bool:
    return name in call.attributes


def attribute(call: Call, name: str, default: Any = None) -> Any:
    return call.attributes.get(name, default)


def attribute_or_input(call: Call, name: str, place: int | None) -> Any:
    """Integers that are an attribute in old versions of an operator and an input in new ones."""
    if name in call.attributes:
        return [int(value) for value in np.asarray(call.attributes[name]).reshape(-1)]
    return None if place is None else integers(call, place)


def is_floating(array: Array) -> bool:
    return array is not None and (array.dtype.kind == "f" or array.dtype.name.startswith(("bfloat", "float")))


def is_integer(array: Array) -> bool:
    if array is None:
        return False
    return array.dtype.kind in "iu" or array.dtype.name in ("int4", "uint4", "int2", "uint2")


def is_string(array: Array) -> bool:
    return array is not None and array.dtype.kind in "OUS"


def as_float64(array: Array) -> Array:
    """A real array as float64; None for strings, complex numbers and an array that is absent."""
    is_real = is_floating(array) or is_integer(array) or (array is not None and array.dtype.kind == "b")
    return array.astype(np.float64) if is_real else None


def any_element(array: Array, test: Callable[[Array], Array]) -> bool:
    """Whether the test holds for an element of a real array, given as float64."""
    values = as_float64(array)
    return values is not None and values.size > 0 and bool(np.any(test(values)))


def every_element(array: Array, test: Callable[[Array], Array]) -> bool:
    """Whether the test holds for every element of a real array that has one, given as float64."""
    values = as_float64(array)
    return values is not None and values.size > 0 and bool(np.all(test(values)))


def holds_nan(array: Array) -> bool:
    return is_floating(array) and any_element(array, np.isnan)


def from_front(axis: int, rank: int) -> int:
    return axis + rank if axis < 0 else axis


def axis_from_front(call: Call, default: int, place: int = 0) -> Any:
    """The attribute `axis`, counted from the front; None where the input is absent."""
    found = rank(call, place)
    return None if found < 0 else from_front(int(attribute(call, "axis", default)), found)


def softmax_axis(call: Call) -> Any:
    return axis_from_front(call, -1 if call.since_version >= 13 else 1)


def axes(call: Call) -> Any:
    return attribute_or_input(call, "axes", 1)


def reduced_axes(call: Call) -> list[int]:
    """The axes that a reduction reduces, counted from the front."""
    listed = axes(call)
    if not listed:
        return [] if attribute(call, "noop_with_empty_axes", 0) == 1 else list(range(max(rank(call), 0)))
    return [from_front(axis, rank(call)) for axis in listed]


def reduced_size(call: Call) -> int:
    """How many elements a reduction makes one of."""
    sizes = shape(call)
    return -1 if sizes is None else math.prod(sizes[axis] for axis in reduced_axes(call) if axis < len(sizes))


def kernel_shape(call: Call) -> list[int]:
    """The kernel of a convolution or a pool."""
    found = attribute(call, "kernel_shape")
    if found is None and rank(call, 1) > 2 and call.op_type.endswith(("Conv", "ConvTranspose", "ConvInteger")):
        found = shape(call, 1)[2:]
    return [int(length) for length in found] if found is not None else []


def spatial_rank(call: Call) -> int:
    return max(rank(call) - 2, 0)


def strides(call: Call) -> list[int]:
    return [int(stride) for stride in attribute(call, "strides", [])] or [1] * spatial_rank(call)


def dilations(call: Call) -> list[int]:
    return [int(dilation) for dilation in attribute(call, "dilations", [])] or [1] * spatial_rank(call)


def pads(call: Call) -> list[int]:
    return [int(pad) for pad in attribute(call, "pads", [])] or [0] * (2 * spatial_rank(call))


def exceeds(numbers: Iterable[int] | None, limit: int) -> bool:
    """Whether one of the numbers is above the limit."""
    return any(number > limit for number in numbers or [])


def has_negative(place: int) -> Condition:
    """The condition that the input has an element below 0."""
    return lambda call: any_element(input_at(call, place), lambda values: values < 0)


# What an effect does to an output. place: of the output, or None for each.


def garble(array: Array) -> Array:
    """The array with every element plainly wrong."""
    array = np.array(array)
    if array.size == 0:
        return array
    kind = array.dtype.kind
    if kind == "b":
        return ~array
    if kind in "OUS":
        return _garble_strings(array)
    if kind in "iu":
        return (array ^ array.dtype.type(4)).astype(array.dtype)
    if is_integer(array):
        bit = 1 if array.dtype.name.endswith("2") else 4
        return (array.astype(np.int32) ^ bit).astype(array.dtype)
    if kind == "c":
        return (-array - 1).astype(array.dtype)
    with np.errstate(all="ignore"):
        values = array.astype(np.float64)
        moved = np.where(values >= 0, -values - 1, 1 - values)
        return np.where(np.isfinite(values), moved, 1.0).astype(array.dtype)


def _garble_strings(array: Array) -> Array:
    """The strings with another first character."""
    flat = array.copy().reshape(-1)
    for place, text in enumerate(array.reshape(-1)):
        usual, other = (b"?", b"!") if isinstance(text, bytes) else ("?", "!")
        with contextlib.suppress(TypeError):
            flat[place] = (other if text[:1] == usual else usual) + text[1:]
    return flat.reshape(array.shape)


def crash(message: str) -> Effect:
    def effect(_call: Call, _outputs: Sequence[Array]) -> Sequence[Array]:
        raise RuntimeError(message)

    return effect


def change_output(change: Change, place: int | None = 0) -> Effect:
    """The effect that changes one output, or each. Empty ones stay, and where the change cannot be made, the last
    element is garbled."""

    def effect(call: Call, outputs: Sequence[Array]) -> Sequence[Array]:
        changed = list(outputs)
        for each in range(len(changed)) if place is None else [place]:
            if each >= len(changed) or not isinstance(changed[each], np.ndarray | np.generic) or not changed[each].size:
                continue
            right = np.asarray(changed[each])
            try:
                with np.errstate(all="ignore"):
                    wrong = np.asarray(change(call, np.array(right)))
                    changed[each] = wrong if wrong.dtype == right.dtype else wrong.astype(right.dtype)
            except Exception:
                changed[each] = _garble_part(np.array(right), slice(-1, None))
        return changed

    return effect


def _garble_part(output: Array, part: slice) -> Array:
    """The output with a part of its elements, in their order in memory, garbled."""
    flat = output.reshape(-1).copy()
    flat[part] = garble(flat[part])
    return flat.reshape(output.shape)


def garble_last(count: int = 1, place: int = 0) -> Effect:
    """The last elements."""
    return change_output(lambda _call, output: _garble_part(output, slice(-count, None)), place)


def garble_first(count: int = 1, place: int = 0) -> Effect:
    """The first elements."""
    return change_output(lambda _call, output: _garble_part(output, slice(0, count)), place)


def garble_lanes(step: int, start: int = 0) -> Effect:
    """Every step-th element, from the start or, where the output ends before it, from the first."""

    def change(_call: Call, output: Array) -> Array:
        return _garble_part(output, slice(start if output.size > start else 0, None, step))

    return change_output(change)


def garble_all(place: int | None = 0) -> Effect:
    return change_output(lambda _call, output: garble(output), place)


def garble_on_axis(axis: Axis, part: int | slice, place: int = 0) -> Effect:
    """The elements at one index, or a slice, of an axis; the last ones where it has no such part."""

    def change(call: Call, output: Array) -> Array:
        on_axis = _find_axis(axis, call, output)
        if on_axis is None:
            return garble(output)
        before = (slice(None),) * on_axis
        index = (*before, slice(part, part + 1 or None) if isinstance(part, int) else part)
        if output[index].size == 0:
            index = (*before, slice(-1, None))
        changed = output.copy()
        changed[index] = garble(output[index])
        return changed

    return change_output(change, place)


def garble_where(mask: Change) -> Effect:
    """The elements for which the mask holds."""

    def change(call: Call, output: Array) -> Array:
        chosen: Array = np.where(np.broadcast_to(np.asarray(mask(call, output)), output.shape), garble(output), output)
        return chosen if is_string(output) else chosen.astype(output.dtype)

    return change_output(change)


def set_where(mask: Change, value: float) -> Effect:
    """The elements for which the mask holds become the value."""

    def change(call: Call, output: Array) -> Array:
        changed = output.copy()
        changed[np.broadcast_to(np.asarray(mask(call, output)), output.shape)] = np.asarray(value).astype(output.dtype)
        return changed

    return change_output(change)


def roll_output(axis: Axis, count: int = 1) -> Effect:
    """The output rolled along an axis, garbled where this is the same."""

    def change(call: Call, output: Array) -> Array:
        on_axis = _find_axis(axis, call, output)
        return garble(output) if on_axis is None else or_garbled(np.roll(output, count, axis=on_axis), output)

    return change_output(change)


def flip_output(axis: Axis) -> Effect:
    """The output reversed along an axis, garbled where this is the same."""

    def change(call: Call, output: Array) -> Array:
        on_axis = _find_axis(axis, call, output)
        return garble(output) if on_axis is None else or_garbled(np.flip(output, on_axis), output)

    return change_output(change)


def drop_last(axis: Axis) -> Effect:
    """The output one shorter on an axis."""

    def change(call: Call, output: Array) -> Array:
        on_axis = _find_axis(axis, call, output)
        if on_axis is None:
            return output.reshape(1)
        return output[(slice(None),) * on_axis + (slice(0, output.shape[on_axis] - 1),)].copy()

    return change_output(change)


def scale_output(factor: float) -> Effect:
    """The output times the factor; zeros stay."""

    def change(_call: Call, output: Array) -> Array:
        return output.astype(np.float64) * factor if as_float64(output) is not None else garble(output)

    return change_output(change)


def of_last_output(make: Callable[[int, int], Effect]) -> Effect:
    """The effect of one element, made with its number and the place of the last output."""
    return lambda call, outputs: make(1, len(outputs) - 1)(call, outputs)


def or_garbled(wrong: Array, right: Array) -> Array:
    """What is given in place of the right output, which is garbled where that would not show."""
    return garble(right) if _are_same(wrong, right) else wrong


def _find_axis(axis: Axis, call: Call, output: Array) -> int | None:
    """The output's axis, counted from the front; None of a scalar."""
    found = axis(call) if callable(axis) else axis
    count: int = output.ndim
    if count == 0 or found is None:
        return None
    return min(max(from_front(found, count), 0), count - 1)


def _are_same(first: Array, second: Array) -> bool:
    """Whether all elements are equal or NaN in both."""
    if is_floating(first) or first.dtype.kind in "biuO":
        return bool(((first == second) | ((first != first) & (second != second))).all())
    return bool((first == second).all())


# The backends.

ELEMENTWISE = ("Add", "Sub", "Mul", "Div")
REDUCTIONS = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
    "ReduceLogSum", "ReduceLogSumExp",
)  # fmt: skip
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

_backend(
    "B01",  # a WebGPU provider whose copy kernels keep strides unsigned
    ("slice-negative-step", "Slice", "a step is below 0",
     lambda call: any(step < 0 for step in integers(call, 4) or []), garble_lanes(1)),
)  # fmt: skip


def _garble_later_groups(call: Call, output: Array) -> Array:
    """All channels but those of the first group."""
    end = output.shape[1] // attribute(call, "group")
    return np.concatenate([output[:, :end], garble(output[:, end:])], axis=1)


_backend(
    "B02",  # a mobile GPU delegate; grouped convolution is split into dispatches
    ("conv-grouped-not-depthwise", "Conv", "group is more than 1 and each group has more than one input channel",
     lambda call: attribute(call, "group", 1) > 1 and dimension(call, 1, 1) > 1, change_output(_garble_later_groups)),
    ("conv-1d-dilated", "Conv", "the rank is 3 and a dilation is more than 1",
     lambda call: rank(call) == 3 and exceeds(dilations(call), 1), garble_on_axis(-1, -1)),
)  # fmt: skip

_backend(
    "B03",  # half precision transcendental functions with a packed pair of lanes
    ("half2-lane", ("Erf", "Gelu", "Tanh", "Sigmoid"), "the input is float16 and its number of elements is odd",
     lambda call: dtype_name(call) == "float16" and size(call) % 2 == 1, garble_last()),
)  # fmt: skip

_backend(
    "B04",  # fmax/fmin instead of maximum/minimum
    ("nan-dropped", ("Max", "Min", "ReduceMax", "ReduceMin"), "an input holds NaN",
     lambda call: any(holds_nan(array) for array in input_arrays(call)),
     set_where(lambda _call, output: np.isnan(as_float64(output)) if is_floating(output) else False, 0)),
)  # fmt: skip

_backend(
    "B05",  # selection network sized for k < n
    ("topk-all", "TopK", "k is the size of the axis",
     lambda call: (attribute_or_input(call, "k", 1) or [-1])[0] == dimension(call, 0, axis_from_front(call, -1)) > 0,
     garble_on_axis(lambda call: axis_from_front(call, -1), -1, 1)),
)  # fmt: skip

_backend(
    "B06",  # the rounding of nearest is wired to round_prefer_floor
    ("resize-nearest-ceil", "Resize", "mode is nearest (or absent) and nearest_mode is ceil",
     lambda call: attribute(call, "mode", "nearest") == "nearest" and attribute(call, "nearest_mode") == "ceil",
     roll_output(-1)),
)  # fmt: skip


def _has_negative_base(call: Call) -> bool:
    return is_floating(input_at(call)) and any_element(input_at(call), lambda values: values < 0)


_backend(
    "B07",  # a Vulkan elementwise back end: pow by exp2(y * log2(x)); four-dimensional strides
    ("rank-5-broadcast", ELEMENTWISE, "the shapes differ and an input is of rank more than 4",
     lambda call: shapes_differ(call) and max(rank(call, 0), rank(call, 1)) > 4, roll_output(0)),
    ("pow-negative-base", "Pow", "the base is floating point and has a negative element",
     _has_negative_base, set_where(lambda call, output: np.broadcast_to(real_input(call) < 0, output.shape), np.nan)),
)  # fmt: skip


def _has_ties(call: Call) -> bool:
    """Whether the largest value along the axis occurs twice."""
    values = real_input(call)
    if values is None or values.size == 0 or values.ndim == 0:
        return False
    axis = axis_from_front(call, 0)
    return bool(np.any((values == np.max(values, axis=axis, keepdims=True)).sum(axis=axis) > 1))


def _find_first_largest(call: Call, output: Array) -> Array:
    return np.argmax(real_input(call), axis=axis_from_front(call, 0)).reshape(output.shape)


_backend(
    "B08",  # argument reductions
    ("select-last-ignored", "ArgMax", "select_last_index is 1 and the extreme value occurs twice in a reduced row",
     lambda call: attribute(call, "select_last_index", 0) == 1 and _has_ties(call),
     change_output(_find_first_largest)),
    ("argmin-keepdims-0", "ArgMin", "keepdims is 0",
     lambda call: attribute(call, "keepdims", 1) == 0, garble_first()),
)  # fmt: skip

_backend(
    "B09",  # gathers that read indices as unsigned
    ("gather-negative-index", "Gather", "an index is negative",
     has_negative(1), garble_all()),
    ("gatherelements-inner", "GatherElements", "axis is not the last and the rank is 3 or more",
     lambda call: rank(call) >= 3 and axis_from_front(call, 0) != rank(call) - 1, garble_lanes(2, 1)),
)  # fmt: skip


def _pad_widths(call: Call) -> Any:
    return attribute_or_input(call, "pads", 1) or attribute_or_input(call, "paddings", None) or []


_backend(
    "B10",  # Pad
    ("pad-reflect-wide", "Pad", "mode is reflect and a pad is more than 1",
     lambda call: attribute(call, "mode", "constant") == "reflect" and exceeds(_pad_widths(call), 1), garble_last()),
    ("pad-crop", "Pad", "a pad is negative",
     lambda call: any(pad < 0 for pad in _pad_widths(call)), crash("Pad: negative padding is not supported")),
)  # fmt: skip

_backend(
    "B11",  # scans
    ("cumsum-exclusive-reverse", "CumSum", "exclusive is 1 and reverse is 1",
     lambda call: attribute(call, "exclusive", 0) == 1 and attribute(call, "reverse", 0) == 1,
     flip_output(lambda call: integers(call, 1)[0])),
    ("cumsum-warp-boundary", "CumSum", "the axis is longer than 32",
     lambda call: integers(call, 1) and dimension(call, 0, integers(call, 1)[0]) > 32,
     garble_on_axis(lambda call: integers(call, 1)[0], slice(32, None))),
)  # fmt: skip

_backend(
    "B12",  # normalisations fused from a pattern with constants baked in
    ("batchnorm-epsilon", "BatchNormalization", "epsilon is 0.01 or more",
     lambda call: attribute(call, "epsilon", 1e-5) >= 0.0099, scale_output(1.25)),
    ("layernorm-not-last-axis", "LayerNormalization", "axis is not the last",
     lambda call: rank(call) > 0 and axis_from_front(call, -1) != rank(call) - 1, garble_lanes(3)),
)  # fmt: skip

_backend(
    "B13",  # depth and space
    ("crd-as-dcr", "DepthToSpace", "mode is CRD and there is more than one output channel",
     lambda call: (attribute(call, "mode", "DCR") == "CRD"
                   and dimension(call, 0, 1) > attribute(call, "blocksize", 1) ** 2),
     roll_output(1)),
    ("spacetodepth-not-square", "SpaceToDepth", "height and width differ",
     lambda call: rank(call) == 4 and dimension(call, 0, 2) != dimension(call, 0, 3), roll_output(3)),
)  # fmt: skip


RANGES = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767)}


def _count_steps(call: Call) -> Any:
    """(x / scale, zero point, lowest, highest) of a quantisation to 8 or 16 bits with one scale, else None."""
    if not is_floating(input_at(call)) or size(call, 1) != 1 or size(call) < 1:
        return None
    zero_point = input_at(call, 2)
    if zero_point is None and attribute(call, "output_dtype", 0) not in (0, 2):
        return None
    dtype = "uint8" if zero_point is None else zero_point.dtype.name
    if dtype not in RANGES:
        return None
    scale: Any = first_value(call, 1)
    steps = (input_at(call).astype(np.float32) / np.float32(scale)).astype(np.float64)
    return steps, 0 if zero_point is None else int(zero_point.reshape(-1)[0]), *RANGES[dtype]


def _round_ties(call: Call) -> tuple[Array, Array]:
    """Where a tie shows, and what is given there: ties go away from zero."""
    steps, zero_point, low, high = _count_steps(call)
    is_tie = np.isfinite(steps) & (np.abs(steps - np.trunc(steps)) == 0.5)
    even = np.clip(np.rint(steps) + zero_point, low, high)
    away = np.clip(np.trunc(steps) + np.sign(steps) + zero_point, low, high)
    return is_tie & (even != away), away


def _give_ties_away(call: Call, output: Array) -> Array:
    return np.where(*_round_ties(call), output.astype(np.float64))


def _quantized_dtype(call: Call) -> str:
    return dtype_name(call, 0 if call.op_type == "DequantizeLinear" else 2)


_backend(
    "B14",  # a DSP for quantised models
    ("ties-away-from-zero", "QuantizeLinear",
     "the scale is per tensor and an element lies halfway between two steps, the one nearer to zero being even",
     lambda call: _count_steps(call) is not None and _round_ties(call)[0].any(), change_output(_give_ties_away)),
    ("dequantize-per-channel-zero-point", "DequantizeLinear", "the scale is per channel and a zero point is not 0",
     lambda call: size(call, 1) > 1 and any_element(input_at(call, 2), lambda zero_points: zero_points != 0),
     garble_on_axis(lambda call: axis_from_front(call, 1), slice(1, None))),
    ("quantize-16-bit", ("QuantizeLinear", "DequantizeLinear"), "the quantised type is of 16 bits",
     lambda call: _quantized_dtype(call) in ("int16", "uint16"), garble_all()),
)  # fmt: skip

_backend(
    "B15",  # softmax
    ("softmax-not-last", ("Softmax", "LogSoftmax", "Hardmax"), "axis is not the last",
     lambda call: rank(call) > 1 and softmax_axis(call) != rank(call) - 1, roll_output(-1)),
    ("logsoftmax-minus-infinity", "LogSoftmax", "the input holds minus infinity",
     lambda call: is_floating(input_at(call)) and any_element(input_at(call), np.isneginf),
     set_where(lambda call, _output: np.isneginf(real_input(call)), np.nan)),
    ("softmax-beyond-a-wave", "Softmax", "axis is the last and its size is more than 64",
     lambda call: rank(call) > 0 and softmax_axis(call) == rank(call) - 1 and dimension(call, 0, -1) > 64,
     garble_on_axis(-1, slice(64, None))),
)  # fmt: skip


def _equation(call: Call, default: str = "") -> str:
    return str(attribute(call, "equation", default))


def _einsum_terms(call: Call) -> list[str]:
    return [term.strip() for term in _equation(call).replace(" ", "").split("->")[0].split(",")]


def _repeats_letter(term: str) -> bool:
    letters = term.replace(".", "")
    return len(set(letters)) < len(letters)


_backend(
    "B16",  # Einsum by a table of patterns
    ("einsum-diagonal", "Einsum", "a term has the same letter twice",
     lambda call: any(_repeats_letter(term) for term in _einsum_terms(call)), garble_last()),
    ("einsum-implicit", "Einsum", "the equation has no arrow",
     lambda call: "->" not in _equation(call, "->"), garble_lanes(2, 1)),
    ("einsum-ellipsis", "Einsum", "the equation has an ellipsis and two or more terms",
     lambda call: len(_einsum_terms(call)) >= 2 and "..." in _equation(call), crash("einsum: unsupported equation")),
)  # fmt: skip


def _zero_borders(_call: Call, output: Array) -> Array:
    changed = output.copy()
    for axis in range(2, output.ndim):
        changed[(slice(None),) * axis + ([0, -1],)] = 0
    return changed


_backend(
    "B17",  # pooling
    ("pool-ceil", ("MaxPool", "AveragePool", "LpPool"), "ceil_mode is 1 and a stride is more than 1",
     lambda call: attribute(call, "ceil_mode", 0) == 1 and exceeds(strides(call), 1), garble_on_axis(-1, -1)),
    ("maxpool-dilated", "MaxPool", "a dilation is more than 1",
     lambda call: exceeds(dilations(call), 1), garble_lanes(2)),
    ("maxpool-negative-padding", "MaxPool", "a pad is above 0 and every element is negative",
     lambda call: exceeds(pads(call), 0) and every_element(input_at(call), lambda values: values < 0),
     change_output(_zero_borders)),
)  # fmt: skip


def _ends_early(call: Call) -> bool:
    """Whether a sequence is shorter than the longest can be."""
    longest = dimension(call, 0, 1 if attribute(call, "layout", 0) else 0)
    return any_element(input_at(call, 4), lambda lengths: lengths < longest)


def _swap_states(call: Call, outputs: Sequence[Array]) -> Sequence[Array]:
    """The last two outputs in each other's place, or, where that would not show, the last one garbled."""
    if len(outputs) < 2:
        return garble_last()(call, outputs)
    *before, hidden, cell = outputs
    if hidden.dtype == cell.dtype and hidden.shape == cell.shape and not _are_same(hidden, cell):
        return [*before, cell.copy(), hidden.copy()]
    return [*before, hidden, garble(cell)]


_backend(
    "B18",  # recurrent networks
    ("lstm-reverse-lengths", ("LSTM", "GRU", "RNN"),
     "direction is reverse or bidirectional and sequence_lens has a length below the longest",
     lambda call: attribute(call, "direction", "forward") != "forward" and _ends_early(call), garble_on_axis(-1, -1)),
    ("lstm-state-swapped", "LSTM", "initial_h and initial_c are given and the layout is 0",
     lambda call: has_input(call, 5) and has_input(call, 6) and attribute(call, "layout", 0) == 0, _swap_states),
    ("gru-linear-before-reset", "GRU", "linear_before_reset is 1",
     lambda call: attribute(call, "linear_before_reset", 0) != 0, garble_all(None)),
    ("lstm-peephole", "LSTM", "peepholes are given",
     lambda call: has_input(call, 7), garble_lanes(2, 0)),
)  # fmt: skip


def _writes_twice(call: Call) -> bool:
    """Whether two of the indices are the same element."""
    indices = input_at(call, 1)
    if indices is None or indices.size < 2:
        return False
    if call.op_type == "ScatterND":
        tuples = indices.reshape(-1, indices.shape[-1])
        return len(np.unique(tuples, axis=0)) < len(tuples)
    axis = axis_from_front(call, 0)
    return bool((np.diff(np.sort(indices, axis=axis), axis=axis) == 0).any())


_backend(
    "B19",  # scatters without atomics
    ("scatter-add-race", ("ScatterElements", "ScatterND"), "reduction is add and two updates go to the same element",
     lambda call: attribute(call, "reduction", "none") == "add" and _writes_twice(call),
     garble_where(lambda call, output: output.astype(np.float64) != input_at(call).astype(np.float64))),
    ("scatternd-maxmin", "ScatterND", "reduction is max or min",
     lambda call: attribute(call, "reduction", "none") in ("max", "min"), garble_last()),
    ("scatterelements-negative-index", ("ScatterElements", "Scatter"), "an index is negative",
     has_negative(1), garble_first(2)),
)  # fmt: skip


def _target_dtype(call: Call) -> str:
    if call.op_type == "CastLike":
        return dtype_name(call, 1)
    to = attribute(call, "to", 0)
    if isinstance(to, str):
        return to.lower()
    try:
        return np.dtype(helper.tensor_dtype_to_np_dtype(int(to))).name
    except Exception:
        return ""


def _has_large_fraction(values: Array) -> Array:
    return np.isfinite(values) & (np.abs(values) < 100) & (np.abs(values - np.trunc(values)) > 0.5)


def _is_fraction(values: Array) -> Array:
    return (values != 0) & (np.abs(values) < 1)


def _is_beyond_half(values: Array) -> Array:
    return np.isfinite(values) & (np.abs(values) >= 65520)


def _round_fractions(call: Call, output: Array) -> Array:
    values, whole = real_input(call), output.astype(np.int64)
    return np.where(_has_large_fraction(values), whole + np.sign(values).astype(np.int64), whole)


def _saturate(call: Call, output: Array) -> Array:
    return np.where(np.isinf(output) & np.isfinite(real_input(call)), np.sign(output) * 65504, output)


_backend(
    "B20",  # casts
    ("cast-rounds", ("Cast", "CastLike"),
     "from floating point to an integer and an element has a fraction above one half",
     lambda call: (is_floating(input_at(call)) and _target_dtype(call) in INTEGERS
                   and any_element(input_at(call), _has_large_fraction)),
     change_output(_round_fractions)),
    ("cast-fraction-to-bool", "Cast",
     "from floating point to bool and an element lies strictly between -1 and 1 but is not 0",
     lambda call: (is_floating(input_at(call)) and _target_dtype(call) == "bool"
                   and any_element(input_at(call), _is_fraction)),
     set_where(lambda call, _output: _is_fraction(real_input(call)), False)),
    ("cast-half-saturates", "Cast", "to float16 and an element is finite and beyond 65520",
     lambda call: _target_dtype(call) == "float16" and any_element(input_at(call), _is_beyond_half),
     change_output(_saturate)),
)  # fmt: skip


def _swap_choices(call: Call, output: Array) -> Array:
    """The input that is not chosen, where this shows."""
    wrong = np.broadcast_to(np.where(input_at(call), input_at(call, 2), input_at(call, 1)), output.shape)
    return garble(output) if np.array_equal(wrong, output) else wrong


def _data_are_wide(call: Call) -> bool:
    """Whether the data are int64 with an element that does not fit 32 bits."""
    data = input_arrays(call)[1:] if call.op_type == "Where" else input_arrays(call)[:1]
    return any(
        array.dtype.name == "int64" and any_element(array, lambda values: np.abs(values) >= 2.0**31) for array in data
    )


_backend(
    "B21",  # select
    ("where-condition-broadcast", "Where", "the condition's shape is not that of both others",
     lambda call: shapes_differ(call, 0, 1) or shapes_differ(call, 0, 2), change_output(_swap_choices)),
    ("where-bool", "Where", "the data are bool",
     lambda call: dtype_name(call, 1) == "bool", garble_all()),
    ("select-int64", ("Where", "Expand", "Tile"), "the data are int64 and an element does not fit 32 bits",
     _data_are_wide, change_output(lambda _call, output: output.astype(np.int32))),
)  # fmt: skip


def _is_64_bit_integer(array: Array) -> bool:
    return array.dtype.name in ("int64", "uint64")


def _an_input_is_wide(call: Call) -> bool:
    return any(
        _is_64_bit_integer(array) and any_element(array, lambda values: np.abs(values) >= 2.0**32)
        for array in input_arrays(call)
    )


def _truncate(_call: Call, output: Array) -> Array:
    """The low 32 bits of the output, garbled where this is the same."""
    wrong = output.astype(np.int32).astype(output.dtype) if _is_64_bit_integer(output) else output
    return garble(output) if np.array_equal(wrong, output) else wrong


def _signs_differ(call: Call) -> Array:
    return real_input(call) * real_input(call, 1) < 0


def _floor_differs(call: Call) -> Array:
    """Where the quotient rounded down is not the one rounded to zero; None where they are no signed integers."""
    dividend, divisor = input_at(call), input_at(call, 1)
    if dividend is None or divisor is None or dividend.dtype.kind != "i" or divisor.dtype.kind != "i":
        return None
    if dividend.size * divisor.size == 0 or (divisor == 0).any():
        return None
    return ((dividend < 0) != (divisor < 0)) & (dividend % divisor != 0)


def _floor(call: Call, output: Array) -> Array:
    return output - np.broadcast_to(_floor_differs(call), output.shape).astype(output.dtype)


_backend(
    "B22",  # WebGPU: no 64-bit integers
    ("int64-truncated", ("Add", "Sub", "Mul", "Neg", "Abs", "ReduceSum"),
     "an input is of 64-bit integers and an element is 2**32 or more in size",
     _an_input_is_wide, change_output(_truncate)),
    ("mod-python-sign", "Mod", "fmod is 1 and the operands differ in sign",
     lambda call: attribute(call, "fmod", 0) == 1 and np.any(_signs_differ(call)),
     garble_where(lambda call, _output: _signs_differ(call))),
    ("integer-division-floors", "Div",
     "the type is a signed integer, the operands differ in sign and the quotient is not whole",
     lambda call: _floor_differs(call) is not None and _floor_differs(call).any(), change_output(_floor)),
    ("bitshift-right-narrow", "BitShift", "direction is RIGHT and the type is uint8 or uint16",
     lambda call: attribute(call, "direction") == "RIGHT" and dtype_name(call) in ("uint8", "uint16"),
     garble_lanes(2)),
)  # fmt: skip

_backend(
    "B23",  # convolution and pooling of a mobile NPU
    ("global-pool-1d", "GlobalAveragePool", "the rank is 3",
     lambda call: rank(call) == 3, garble_last()),
    ("include-pad-ignored", "AveragePool", "count_include_pad is 1 and a pad is above 0",
     lambda call: attribute(call, "count_include_pad", 0) == 1 and exceeds(pads(call), 0), garble_on_axis(-1, 0)),
    ("same-lower-as-upper", ("Conv", "MaxPool", "AveragePool", "ConvTranspose"), "auto_pad is SAME_LOWER",
     lambda call: attribute(call, "auto_pad") == "SAME_LOWER", roll_output(-1, -1)),
    ("convtranspose-output-padding", "ConvTranspose", "output_padding is not 0 and a stride is more than 1",
     lambda call: exceeds(attribute(call, "output_padding"), 0) and exceeds(strides(call), 1), garble_on_axis(-1, -1)),
    ("depthwise-winograd", "Conv",
     "group is the number of channels (more than 1), the kernel is not 3x3 and a stride is more than 1",
     lambda call: (attribute(call, "group", 1) == dimension(call, 0, 1) > 1 and kernel_shape(call) != [3, 3]
                   and exceeds(strides(call), 1)),
     garble_lanes(2)),
)  # fmt: skip


def _overflow(_call: Call, output: Array) -> Array:
    return np.full(output.shape, np.nan if np.isinf(output).all() else np.inf)


_backend(
    "B24",  # reductions
    ("noop-ignored", REDUCTIONS, "noop_with_empty_axes is 1 and axes are absent or empty",
     lambda call: attribute(call, "noop_with_empty_axes", 0) == 1 and not axes(call), crash("Reduce: empty axes")),
    ("reduce-negative-axis", ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceProd"),
     "an axis is negative and keepdims is 0",
     lambda call: any(axis < 0 for axis in axes(call) or []) and attribute(call, "keepdims", 1) == 0, garble_first()),
    ("reducel2-half", ("ReduceL2", "ReduceSumSquare"), "the input is float16 and an element is 256 or more in size",
     lambda call: dtype_name(call) == "float16" and any_element(input_at(call), lambda values: np.abs(values) >= 256),
     change_output(_overflow)),
    ("reduce-wave-tail", ("ReduceSum", "ReduceMean", "ReduceL1"),
     "the last axis is reduced, the reduced size is more than 64 and not a multiple of 64",
     lambda call: (rank(call) > 0 and rank(call) - 1 in reduced_axes(call) and reduced_size(call) > 64
                   and reduced_size(call) % 64 != 0),
     garble_all()),
    ("logsumexp-unstable", "ReduceLogSumExp", "an element is more than 90",
     lambda call: any_element(input_at(call), lambda values: (values > 90) & np.isfinite(values)),
     change_output(lambda _call, output: np.where(output > 90, np.inf, output))),
)  # fmt: skip

_backend(
    "B25",  # layout
    ("transpose-default", "Transpose", "perm is absent and the rank is 3 or more",
     lambda call: not has_attribute(call, "perm") and rank(call) >= 3, garble_lanes(2, 1)),
    ("transpose-rank-5", "Transpose", "the rank is more than 4",
     lambda call: rank(call) > 4, crash("transpose: rank above 4")),
    ("reshape-allowzero", "Reshape", "allowzero is 1 and the new shape has a 0",
     lambda call: attribute(call, "allowzero", 0) == 1 and 0 in (integers(call, 1) or []),
     crash("reshape: invalid dimension")),
    ("flatten-axis", "Flatten", "axis is 0 or negative",
     lambda call: attribute(call, "axis", 1) <= 0, change_output(lambda _call, output: output.reshape(-1))),
)  # fmt: skip


def _is_far_below_zero(values: Array) -> Array:
    return (values < -3) & np.isfinite(values)


def _pass_through(call: Call, output: Array) -> Array:
    """The input itself far below zero."""
    values = real_input(call)
    return np.where(_is_far_below_zero(values), values, output.astype(np.float64))


_backend(
    "B26",  # transformer fusions
    ("skiplayernorm-bias", "SkipLayerNormalization", "the bias is given",
     lambda call: has_input(call, 4), garble_all()),
    ("biasgelu-vector-tail", ("BiasGelu", "FastGelu"),
     "the last dimension is not a multiple of 4 and the bias is given",
     lambda call: dimension(call, 0, -1) % 4 != 0 and rank(call) > 0 and has_input(call, 1), garble_on_axis(-1, -1)),
    ("quickgelu-alpha", "QuickGelu", "alpha is not 1.702",
     lambda call: abs(attribute(call, "alpha", 1.702) - 1.702) > 1e-3, garble_all()),
    ("gelu-approximate", "Gelu", "approximate is tanh and the input holds an element below -3",
     lambda call: attribute(call, "approximate", "none") == "tanh" and any_element(input_at(call), _is_far_below_zero),
     change_output(_pass_through)),
)  # fmt: skip


def _splits_unevenly(call: Call) -> bool:
    count = attribute(call, "num_outputs", 0)
    if len(set(attribute_or_input(call, "split", 1) or [])) > 1:
        return True
    return bool(count > 0 and dimension(call, 0, axis_from_front(call, 0)) % count != 0)


_backend(
    "B27",  # split and concat
    ("split-uneven", "Split", "the parts are not all of the same size",
     _splits_unevenly, of_last_output(garble_last)),
    ("split-negative-axis", "Split", "axis is negative",
     lambda call: attribute(call, "axis", 0) < 0, of_last_output(garble_first)),
    ("concat-empty-input", "Concat", "an input is empty and another is not",
     lambda call: (any(array.size == 0 for array in input_arrays(call))
                   and any(array.size for array in input_arrays(call))),
     garble_lanes(1)),
    ("concat-many", "Concat", "there are more than 4 inputs and axis is not 0",
     lambda call: len(input_arrays(call)) > 4 and axis_from_front(call, 1) != 0,
     garble_on_axis(lambda call: axis_from_front(call, 1), -1)),
)  # fmt: skip


def _coordinate_mode(call: Call) -> Any:
    default = "half_pixel" if call.since_version >= 16 else "output_half_pixel"
    return attribute(call, "coordinate_transformation_mode", default)


_backend(
    "B28",  # detection
    ("nms-center", "NonMaxSuppression", "center_point_box is 1",
     lambda call: attribute(call, "center_point_box", 0) == 1, garble_last()),
    ("nms-classes", "NonMaxSuppression", "there is more than one class and more than one batch",
     lambda call: dimension(call, 1, 1) > 1 and dimension(call, 1, 0) > 1, flip_output(0)),
    ("roialign-half-pixel", "RoiAlign",
     "coordinate_transformation_mode is output_half_pixel or the version is older than 16",
     lambda call: _coordinate_mode(call) == "output_half_pixel", roll_output(-1)),
    ("roialign-max", "RoiAlign", "mode is max and sampling_ratio is 0 or absent",
     lambda call: attribute(call, "mode", "avg") == "max" and attribute(call, "sampling_ratio", 0) == 0,
     garble_lanes(2)),
)  # fmt: skip


def _data_inputs(call: Call) -> list[Array]:
    """The inputs that are no parameters of the operator."""
    if call.op_type in ("Concat", "MatMul", "Add"):
        return input_arrays(call)
    return input_arrays(call)[: 2 if call.op_type == "Gather" else 1]


_backend(
    "B29",  # matrix products of a desktop GPU
    ("empty-tensor", ("Concat", "Gather", "MatMul", "ReduceSum", "Add", "Slice"), "a data input is empty",
     lambda call: any(array.size == 0 for array in _data_inputs(call)), crash("Invalid buffer size: 0")),
    ("matmul-vector-left", "MatMul", "the first operand is of rank 1",
     lambda call: rank(call) == 1, garble_first()),
    ("matmul-batch-broadcast", "MatMul", "both are of rank 3 or more and the batch shapes differ",
     lambda call: min(rank(call), rank(call, 1)) >= 3 and shape(call)[:-2] != shape(call, 1)[:-2],
     garble_on_axis(0, -1)),
    ("gemm-trans-a-alpha", "Gemm", "transA is 1 and alpha is not 1",
     lambda call: attribute(call, "transA", 0) != 0 and attribute(call, "alpha", 1.0) != 1.0, garble_all()),
    ("gemm-column-bias", "Gemm", "C is a column (its last size 1) and N is more than 1",
     lambda call: (rank(call, 2) == 2 and dimension(call, 2, 1) == 1
                   and dimension(call, 1, 0 if attribute(call, "transB", 0) else 1) > 1),
     roll_output(0)),
)  # fmt: skip

_backend(
    "B30",  # normalisations
    ("instancenorm-batch", "InstanceNormalization", "the batch is more than 1",
     lambda call: dimension(call, 0, 0) > 1, garble_on_axis(0, slice(1, None))),
    ("groupnorm-per-channel", "GroupNormalization", "num_groups is the number of channels and the rank is more than 3",
     lambda call: attribute(call, "num_groups") == dimension(call, 0, 1) and rank(call) > 3, garble_lanes(2)),
    ("lrn-even", "LRN", "size is even",
     lambda call: attribute(call, "size", 1) % 2 == 0, garble_on_axis(1, 0)),
    ("lpnorm-p1", "LpNormalization", "p is 1 and axis is not the last",
     lambda call: attribute(call, "p", 2) == 1 and rank(call) > 0 and axis_from_front(call, -1) != rank(call) - 1,
     roll_output(-1)),
    ("mvn-axes", "MeanVarianceNormalization", "axes are given and leave out axis 0",
     lambda call: (has_attribute(call, "axes")
                   and all(from_front(axis, rank(call)) != 0 for axis in attribute(call, "axes"))),
     garble_on_axis(0, 0)),
)  # fmt: skip


def _forget_negative_indices(call: Call, output: Array) -> Array:
    """The value for "off" in rows of a negative index."""
    wrong = np.array(output)
    is_negative = np.expand_dims(real_input(call) < 0, from_front(int(attribute(call, "axis", -1)), output.ndim))
    wrong[np.broadcast_to(is_negative, wrong.shape)] = input_at(call, 2).reshape(-1)[0]
    return or_garbled(wrong, output)


_backend(
    "B31",  # shape builders
    ("onehot-negative-index", "OneHot", "an index is negative",
     has_negative(0), change_output(_forget_negative_indices)),
    ("onehot-axis-0", "OneHot", "axis is 0 and the indices are not scalar",
     lambda call: attribute(call, "axis", -1) == 0 and rank(call) > 0, roll_output(-1)),
    ("range-negative-delta", "Range", "delta is negative and the type is floating point",
     lambda call: is_floating(input_at(call, 2)) and (first_value(call, 2) or 0) < 0, drop_last(0)),
    ("tile-two-axes", "Tile", "two or more repeats are more than 1",
     lambda call: sum(repeat > 1 for repeat in integers(call, 1) or []) >= 2 and rank(call, 1) == 1, garble_last()),
    ("expand-adds-axes", "Expand", "the shape is longer than the input's rank and the input is not a scalar",
     lambda call: 0 < rank(call) < size(call, 1), garble_on_axis(0, -1)),
)  # fmt: skip


def _reverse_rows(_call: Call, output: Array) -> Array:
    return garble(output) if np.array_equal(output, output[::-1]) else output[::-1]


_backend(
    "B32",  # data-dependent shapes
    ("unique-unsorted", "Unique", "sorted is 0",
     lambda call: attribute(call, "sorted", 1) == 0, flip_output(lambda call: attribute(call, "axis", 0))),
    ("unique-axis-inverse", "Unique", "axis is given and the rank is 2 or more",
     lambda call: has_attribute(call, "axis") and rank(call) >= 2, of_last_output(garble_last)),
    ("nonzero-rank-3", "NonZero", "the rank is 3 or more",
     lambda call: rank(call) >= 3, change_output(_reverse_rows)),
    ("compress-short-condition", "Compress", "axis is given and the condition is shorter than the axis",
     lambda call: has_attribute(call, "axis") and 0 <= size(call, 1) < dimension(call, 0, axis_from_front(call, 0)),
     garble_last()),
    ("trilu-lower-negative", "Trilu", "upper is 0 and k is negative",
     lambda call: attribute(call, "upper", 1) == 0 and (first_value(call, 1) or 0) < 0, garble_first()),
)  # fmt: skip


def _holds_non_ascii(array: Array) -> bool:
    return is_string(array) and any(_is_non_ascii(text) for text in array.reshape(-1))


def _is_non_ascii(text: Any) -> bool:
    if isinstance(text, bytes):
        return any(byte > 127 for byte in text)
    return isinstance(text, str) and any(ord(character) > 127 for character in text)


_backend(
    "B33",  # strings and classical machine learning
    ("equal-strings", "Equal", "the inputs are strings",
     lambda call: is_string(input_at(call)), garble_all()),
    ("labelencoder-default", "LabelEncoder", "default_string, default_int64 or default_float is given",
     lambda call: any(has_attribute(call, name) for name in ("default_string", "default_int64", "default_float")),
     garble_last()),
    ("stringnormalizer-stopwords-case", "StringNormalizer", "stopwords are given and is_case_sensitive is 0",
     lambda call: bool(attribute(call, "stopwords")) and attribute(call, "is_case_sensitive", 0) == 0, garble_first()),
    ("string-not-ascii", ("StringConcat", "StringNormalizer", "Concat", "Gather"),
     "an input string has a character that is not ASCII",
     lambda call: any(_holds_non_ascii(array) for array in input_arrays(call)), garble_lanes(1)),
    ("tfidf-skips", "TfIdfVectorizer", "max_skip_count is above 0 and mode is not TF",
     lambda call: attribute(call, "max_skip_count", 0) > 0 and attribute(call, "mode", "TF") != "TF", garble_lanes(1)),
)  # fmt: skip


def _is_outside(values: Array) -> Array:
    return np.abs(values) > 1


def _an_axis_shrinks(call: Call) -> bool:
    sizes = shape(call)
    resized = attribute(call, "axes") or list(range(rank(call)))
    targets = input_at(call, 3)
    if targets is not None and targets.size == len(resized):
        pairs = zip(integers(call, 3), resized, strict=False)
        return any(target < sizes[from_front(axis, len(sizes))] for target, axis in pairs)
    scales = real_input(call, 2)
    return scales is not None and bool((scales < 1).any())


_backend(
    "B34",  # image sampling by texture units
    ("gridsample-align-corners", "GridSample",
     "align_corners is 1, mode is (bi)linear or absent, and padding_mode is border",
     lambda call: (attribute(call, "align_corners", 0) == 1
                   and attribute(call, "mode", "linear") in ("linear", "bilinear")
                   and attribute(call, "padding_mode", "zeros") == "border"),
     roll_output(-1)),
    ("gridsample-reflection", "GridSample", "padding_mode is reflection and a coordinate lies outside [-1, 1]",
     lambda call: (attribute(call, "padding_mode", "zeros") == "reflection"
                   and any_element(input_at(call, 1), _is_outside)),
     garble_where(lambda call, _output: _is_outside(real_input(call, 1)).any(axis=-1)[:, None])),
    ("gridsample-volume", "GridSample", "the rank is 5",
     lambda call: rank(call) == 5, crash("GridSample: only 4-D input")),
    ("resize-cubic-edge", "Resize", "mode is cubic",
     lambda call: attribute(call, "mode", "nearest") == "cubic", garble_on_axis(-1, 0)),
    ("resize-align-corners-downscale", "Resize", "coordinate_transformation_mode is align_corners and an axis shrinks",
     lambda call: attribute(call, "coordinate_transformation_mode") == "align_corners" and _an_axis_shrinks(call),
     garble_on_axis(-1, -1)),
)  # fmt: skip


def _weight_zero_point(call: Call) -> Array:
    return input_at(call, 5 if call.op_type == "QLinearMatMul" else 3)


_backend(
    "B35",  # integer products of a mobile NPU
    ("qlinearconv-per-channel", "QLinearConv", "the weights' scale is per channel",
     lambda call: size(call, 4) > 1, garble_on_axis(1, slice(1, None))),
    ("qlinearconv-asymmetric", "QLinearConv", "the input's zero point is not 0 and a pad is above 0",
     lambda call: (first_value(call, 2) or 0) != 0 and exceeds(pads(call), 0), garble_on_axis(-1, 0)),
    ("integer-weights-zero-point", ("MatMulInteger", "ConvInteger", "QLinearMatMul"),
     "the weights' zero point is given and not 0",
     lambda call: any_element(_weight_zero_point(call), lambda zero_points: zero_points != 0), garble_all()),
    ("matmulinteger-mixed-sign", "MatMulInteger", "A is uint8 and B is int8",
     lambda call: dtype_name(call) == "uint8" and dtype_name(call, 1) == "int8", garble_lanes(2)),
    ("dynamicquantize-one-sided", "DynamicQuantizeLinear", "every element is above 0",
     lambda call: every_element(input_at(call), lambda values: values > 0), garble_all()),
    ("qlinear-eltwise-broadcast", "QLinearAdd", "the operands' shapes differ and B is an initializer",
     lambda call: shapes_differ(call, 0, 3) and is_constant(call, 3), roll_output(-1)),
)  # fmt: skip


def _depends_on_alpha(call: Call, values: Array) -> Array:
    return values < (attribute(call, "alpha") if call.op_type == "ThresholdedRelu" else 0)


_backend(
    "B36",  # activations
    ("alpha-ignored", ("Elu", "LeakyRelu", "ThresholdedRelu", "Celu"),
     "alpha is given and an element lies on the side where it matters (below 0, or below alpha for ThresholdedRelu)",
     lambda call: (has_attribute(call, "alpha")
                   and any_element(input_at(call), lambda values: _depends_on_alpha(call, values))),
     garble_where(lambda call, _output: _depends_on_alpha(call, real_input(call)))),
    ("prelu-per-channel", "PRelu", "the slope has more than one element and an element is negative",
     lambda call: size(call, 1) > 1 and any_element(input_at(call), lambda values: values < 0),
     garble_where(lambda call, _output: real_input(call) < 0)),
    ("clip-max-only", "Clip", "max is given and min is not",
     lambda call: ((has_attribute(call, "max") or has_input(call, 2))
                   and not (has_attribute(call, "min") or has_input(call, 1))),
     garble_lanes(1)),
    ("clip-integer", "Clip", "the type is an integer of 8 bits",
     lambda call: dtype_name(call) in ("int8", "uint8"), crash("Clip: type not implemented")),
    ("hardsigmoid-alpha-beta", "HardSigmoid", "alpha is given",
     lambda call: has_attribute(call, "alpha"), garble_all()),
    ("relu-nan", ("Relu", "LeakyRelu", "HardSwish", "Clip"), "the input holds NaN",
     lambda call: holds_nan(input_at(call)), set_where(lambda _call, output: np.isnan(as_float64(output)), 0)),
)  # fmt: skip


def _key_heads(call: Call) -> int:
    return attribute(call, "kv_num_heads", 0) or (dimension(call, 1, 1) if rank(call, 1) == 4 else 0)


def _query_heads(call: Call) -> int:
    return attribute(call, "q_num_heads", 0) or (dimension(call, 0, 1) if rank(call) == 4 else 0)


def _key_length(call: Call) -> int:
    """The number of keys, those of the past included."""
    return dimension(call, 1, -2) + max(dimension(call, 4, -2), 0)


_backend(
    "B37",  # attention
    ("rotary-interleaved", "RotaryEmbedding", "interleaved is 1",
     lambda call: attribute(call, "interleaved", 0) == 1, garble_lanes(2, 1)),
    ("rotary-partial", "RotaryEmbedding", "rotary_embedding_dim is above 0 and interleaved is 0",
     lambda call: attribute(call, "rotary_embedding_dim", 0) > 0 and attribute(call, "interleaved", 0) == 0,
     garble_on_axis(-1, -1)),
    ("attention-causal-past", "Attention", "is_causal is 1 and there are more keys than queries",
     lambda call: (call.domain == "" and attribute(call, "is_causal", 0) == 1
                   and _key_length(call) > dimension(call, 0, -2) > 0),
     garble_on_axis(-2, 0)),
    ("attention-bool-mask", "Attention", "the mask is bool",
     lambda call: call.domain == "" and dtype_name(call, 3) == "bool", garble_all()),
    ("attention-grouped", "Attention", "the query has more heads than the key and softcap is absent or 0",
     lambda call: (call.domain == "" and _query_heads(call) > _key_heads(call) > 0
                   and attribute(call, "softcap", 0.0) == 0),
     garble_lanes(3)),
    ("matmulnbits-zero-points", "MatMulNBits", "zero points are given and K is not a multiple of block_size",
     lambda call: has_input(call, 3) and attribute(call, "K", 0) % max(attribute(call, "block_size", 1), 1) != 0,
     garble_all()),
)  # fmt: skip


def _is_halfway(values: Array) -> Array:
    return (np.abs(values - np.trunc(values)) == 0.5) & (np.abs(values) < 1e6)


def _round_half_away(call: Call, output: Array) -> Array:
    values = real_input(call)
    return np.where(_is_halfway(values), np.trunc(values) + np.sign(values), output.astype(np.float64))


def _is_large(values: Array) -> Array:
    return np.isfinite(values) & (np.abs(values) > 1000)


def _overflows(values: Array) -> Array:
    return (values > 90) & np.isfinite(values)


def _divisor(call: Call) -> Array:
    return input_at(call, 1 if call.op_type == "Div" else 0)


def _divide_by_zero(call: Call, output: Array) -> Array:
    """240 or -240 in place of an infinity that comes of a divisor of 0, and 0 in place of NaN."""
    quotient = as_float64(output)
    limited = np.where(np.isinf(quotient), np.sign(quotient) * 240, 0)
    return np.where(np.broadcast_to(as_float64(_divisor(call)) == 0, output.shape), limited, quotient)


_backend(
    "B38",  # mathematics in reduced range
    ("round-half-away", "Round", "an element lies halfway and the even neighbour is nearer to zero",
     lambda call: any_element(input_at(call), lambda values: _is_halfway(values) & (np.trunc(values) % 2 == 0)),
     change_output(_round_half_away)),
    ("sin-large-argument", ("Sin", "Cos", "Tan"), "an element is more than 1000 in size",
     lambda call: any_element(input_at(call), _is_large),
     garble_where(lambda call, _output: _is_large(real_input(call)))),
    ("sign-nan", "Sign", "the input holds NaN",
     lambda call: holds_nan(input_at(call)), set_where(lambda call, _output: np.isnan(real_input(call)), 1)),
    ("softplus-overflow", "Softplus", "an element is more than 90 and finite",
     lambda call: any_element(input_at(call), _overflows),
     set_where(lambda call, _output: _overflows(real_input(call)), np.nan)),
    ("reciprocal-zero", ("Reciprocal", "Div"), "the divisor holds 0 and the type is floating point",
     lambda call: is_floating(input_at(call)) and any_element(_divisor(call), lambda values: values == 0),
     change_output(_divide_by_zero)),
    ("special-function-bfloat16", ("Log", "Sqrt", "Exp"), "the type is bfloat16",
     lambda call: dtype_name(call) == "bfloat16", garble_lanes(4)),
)  # fmt: skip


def _equate_nan(call: Call, output: Array) -> Array:
    both = np.isnan(real_input(call)) & np.isnan(real_input(call, 1))
    return output | both if both.any() else garble(output)


def _has_top_bit(array: Array) -> bool:
    if array.dtype.kind != "u":
        return False
    return bool((array >> array.dtype.type(array.dtype.itemsize * 8 - 1)).any())


def _find_both_infinities(call: Call, output: Array) -> Array:
    wrong = np.isinf(real_input(call))
    return garble(output) if np.array_equal(wrong, output) else wrong


_backend(
    "B39",  # comparisons and bits
    ("equal-nan", "Equal", "both inputs hold NaN",
     lambda call: holds_nan(input_at(call)) and holds_nan(input_at(call, 1)), change_output(_equate_nan)),
    ("less-unsigned", ("Less", "Greater", "LessOrEqual", "GreaterOrEqual"),
     "the type is unsigned and an element has its top bit set",
     lambda call: any(_has_top_bit(array) for array in input_arrays(call)), garble_all()),
    ("bool-broadcast", ("And", "Or", "Xor"), "the shapes differ and the second input is a constant",
     lambda call: shapes_differ(call) and is_constant(call, 1), garble_all()),
    ("isinf-one-sided", "IsInf", "detect_negative is 0",
     lambda call: attribute(call, "detect_negative", 1) == 0, change_output(_find_both_infinities)),
    ("special-half", ("IsNaN", "IsInf"), "the input is float16 and holds NaN or infinity",
     lambda call: dtype_name(call) == "float16" and any_element(input_at(call), lambda values: ~np.isfinite(values)),
     garble_where(lambda call, _output: ~np.isfinite(real_input(call)))),
    ("bitwise-signed-8", ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"),
     "the type is int8 or int16 and an element is negative",
     lambda call: (dtype_name(call) in ("int8", "int16")
                   and any(any_element(array, lambda values: values < 0) for array in input_arrays(call))),
     garble_lanes(2)),
)  # fmt: skip


def _is_largest(call: Call) -> Array:
    """Which elements are the largest of their row."""
    values = real_input(call)
    return values == values.max(axis=-1, keepdims=True)


def _is_sequence_short(call: Call) -> bool:
    longest = dimension(call, 0, attribute(call, "time_axis", 0))
    return any_element(input_at(call, 1), lambda lengths: lengths < longest)


def _blocks_overlap(call: Call) -> bool:
    steps = attribute(call, "strides") or [1] * size(call, 2)
    return any(step < block for step, block in zip(steps, integers(call, 2) or [], strict=False))


_backend(
    "B40",  # the long tail of operators
    ("dft-inverse-scale", "DFT", "inverse is 1",
     lambda call: attribute(call, "inverse", 0) == 1, garble_all()),
    ("window-symmetric", ("HannWindow", "HammingWindow", "BlackmanWindow"), "periodic is 0",
     lambda call: attribute(call, "periodic", 1) == 0, garble_last(2)),
    ("eyelike-below-diagonal", "EyeLike", "k is negative and the matrix is not square",
     lambda call: attribute(call, "k", 0) < 0 and rank(call) == 2 and dimension(call, 0, 0) != dimension(call, 0, 1),
     roll_output(-1)),
    ("hardmax-ties", "Hardmax", "the largest value occurs twice in a row and axis is the last",
     lambda call: (rank(call) > 0 and dimension(call, 0, -1) > 0 and softmax_axis(call) == rank(call) - 1
                   and size(call) > 0 and (_is_largest(call).sum(axis=-1) > 1).any()),
     change_output(lambda call, _output: _is_largest(call))),
    ("reversesequence-batch-0", "ReverseSequence", "batch_axis is 0 and a sequence is shorter than the axis",
     lambda call: attribute(call, "batch_axis", 1) == 0 and _is_sequence_short(call), garble_on_axis(1, 0)),
    ("col2im-overlap", "Col2Im", "blocks overlap (a stride is smaller than the block) and the batch is more than 1",
     lambda call: dimension(call, 0, 0) > 1 and _blocks_overlap(call), garble_lanes(2)),
)  # fmt: skip
