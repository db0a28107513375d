"""com.microsoft::QLinearAveragePool, ::QLinearGlobalAveragePool -> DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC.

Source: ContribOperators.md: dequantize, average, quantize. How the DML EP lowers them:
DmlOperatorQLinearAveragePooling.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.directml import TensorDesc
from epcheck.generators.directml.descriptions.convolution_pooling.pooling import QuantizedLinearAveragePooling
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import Operator, spread
from epcheck.generators.operators.quantized.qlinear import MANY_BITS
from epcheck.generators.oracle_math.window import Windows, columns, is_image, is_padded_image, slide
from epcheck.generators.truth import OneStep, Output, Outputs, Refusal, Truth

DECLARES = (
    "com.microsoft::QLinearAveragePool",
    "com.microsoft::QLinearGlobalAveragePool",
)

Attributes = tuple[tuple[str, Attribute], ...]
DOMAIN = "com.microsoft"
GLOBAL = "QLinearGlobalAveragePool"


@dataclass(frozen=True, kw_only=True)
class QuantizedSample(Sample):
    """x: [N, C, *spatial], also where the channels are last in the node. Zero points: None leaves the input out.

    A zero point is a distance from the middle of the dtype. fill: the ends of the dtype, or None for random values.
    """

    x: tuple[int, ...] = (1, 3, 6, 7)
    kernel: tuple[int, ...] = (3, 2)
    attributes: Attributes = ()
    x_scale: float = 0.03
    y_scale: float = 0.02
    x_zero_point: int | None = 3
    y_zero_point: int | None = -5
    fill: str | None = None


def samples() -> Iterator[QuantizedSample]:
    last = ("channels_last", 1)
    yield from _quantisation()
    geometry: dict[str, Attributes] = {
        "strides": (("strides", (2, 3)),),
        "pads": (("pads", (1, 1, 1, 0)),),
        "pads_count_include_pad": (("pads", (1, 1, 1, 0)), ("count_include_pad", 1)),
        "pads_strides": (("pads", (2, 0, 1, 1)), ("strides", (2, 2))),
        "same_upper": (("auto_pad", "SAME_UPPER"), ("strides", (2, 2))),
        "same_lower": (("auto_pad", "SAME_LOWER"), ("strides", (2, 2))),
        "valid": (("auto_pad", "VALID"),),
        "ceil_mode": (("ceil_mode", 1), ("strides", (2, 2))),
        "channels_last": (last,),
        "channels_last_pads_strides": (last, ("pads", (2, 0, 1, 1)), ("strides", (2, 2))),
        "channels_last_count_include_pad": (last, ("pads", (1, 1, 1, 0)), ("count_include_pad", 1)),
        "channels_last_ceil_mode": (last, ("ceil_mode", 1), ("strides", (2, 2))),
        "channels_first": (("channels_last", 0),),
    }
    for name, attributes in geometry.items():
        yield QuantizedSample(name=name, attributes=attributes, every_dtype=True)
    yield QuantizedSample(name="1d", x=(2, 3, 9), kernel=(4,), every_dtype=True)
    yield QuantizedSample(name="1d_channels_last", x=(2, 3, 9), kernel=(4,), attributes=(last,))
    yield QuantizedSample(name="3d", x=(1, 2, 3, 4, 5), kernel=(2, 2, 3), every_dtype=True)
    yield QuantizedSample(name="3d_channels_last", x=(1, 2, 3, 4, 5), kernel=(2, 2, 3), attributes=(last,))
    yield QuantizedSample(name="batch_4", x=(4, 2, 4, 4))
    yield QuantizedSample(name="kernel_1x1", kernel=(1, 1))
    yield QuantizedSample(name="kernel_is_the_image", kernel=(6, 7))
    yield QuantizedSample(name="more_than_a_thread_group", x=(1, 2, 33, 35))
    yield expect_refusal(QuantizedSample(name="kernel_beyond_image", kernel=(9, 2)))
    yield expect_refusal(QuantizedSample(name="pads_too_short", attributes=(("pads", (1, 1)),)))


def _quantisation() -> Iterator[QuantizedSample]:
    yield QuantizedSample(name="defaults", every_dtype=True)
    yield QuantizedSample(name="same_quantisation", x_scale=0.03, y_scale=0.03, y_zero_point=3, every_dtype=True)
    yield QuantizedSample(name="scales_of_powers_of_two", x_scale=0.25, y_scale=0.5, every_dtype=True)
    yield QuantizedSample(name="saturates", x_scale=1.0, y_scale=0.125, every_dtype=True)
    yield QuantizedSample(name="scales_of_many_bits", x=(1, 96, 3, 4), x_scale=MANY_BITS[0], y_scale=MANY_BITS[2] / 4,
                          every_dtype=True)  # fmt: skip
    yield QuantizedSample(name="scale_to_nothing", x_scale=0.001, y_scale=10.0)
    yield QuantizedSample(name="lowest_values", fill="low", x_scale=0.03, y_scale=0.03)
    yield QuantizedSample(name="highest_values", fill="high", x_scale=0.03, y_scale=0.03)


def average_only() -> Iterator[QuantizedSample]:
    """Those of QLinearAveragePool; its zero points are optional."""
    yield from samples()
    yield QuantizedSample(name="x_zero_point_absent", x_zero_point=None, every_dtype=True)
    yield QuantizedSample(name="y_zero_point_absent", y_zero_point=None, every_dtype=True)
    yield QuantizedSample(name="zero_points_absent_padded", x_zero_point=None, y_zero_point=None, attributes=(
        ("pads", (1, 1, 1, 1)), ("count_include_pad", 1),
    ))  # fmt: skip


def global_samples() -> Iterator[QuantizedSample]:
    """Those of QLinearGlobalAveragePool."""
    yield from _quantisation()
    last: Attributes = (("channels_last", 1),)
    for name, shape in {
        "1d": (2, 3, 9), "3d": (1, 2, 3, 4, 5), "size_1_image": (2, 3, 1, 1), "many_channels": (1, 67, 3, 3),
        "more_than_a_thread_group": (1, 3, 33, 35),
    }.items():  # fmt: skip
        yield QuantizedSample(name=name, x=shape, every_dtype=name in ("1d", "3d"))
        yield QuantizedSample(name=f"{name}_channels_last", x=shape, attributes=last)
    yield QuantizedSample(name="channels_last", attributes=last, every_dtype=True)
    yield QuantizedSample(name="channels_last_batch_4", x=(4, 5, 3, 3), attributes=last)
    yield QuantizedSample(name="channels_first", attributes=(("channels_last", 0),))


def bindings(sample: QuantizedSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    ways = spread(sample, first=dtypes == ("int8",), newest=True)
    return ways if sample.every_dtype else tuple(way for way in ways if way in (graph.INITIALIZER, graph.RUNTIME))


def node(sample: QuantizedSample, context: CaseContext, *, name: str) -> Node:
    """X [N, C, *spatial] or [N, *spatial, C]; scales float32 and zero points of X's dtype, scalars."""
    dtype, attributes = context.dtype, dict(sample.attributes)
    info = np.iinfo(dtype)
    if sample.fill is None:
        x = context.rng.integers(info.min, info.max, sample.x, dtype=dtype, endpoint=True)
    else:
        x = np.full(sample.x, info.min if sample.fill == "low" else info.max, dtype)
    if attributes.get("channels_last"):
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    middle = (info.min + info.max + 1) // 2

    def zero_point(label: str, offset: int | None) -> Operand | None:
        return None if offset is None else Operand(label, np.array(middle + offset, dtype), parameter=True)

    operands: list[Operand | None] = [
        Operand("X", x),
        Operand("x_scale", np.array(sample.x_scale, np.float32), parameter=True),
        zero_point("x_zero_point", sample.x_zero_point),
        Operand("y_scale", np.array(sample.y_scale, np.float32), parameter=True),
        zero_point("y_zero_point", sample.y_zero_point),
    ]
    while operands[-1] is None:
        operands.pop()
    if name != GLOBAL:
        attributes["kernel_shape"] = sample.kernel
    return Node(name, DOMAIN, context.since_version, tuple(operands), ("Y",), attributes)


@dataclass(frozen=True)
class _Average:
    """x: [N, C, *spatial]; divisor: how many elements each window counts."""

    x: Array
    windows: Windows
    divisor: Array
    zeros: tuple[int, int]
    scales: tuple[float, float]
    channels_last: bool
    include_padding: bool


def _parse(node: Node) -> _Average | str:
    x, last = node.array("X"), bool(node.integer("channels_last", 0))
    x = np.moveaxis(x, -1, 1) if last else x
    image = x.shape[2:]
    if node.op_type == GLOBAL:
        ones, none = (1,) * len(image), (0,) * len(image)
        windows: Windows | str = Windows(image, image, ones, ones, none, none, ones)
    else:
        windows = slide(node, image, node.integers("kernel_shape", ()), ceil_mode=node.integer("ceil_mode", 0) == 1)
    if isinstance(windows, str):
        return windows
    include = bool(node.integer("count_include_pad", 0))
    counted = is_padded_image(windows) if include else is_image(windows)
    zeros = (_zero_point(node, "x_zero_point"), _zero_point(node, "y_zero_point"))
    scales = (float(node.array("x_scale")), float(node.array("y_scale")))
    return _Average(x, windows, counted.sum(-1), zeros, scales, last, include)


def _zero_point(node: Node, name: str) -> int:
    value = node.value(name)
    return 0 if value is None else int(value)


FLOAT32_ROUNDINGS = 4
"""Beside those of the sum: dequantizing, dividing by the count, dividing by y_scale, 2^-24 each, and one to spare."""


def truth(node: Node) -> Truth:
    """saturate(round_half_even(average of (x - zero point) * x_scale / y_scale) + y_zero_point), the padding being 0.

    One step beside it is accepted where float32 arithmetic cannot tell the side of the rounding boundary.
    """
    parsed = _parse(node)
    if isinstance(parsed, str):
        return Refusal(parsed)
    under = columns(parsed.x.astype(np.int64) - parsed.zeros[0], parsed.windows, 0)
    factor = parsed.scales[0] / parsed.scales[1] / parsed.divisor
    real = under.sum(-1) * factor
    error = abs(under).sum(-1) * factor * (parsed.windows.taps_each + FLOAT32_ROUNDINGS) * 2.0**-24
    info = np.iinfo(parsed.x.dtype)
    levels = np.rint(real) + parsed.zeros[1]
    allowed = abs(real - (np.floor(real) + 0.5)) <= error
    allowed &= (levels >= info.min - 1) & (levels <= info.max + 1)
    y = np.clip(levels, info.min, info.max).astype(parsed.x.dtype)
    exact = np.clip(real + parsed.zeros[1], info.min, info.max)
    if parsed.channels_last:
        y, allowed, exact = (np.ascontiguousarray(np.moveaxis(array, 1, -1)) for array in (y, allowed, exact))
    return Outputs((Output("Y", y, OneStep(allowed), exact),))


def lower(node: Node) -> Lowering | None:
    """Ranks below 4 get leading axes of 1; channels that are last stay there in memory, by strides."""
    parsed = _parse(node)
    if isinstance(parsed, str) or parsed.x.size == 0 or parsed.x.ndim > 5:
        return None
    missing = max(0, 4 - parsed.x.ndim)
    ones, windows = (1,) * missing, parsed.windows
    x = parsed.x.reshape(ones + parsed.x.shape)
    output = (*x.shape[: missing + 2], *windows.output)

    def tensor(sizes: tuple[int, ...]) -> TensorDesc:
        packed = TensorDesc.of(x, sizes=sizes)
        return _channels_last(packed, missing) if parsed.channels_last else packed

    def element(name: str) -> Array | None:
        value = node.value(name)
        return None if value is None else value.reshape((1,) * x.ndim)

    named: dict[str, Array | None] = {
        "input_scale_tensor": element("x_scale"),
        "input_zero_point_tensor": element("x_zero_point"),
        "output_scale_tensor": element("y_scale"),
        "output_zero_point_tensor": element("y_zero_point"),
    }
    parameters: dict[str, Any] = {k: None if v is None else TensorDesc.of(v) for k, v in named.items()}
    desc = QuantizedLinearAveragePooling(
        input_tensor=tensor(x.shape),
        **parameters,
        output_tensor=tensor(output),
        strides=ones + windows.strides,
        window_size=ones + windows.kernel,
        start_padding=(0,) * missing + windows.begin,
        end_padding=(0,) * missing + windows.end,
        dilations=ones + windows.dilations,
        include_padding=parsed.include_padding,
    )
    return Lowering(desc, (np.ascontiguousarray(x), *named.values()))


def _channels_last(tensor: TensorDesc, missing: int) -> TensorDesc:
    channel_axis = missing + 1
    order = [*range(channel_axis), *range(channel_axis + 1, len(tensor.sizes)), channel_axis]
    strides, step = [0] * len(order), 1
    for axis in reversed(order):
        strides[axis], step = step, step * tensor.sizes[axis]
    return TensorDesc(tensor.data_type, tensor.sizes, tuple(strides))


OPERATORS = (
    Operator(
        "QLinearAveragePool",
        average_only,
        bindings,
        partial(node, name="QLinearAveragePool"),
        truth,
        lower,
        domain=DOMAIN,
    ),
    Operator(GLOBAL, global_samples, bindings, partial(node, name=GLOBAL), truth, lower, domain=DOMAIN),
)
