"""Transposed convolutions -> DML_CONVOLUTION_OPERATOR_DESC, backward.

ConvTranspose-1, 11, 22; com.microsoft::ConvTransposeWithDynamicPads (pads are an input); com.microsoft.dml::
DmlFusedConvTranspose (an activation follows). Sources: the operator pages, for the contrib operator
ContribOperators.md. How the DML EP lowers them: DmlOperatorConvolution.cpp; it zeroes the output padding, which the
sizes of the output already contain.

ConvTranspose-1 says that SAME keeps the size of the image, ConvTranspose-11 that it is multiplied by the stride:
strided SAME is asked for from 11 on. Where the formula gives pads below 0 that are not one element at the end, the text
leaves open what they are; no sample asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.declaration.interaction import Interaction, Random
from epcheck.generators.declaration.optional_io import OptionalIO, each_alone
from epcheck.generators.declaration.parameter_space import ParameterSpace, Parts, Values
from epcheck.generators.directml.descriptions.convolution_pooling.convolution import ConvolutionDirection
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.families import fused_activation, window_space
from epcheck.generators.families.window_space import draw_image, is_window, write_window
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import Operator, declare, spread
from epcheck.generators.operators.convolution_pooling.convolution import (
    CHOICES,
    CONTRIB,
    DML,
    STRIDED_SAME,
    Attributes,
    ConvSample,
    attributes_of,
    convolution,
    first_of_each,
    fused_samples,
    is_lowered,
    plain_values,
    values_of,
)
from epcheck.generators.oracle_math.window import Windows, convolve_transposed, halve_padding, spatial_attributes
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = (
    "ConvTranspose",
    "com.microsoft::ConvTransposeWithDynamicPads",
    "com.microsoft.dml::DmlFusedConvTranspose",
)


@dataclass(frozen=True, kw_only=True)
class TransposeSample(ConvSample):
    """w: [C, M / group, *kernel]. dynamic_pads: the input Pads of ConvTransposeWithDynamicPads."""

    x: tuple[int, ...] = (1, 3, 4, 5)
    w: tuple[int, ...] = (3, 2, 3, 2)
    bias: tuple[int, ...] | None = (2,)
    dynamic_pads: tuple[int, ...] | None = None


def _sample(name: str, attributes: Attributes = (), **members: object) -> TransposeSample:
    return TransposeSample(name=name, attributes=attributes, **members)  # type: ignore[arg-type]


def samples() -> Iterator[TransposeSample]:
    yield from _attributes()
    yield from _output_sizes()
    yield from _groups()
    yield from _dimensions()
    yield from map(expect_refusal, _list_refused())


def _attributes() -> Iterator[TransposeSample]:
    yield _sample("defaults", every_dtype=True)
    yield _sample("bias_absent", bias=None, every_dtype=True)
    yield _sample("all_attributes_at_their_defaults", (
        ("auto_pad", "NOTSET"), ("dilations", (1, 1)), ("group", 1), ("kernel_shape", (3, 2)),
        ("output_padding", (0, 0)), ("pads", (0,) * 4), ("strides", (1, 1)),
    ))  # fmt: skip
    yield _sample("kernel_shape", (("kernel_shape", (3, 2)),))
    yield _sample("pads_symmetric", (("pads", (1, 1, 1, 1)),), every_dtype=True)
    yield _sample("pads_asymmetric", (("pads", (0, 1, 2, 0)),), every_dtype=True)
    yield _sample("pads_that_leave_one_element", (("pads", (2, 3, 3, 2)),))
    yield _sample("strides", (("strides", (2, 3)),), every_dtype=True)
    yield _sample("strides_beyond_kernel", (("strides", (4, 5)),), every_dtype=True)
    yield _sample("strides_pads", (("strides", (2, 2)), ("pads", (1, 0, 0, 1))))
    yield _sample("dilations", (("dilations", (2, 3)),), every_dtype=True)
    yield _sample("dilations_strides_pads", (("dilations", (2, 1)), ("pads", (2, 0, 1, 1)), ("strides", (3, 2))))


def _output_sizes() -> Iterator[TransposeSample]:
    strides = ("strides", (3, 2))
    yield _sample("output_padding", (strides, ("output_padding", (2, 1))), every_dtype=True)
    yield _sample("output_padding_one_axis", (strides, ("output_padding", (0, 1))))
    yield _sample("output_padding_pads", (strides, ("output_padding", (1, 1)), ("pads", (1, 0, 1, 1))))
    yield _sample("output_padding_below_dilation", (("dilations", (3, 2)), ("output_padding", (2, 1))))
    # The natural size is 12, 10.
    yield _sample("output_shape_natural", (strides, ("output_shape", (12, 10))), since=STRIDED_SAME)
    yield _sample("output_shape_even_padding", (strides, ("output_shape", (10, 8))), every_dtype=True)
    yield _sample("output_shape_odd_padding", (strides, ("output_shape", (11, 7))), every_dtype=True)
    yield _sample("output_shape_with_output_padding", (strides, ("output_shape", (11, 9)), ("output_padding", (1, 1))))
    yield _sample("output_shape_one_beyond", (strides, ("output_shape", (13, 10))))
    yield _sample("output_shape_ignores_pads", (strides, ("output_shape", (10, 8)), ("pads", (0, 0, 1, 1))))
    for mode in ("SAME_UPPER", "SAME_LOWER"):
        low, auto_pad = mode.lower(), ("auto_pad", mode)
        yield _sample(low, (auto_pad,), every_dtype=True)
        yield _sample(f"{low}_even_kernel", (auto_pad,), w=(3, 2, 4, 2))
        yield _sample(f"{low}_strided", (auto_pad, ("strides", (2, 2))), since=STRIDED_SAME)
        yield _sample(f"{low}_strided_odd_padding", (auto_pad, ("strides", (2, 1))), w=(3, 2, 5, 4), since=STRIDED_SAME)
        yield _sample(f"{low}_dilated", (auto_pad, ("dilations", (2, 2))), since=STRIDED_SAME)
        yield _sample(f"{low}_output_shape", (auto_pad, strides, ("output_shape", (11, 7))))
        yield _sample(f"{low}_1d", (auto_pad,), x=(1, 3, 6), w=(3, 2, 4))
    yield _sample("valid", (("auto_pad", "VALID"),), every_dtype=True)
    yield _sample("valid_strided", (("auto_pad", "VALID"), ("strides", (2, 2))))


def _groups() -> Iterator[TransposeSample]:
    yield _sample("group_2", (("group", 2),), x=(2, 4, 3, 3), w=(4, 3, 2, 2), bias=(6,), every_dtype=True)
    yield _sample("depthwise", (("group", 3), ("strides", (2, 2))), w=(3, 1, 3, 3), bias=(3,), every_dtype=True)
    yield _sample("depthwise_multiplier_2", (("group", 3),), w=(3, 2, 3, 3), bias=(6,))
    yield _sample("group_1d", (("group", 2),), x=(1, 4, 5), w=(4, 2, 3), bias=(4,))
    yield _sample("group_3d", (("group", 2),), x=(1, 4, 2, 3, 2), w=(4, 1, 2, 2, 2))


def _dimensions() -> Iterator[TransposeSample]:
    yield _sample("1d", x=(2, 3, 7), w=(3, 2, 4), every_dtype=True)
    yield _sample("1d_strides_pads_output_padding", (("strides", (3,)), ("pads", (1, 2)), ("output_padding", (2,))),
                  x=(1, 3, 7), w=(3, 2, 4))  # fmt: skip
    yield _sample("3d", x=(1, 3, 2, 3, 4), w=(3, 2, 2, 3, 2), every_dtype=True)
    yield _sample("3d_strides_pads", (("strides", (2, 1, 3)), ("pads", (1, 0, 1, 0, 1, 1))),
                  x=(1, 3, 2, 3, 4), w=(3, 2, 2, 3, 2))  # fmt: skip
    yield _sample("batch_5", x=(5, 3, 3, 3))
    yield _sample("kernel_1x1", w=(3, 2, 1, 1))
    yield _sample("kernel_1x1_strided", (("strides", (2, 3)),), w=(3, 2, 1, 1))
    yield _sample("kernel_2x2_stride_2", (("strides", (2, 2)),), x=(1, 3, 6, 6), w=(3, 2, 2, 2))
    yield _sample("size_1_image", x=(1, 3, 1, 1))
    yield _sample("one_of_everything", x=(1, 1, 1, 1), w=(1, 1, 1, 1), bias=(1,))
    yield _sample("many_channels", x=(1, 67, 3, 4), w=(67, 17, 3, 3), bias=(17,), values="positive", every_dtype=True)
    yield _sample("more_than_a_thread_group", (("strides", (2, 2)),), x=(1, 2, 17, 16), w=(2, 2, 3, 3))
    yield _sample("size_0_batch", x=(0, 3, 4, 5))
    for kind in ("integers", "infinity", "nan"):
        yield _sample(f"values_{kind}", (("strides", (2, 2)),), values=kind, every_dtype=True)


def _list_refused() -> Iterator[TransposeSample]:
    yield _sample("channels_differ", w=(4, 2, 3, 2))
    yield _sample("group_does_not_divide", (("group", 2),))
    yield _sample("kernel_shape_differs", (("kernel_shape", (2, 2)),))
    yield _sample("pads_too_short", (("pads", (1, 1)),))
    yield _sample("bias_of_wrong_length", bias=(3,))


def dynamic_samples() -> Iterator[TransposeSample]:
    """Those of ConvTranspose in which explicit pads, or none, decide; they stand in Pads."""
    for sample in first_of_each(samples(), "x", "w", "values", "attributes"):
        attributes = dict(sample.attributes)
        pads = cast(tuple[int, ...], attributes.pop("pads", (0,) * 2 * (len(sample.x) - 2)))
        if not {"output_shape", "auto_pad"} & attributes.keys():
            yield replace(sample, attributes=tuple(attributes.items()), dynamic_pads=pads, bias=None)
    yield _sample("bias", dynamic_pads=(0, 0, 0, 0), every_dtype=True)
    yield _sample("bias_pads_strides", (("strides", (2, 2)),), dynamic_pads=(1, 0, 0, 1), every_dtype=True)
    yield _sample("pads_absent", (("strides", (2, 2)),), bias=None)
    yield expect_refusal(_sample("bias_of_wrong_length", dynamic_pads=(0, 0, 0, 0), bias=(3,)))


def bindings(sample: TransposeSample, since_version: int, dtypes: tuple[str, ...], *, domain: str) -> tuple[str, ...]:
    if sample.since > since_version and not domain:
        return ()
    ways = spread(sample, first=dtypes == ("float32",), newest=domain != "" or since_version == STRIDED_SAME)
    if sample.dynamic_pads is not None:
        return tuple(way for way in ways if way != graph.SYMBOLIC)
    return ways if sample.every_dtype else tuple(way for way in ways if way in (graph.INITIALIZER, graph.RUNTIME))


def node(sample: TransposeSample, context: CaseContext, *, name: str = "ConvTranspose", domain: str = "") -> Node:
    """X [N, C, *spatial] and W [C, M / group, *kernel] of one float dtype, B [M]; Y [N, M, *output]."""
    rng, dtype = context.rng, context.dtype
    operands: list[Operand | None] = [
        Operand("X", values_of(sample, sample.x, dtype, rng)),
        Operand("W", _weights(sample, dtype, rng), parameter=True),
    ]
    if name == "ConvTransposeWithDynamicPads":
        pads = sample.dynamic_pads
        operands.append(None if pads is None else Operand("Pads", np.array(pads, np.int64), parameter=True))
    if sample.bias is not None:
        operands.append(Operand("B", plain_values(sample.bias, sample.values, dtype, rng), parameter=True))
    while operands[-1] is None:
        operands.pop()
    return Node(name, domain, context.since_version, tuple(operands), ("Y",), attributes_of(sample))


def _weights(sample: TransposeSample, dtype: np.dtype[np.generic], rng: np.random.Generator) -> Array:
    if sample.values == "integers":
        return rng.integers(-3, 4, sample.w).astype(dtype)
    return rng.uniform(0.25, 1, sample.w).astype(dtype)


def truth(node: Node) -> Truth:
    """Every element of x spreads its kernel, in float64; plus the bias, through the fused activation.

    Where no kernel reaches, the output is the bias alone.
    """
    conv = parse(node)
    if isinstance(conv, str):
        return Refusal(conv)
    x, w, bias, windows, group = conv
    with np.errstate(invalid="ignore"):
        total = convolve_transposed(x.astype(np.float64), w.astype(np.float64), windows, group)
        magnitude = convolve_transposed(abs(x.astype(np.float64)), abs(w.astype(np.float64)), windows, group)
    if bias is not None:
        wide = bias.astype(np.float64).reshape(-1, *(1,) * windows.rank)
        total, magnitude = total + wide, magnitude + abs(wide)
    length = windows.taps_each * (x.shape[1] // group) + (bias is not None)
    exact, bound = fused_activation.apply_activation(node, total, bounds.bound_sum(length, x.dtype, magnitude), x.dtype)
    return Outputs((bounds.round_output("Y", exact, x.dtype, bound),))


def parse(node: Node) -> tuple[Array, Array, Array | None, Windows, int] | str:
    """(x, w, B, the windows whose image is the output, groups), or the rule that the node breaks."""
    x, w = (node.inputs[i].value for i in (0, 1))  # type: ignore[union-attr]
    bias, group = node.value("B"), node.integer("group", 1)
    if w.ndim != x.ndim:
        return f"w has {w.ndim} dimensions, x {x.ndim}"
    if x.shape[1] != w.shape[0] or x.shape[1] % group:
        return f"x has {x.shape[1]} channels, w {w.shape[0]}, in {group} groups"
    if bias is not None and bias.shape != (w.shape[1] * group,):
        return f"B of shape {bias.shape} does not have one value for each of {w.shape[1] * group} outputs"
    kernel = w.shape[2:]
    if node.integers("kernel_shape", kernel) != kernel:
        return f"kernel_shape {node.attributes['kernel_shape']} differs from the kernel of w, {kernel}"
    windows = _windows(node, x.shape[2:], kernel)
    return windows if isinstance(windows, str) else (x, w, bias, windows, group)


def _windows(node: Node, image: tuple[int, ...], kernel: tuple[int, ...]) -> Windows | str:
    """The page's formulas: the output's size from the pads, or the pads from output_shape or SAME."""
    dynamic = node.value("Pads")
    complete = node if dynamic is None else _set_attribute(node, "pads", tuple(int(pad) for pad in dynamic))
    attributes = spatial_attributes(complete, len(image))
    if isinstance(attributes, str):
        return attributes
    strides, dilations, begin, end = attributes
    added = node.integers("output_padding", (0,) * len(image))
    natural = tuple(
        stride * (size - 1) + extra + (k - 1) * dilation + 1
        for stride, size, extra, k, dilation in zip(strides, image, added, kernel, dilations, strict=True)
    )
    mode = node.text("auto_pad", "NOTSET")
    shape = node.integers("output_shape", ())
    if not shape and mode.startswith("SAME"):
        shape = tuple(stride * size for stride, size in zip(strides, image, strict=True))
    if shape:
        totals = tuple(size - wanted for size, wanted in zip(natural, shape, strict=True))
        begin, end = halve_padding(totals, upper=mode == "SAME_UPPER")
    elif mode == "VALID":
        begin = end = (0,) * len(image)
    if min(begin) < 0:
        raise ValueError(f"the text leaves open what a padding of {begin} at the begin is")
    output = tuple(size - b - e for size, b, e in zip(natural, begin, end, strict=True))
    return Windows(output, kernel, strides, dilations, begin, end, image)


def _set_attribute(node: Node, name: str, value: Attribute) -> Node:
    return replace(node, attributes={**node.attributes, name: value})


def lower(node: Node) -> Lowering | None:
    """As Conv, backward; the output's own size stands for the output padding. A pad of Pads is no tensor there."""
    conv = parse(node)
    if isinstance(conv, str) or not is_lowered(conv[0]) or min(conv[3].end) < 0:
        return None
    x, w, bias, windows, group = conv
    leading = (x.shape[0], w.shape[1] * group)
    return convolution(node, (x, w, bias), windows, group, ConvolutionDirection.BACKWARD, leading)


def _make_operator(
    name: str, domain: str, samples: Callable[[], Iterator[TransposeSample]]
) -> Operator[TransposeSample]:
    return Operator(
        name, samples, partial(bindings, domain=domain), partial(node, name=name, domain=domain), truth, lower,
        domain=domain,
    )  # fmt: skip


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "ConvTranspose": (
        Interaction("1d_dilation", (Random((1, 2, 5)), Random((2, 2, 3))), {"dilations": (2,)}),
        Interaction("3d_dilations", (Random((1, 2, 2, 3, 3)), Random((2, 2, 2, 2, 2))),
                {"dilations": (2, 1, 3)}),
        Interaction("3d_output_padding", (Random((1, 2, 2, 3, 3)), Random((2, 2, 3, 3, 3))),
                {"strides": (2, 2, 2), "pads": (1,) * 6, "output_padding": (1, 0, 0)}),
        Interaction("group_output_shape", (Random((1, 4, 3, 4)), Random((4, 2, 2, 2))),
                {"group": 2, "strides": (2, 2), "output_shape": (5, 7)}),
        Interaction("1d_output_shape", (Random((1, 2, 4)), Random((2, 2, 3))),
                {"strides": (2,), "output_shape": (8,)}),
        Interaction("batch_group_strides", (Random((2, 4, 3, 3)), Random((4, 2, 2, 2))),
                {"group": 2, "strides": (2, 2)}),
    ),
}  # fmt: skip

OPTIONAL_IO: Mapping[str, tuple[OptionalIO, ...]] = {
    "com.microsoft::ConvTransposeWithDynamicPads": (OptionalIO("bias", inputs=each_alone("Pads", "B")),),
}


def _is_valid(values: Values) -> bool:
    """An output padding is smaller than stride or dilation; SAME crops, and what is left are elements."""
    strides, dilations = (values[name] or (1, 1) for name in ("strides", "dilations"))
    reach = [(k - 1) * d + 1 for k, d in zip(values["kernel_shape"], dilations, strict=True)]
    extra, padding = values["output_padding"] or (0, 0), values["padding"]
    if any(e >= max(s, d) for e, s, d in zip(extra, strides, dilations, strict=True) if e):
        return False
    if padding.startswith("SAME") and any(r + e < s for r, e, s in zip(reach, extra, strides, strict=True)):
        return False
    return is_window(values)


def _make_parts(values: Values, rng: np.random.Generator) -> Parts:
    group, filters = values["group"], values["filters"]
    x = draw_image(values, rng)
    w = rng.uniform(-1, 1, (values["channels"], filters // group, *values["kernel_shape"])).astype(np.float32)
    bias = (rng.uniform(-1, 1, (filters,)).astype(np.float32),) if values["bias"] else ()
    extra = {"output_padding": values["output_padding"]} if values["output_padding"] else {}
    return Parts((x, w, *bias), {**write_window(values), **extra, "group": group}, (1, 2)[: 1 + len(bias)])


PARAMETER_SPACES = {
    "ConvTranspose": ParameterSpace(
        {**window_space.IMAGE, "height": 4, "width": 5},
        _make_parts,
        {**CHOICES, "output_padding": (None, (1, 0), (0, 1))},
        window_space.BORDERS,
        ("batch",),
        _is_valid,
        "width",
        window_space.EXTREMES,
    )
}

OPERATORS = declare(
    (
        _make_operator("ConvTranspose", "", samples),
        _make_operator("ConvTransposeWithDynamicPads", CONTRIB, dynamic_samples),
        _make_operator("DmlFusedConvTranspose", DML, lambda: fused_samples(samples(), TransposeSample)),
    ),
    interactions=INTERACTIONS,
    optional_io=OPTIONAL_IO,
    parameter_spaces=PARAMETER_SPACES,
)
