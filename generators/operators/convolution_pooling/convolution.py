"""Convolutions -> DML_CONVOLUTION_OPERATOR_DESC, DML_CONVOLUTION_INTEGER_OPERATOR_DESC.

Conv-1, 11, 22; com.microsoft::NhwcConv (channels last: X [N, *spatial, C], W [M, *kernel, C / group]);
com.microsoft.dml::DmlFusedConv (an activation follows); ConvInteger-10. Sources: the operator pages, for the contrib
operators ContribOperators.md. How the DML EP lowers them: DmlOperatorConvolution.cpp, DmlOperatorConvInteger.cpp.

Conv-1 says that SAME keeps the size of the image, Conv-11 that it is divided by the stride: strided SAME is asked for
from Conv-11 on. Sums of ConvInteger that leave int32 may overflow by the text, and have no sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any, TypeVar, cast

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.interaction import Interaction, Literal, Random
from epcheck.generators.declaration.parameter_space import ParameterSpace, Parts, Values
from epcheck.generators.directml import TensorDesc
from epcheck.generators.directml.descriptions.convolution_pooling.convolution import (
    Convolution,
    ConvolutionDirection,
    ConvolutionInteger,
    ConvolutionMode,
)
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.families import fused_activation, window_space
from epcheck.generators.families.window_space import draw_image, is_window, write_window
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import Operator, declare, spread
from epcheck.generators.oracle_math.window import Windows, convolve, slide
from epcheck.generators.truth import Output, Outputs, Refusal, Truth, Ulp

DECLARES = (
    "Conv",
    "com.microsoft::NhwcConv",
    "com.microsoft.dml::DmlFusedConv",
    "ConvInteger",
)

Attributes = tuple[tuple[str, Attribute], ...]
CONTRIB, DML = "com.microsoft", "com.microsoft.dml"
STRIDED_SAME = 11
"""Conv-11 brings the text by which SAME divides the size by the stride."""


@dataclass(frozen=True, kw_only=True)
class ConvSample(Sample):
    """x: [N, C, *spatial]. w: [M, C / group, *kernel]. values: what x looks like, see `_values`.

    bias: the shape of B, None leaves it out. since: the oldest revision of ai.onnx whose text defines the node.
    activation: (name, its parameters) that is fused.
    """

    x: tuple[int, ...] = (1, 2, 6, 7)
    w: tuple[int, ...] = (3, 2, 3, 2)
    bias: tuple[int, ...] | None = (3,)
    values: str = "random"
    attributes: Attributes = ()
    since: int = 1
    activation: tuple[str, tuple[float, ...]] | None = None


def _sample(name: str, attributes: Attributes = (), **members: Any) -> ConvSample:
    return ConvSample(name=name, attributes=attributes, **members)


def samples() -> Iterator[ConvSample]:
    yield from _attributes()
    yield from _list_same()
    yield from _groups()
    yield from _dimensions()
    yield from _values_of_x()
    yield from map(expect_refusal, list_refused())


def _attributes() -> Iterator[ConvSample]:
    yield _sample("defaults", every_dtype=True)
    yield _sample("bias_absent", bias=None, every_dtype=True)
    yield _sample("all_attributes_at_their_defaults", (
        ("auto_pad", "NOTSET"), ("dilations", (1, 1)), ("group", 1), ("kernel_shape", (3, 2)), ("pads", (0,) * 4),
        ("strides", (1, 1)),
    ))  # fmt: skip
    yield _sample("kernel_shape", (("kernel_shape", (3, 2)),))
    yield _sample("pads_symmetric", (("pads", (1, 1, 1, 1)),), every_dtype=True)
    yield _sample("pads_asymmetric", (("pads", (0, 1, 2, 3)),), every_dtype=True)
    yield _sample("pads_begin_only", (("pads", (2, 1, 0, 0)),))
    yield _sample("pads_end_only", (("pads", (0, 0, 2, 1)),))
    yield _sample("pads_beyond_kernel", (("pads", (5, 4, 4, 3)),))
    yield _sample("strides", (("strides", (2, 3)),), every_dtype=True)
    yield _sample("strides_beyond_kernel", (("strides", (4, 5)),))
    yield _sample("strides_beyond_image", (("strides", (9, 9)),))
    yield _sample("strides_that_leave_a_rest", (("strides", (2, 2)), ("pads", (0, 1, 1, 0))))
    yield _sample("dilations", (("dilations", (2, 3)),), every_dtype=True)
    yield _sample("dilations_over_the_whole_image", (("dilations", (2, 6)),))
    yield _sample("dilations_pads_strides", (("dilations", (2, 1)), ("pads", (2, 0, 1, 1)), ("strides", (1, 2))))


def _list_same() -> Iterator[ConvSample]:
    for mode in ("SAME_UPPER", "SAME_LOWER"):
        low, auto_pad = mode.lower(), ("auto_pad", mode)
        yield _sample(low, (auto_pad,), every_dtype=True)
        yield _sample(f"{low}_even_kernel", (auto_pad,), w=(3, 2, 2, 4))
        yield _sample(f"{low}_strided", (auto_pad, ("strides", (2, 3))), since=STRIDED_SAME)
        yield _sample(f"{low}_strided_even_image", (auto_pad, ("strides", (2, 2))), x=(1, 2, 6, 8), since=STRIDED_SAME)
        yield _sample(f"{low}_stride_beyond_kernel", (auto_pad, ("strides", (4, 4))), since=STRIDED_SAME)
        yield _sample(f"{low}_dilated", (auto_pad, ("dilations", (2, 2))), since=STRIDED_SAME)
        yield _sample(f"{low}_1d", (auto_pad,), x=(1, 2, 9), w=(3, 2, 4))
        yield _sample(f"{low}_3d", (auto_pad,), x=(1, 2, 3, 4, 3), w=(3, 2, 2, 3, 2))
    yield _sample("valid", (("auto_pad", "VALID"),), every_dtype=True)
    yield _sample("valid_strided", (("auto_pad", "VALID"), ("strides", (2, 2))))


def _groups() -> Iterator[ConvSample]:
    yield _sample("group_2", (("group", 2),), x=(2, 4, 5, 5), w=(6, 2, 3, 3), bias=(6,), every_dtype=True)
    yield _sample("group_3_one_output_each", (("group", 3),), x=(1, 6, 5, 5), w=(3, 2, 3, 3))
    yield _sample("depthwise", (("group", 4),), x=(1, 4, 6, 6), w=(4, 1, 3, 3), bias=(4,), every_dtype=True)
    yield _sample("depthwise_multiplier_2", (("group", 3),), x=(1, 3, 6, 6), w=(6, 1, 3, 3), bias=(6,))
    yield _sample("depthwise_strided_padded", (("group", 4), ("strides", (2, 2)), ("pads", (1, 1, 1, 1))),
                  x=(2, 4, 7, 7), w=(4, 1, 3, 3), bias=(4,))  # fmt: skip
    yield _sample("depthwise_dilated", (("group", 4), ("dilations", (2, 2))), x=(1, 4, 8, 8), w=(4, 1, 3, 3), bias=None)
    yield _sample("depthwise_1d", (("group", 5),), x=(1, 5, 9), w=(5, 1, 4), bias=(5,))
    yield _sample("group_3d", (("group", 2),), x=(1, 4, 3, 4, 4), w=(4, 2, 2, 2, 2), bias=(4,))


def _dimensions() -> Iterator[ConvSample]:
    yield _sample("1d", x=(2, 3, 11), w=(3, 3, 4), every_dtype=True)
    yield _sample("1d_bias_absent", x=(2, 3, 11), w=(3, 3, 4), bias=None)
    yield _sample("1d_pads_strides_dilations", (("pads", (3, 1)), ("strides", (2,)), ("dilations", (3,))),
                  x=(1, 2, 13), w=(3, 2, 3))  # fmt: skip
    yield _sample("3d", x=(1, 2, 4, 5, 4), w=(3, 2, 2, 3, 2), every_dtype=True)
    yield _sample("3d_pads_strides_dilations", (
        ("pads", (1, 0, 2, 0, 1, 1)), ("strides", (1, 2, 1)), ("dilations", (2, 1, 1)),
    ), x=(1, 2, 4, 5, 4), w=(3, 2, 2, 3, 2))  # fmt: skip
    yield _sample("batch_5", x=(5, 2, 4, 4))
    yield _sample("kernel_1x1", x=(2, 5, 4, 3), w=(3, 5, 1, 1), every_dtype=True)
    yield _sample("kernel_1x1_strided", (("strides", (2, 2)),), x=(1, 5, 5, 5), w=(3, 5, 1, 1))
    yield _sample("kernel_is_the_image", x=(2, 3, 4, 5), w=(3, 3, 4, 5))
    yield _sample("kernel_beyond_image_padded", (("pads", (2, 2, 2, 2)),), x=(1, 2, 3, 3), w=(3, 2, 5, 5))
    yield _sample("kernel_7x7_strided", (("strides", (2, 2)), ("pads", (3, 3, 3, 3))), x=(1, 3, 16, 16), w=(3, 3, 7, 7))
    yield _sample("size_1_image", x=(1, 4, 1, 1), w=(3, 4, 1, 1))
    yield _sample("size_1_image_padded", (("pads", (1, 1, 1, 1)),), x=(1, 4, 1, 1), w=(3, 4, 3, 3))
    yield _sample("one_of_everything", x=(1, 1, 1, 1), w=(1, 1, 1, 1), bias=(1,))
    yield _sample("many_channels", x=(1, 67, 4, 5), w=(33, 67, 3, 3), bias=(33,), values="positive", every_dtype=True)
    yield _sample("many_channels_1x1", x=(1, 259, 3, 3), w=(17, 259, 1, 1), bias=(17,))
    yield _sample("more_than_a_thread_group", x=(1, 2, 35, 33), w=(3, 2, 3, 3))
    yield _sample("winograd_shape", (("pads", (1, 1, 1, 1)),), x=(1, 16, 14, 14), w=(16, 16, 3, 3), bias=(16,))
    yield _sample("size_0_batch", x=(0, 2, 6, 7))


def _values_of_x() -> Iterator[ConvSample]:
    for kind in ("integers", "infinity", "nan", "cancellation", "signed_zeros"):
        yield _sample(f"values_{kind}", values=kind, every_dtype=True)
    yield _sample("values_large", values="large", bias=None)


def list_refused() -> Iterator[ConvSample]:
    yield _sample("channels_differ", w=(3, 3, 3, 2))
    yield _sample("group_does_not_divide_outputs", (("group", 2),), w=(3, 1, 3, 2))
    yield _sample("kernel_beyond_image", w=(3, 2, 9, 2))
    yield _sample("kernel_shape_differs", (("kernel_shape", (2, 2)),))
    yield _sample("pads_too_short", (("pads", (1, 1)),))
    yield _sample("strides_too_short", (("strides", (2,)),))
    yield _sample("bias_of_wrong_length", bias=(4,))


FUSED_BASE = ("defaults", "bias_absent", "pads_asymmetric", "strides", "dilations", "same_lower", "group_2",
              "depthwise", "1d", "3d", "kernel_1x1", "many_channels", "size_0_batch")  # fmt: skip

S = TypeVar("S", bound=ConvSample)


def first_of_each(samples: Iterable[S], *fields: str) -> Iterable[S]:
    """The first sample of each combination of these fields."""
    first: dict[tuple[Any, ...], S] = {}
    for sample in samples:
        first.setdefault(tuple(getattr(sample, name) for name in fields), sample)
    return first.values()


def fused_samples(base: Iterator[S], kind: type[S]) -> Iterator[S]:
    """Each activation with its default and other parameters; and the geometry of a convolution with Relu."""
    for sample in base:
        if sample.name in FUSED_BASE:
            yield replace(sample, name=f"relu_{sample.name}", activation=("Relu", ()))
    for name in fused_activation.NAMES:
        low = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)[1:]
        plain = kind(name=f"{low}_integers", values="integers", every_dtype=True, activation=(name, ()))
        yield plain
        # A sum beside the threshold may fall to either side; Relu has its random data above.
        if name not in ("ThresholdedRelu", "Relu"):
            yield replace(plain, name=f"{low}_random", values="random")
        if name in fused_activation.OTHERS:
            parameters = fused_activation.OTHERS[name]
            yield replace(plain, name=f"{low}_parameters", activation=(name, parameters))


def nhwc_samples() -> Iterator[ConvSample]:
    """Two spatial axes, channels last; kernel_shape is given, as whoever writes this operator does."""
    for sample in samples():
        if len(sample.x) == len(sample.w) == 4 and "kernel_shape" not in dict(sample.attributes):
            yield replace(sample, attributes=(("kernel_shape", sample.w[2:]), *sample.attributes))
    yield _sample("kernel_shape_absent")
    yield expect_refusal(_sample("kernel_shape_differs", (("kernel_shape", (2, 2)),)))


def bindings(sample: ConvSample, since_version: int, dtypes: tuple[str, ...], *, domain: str) -> tuple[str, ...]:
    if sample.since > max(since_version, STRIDED_SAME if domain else 1):
        return ()
    ways = spread(sample, first=dtypes == ("float32",), newest=domain != "" or since_version == STRIDED_SAME)
    return ways if sample.every_dtype else tuple(way for way in ways if way in (graph.INITIALIZER, graph.RUNTIME))


def node(sample: ConvSample, context: CaseContext, *, name: str = "Conv", domain: str = "") -> Node:
    """X [N, C, *spatial] and W of one float dtype, B [M]; Y [N, M, *output]."""
    rng, dtype = context.rng, context.dtype
    x, w = values_of(sample, sample.x, dtype, rng), _weights(sample, dtype, rng)
    if name == "NhwcConv":
        x, w = np.ascontiguousarray(np.moveaxis(x, 1, -1)), np.ascontiguousarray(np.moveaxis(w, 1, -1))
    operands = [Operand("X", x), Operand("W", w, parameter=True)]
    if sample.bias is not None:
        operands.append(Operand("B", plain_values(sample.bias, sample.values, dtype, rng), parameter=True))
    return Node(name, domain, context.since_version, tuple(operands), ("Y",), attributes_of(sample))


def attributes_of(sample: ConvSample) -> dict[str, Attribute]:
    """The attributes of the sample, those of its activation among them."""
    attributes = dict(sample.attributes)
    if sample.activation is not None:
        name, parameters = sample.activation
        attributes |= dict(fused_activation.attributes(name, *parameters))
    return attributes


def values_of(sample: ConvSample, shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """The data of x: floats of [-1, 1), or what the sample asks for; a special value stands in the middle."""
    if sample.values == "signed_zeros":
        zeros: Array = np.where(rng.random(shape) < 0.5, dtype.type(0.0), dtype.type(-0.0))
        return zeros
    if sample.values == "large":
        large: Array = (rng.uniform(0.5, 1, shape) * np.sqrt(float(np.finfo(dtype).max))).astype(dtype)
        return large
    x = plain_values(shape, sample.values, dtype, rng)
    special = {"infinity": np.inf, "nan": np.nan}.get(sample.values)
    if special is not None:
        x.reshape(-1)[x.size // 2] = special
    if sample.values == "cancellation":
        x[:, 1::2] = -x[:, : x.shape[1] // 2 * 2 : 2]
    return x


def plain_values(shape: tuple[int, ...], kind: str, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Floats of [-1, 1); of [0.25, 1), of whose sums every dtype shows more than it may lose; or small integers, whose
    sums are exact in any dtype."""
    if kind == "positive":
        return rng.uniform(0.25, 1, shape).astype(dtype)
    if kind == "integers":
        return rng.integers(-3, 4, shape).astype(dtype)
    return rng.uniform(-1, 1, shape).astype(dtype)


def _weights(sample: ConvSample, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """As x, but of the same sign in every tap where x is to cancel, and never 0 where x is infinite."""
    w = plain_values(sample.w, sample.values, dtype, rng)
    if sample.values == "cancellation":
        w[:, 1::2] = w[:, : w.shape[1] // 2 * 2 : 2]
    return w


def truth(node: Node) -> Truth:
    """The direct sum over every window in float64, plus the bias, through the fused activation.

    Where the sum has an infinity or NaN under its window it is that of IEEE 754 arithmetic; padding adds nothing.
    """
    conv = parse(node)
    if isinstance(conv, str):
        return Refusal(conv)
    x, w, bias, windows, group = conv
    with np.errstate(invalid="ignore"):
        total = convolve(x.astype(np.float64), w.astype(np.float64), windows, group)
        magnitude = convolve(abs(x.astype(np.float64)), abs(w.astype(np.float64)), windows, group)
    if bias is not None:
        wide = bias.astype(np.float64).reshape(-1, *(1,) * windows.rank)
        total, magnitude = total + wide, magnitude + abs(wide)
    if (added := node.value("Z")) is not None:
        total, magnitude = total + added.astype(np.float64), magnitude + abs(added.astype(np.float64))
    length = windows.taps_each * w.shape[1] + (bias is not None) + (added is not None)
    exact, bound = fused_activation.apply_activation(node, total, bounds.bound_sum(length, x.dtype, magnitude), x.dtype)
    output = bounds.round_output("Y", exact, x.dtype, bound)
    return Outputs((_channels_last(output, bound) if node.op_type == "NhwcConv" else output,))


def _channels_last(output: Output, bound: Ulp) -> Output:
    def move_channels(array: Array) -> Array:
        return np.ascontiguousarray(np.moveaxis(array, 1, -1))

    assert output.exact is not None
    last = replace(bound, floor=move_channels(np.broadcast_to(bound.floor, output.value.shape)))
    return replace(output, value=move_channels(output.value), exact=move_channels(output.exact), bound=last)


def parse(node: Node) -> tuple[Array, Array, Array | None, Windows, int] | str:
    """(x [N, C, *image], w [M, C / group, *kernel], B, the windows, groups), or the rule that the node breaks."""
    x, w = (node.inputs[i].value for i in (0, 1))  # type: ignore[union-attr]
    if node.op_type == "NhwcConv":
        x, w = np.moveaxis(x, -1, 1), np.moveaxis(w, -1, 1)
    bias, group = node.value("B"), node.integer("group", 1)
    if w.ndim != x.ndim:
        return f"w has {w.ndim} dimensions, x {x.ndim}"
    if x.shape[1] != w.shape[1] * group or w.shape[0] % group:
        return f"x has {x.shape[1]} channels, w {w.shape[1]} for each of {group} groups of {w.shape[0]} outputs"
    if bias is not None and bias.shape != (w.shape[0],):
        return f"B of shape {bias.shape} does not have one value for each of {w.shape[0]} outputs"
    kernel = w.shape[2:]
    if node.integers("kernel_shape", kernel) != kernel:
        return f"kernel_shape {node.attributes['kernel_shape']} differs from the kernel of w, {kernel}"
    windows = slide(node, x.shape[2:], kernel)
    return windows if isinstance(windows, str) else (x, w, bias, windows, group)


def lower(node: Node) -> Lowering | None:
    """[N, C, W] becomes [N, C, 1, W] and the bias [1, M, 1, 1]; None where there is nothing to compute."""
    conv = parse(node)
    if isinstance(conv, str) or not is_lowered(conv[0]):
        return None
    x, w, bias, windows, group = conv
    lowering = convolution(node, (x, w, bias), windows, group, ConvolutionDirection.FORWARD, (x.shape[0], w.shape[0]))
    return _put_strides(lowering) if node.op_type == "NhwcConv" else lowering


def is_lowered(x: Array) -> bool:
    """Whether DirectML has the convolution: 1 to 3 spatial axes, float32 or float16, something to compute."""
    return x.size > 0 and x.ndim <= 5 and x.dtype != np.float64


def _put_strides(lowering: Lowering) -> Lowering:
    """The channels lie last in memory: the same sizes, with the strides of [N, *spatial, C]."""
    desc = cast(Convolution, lowering.description)
    named = ("input_tensor", "filter_tensor", "output_tensor")
    last = {name: _put_channels_last(getattr(desc, name)) for name in named}
    return replace(lowering, description=replace(desc, **cast(Any, last)))


def _put_channels_last(tensor: TensorDesc) -> TensorDesc:
    _, channels, *spatial = tensor.sizes
    steps = [channels * prod(spatial[axis + 1 :]) for axis in range(len(spatial))]
    return replace(tensor, strides=(channels * prod(spatial), 1, *steps))


def convolution(
    node: Node,
    operands: tuple[Array, Array, Array | None],
    windows: Windows,
    group: int,
    direction: ConvolutionDirection,
    leading: tuple[int, int],
) -> Lowering:
    """The description that Conv and ConvTranspose share; `leading` is batch and channels of the output."""
    x, w, bias = operands
    forward = direction is ConvolutionDirection.FORWARD
    missing = max(0, 4 - x.ndim)
    bias = None if bias is None else bias.reshape(1, -1, *(1,) * (windows.rank + missing))
    output = (*leading, *(1,) * missing, *(windows.output if forward else windows.image))
    x, w = (insert_missing_axes(array, missing) for array in (x, w))
    desc = Convolution(
        input_tensor=TensorDesc.of(x),
        filter_tensor=TensorDesc.of(w),
        bias_tensor=None if bias is None else TensorDesc.of(bias),
        output_tensor=TensorDesc.of(x, sizes=output),
        mode=ConvolutionMode.CROSS_CORRELATION,
        direction=direction,
        strides=(1,) * missing + windows.strides,
        dilations=(1,) * missing + windows.dilations,
        start_padding=(0,) * missing + windows.begin,
        end_padding=(0,) * missing + windows.end,
        output_padding=(0,) * (missing + windows.rank),
        group_count=group,
        fused_activation=fused_activation.description(node),
    )
    return Lowering(desc, (x, w, bias))


def insert_missing_axes(array: Array, missing: int) -> Array:
    """[N, C, W] with `missing` axes of size 1 behind the channels, contiguous."""
    return np.ascontiguousarray(array).reshape(*array.shape[:2], *(1,) * missing, *array.shape[2:])


@dataclass(frozen=True, kw_only=True)
class IntegerSample(Sample):
    """x_zero_point, w_zero_point: None leaves the input out; a tuple is one value per output channel.

    extreme: x and w are the lowest value of their dtype, the zero points the highest.
    """

    x: tuple[int, ...] = (1, 2, 6, 7)
    w: tuple[int, ...] = (3, 2, 3, 2)
    x_zero_point: int | None = 5
    w_zero_point: int | tuple[int, ...] | None = 3
    extreme: bool = False
    attributes: Attributes = ()


def integer_samples() -> Iterator[IntegerSample]:
    for sample in first_of_each(samples(), "x", "w", "attributes"):
        yield IntegerSample(
            name=sample.name,
            x=sample.x,
            w=sample.w,
            attributes=sample.attributes,
            every_dtype=sample.every_dtype,
            refused=sample.refused,
        )
    padded: Attributes = (("pads", (1, 1, 1, 1)),)
    for name, x_zero_point, w_zero_point in (
        ("zero_points_absent", None, None),
        ("x_zero_point_absent", None, 3),
        ("w_zero_point_absent", 5, None),
        ("zero_points_0", 0, 0),
        ("zero_points_127", 127, 127),
        ("w_zero_point_per_channel", 5, (1, 0, 7)),
    ):
        yield IntegerSample(
            name=name, x_zero_point=x_zero_point, w_zero_point=w_zero_point, attributes=padded, every_dtype=True
        )
    yield IntegerSample(name="extremes", extreme=True, attributes=padded, every_dtype=True)
    yield IntegerSample(name="extremes_many_channels", x=(1, 300, 3, 3), w=(2, 300, 3, 3), extreme=True)
    yield expect_refusal(IntegerSample(name="w_zero_point_of_wrong_length", w_zero_point=(1, 2)))


def integer_bindings(sample: IntegerSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    return spread(sample, first=dtypes == ("uint8", "int8"), newest=sample.every_dtype)


def integer_node(sample: IntegerSample, context: CaseContext) -> Node:
    """x and w of int8 or uint8 each, their zero points (scalars, or [M] for w); y int32."""
    x_dtype, w_dtype = context.dtypes

    def values(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        info = np.iinfo(dtype)
        if sample.extreme:
            return np.full(shape, info.min, dtype)
        return context.rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)

    def zero_point(name: str, level: int | tuple[int, ...] | None, dtype: np.dtype[Any]) -> Operand | None:
        level = int(np.iinfo(dtype).max) if sample.extreme else level
        return None if level is None else Operand(name, np.array(level, dtype), parameter=True)

    operands = [
        Operand("x", values(sample.x, x_dtype)),
        Operand("w", values(sample.w, w_dtype), parameter=True),
        zero_point("x_zero_point", sample.x_zero_point, x_dtype),
        zero_point("w_zero_point", sample.w_zero_point, w_dtype),
    ]
    while operands[-1] is None:
        operands.pop()
    return Node("ConvInteger", "", context.since_version, tuple(operands), ("y",), dict(sample.attributes))


def integer_truth(node: Node) -> Truth:
    """The exact sum of (x - x_zero_point) * (w - w_zero_point); the padding is what x_zero_point stands for, 0."""
    conv = parse(node)
    if isinstance(conv, str):
        return Refusal(conv)
    x, w, _, windows, group = conv
    x_zero, w_zero = (_widen_integers(node, name) for name in ("x_zero_point", "w_zero_point"))
    if w_zero.size not in (1, w.shape[0]):
        return Refusal(f"w_zero_point must have one value, or one for each of {w.shape[0]} outputs")
    shifted = w.astype(np.int64) - w_zero.reshape(-1, *(1,) * (w.ndim - 1))
    total = convolve(x.astype(np.int64) - x_zero, shifted, windows, group)
    if np.abs(total).max(initial=0) > np.iinfo(np.int32).max:
        raise ValueError("the text leaves open what a sum beyond int32 is")
    return Outputs((Output("y", total.astype(np.int32)),))


def _widen_integers(node: Node, name: str) -> Array:
    value = node.value(name)
    return np.zeros((), np.int64) if value is None else value.astype(np.int64)


def integer_lower(node: Node) -> Lowering | None:
    """As Conv; a zero point of one value stays one, one per channel stands at the filter's first axis."""
    conv = parse(node)
    if isinstance(conv, str) or not is_lowered(conv[0]) or isinstance(integer_truth(node), Refusal):
        return None
    x, w, _, windows, group = conv
    missing = max(0, 4 - x.ndim)
    rank = x.ndim + missing
    x, w = (insert_missing_axes(array, missing) for array in (x, w))
    x_zero, w_zero = node.value("x_zero_point"), node.value("w_zero_point")
    x_zero = None if x_zero is None else x_zero.reshape((1,) * rank)
    w_zero = None if w_zero is None else w_zero.reshape(1, -1, *(1,) * (rank - 2))
    desc = ConvolutionInteger(
        input_tensor=TensorDesc.of(x),
        input_zero_point_tensor=None if x_zero is None else TensorDesc.of(x_zero),
        filter_tensor=TensorDesc.of(w),
        filter_zero_point_tensor=None if w_zero is None else TensorDesc.of(w_zero),
        output_tensor=TensorDesc.of(np.empty(0, np.int32), (x.shape[0], w.shape[0], *(1,) * missing, *windows.output)),
        strides=(1,) * missing + windows.strides,
        dilations=(1,) * missing + windows.dilations,
        start_padding=(0,) * missing + windows.begin,
        end_padding=(0,) * missing + windows.end,
        group_count=group,
    )
    return Lowering(desc, (x, x_zero, w, w_zero))


def _conv(name: str, domain: str, samples: Callable[[], Iterator[ConvSample]]) -> Operator[ConvSample]:
    return Operator(
        name, samples, partial(bindings, domain=domain), partial(node, name=name, domain=domain), truth, lower,
        domain=domain,
    )  # fmt: skip


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "Conv": (
        Interaction("partial_sum_overflows", (Literal([200] * 16 + [-196] * 16, "", (1, 8, 2, 2)),
                Literal([180] * 8 + [150] * 8, "", (2, 8, 1, 1))), {}, "float16"),
        Interaction("1d_group_dilation_bias", (Random((1, 4, 9)), Random((4, 2, 3)), Random((4,))),
                {"group": 2, "dilations": (2,)}),
        Interaction("3d_group_strides", (Random((1, 4, 5, 5, 5)), Random((4, 2, 2, 2, 2))),
                {"group": 2, "strides": (2, 1, 2)}),
    ),
}  # fmt: skip


def _make_parts(values: Values, rng: np.random.Generator) -> Parts:
    group, filters = values["group"], values["filters"]
    x = draw_image(values, rng)
    w = rng.uniform(-1, 1, (filters, values["channels"] // group, *values["kernel_shape"])).astype(np.float32)
    bias = (rng.uniform(-1, 1, (filters,)).astype(np.float32),) if values["bias"] else ()
    return Parts((x, w, *bias), {**write_window(values), "group": group}, (1, 2)[: 1 + len(bias)])


CHOICES: Mapping[str, tuple[Any, ...]] = {**window_space.WINDOW, "group": (1, 2), "bias": (True, False)}

PARAMETER_SPACES = {
    "Conv": ParameterSpace(
        window_space.IMAGE,
        _make_parts,
        CHOICES,
        window_space.BORDERS,
        ("batch",),
        is_window,
        "width",
        window_space.EXTREMES,
    )
}

OPERATORS = declare(
    (
        _conv("Conv", "", samples),
        _conv("NhwcConv", CONTRIB, nhwc_samples),
        _conv("DmlFusedConv", DML, lambda: fused_samples(samples(), ConvSample)),
        Operator(
            "ConvInteger",
            integer_samples,
            integer_bindings,
            integer_node,
            integer_truth,
            integer_lower,
            varied=("T1", "T2"),
        ),
    ),
    interactions=INTERACTIONS,
    parameter_spaces=PARAMETER_SPACES,
)
