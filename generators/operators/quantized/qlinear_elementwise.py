"""com.microsoft::QLinearMul, ::QLinearLeakyRelu, ::QLinearSoftmax and ::QLinearWhere.

Source: ONNX Runtime's ContribOperators.md: each operator is what its name says of the real values that its inputs stand
for, quantised. QLinearSoftmax has the opset of Softmax as an attribute: before 13 all dimensions from `axis` on count
as one. The page names no default of `axis` and `alpha`, so every node has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from epcheck.generators import graph
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.interaction import Interaction, Literal
from epcheck.generators.declaration.optional_io import OptionalIO, each_alone
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator, declare
from epcheck.generators.operators.quantized.qlinear import (
    MANY_BITS,
    MICROSOFT,
    ElementwiseSample,
    add_samples,
    draw_levels,
    elementwise_bindings,
    make_elementwise_node,
    read_output,
    read_real,
    sigmoid_samples,
)
from epcheck.generators.oracle_math import quantization
from epcheck.generators.oracle_math.quantization import Ends
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = (
    "com.microsoft::QLinearMul",
    "com.microsoft::QLinearLeakyRelu",
    "com.microsoft::QLinearSoftmax",
    "com.microsoft::QLinearWhere",
)


def multiply_truth(node: Node) -> Truth:
    """(A - A_zero_point) * (B - B_zero_point) * A_scale * B_scale / C_scale, quantised."""
    (a, a_scale), (b, b_scale) = read_real(node, "A"), read_real(node, "B")
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return Refusal(f"the shapes {a.shape} and {b.shape} do not broadcast")
    c_scale, zero_point = read_output(node, "C")
    real = quantization.exact_ratio(np.asarray(a * b), Fraction(a_scale) * Fraction(b_scale), Fraction(c_scale))
    is_exact = bool(quantization.is_power_of_two(np.array([a_scale, b_scale, c_scale])).all())
    error = np.where(is_exact, -1.0, abs(real) * (quantization.ROUNDINGS + 1) * quantization.SINGLE)
    return Outputs((quantization.quantise("C", real, zero_point, node.array("A").dtype, error),))


@dataclass(frozen=True, kw_only=True)
class LeakySample(ElementwiseSample):
    """alpha: of the attribute."""

    alpha: float = 0.25


def leaky_samples() -> Iterator[LeakySample]:
    for sample in sigmoid_samples():
        yield LeakySample(**{**vars(sample), "scales": (sample.scales[0], 4 * sample.scales[1])})
    every = LeakySample(name="", shapes=((256,),), scales=(0.05, 0.02), zero_points=("middle", "middle"),
                        fills=("every",))  # fmt: skip
    for name, alpha in (("0", 0.0), ("1", 1.0), ("minus_half", -0.5), ("2", 2.0), ("tenth", 0.1)):
        yield replace(every, name=f"alpha_{name}", alpha=alpha, every_dtype=True)
    yield replace(every, name="exact_ties", scales=(0.5, 1.0), zero_points=("middle", 2), every_dtype=True)


def leaky_node(sample: LeakySample, context: CaseContext) -> Node:
    """As of QLinearSigmoid, and alpha."""
    made: Node = make_elementwise_node("QLinearLeakyRelu", ("X", "Y"))(sample, context)
    return replace(made, attributes={"alpha": sample.alpha})


def leaky_truth(node: Node) -> Truth:
    """alpha times the real value where that is negative, quantised."""
    x, x_scale = read_real(node, "X")
    y_scale, zero_point = read_output(node, "Y")
    alpha = float(np.float32(node.number("alpha", 0.01)))
    factor = np.where(x < 0, alpha, 1.0)
    plain = quantization.exact_ratio(x, Fraction(x_scale), Fraction(y_scale))
    real = np.where(x < 0, alpha * plain, plain)
    is_exact = bool(quantization.is_power_of_two(np.array([x_scale, y_scale])).all())
    exact_factor = (factor == 1.0) | (np.frexp(np.abs(factor))[0] == 0.5) | (factor == 0)
    error = np.where(is_exact & exact_factor, -1.0, abs(real) * (quantization.ROUNDINGS + 1) * quantization.SINGLE)
    return Outputs((quantization.quantise("Y", real, zero_point, node.array("X").dtype, error),))


@dataclass(frozen=True, kw_only=True)
class SoftmaxSample(Sample):
    """zero_points: of X, None leaves it out, and of Y. fill: of every element of X; None is random."""

    shape: tuple[int, ...] = (3, 7)
    axis: int = -1
    opset: int = 13
    scales: tuple[float, float] = (0.05, 1 / 256)
    zero_points: tuple[Ends | None, Ends] = ("middle", "low")
    fill: Ends | None = None


def softmax_samples() -> Iterator[SoftmaxSample]:
    yield SoftmaxSample(name="defaults", every_dtype=True)
    yield SoftmaxSample(name="x_zero_point_omitted", zero_points=(None, "low"), every_dtype=True)
    for end in ("low", "high"):
        yield SoftmaxSample(name=f"x_zero_point_{end}", zero_points=(end, "low"), every_dtype=True)
        yield SoftmaxSample(name=f"all_{end}", fill=end, every_dtype=True)
    yield SoftmaxSample(name="y_zero_point_middle", zero_points=("middle", "middle"), every_dtype=True)
    for opset in (1, 11, 13):
        for axis in (0, 1, 2, -1, -2, -3):
            name = f"opset_{opset}_axis_{'minus_' if axis < 0 else ''}{abs(axis)}"
            yield SoftmaxSample(name=name, shape=(3, 4, 5), axis=axis, opset=opset, every_dtype=axis == 1)
    for name, scale in (("small", 1e-3), ("large", 1.0), ("huge", 100.0)):
        yield SoftmaxSample(name=f"x_scale_{name}", scales=(scale, 1 / 256))
    for name, scale in (("saturates", 1 / 2048), ("half", 0.5), ("tenth", 0.1)):
        yield SoftmaxSample(name=f"y_scale_{name}", scales=(0.05, scale))
    yield SoftmaxSample(name="y_scale_of_many_bits", shape=(64, 9), scales=(0.05, MANY_BITS[0] / 4), every_dtype=True)
    for length in (1, 17, 257, 1025):
        yield SoftmaxSample(name=f"length_{length}", shape=(2, length), scales=(0.03, 1 / 4096))
    yield SoftmaxSample(name="rows_1025", shape=(1025, 5))
    for rank in (1, 4, 5):
        shape = tuple(2 + axis % 3 for axis in range(rank))
        yield SoftmaxSample(name=f"rank_{rank}", rank=rank, shape=shape)
    yield expect_refusal(SoftmaxSample(name="axis_at_rank", axis=2))
    yield expect_refusal(SoftmaxSample(name="axis_below_minus_rank", axis=-3))


def bindings(sample: Sample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if dtypes != ("uint8",):
        return (graph.INITIALIZER,) if sample.every_dtype else ()
    return tuple(graph.BINDINGS) if sample.every_dtype else (graph.INITIALIZER, graph.RUNTIME)


def _parameters(names: tuple[str, str], scale: float, zero: Ends | None, dtype: np.dtype[Any]) -> list[Operand | None]:
    """The scale, and the zero point if there is one."""
    level = None if zero is None else np.array(quantization.level(zero, dtype), dtype)
    return [
        Operand(names[0], np.array(scale, np.float32), parameter=True),
        None if level is None else Operand(names[1], level, parameter=True),
    ]


def softmax_node(sample: SoftmaxSample, context: CaseContext) -> Node:
    """X of T, X_scale float32, x_zero_point; y_scale, y_zero_point."""
    dtype = context.dtype
    x = draw_levels(sample.shape, dtype, context.rng)
    if sample.fill is not None:
        x = np.full(sample.shape, quantization.level(sample.fill, dtype), dtype)
    operands = (
        Operand("X", x),
        *_parameters(("X_scale", "x_zero_point"), sample.scales[0], sample.zero_points[0], dtype),
        *_parameters(("y_scale", "y_zero_point"), sample.scales[1], sample.zero_points[1], dtype),
    )
    attributes: dict[str, Attribute] = {"axis": sample.axis, "opset": sample.opset}
    return Node("QLinearSoftmax", MICROSOFT, context.since_version, operands, ("Y",), attributes)


def softmax_truth(node: Node) -> Truth:
    """Softmax of the real values, in steps of y_scale. The zero point of X takes no part: differences count."""
    x, scale = node.array("X"), float(node.array("X_scale"))
    axis, y_scale = node.integer("axis", -1), float(node.array("y_scale"))
    if not -x.ndim <= axis < x.ndim:
        return Refusal(f"axis {axis} must be within [{-x.ndim}, {x.ndim - 1}]")
    axes = (axis % x.ndim,) if node.integer("opset", 13) >= 13 else tuple(range(axis % x.ndim, x.ndim))
    levels = x.astype(np.float64)
    below = (levels - levels.max(axes, keepdims=True)) * scale
    weight = np.exp(below)
    share = weight / weight.sum(axes, keepdims=True)
    count = int(np.prod([x.shape[each] for each in axes]))
    spread = (share * np.abs(below)).sum(axes, keepdims=True)
    relative = (count + 12 + 5 * (np.abs(below) + spread)) * quantization.SINGLE
    zero = int(node.array("y_zero_point"))
    return Outputs((quantization.quantise("Y", share / y_scale, zero, x.dtype, share / y_scale * relative),))


@dataclass(frozen=True, kw_only=True)
class WhereSample(Sample):
    """shapes: of condition, X and Y. scales, zero_points: of X, Y and Z."""

    shapes: tuple[tuple[int, ...], ...] = ((3, 7), (3, 7), (3, 7))
    scales: tuple[float, float, float] = (0.02, 0.05, 0.04)
    zero_points: tuple[Ends, Ends, Ends] = ("middle", 3, "middle")


def where_samples() -> Iterator[WhereSample]:
    yield WhereSample(name="defaults", every_dtype=True)
    yield WhereSample(name="all_alike", scales=(0.04,) * 3, zero_points=("middle",) * 3, every_dtype=True)
    for end in ("low", "high"):
        yield WhereSample(name=f"z_zero_point_{end}", zero_points=("middle", 3, end), every_dtype=True)
        yield WhereSample(name=f"zero_points_{end}", zero_points=(end, end, "middle"), every_dtype=True)
    yield WhereSample(name="x_as_z", scales=(0.04, 0.01, 0.04), zero_points=("middle", 3, "middle"))
    yield WhereSample(name="y_as_z", scales=(0.01, 0.04, 0.04), zero_points=(3, "middle", "middle"))
    yield WhereSample(name="exact_ties", shapes=((521,),) * 3, scales=(0.5, 0.25, 1.0), every_dtype=True)
    yield WhereSample(name="scales_of_many_bits", shapes=((521,),) * 3, scales=MANY_BITS, every_dtype=True)
    yield WhereSample(name="saturation", scales=(1.0, 2.0, 0.01), every_dtype=True)
    for name, shapes in {
        "scalar_condition": ((), (3, 4), (3, 4)), "scalar_x": ((3, 4), (), (3, 4)), "scalar_y": ((3, 4), (3, 4), ()),
        "row_condition": ((4,), (3, 4), (3, 4)), "column_x": ((3, 4), (3, 1), (3, 4)), "row_y": ((3, 4), (3, 4), (4,)),
        "each_way": ((3, 1, 1), (4, 1), (5,)), "scalars": ((), (), ()), "one_condition": ((1,), (3, 4), (3, 4)),
        "low_rank_condition_over_a_square": ((4,), (4, 4), (4, 4)), "higher_condition": ((2, 3, 4), (4,), (3, 4)),
    }.items():  # fmt: skip
        yield WhereSample(name=f"broadcast_{name}", shapes=shapes, every_dtype=name == "each_way")
    for rank in (1, 3, 4, 5, 8):
        shape = tuple(2 + axis % 2 for axis in range(rank))
        yield WhereSample(name=f"rank_{rank}", rank=rank, shapes=(shape,) * 3)
    yield WhereSample(name="nothing", shapes=((0, 3),) * 3)
    yield WhereSample(name="length_1025", shapes=((1025,),) * 3)
    yield expect_refusal(WhereSample(name="shapes_differ", shapes=((3, 4), (3, 5), (3, 4))))


def where_node(sample: WhereSample, context: CaseContext) -> Node:
    """condition bool; X and Y of T, each with its float32 scale and zero point; z_scale and z_zero_point; Z of T."""
    rng, dtype = context.rng, context.dtype
    operands: list[Operand | None] = [Operand("condition", rng.random(sample.shapes[0]) < 0.5)]
    for at, name in enumerate("XYZ"):
        if name != "Z":
            operands.append(Operand(name, draw_levels(sample.shapes[at + 1], dtype, rng)))
        names = (f"{name.lower()}_scale", f"{name.lower()}_zero_point")
        operands += _parameters(names, sample.scales[at], sample.zero_points[at], dtype)
    return Node("QLinearWhere", MICROSOFT, context.since_version, tuple(operands), ("Z",))


def where_truth(node: Node) -> Truth:
    """The real value of X or Y, quantised."""
    condition, dtype = node.array("condition"), node.array("X").dtype
    z_scale, z_zero = float(node.array("z_scale")), int(node.array("z_zero_point"))
    reals, errors = [], []
    for name in "XY":
        scale = float(node.array(f"{name.lower()}_scale"))
        levels = node.array(name).astype(np.int64) - int(node.array(f"{name.lower()}_zero_point"))
        real = quantization.exact_ratio(levels, Fraction(scale), Fraction(z_scale))
        is_exact = bool(quantization.is_power_of_two(np.array([scale, z_scale])).all())
        reals.append(real)
        errors.append(np.where(is_exact, -1.0, abs(real) * quantization.ROUNDINGS * quantization.SINGLE))
    try:
        real, error = (np.asarray(np.where(condition, *pair)) for pair in (reals, errors))
    except ValueError:
        shapes = [node.array(name).shape for name in ("condition", "X", "Y")]
        return Refusal(f"the shapes {shapes} do not broadcast")
    return Outputs((quantization.quantise("Z", real, z_zero, dtype, error),))


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "com.microsoft::QLinearWhere": (
        Interaction("zero_points_negative", (
            Literal((True, False, True, False, False), "bool"),
            Literal((-128, -5, 0, 7, 127)), Literal(0.05, "float32"), Literal(-3),
            Literal((-9, -1, 0, 60, 126)), Literal(0.04, "float32"), Literal(-5),
            Literal(0.08, "float32"), Literal(-7),
        ), dtype="int8"),
    ),
}  # fmt: skip

OPTIONAL_IO: Mapping[str, tuple[OptionalIO, ...]] = {
    "com.microsoft::QLinearMul": (
        OptionalIO("defaults", inputs=each_alone("A_zero_point", "B_zero_point", "C_zero_point")),
    ),
}

OPERATORS = declare(
    (
        Operator("QLinearMul", add_samples, elementwise_bindings, make_elementwise_node("QLinearMul", ("A", "B", "C")),
                 multiply_truth, NO_KERNEL, domain=MICROSOFT),
        Operator("QLinearLeakyRelu", leaky_samples, elementwise_bindings, leaky_node, leaky_truth, NO_KERNEL,
                 domain=MICROSOFT),
        Operator("QLinearSoftmax", softmax_samples, bindings, softmax_node, softmax_truth, NO_KERNEL, domain=MICROSOFT),
        Operator("QLinearWhere", where_samples, bindings, where_node, where_truth, NO_KERNEL, domain=MICROSOFT),
    ),
    interactions=INTERACTIONS,
    optional_io=OPTIONAL_IO,
)  # fmt: skip
