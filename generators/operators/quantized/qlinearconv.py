"""QLinearConv-10 -> DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC.

Sources: the operator pages QLinearConv-10, Conv-11 (output shape, auto_pad) and QuantizeLinear-10 (round half to even,
then saturate). How the DML EP lowers it: DmlOperatorQLinearConv.cpp; it takes 1-D and 2-D convolutions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.interaction import Interaction, Literal, Random
from epcheck.generators.directml import QuantizedLinearConvolution, TensorDesc
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.families.contrib_twin import make_twin
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import Operator, declare
from epcheck.generators.oracle_math.window import Windows, convolve, slide
from epcheck.generators.truth import OneStep, Output, Outputs, Refusal, Truth

DECLARES = ("QLinearConv", "com.microsoft::QLinearConv")

INT32 = np.iinfo(np.int32)
FIRST = ("uint8", "int8", "uint8")
"""x, w, y as quantisers export them: unsigned activations, signed weights."""

Ends = str | int
"""A zero point: a number, or `low`, `high` for the ends of its dtype, `middle` for what stands for 0 in practice."""


@dataclass(frozen=True, kw_only=True)
class ConvSample(Sample):
    """One convolution.

    x: [N, C, *spatial].  w: [M, C / group, *kernel].  Scales are float32 (w_scale: one, or one per output channel).
    x_values, w_values: a constant to fill in (`low`, `high`, an integer); None is random over the whole dtype.
    bias: None (absent), `random`, or the int32 value of every channel.
    """

    x: tuple[int, ...] = (1, 2, 5, 5)
    w: tuple[int, ...] = (3, 2, 3, 3)
    x_scale: float = 0.02
    w_scale: float | tuple[float, ...] = 0.03
    y_scale: float = 0.25
    x_zero_point: Ends = "middle"
    w_zero_point: Ends | tuple[int, ...] = "middle"
    y_zero_point: Ends = "middle"
    bias: str | int | None = None
    attributes: tuple[tuple[str, Attribute], ...] = ()
    x_values: Ends | None = None
    w_values: Ends | None = None
    scale_shape: tuple[int, ...] = ()


def samples() -> Iterator[ConvSample]:
    yield from _quantisation()
    yield from _bias()
    yield from _list_rounding()
    yield from _geometry()
    yield from _groups()
    yield from _dimensions()
    yield from map(expect_refusal, _list_refused())


def _quantisation() -> Iterator[ConvSample]:
    yield ConvSample(name="per_tensor", every_dtype=True)
    per_channel = ConvSample(name="per_channel", w_scale=(0.01, 0.03, 0.09), every_dtype=True)
    yield per_channel
    yield replace(per_channel, name="per_channel_bias", bias="random")
    yield replace(per_channel, name="per_channel_equal_scales", w_scale=(0.03, 0.03, 0.03), every_dtype=False)
    yield replace(per_channel, name="per_channel_powers_of_two", w_scale=(0.25, 0.5, 1.0), x_scale=0.0625, y_scale=1.0)
    yield replace(per_channel, name="per_channel_far_apart", w_scale=(1e-5, 1e-2, 10.0), every_dtype=False)
    yield replace(per_channel, name="per_channel_zero_points", w_zero_point=(1, 2, 3))
    yield replace(
        per_channel, name="per_channel_zero_points_one_scale_value", w_scale=(0.03,) * 3, w_zero_point=(5, 0, 9)
    )
    yield replace(per_channel, name="per_channel_zero_points_at_ends", w_zero_point=(0, 127, 64), every_dtype=False)
    yield ConvSample(name="per_channel_of_one", w=(1, 2, 3, 3), w_scale=(0.03,))
    for which in ("x", "w", "y"):
        for end in ("low", "high"):
            changed = cast(dict[str, Any], {f"{which}_zero_point": end})
            yield ConvSample(name=f"{which}_zero_point_{end}", every_dtype=True, **changed)
    yield ConvSample(
        name="all_zero_points_low",
        x_zero_point="low",
        w_zero_point="low",
        y_zero_point="low",
        y_scale=4.0,
        bias="random",
    )
    yield ConvSample(
        name="all_zero_points_high", x_zero_point="high", w_zero_point="high", y_zero_point="high", y_scale=4.0
    )
    yield ConvSample(name="scales_of_one", x_scale=1.0, w_scale=1.0, y_scale=1.0, x=(1, 1, 3, 3), w=(2, 1, 1, 1))
    yield ConvSample(name="tiny_scales", x_scale=1e-20, w_scale=1e-15, y_scale=1e-33)
    yield ConvSample(name="huge_scales", x_scale=1e15, w_scale=1e15, y_scale=1e31)
    yield ConvSample(name="scales_of_shape_1", scale_shape=(1,))


def _bias() -> Iterator[ConvSample]:
    yield ConvSample(name="bias", bias="random", every_dtype=True)
    yield ConvSample(name="bias_zero", bias=0)
    yield ConvSample(name="bias_only", bias=1000, x_values="middle", w_values=0)
    for end, value in (("max", INT32.max), ("min", INT32.min)):
        yield ConvSample(name=f"bias_int32_{end}", bias=value, y_scale=2e4)
        yield ConvSample(name=f"bias_int32_{end}_saturates", bias=value)
    yield ConvSample(name="bias_past_float32_integers", bias=2**24 + 1, y_scale=2.0, x_scale=2.0**-9, w_scale=2.0**-9)
    large = ConvSample(
        name="",
        x=(1, 67, 4, 4),
        w=(4, 67, 3, 3),
        x_values="high",
        x_zero_point="low",
        w_zero_point=0,
        x_scale=1.0,
        w_scale=1.0,
    )
    large_sum = 67 * 9 * 255 * 127
    yield replace(
        large,
        name="bias_cancels_a_sum_past_float32_integers",
        w_values="high",
        bias=2 - large_sum,
        y_scale=1.0,
    )
    for end, value, zero_point in (("max", INT32.max, "low"), ("min", INT32.min, "high")):
        yield replace(
            large,
            name=f"bias_int32_{end}_with_a_large_sum",
            w_values="high" if value > 0 else "low",
            bias=value,
            y_scale=2.0**24,
            y_zero_point=zero_point,
        )


def _list_rounding() -> Iterator[ConvSample]:
    sample = ConvSample(name="", x=(1, 1, 16, 16), w=(1, 1, 1, 1), w_values=1, w_zero_point=0, w_scale=1.0, y_scale=1.0)
    for numerator, name in ((1, "half"), (3, "three_halves"), (5, "five_halves")):
        yield replace(sample, name=f"ties_of_{name}", x_scale=0.5 * numerator, y_scale=1.0, every_dtype=True)
    yield replace(sample, name="ties_of_an_eighth", x_scale=0.125, bias=4)
    yield replace(sample, name="ties_by_output_scale", x_scale=1.0, y_scale=2.0, every_dtype=True)
    yield replace(sample, name="ties_with_odd_zero_point", x_scale=0.5, y_zero_point=3, every_dtype=True)
    yield replace(sample, name="beside_the_tie", x_scale=0.5, y_scale=float(np.nextafter(np.float32(1), np.float32(2))))
    yield replace(sample, name="identity", x_scale=1.0, every_dtype=True)
    for end in ("low", "high"):
        big = ConvSample(name=f"saturates_{end}", x_values=end, w_values="high", y_scale=1e-3, every_dtype=True)
        yield big
        yield replace(big, name=f"saturates_{end}_zero_point_{end}", y_zero_point=end)
        yield replace(big, name=f"saturates_{end}_w_low", w_values="low", every_dtype=False)
        yield replace(big, name=f"all_{end}_in_range", y_scale=50.0, every_dtype=False)
    yield ConvSample(name="saturates_both_ways", y_scale=2e-3, every_dtype=True)
    yield ConvSample(name="output_scale_swallows_all", y_scale=1e6, y_zero_point=7)


def _geometry() -> Iterator[ConvSample]:
    wide = ConvSample(name="", x=(1, 2, 9, 8))
    shapes: dict[str, dict[str, Attribute]] = {
        "stride_2": {"strides": (2, 2)},
        "strides_differ": {"strides": (3, 1)},
        "stride_beyond_kernel": {"strides": (4, 5)},
        "dilation_2": {"dilations": (2, 2)},
        "dilations_differ": {"dilations": (3, 1)},
        "pads_symmetric": {"pads": (1, 1, 1, 1)},
        "pads_begin_only": {"pads": (2, 1, 0, 0)},
        "pads_end_only": {"pads": (0, 0, 1, 2)},
        "pads_asymmetric": {"pads": (0, 2, 1, 0)},
        "pads_strides_dilations": {"pads": (2, 1, 0, 3), "strides": (2, 3), "dilations": (2, 1)},
        "kernel_shape_given": {"kernel_shape": (3, 3)},
        "auto_pad_notset": {"auto_pad": "NOTSET", "pads": (1, 0, 0, 1)},
        "auto_pad_valid": {"auto_pad": "VALID"},
        "auto_pad_same_upper": {"auto_pad": "SAME_UPPER"},
        "auto_pad_same_lower": {"auto_pad": "SAME_LOWER"},
        "auto_pad_same_upper_stride_2": {"auto_pad": "SAME_UPPER", "strides": (2, 2)},
        "auto_pad_same_lower_stride_2": {"auto_pad": "SAME_LOWER", "strides": (2, 2)},
        "auto_pad_same_upper_dilated": {"auto_pad": "SAME_UPPER", "dilations": (2, 1)},
    }
    often = {"pads_asymmetric", "auto_pad_same_lower_stride_2", "pads_strides_dilations"}
    for name, attributes in shapes.items():
        yield replace(wide, name=name, attributes=tuple(attributes.items()), every_dtype=name in often)
    padded = replace(wide, attributes=(("pads", (2, 2, 2, 2)),))
    yield replace(padded, name="padding_is_the_zero_point_low", x_zero_point="low")
    yield replace(padded, name="padding_is_the_zero_point_high", x_zero_point="high", w_zero_point=3)
    for name, kernel in {
        "1x1": (1, 1),
        "2x2": (2, 2),
        "1x3": (1, 3),
        "3x1": (3, 1),
        "5x4": (5, 4),
        "whole": (9, 8),
    }.items():
        yield replace(wide, name=f"kernel_{name}", w=(3, 2, *kernel))
    for name, kernel in {"2x2": (2, 2), "4x4": (4, 4)}.items():
        for side in ("upper", "lower"):
            mode: tuple[tuple[str, Attribute], ...] = (("auto_pad", f"SAME_{side.upper()}"),)
            yield replace(wide, name=f"auto_pad_same_{side}_kernel_{name}", w=(3, 2, *kernel), attributes=mode)


def _groups() -> Iterator[ConvSample]:
    grouped = ConvSample(name="groups_2", x=(1, 4, 5, 5), w=(6, 2, 3, 3), attributes=(("group", 2),), every_dtype=True)
    scales = tuple(0.01 * (channel + 1) for channel in range(6))
    yield grouped
    yield replace(grouped, name="groups_2_per_channel_bias", w_scale=scales, bias="random")
    depthwise = ConvSample(
        name="depthwise", x=(1, 4, 6, 6), w=(4, 1, 3, 3), attributes=(("group", 4),), every_dtype=True
    )
    yield depthwise
    yield replace(depthwise, name="depthwise_per_channel", w_scale=(0.01, 0.02, 0.04, 0.08), bias="random")
    yield replace(depthwise, name="depthwise_per_channel_zero_points", w_scale=scales[:4], w_zero_point=(0, 3, 6, 9))
    yield replace(depthwise, name="depthwise_multiplier_2", w=(8, 1, 3, 3), every_dtype=False)
    padded: tuple[tuple[str, Attribute], ...] = (("group", 4), ("strides", (2, 2)), ("pads", (0, 1, 1, 0)))
    yield replace(depthwise, name="depthwise_strided_padded", attributes=padded, every_dtype=False)


def _dimensions() -> Iterator[ConvSample]:
    one_d = ConvSample(name="1d", x=(2, 3, 11), w=(4, 3, 3), every_dtype=True)
    yield one_d
    yield replace(one_d, name="1d_per_channel_bias", w_scale=(0.01, 0.02, 0.04, 0.05), bias="random")
    yield replace(
        one_d, name="1d_pads_strides_dilations", attributes=(("pads", (3, 1)), ("strides", (2,)), ("dilations", (2,)))
    )
    yield replace(one_d, name="1d_auto_pad_same_lower", attributes=(("auto_pad", "SAME_LOWER"), ("strides", (2,))))
    yield replace(one_d, name="1d_depthwise", w=(3, 1, 4), attributes=(("group", 3),))
    three_d = ConvSample(name="3d", x=(1, 2, 4, 4, 4), w=(3, 2, 2, 3, 2), every_dtype=True)
    yield three_d
    yield replace(three_d, name="3d_per_channel_bias", w_scale=(0.01, 0.02, 0.04), bias="random", every_dtype=False)
    yield replace(three_d, name="3d_pads_strides", attributes=(("pads", (1, 0, 1, 0, 1, 0)), ("strides", (1, 2, 1))))
    yield ConvSample(name="batch_4", x=(4, 2, 5, 5), bias="random")
    yield ConvSample(name="many_channels", x=(1, 67, 4, 4), w=(33, 67, 3, 3), y_scale=1.0, bias="random")
    yield ConvSample(
        name="many_channels_1x1", x=(1, 256, 3, 3), w=(16, 256, 1, 1), y_scale=1.0, w_scale=(0.01,) * 15 + (0.02,)
    )
    yield ConvSample(name="channels_of_one", x=(1, 1, 4, 4), w=(1, 1, 2, 2))
    yield ConvSample(name="size_1_image", x=(1, 3, 1, 1), w=(2, 3, 1, 1))
    yield ConvSample(name="size_0_batch", x=(0, 2, 5, 5))


def _list_refused() -> Iterator[ConvSample]:
    refused = ConvSample(name="", refused=True)
    yield replace(refused, name="x_scale_0", x_scale=0.0)
    yield replace(refused, name="w_scale_0", w_scale=0.0)
    yield replace(refused, name="w_scale_0_in_one_channel", w_scale=(0.1, 0.0, 0.1))
    yield replace(refused, name="y_scale_0", y_scale=0.0)
    yield replace(refused, name="w_scale_of_wrong_length", w_scale=(0.1, 0.2))
    yield replace(refused, name="w_zero_point_of_wrong_length", w_scale=(0.1, 0.2, 0.3), w_zero_point=(1, 2))
    yield replace(refused, name="channels_differ", w=(3, 3, 3, 3))
    yield replace(refused, name="group_does_not_divide", w=(3, 1, 3, 3), attributes=(("group", 2),))
    yield replace(refused, name="kernel_beyond_image", w=(3, 2, 7, 7))
    yield replace(refused, name="kernel_shape_differs", attributes=(("kernel_shape", (2, 2)),))
    yield replace(refused, name="pads_too_short", attributes=(("pads", (1, 1)),))


def bindings(sample: ConvSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if dtypes == FIRST:
        return tuple(graph.BINDINGS)
    return (graph.INITIALIZER,) if sample.every_dtype else ()


def node(sample: ConvSample, context: CaseContext) -> Node:
    """x, w of the first two dtypes; scales float32; zero points as their tensors; B int32 [M]; output y."""
    x_dtype, w_dtype, y_dtype = context.dtypes
    rng = context.rng

    def scale(value: float | tuple[float, ...]) -> Array:
        return np.array(value if isinstance(value, tuple) else np.full(sample.scale_shape, value), np.float32)

    def zero_point(value: Ends | tuple[int, ...], dtype: np.dtype[Any], per_channel: bool) -> Array:
        if isinstance(value, tuple):
            return np.array(value, dtype)
        shape = (sample.w[0],) if per_channel else sample.scale_shape
        return np.full(shape, _level(value, dtype), dtype)

    def values(shape: tuple[int, ...], fill: Ends | None, dtype: np.dtype[Any]) -> Array:
        info = np.iinfo(dtype)
        if fill is None:
            return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        return np.full(shape, _level(fill, dtype), dtype)

    per_channel = isinstance(sample.w_scale, tuple)
    operands: list[Operand | None] = [
        Operand("x", values(sample.x, sample.x_values, x_dtype)),
        Operand("x_scale", scale(sample.x_scale), parameter=True),
        Operand("x_zero_point", zero_point(sample.x_zero_point, x_dtype, per_channel=False), parameter=True),
        Operand("w", values(sample.w, sample.w_values, w_dtype), parameter=True),
        Operand("w_scale", scale(sample.w_scale), parameter=True),
        Operand("w_zero_point", zero_point(sample.w_zero_point, w_dtype, per_channel), parameter=True),
        Operand("y_scale", scale(sample.y_scale), parameter=True),
        Operand("y_zero_point", zero_point(sample.y_zero_point, y_dtype, per_channel=False), parameter=True),
    ]
    if sample.bias is not None:
        channels = sample.w[0]
        bias = rng.integers(-3000, 3000, channels) if sample.bias == "random" else np.full(channels, sample.bias)
        operands.append(Operand("B", bias.astype(np.int32), parameter=True))
    return Node("QLinearConv", "", context.since_version, tuple(operands), ("y",), dict(sample.attributes))


def _level(value: Ends, dtype: np.dtype[Any]) -> int:
    info = np.iinfo(dtype)
    named = {"low": int(info.min), "high": int(info.max), "middle": 128 if dtype.kind == "u" else 0}
    return named[value] if isinstance(value, str) else value


@dataclass(frozen=True)
class _Conv:
    """A valid node in plain terms."""

    x: Array
    w: Array
    x_scale: float
    w_scale: Array  # [1] or [M]
    y_scale: float
    x_zero_point: int
    w_zero_point: Array  # [1] or [M]
    y_zero_point: Array
    bias: Array | None
    windows: Windows
    group: int


def truth(node: Node) -> Truth:
    """saturate(round_half_even((conv(x - x_zp, w - w_zp) + B) * x_scale * w_scale / y_scale) + y_zp), exactly.

    One step beside it is accepted only where float32 arithmetic cannot tell the side of the rounding boundary, and
    not at all where it is exact (no product needs more than 24 bits, y_scale is a power of two): there a tie is a tie.
    """
    conv = _parse(node)
    if isinstance(conv, str):
        return Refusal(conv)
    sums = _accumulate(conv)
    channels = (1, -1) + (1,) * (conv.x.ndim - 2)
    numerator = conv.x_scale * conv.w_scale.astype(np.float64).reshape(channels)
    real = sums * numerator / conv.y_scale
    steps, distance = _round_half_even(real, sums, conv)
    zero_point = int(conv.y_zero_point.reshape(()))
    info = np.iinfo(conv.y_zero_point.dtype)
    levels = steps + zero_point
    y = np.clip(levels, info.min, info.max).astype(conv.y_zero_point.dtype)
    allowed = distance <= _float32_error(real, conv)
    allowed &= (levels >= info.min - 1) & (levels <= info.max + 1)
    return Outputs((Output("y", y, OneStep(allowed), np.clip(real + zero_point, info.min, info.max)),))


def _parse(node: Node) -> _Conv | str:
    """The convolution, or the rule that the node breaks."""
    get = {o.name: o.value for o in node.inputs if o is not None}
    x, w = get["x"], get["w"]
    channels_out = w.shape[0]
    group = node.integer("group", 1)
    for name in ("x_scale", "y_scale", "x_zero_point", "y_zero_point"):
        if get[name].size != 1:
            return f"{name} must be a scalar"
    for name in ("w_scale", "w_zero_point"):
        if get[name].size not in (1, channels_out):
            return f"{name} must have one element or one per output channel ({channels_out})"
    for name in ("x_scale", "w_scale", "y_scale"):
        if (get[name] == 0).any():
            return f"{name} is 0: a scale of 0 is invalid"
    if w.ndim != x.ndim:
        return f"w has {w.ndim} dimensions, x {x.ndim}"
    if x.shape[1] != w.shape[1] * group or channels_out % group:
        return f"x has {x.shape[1]} channels, w {w.shape[1]} for each of {group} groups of {channels_out} outputs"
    kernel = w.shape[2:]
    if node.integers("kernel_shape", kernel) != kernel:
        return f"kernel_shape {node.attributes['kernel_shape']} differs from the kernel of w, {kernel}"
    windows = slide(node, x.shape[2:], kernel)
    if isinstance(windows, str):
        return windows
    return _Conv(
        x, w, float(get["x_scale"].reshape(())), get["w_scale"].reshape(-1), float(get["y_scale"].reshape(())),
        int(get["x_zero_point"].reshape(())), get["w_zero_point"].reshape(-1), get["y_zero_point"], get.get("B"),
        windows, group,
    )  # fmt: skip


def _accumulate(conv: _Conv, absolute: bool = False) -> Array:
    """The exact integer sums [N, M, *spatial], int64; with `absolute` the sums of magnitudes."""
    x = conv.x.astype(np.int64) - conv.x_zero_point
    w = conv.w.astype(np.int64) - conv.w_zero_point.astype(np.int64).reshape(-1, *(1,) * (conv.w.ndim - 1))
    bias = np.zeros(1, np.int64) if conv.bias is None else conv.bias.astype(np.int64)
    if absolute:
        x, w, bias = abs(x), abs(w), abs(bias)
    return convolve(x, w, conv.windows, conv.group) + bias.reshape(1, -1, *(1,) * conv.windows.rank)


def _round_half_even(real: Array, sums: Array, conv: _Conv) -> tuple[Array, Array]:
    """(rounded int64, distance to the nearest rounding boundary): float64, and rationals where that could err."""
    bounded = np.clip(real, -(2.0**60), 2.0**60)
    rounded = np.rint(bounded)
    distance = abs(bounded - (np.floor(bounded) + 0.5))
    doubtful = distance <= abs(bounded) * 2.0**-50
    x_scale, y_scale = Fraction(conv.x_scale), Fraction(conv.y_scale)
    scales = np.broadcast_to(conv.w_scale, conv.w.shape[0])
    for at in zip(*np.nonzero(doubtful), strict=True):
        exact = int(sums[at]) * x_scale * Fraction(float(scales[at[1]])) / y_scale
        if abs(exact) < 2**52:
            rounded[at] = round(exact)
    return rounded.astype(np.int64), distance


REQUANTISATION_ROUNDINGS = 4
"""float32(sum), x_scale * w_scale, / y_scale, and the product: half a unit in the last place, 2^-24, each."""


def _float32_error(real: Array, conv: _Conv) -> Array:
    """How far float32 requantisation of the exact sum may be from the real value; -1 where it is exact."""
    scales = np.array([_odd_part(scale) for scale in conv.w_scale], object) * _odd_part(conv.x_scale)
    largest = np.array([2**24 // scale for scale in scales], np.int64)
    error = abs(real) * REQUANTISATION_ROUNDINGS * 2.0**-24
    if _odd_part(conv.y_scale) != 1 or not largest.any():
        return error
    within = _accumulate(conv, absolute=True) <= largest.reshape(1, -1, *(1,) * (conv.x.ndim - 2))
    return np.where(within, -1.0, error)


def _odd_part(scale: float) -> int:
    """The odd integer that is the scale but for a power of two: as many bits as its significand needs."""
    numerator = Fraction(float(scale)).numerator
    return numerator // (numerator & -numerator)


def lower(node: Node) -> Lowering | None:
    """[N, C, W] becomes [N, C, 1, W]; per-channel vectors stand at C. None for 3-D and for nothing to compute."""
    conv = _parse(node)
    if isinstance(conv, str) or conv.x.ndim > 4 or conv.x.size == 0:
        return None
    missing = 4 - conv.x.ndim

    def image(array: Array) -> Array:
        return array.reshape(*array.shape[:2], *(1,) * missing, *array.shape[2:])

    def channels(array: Array) -> Array:
        return array.reshape(1, -1, 1, 1)

    get = {o.name: o.value for o in node.inputs if o is not None}
    feeds = {
        "input_tensor": image(conv.x),
        "input_scale_tensor": channels(get["x_scale"]),
        "input_zero_point_tensor": channels(get["x_zero_point"]),
        "filter_tensor": image(conv.w),
        "filter_scale_tensor": channels(conv.w_scale),
        "filter_zero_point_tensor": channels(conv.w_zero_point),
        "bias_tensor": None if conv.bias is None else channels(conv.bias),
        "output_scale_tensor": channels(get["y_scale"]),
        "output_zero_point_tensor": channels(get["y_zero_point"]),
    }
    output = (conv.x.shape[0], conv.w.shape[0], *(1,) * missing, *conv.windows.output)
    desc = QuantizedLinearConvolution(
        **cast(Any, {name: None if array is None else TensorDesc.of(array) for name, array in feeds.items()}),
        output_tensor=TensorDesc.of(conv.y_zero_point, sizes=output),
        strides=(1,) * missing + conv.windows.strides,
        dilations=(1,) * missing + conv.windows.dilations,
        start_padding=(0,) * missing + conv.windows.begin,
        end_padding=(0,) * missing + conv.windows.end,
        group_count=conv.group,
    )
    return Lowering(desc, tuple(feeds.values()))


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "QLinearConv": (
        Interaction("group_dilations",
                (Random((1, 4, 6, 6), 0, 255), Literal(0.02, "float32"), Literal(120, "uint8"),
                 Random((4, 2, 2, 2), -127, 127, "int8"), Literal(0.01, "float32"), Literal(0, "int8"),
                 Literal(0.1, "float32"), Literal(128, "uint8")),
                {"group": 2, "dilations": (2, 2)}, "uint8-int8-uint8"),
    ),
}  # fmt: skip

TWIN = (("uint8", "int8", "uint8"), ("uint8", "uint8", "uint8"), ("int8", "int8", "int8"))
"""The dtypes of com.microsoft's: those that ONNX Runtime's tool quantises to."""

QLINEAR_CONV = Operator("QLinearConv", samples, bindings, node, truth, lower, varied=("T1", "T2", "T3"))

OPERATORS = declare(
    (QLINEAR_CONV, make_twin(QLINEAR_CONV, 10, lambda _, dtypes: dtypes in TWIN)),
    interactions=INTERACTIONS,
)
