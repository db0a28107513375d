"""QLinearMatMul-10, 21 and com.microsoft::QLinearAdd, ::QLinearConcat, ::QLinearSigmoid ->
DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY_OPERATOR_DESC, DML_ELEMENT_WISE_QUANTIZED_LINEAR_ADD_OPERATOR_DESC, and for the
others dequantising, DML_JOIN or DML_ACTIVATION_SIGMOID, quantising.

Sources: the page QLinearMatMul-21; ONNX Runtime's ContribOperators.md: each operator is what its name says of the real
values that its inputs stand for, quantised. It does not say whether the zero point is added before rounding or after,
so ties stand with even zero points, where both are the same. How the DML EP lowers them:
DmlOperatorQLinearMatMul.cpp, DmlOperatorQLinearAdd.cpp, DmlOperatorQLinearConcat.cpp, DmlOperatorQLinearSigmoid.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, cast

import numpy as np

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.optional_io import OptionalIO, each_alone
from epcheck.generators.directml import TensorDesc, lowering
from epcheck.generators.directml.descriptions.matmul.matrix_multiply import QuantizedLinearMatrixMultiply
from epcheck.generators.directml.descriptions.quantized.linear_quantization import ElementWiseQuantizedLinearAdd
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import GRAPH, Operator, declare
from epcheck.generators.oracle_math import quantization
from epcheck.generators.oracle_math.activations import Activation
from epcheck.generators.oracle_math.quantization import Ends
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = (
    "QLinearMatMul",
    "com.microsoft::QLinearAdd",
    "com.microsoft::QLinearSigmoid",
    "com.microsoft::QLinearConcat",
)

MICROSOFT = "com.microsoft"


MANY_BITS = (0.0156326, 0.0312652, 0.0214004)
"""Scales that float16 and bfloat16 round by nearly half an ULP: of 256 levels some come out another one."""


@dataclass(frozen=True, kw_only=True)
class ProductSample(Sample):
    """QLinearMatMul. a, b: shapes. Scales: a number, or `rows`, `columns` for one each, random.

    fill: a level for every element of a and b; None is random. scale_shape: of the scales that are one number.
    """

    a: tuple[int, ...] = (3, 4)
    b: tuple[int, ...] = (4, 5)
    a_scale: float | str = 0.02
    b_scale: float | str = 0.03
    y_scale: float = 0.25
    a_zero_point: Ends = "middle"
    b_zero_point: Ends = "middle"
    y_zero_point: Ends = "middle"
    a_fill: Ends | None = None
    b_fill: Ends | None = None
    scale_shape: tuple[int, ...] = ()


def product_samples() -> Iterator[ProductSample]:
    yield ProductSample(name="per_tensor", every_dtype=True)
    for end in ("low", "high"):
        yield ProductSample(name=f"y_zero_point_{end}", y_zero_point=end, every_dtype=True)
        yield ProductSample(name=f"a_zero_point_{end}", a_zero_point=end, every_dtype=True)
        yield ProductSample(name=f"b_zero_point_{end}", b_zero_point=end, every_dtype=True)
    exact = ProductSample(name="", a=(16, 5), b=(5, 16), a_scale=0.5, b_scale=0.25, y_scale=16.0)
    yield replace(exact, name="exact_scales", every_dtype=True)
    yield replace(exact, name="exact_ties", y_scale=32.0, a=(16, 1), b=(1, 16), a_zero_point=3, every_dtype=True)
    yield replace(exact, name="exact_ties_odd_y_zero_point", y_scale=32.0, y_zero_point=1, a=(16, 1), b=(1, 16))
    for a_end, b_end in product(("low", "high"), repeat=2):
        yield ProductSample(
            name=f"saturation_{a_end}_{b_end}", a=(2, 64), b=(64, 3), a_fill=a_end, b_fill=b_end,
            every_dtype=a_end == b_end,
        )  # fmt: skip
    for name, y_scale in {"small": 1e-6, "large": 1e6, "one": 1.0}.items():
        yield ProductSample(name=f"y_scale_{name}", y_scale=y_scale)
    yield ProductSample(name="y_scale_of_many_bits", a=(32, 5), b=(5, 32), y_scale=64 * MANY_BITS[0])
    yield ProductSample(name="a_scale_small", a_scale=1e-5, y_scale=1e-4)
    yield ProductSample(name="scales_of_one_element", scale_shape=(1,))
    yield ProductSample(name="per_row", a_scale="rows", every_dtype=True)
    yield ProductSample(name="per_column", b_scale="columns", every_dtype=True)
    yield ProductSample(name="per_row_and_column", a_scale="rows", b_scale="columns", every_dtype=True)
    yield ProductSample(name="per_column_square", a=(4, 4), b=(4, 4), b_scale="columns")
    yield ProductSample(name="per_row_of_batches", a=(2, 3, 4), b=(2, 4, 5), a_scale="rows")
    yield ProductSample(name="per_column_of_batches", a=(2, 3, 4), b=(2, 4, 5), b_scale="columns")
    for name, a, b in (
        ("vector_by_vector", (6,), (6,)), ("vector_by_matrix", (4,), (4, 5)), ("matrix_by_vector", (3, 4), (4,)),
        ("row_by_column", (1, 7), (7, 1)), ("one_by_one", (1, 1), (1, 1)), ("batch_of_both", (2, 3, 4), (2, 4, 5)),
        ("batch_of_a", (2, 3, 4), (4, 5)), ("batch_of_b", (3, 4), (2, 4, 5)), ("rank_4", (2, 3, 2, 4), (2, 3, 4, 5)),
        ("batch_both_ways", (3, 1, 2, 4), (2, 4, 5)), ("rank_5", (1, 2, 3, 2, 4), (1, 2, 3, 4, 5)),
        ("sum_of_nothing", (3, 0), (0, 5)), ("no_rows", (0, 4), (4, 5)), ("square_17", (17, 17), (17, 17)),
        ("square_33", (33, 33), (33, 33)), ("columns_1025", (2, 3), (3, 1025)),
    ):  # fmt: skip
        yield ProductSample(name=name, rank=len(a) if len(a) > 3 else None, a=a, b=b)
    for inner in (65, 257, 1025):
        yield ProductSample(name=f"inner_{inner}", a=(2, inner), b=(inner, 3), y_scale=4.0)
    yield expect_refusal(ProductSample(name="inner_sizes_differ", b=(5, 5)))
    yield expect_refusal(ProductSample(name="batches_differ", a=(2, 3, 4), b=(3, 4, 5)))


@dataclass(frozen=True)
class _ByVersion(Operator[ProductSample]):
    """An operator whose scales have a type constraint of their own from some version on."""

    def dtypes(self, since_version: int) -> Iterator[tuple[str, ...]]:
        constraints = schema.signature(self.name, since_version, self.domain).constraints
        varied = (*self.varied, "TS") if "TS" in constraints else self.varied
        return product(*(schema.dtypes(self.name, since_version, c, self.domain) for c in varied))


FIRST = ("uint8", "int8", "uint8")


def product_bindings(sample: ProductSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    newest = since_version == schema.since_versions("QLinearMatMul")[-1]
    if dtypes[:3] == FIRST and dtypes[3:] in ((), ("float32",)):
        if not newest or sample.a[-1:] == (0,):
            return (graph.INITIALIZER,)
        return tuple(graph.BINDINGS) if sample.every_dtype else (graph.INITIALIZER, graph.RUNTIME)
    return (graph.INITIALIZER,) if sample.every_dtype else ()


def product_node(sample: ProductSample, context: CaseContext) -> Node:
    """a, b, y of the first three dtypes, the scales of the fourth (float32); output y."""
    rng = context.rng
    a_dtype, b_dtype, y_dtype = context.dtypes[:3]
    full = context.dtypes[3] if len(context.dtypes) > 3 else np.dtype(np.float32)

    def make_operands(
        name: str, shape: tuple[int, ...], fill: Ends | None, dtype: np.dtype[Any], scale: float | str, zero: Ends
    ) -> list[Operand]:
        each = scale if isinstance(scale, str) else ""
        parameters = _parameter_shape(shape, each) if each else sample.scale_shape
        number = rng.uniform(0.01, 0.04, parameters) if each else np.full(parameters, scale)
        zeros = (
            draw_levels(parameters, dtype, rng) if each else np.full(parameters, quantization.level(zero, dtype), dtype)
        )
        values = (
            draw_levels(shape, dtype, rng) if fill is None else np.full(shape, quantization.level(fill, dtype), dtype)
        )
        return [
            Operand(name, values, parameter=name == "b"),
            Operand(f"{name}_scale", number.astype(full), parameter=True),
            Operand(f"{name}_zero_point", zeros, parameter=True),
        ]

    operands = (
        *make_operands("a", sample.a, sample.a_fill, a_dtype, sample.a_scale, sample.a_zero_point),
        *make_operands("b", sample.b, sample.b_fill, b_dtype, sample.b_scale, sample.b_zero_point),
        *make_operands("y", (), None, y_dtype, sample.y_scale, sample.y_zero_point)[1:],
    )
    return Node("QLinearMatMul", "", context.since_version, operands, ("y",))


def _parameter_shape(shape: tuple[int, ...], each: str) -> tuple[int, ...]:
    if each == "rows":
        return (shape[0],) if len(shape) == 2 else (*shape[:-1], 1)
    return (shape[1],) if len(shape) == 2 else (*shape[:-2], 1, shape[-1])


def draw_levels(shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def _align(parameter: Array, rank: int, rows: bool) -> Array:
    """One number, or one for each row (column) so that it broadcasts with a matrix of that rank."""
    if parameter.size == 1:
        return parameter.reshape(())
    return parameter[:, None] if rows and parameter.ndim == 1 and rank > 1 else parameter


def product_truth(node: Node) -> Truth:
    """The exact integer product times a_scale * b_scale / y_scale, quantised."""
    a, b = node.array("a"), node.array("b")
    if a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        return Refusal(f"the last dimension of a {a.shape} must equal the rows of b {b.shape}")
    try:
        np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        return Refusal(f"the batches {a.shape[:-2]} and {b.shape[:-2]} do not broadcast")
    a_scale, b_scale = (_align(node.array(f"{n}_scale"), v.ndim, n == "a") for n, v in (("a", a), ("b", b)))
    a_zero, b_zero = (_align(node.array(f"{n}_zero_point"), v.ndim, n == "a") for n, v in (("a", a), ("b", b)))
    y_scale, y_zero = node.array("y_scale").reshape(()), node.array("y_zero_point").reshape(())
    wide_a, wide_b = (v.astype(np.int64) - zero.astype(np.int64) for v, zero in ((a, a_zero), (b, b_zero)))
    sums = np.asarray(wide_a @ wide_b)
    if a_scale.ndim or b_scale.ndim:
        real = sums * a_scale.astype(np.float64) * b_scale.astype(np.float64) / float(y_scale)
    else:
        real = quantization.exact_ratio(
            sums, Fraction(float(a_scale)) * Fraction(float(b_scale)), Fraction(float(y_scale))
        )
    is_exact = all(bool(quantization.is_power_of_two(scale).all()) for scale in (a_scale, b_scale, y_scale))
    unit = quantization.unit(y_scale.dtype)
    # Scales in float16 may be multiplied in float16; the sum may come from dequantised, so rounded, factors.
    magnitude = np.asarray(abs(wide_a) @ abs(wide_b)) * (
        a_scale.astype(np.float64) * b_scale.astype(np.float64) / float(y_scale)
    )
    error = np.maximum(abs(real) * quantization.ROUNDINGS * unit, magnitude * 2 * quantization.SINGLE)
    fits = np.asarray(abs(wide_a) @ abs(wide_b)) <= 2**24
    error = np.where(fits & is_exact, -1.0, error)
    return Outputs((quantization.quantise("y", real, y_zero, y_zero.dtype, error),))


@dataclass(frozen=True, kw_only=True)
class ElementwiseSample(Sample):
    """QLinearAdd, QLinearSigmoid. shapes: of the inputs. scales: of the inputs and the output.

    zero_points: likewise; None leaves one out. fills: a level of every element, `every` for all levels.
    """

    shapes: tuple[tuple[int, ...], ...] = ((3, 7), (3, 7))
    scales: tuple[float, ...] = (0.02, 0.03, 0.05)
    zero_points: tuple[Ends | None, ...] = ("middle", "middle", "middle")
    fills: tuple[Ends | None, ...] = (None, None)
    scale_shape: tuple[int, ...] = ()


def add_samples() -> Iterator[ElementwiseSample]:
    yield ElementwiseSample(name="defaults", every_dtype=True)
    for at, name in enumerate("abc"):
        for end in ("low", "high"):
            zero_points: list[Ends | None] = ["middle"] * 3
            zero_points[at] = end
            yield ElementwiseSample(name=f"{name}_zero_point_{end}", zero_points=tuple(zero_points), every_dtype=True)
        omitted: list[Ends | None] = [3, 3, 3]
        omitted[at] = None
        yield ElementwiseSample(name=f"{name}_zero_point_omitted", zero_points=tuple(omitted), every_dtype=True)
    yield ElementwiseSample(name="zero_points_omitted", zero_points=(None, None, None), every_dtype=True)
    table = ElementwiseSample(name="", shapes=((256, 1), (256,)), fills=("every", "every"))
    yield replace(table, name="every_pair", every_dtype=True)
    yield ElementwiseSample(name="scales_of_many_bits", shapes=((521,),) * 2, scales=MANY_BITS, every_dtype=True)
    yield replace(table, name="every_pair_exact", scales=(0.5, 0.25, 1.0), every_dtype=True)
    yield replace(table, name="every_pair_exact_ties", scales=(0.5, 0.5, 1.0), zero_points=(3, 5, 2), every_dtype=True)
    yield replace(table, name="every_pair_equal_scales", scales=(0.1, 0.1, 0.1))
    for fill in ("low", "high"):
        yield ElementwiseSample(name=f"saturation_{fill}", fills=(fill, fill), every_dtype=True)
    for name, scales in {
        "b_negligible": (1.0, 1e-6, 1.0), "a_negligible": (1e-6, 1.0, 1.0), "small": (1e-6, 2e-6, 3e-6),
        "large": (1e6, 2e6, 3e6), "c_large": (0.1, 0.1, 1e6), "c_small": (1.0, 1.0, 1e-3),
    }.items():  # fmt: skip
        yield ElementwiseSample(name=f"scales_{name}", scales=scales)
    for name, a, b in (
        ("scalar_b", (3, 4), ()), ("scalar_a", (), (3, 4)), ("scalars", (), ()), ("row", (3, 4), (4,)),
        ("column", (3, 4), (3, 1)), ("both_ways", (3, 1), (1, 4)), ("of_rank_1_and_4", (5,), (2, 3, 4, 5)),
        ("of_rank_4_and_1", (2, 3, 4, 5), (5,)), ("one_b", (3, 4), (1,)), ("channel", (2, 3, 4, 5), (3, 1, 1)),
    ):  # fmt: skip
        yield ElementwiseSample(name=f"broadcast_{name}", rank=len(a) if len(a) > 2 else None, shapes=(a, b))
    differ = ElementwiseSample(name="broadcast_row_zero_points_differ", shapes=((3, 4), (4,)), zero_points=(3, 90, 40))
    yield differ
    yield replace(differ, name="broadcast_scalar_b_zero_points_differ", shapes=((3, 4), ()))
    for rank in (1, 3, 4, 5, 6, 8):
        shape = tuple(2 + axis % 2 for axis in range(rank))
        yield ElementwiseSample(name=f"rank_{rank}", rank=rank, shapes=(shape, shape))
    yield ElementwiseSample(name="nothing", shapes=((0, 3), (0, 3)))
    yield ElementwiseSample(name="length_1025", shapes=((1025,), (1025,)))
    yield expect_refusal(ElementwiseSample(name="shapes_differ", shapes=((3, 4), (3, 5))))


def sigmoid_samples() -> Iterator[ElementwiseSample]:
    sample = ElementwiseSample(name="", shapes=((256,),), scales=(0.05, 1 / 256), zero_points=("middle", "low"),
                            fills=("every",))  # fmt: skip
    yield replace(sample, name="every_level", every_dtype=True)
    yield replace(sample, name="every_level_y_zero_point_middle", zero_points=("middle", "middle"), every_dtype=True)
    yield replace(sample, name="every_level_y_zero_point_high", zero_points=("middle", "high"), every_dtype=True)
    for end in ("low", "high"):
        yield replace(sample, name=f"every_level_x_zero_point_{end}", zero_points=(end, "low"), every_dtype=True)
    yield replace(sample, name="x_zero_point_omitted", zero_points=(None, 3), every_dtype=True)
    yield replace(sample, name="y_zero_point_omitted", zero_points=(3, None), every_dtype=True)
    yield replace(sample, name="zero_points_omitted", zero_points=(None, None), every_dtype=True)
    yield replace(sample, name="scales_of_many_bits", scales=(MANY_BITS[1], MANY_BITS[2] / 4), every_dtype=True)
    for name, x_scale in {"small": 1e-3, "large": 1.0, "huge": 1e4}.items():
        yield replace(sample, name=f"x_scale_{name}", scales=(x_scale, 1 / 256), every_dtype=name == "large")
    for name, y_scale in {"saturates": 1 / 512, "half": 0.5, "large": 100.0, "one_step": 1 / 255}.items():
        yield replace(sample, name=f"y_scale_{name}", scales=(0.05, y_scale))
    for rank in (0, 2, 3, 4, 5, 6, 8):
        shape = tuple(2 + axis % 2 for axis in range(rank))
        yield replace(sample, name=f"rank_{rank}", rank=rank, shapes=(shape,), fills=(None,))
    yield replace(sample, name="nothing", shapes=((0,),), fills=(None,))
    yield replace(sample, name="length_1025", shapes=((1025,),), fills=(None,))


def elementwise_bindings(sample: ElementwiseSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if dtypes != ("uint8",):
        return (graph.INITIALIZER,) if sample.every_dtype else ()
    if not sample.every_dtype:
        return (graph.INITIALIZER, graph.RUNTIME)
    return tuple(graph.BINDINGS)


def _make_input(
    sample: ElementwiseSample, at: int, names: tuple[str, ...], context: CaseContext
) -> list[Operand | None]:
    """[x], scale and zero point of the input (the output: no x) at that place."""
    dtype, zero = context.dtype, sample.zero_points[at]
    name = names[at]
    scale = np.full(sample.scale_shape, sample.scales[at], np.float32)
    parameters: list[Operand | None] = [Operand(f"{name}_scale", scale, parameter=True), None]
    if zero is not None:
        level = quantization.level(zero, dtype)
        parameters[1] = Operand(f"{name}_zero_point", np.full(sample.scale_shape, level, dtype), parameter=True)
    if at == len(sample.shapes):
        return parameters
    shape, fill = sample.shapes[at], sample.fills[at]
    if fill == "every":
        info = np.iinfo(dtype)
        values = np.resize(np.arange(info.min, int(info.max) + 1).astype(dtype), shape)
    elif fill is not None:
        values = np.full(shape, quantization.level(fill, dtype), dtype)
    else:
        values = draw_levels(shape, dtype, context.rng)
    return [Operand(name, values), *parameters]


def make_elementwise_node(operator: str, names: tuple[str, ...]) -> Any:
    def node(sample: ElementwiseSample, context: CaseContext) -> Node:
        """Each input of T with its float32 scale and zero point, then those of the output."""
        operands = [operand for at in range(len(names)) for operand in _make_input(sample, at, names, context)]
        while operands[-1] is None:
            operands.pop()
        return Node(operator, MICROSOFT, context.since_version, tuple(operands), names[-1:])

    return node


def read_real(node: Node, name: str) -> tuple[Array, float]:
    """(level - zero point, int64; scale) of an input."""
    zero = node.value(f"{name}_zero_point")
    return (
        node.array(name).astype(np.int64) - (0 if zero is None else int(zero.reshape(()))),
        float(node.array(f"{name}_scale").reshape(())),
    )


def read_output(node: Node, name: str) -> tuple[float, int]:
    zero = node.value(f"{name}_zero_point")
    return float(node.array(f"{name}_scale").reshape(())), 0 if zero is None else int(zero.reshape(()))


def add_truth(node: Node) -> Truth:
    """((A - A_zero_point) * A_scale + (B - B_zero_point) * B_scale) / C_scale, quantised."""
    (a, a_scale), (b, b_scale) = read_real(node, "A"), read_real(node, "B")
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return Refusal(f"the shapes {a.shape} and {b.shape} do not broadcast")
    dtype = node.array("A").dtype
    c_scale, zero_point = read_output(node, "C")
    left, right = a * a_scale, b * b_scale
    real = np.asarray((left + right) / c_scale)
    magnitude = np.asarray((abs(left) + abs(right)) / c_scale)
    scales = np.array([a_scale, b_scale, c_scale])
    near = max(a_scale, b_scale) / min(a_scale, b_scale) <= 2**8
    is_exact = near and bool(quantization.is_power_of_two(scales).all())
    error = np.where(is_exact, -1.0, magnitude * (quantization.ROUNDINGS + 1) * quantization.SINGLE)
    return Outputs((quantization.quantise("C", real, zero_point, dtype, error),))


def sigmoid_truth(node: Node) -> Truth:
    """Sigmoid of (X - X_zero_point) * X_scale, in steps of Y_scale; the function's own error is WebNN's tolerance."""
    x, x_scale = read_real(node, "X")
    dtype = node.array("X").dtype
    y_scale, zero_point = read_output(node, "Y")
    value = x * x_scale
    activation = Activation("Sigmoid")
    result = activation.of(value)
    roundings = 2 * activation.function.ulps[0] + quantization.ROUNDINGS
    slope = result * (1 - result) * abs(value)
    error = (result * roundings + slope) * quantization.SINGLE / y_scale
    return Outputs((quantization.quantise("Y", result / y_scale, zero_point, dtype, error),))


@dataclass(frozen=True, kw_only=True)
class ConcatSample(Sample):
    """QLinearConcat. shapes, scales, zero_points: of each input. y_scale, y_zero_point: of the result."""

    shapes: tuple[tuple[int, ...], ...] = ((2, 3), (2, 4))
    scales: tuple[float, ...] = (0.02, 0.05)
    zero_points: tuple[Ends, ...] = ("middle", 3)
    axis: int = 1
    y_scale: float = 0.04
    y_zero_point: Ends = "middle"
    scale_shape: tuple[int, ...] = ()


def concat_samples() -> Iterator[ConcatSample]:
    yield ConcatSample(name="defaults", every_dtype=True)
    same = ConcatSample(name="", scales=(0.04, 0.04), zero_points=("middle", "middle"))
    yield replace(same, name="all_alike", every_dtype=True)
    yield replace(same, name="alike_but_y", y_scale=0.03, every_dtype=True)
    yield replace(same, name="alike_but_y_zero_point", y_zero_point=9, every_dtype=True)
    yield replace(same, name="one_as_y", scales=(0.04, 0.01), zero_points=("middle", "low"))
    for end in ("low", "high"):
        yield ConcatSample(name=f"y_zero_point_{end}", y_zero_point=end, every_dtype=True)
        yield ConcatSample(name=f"zero_points_{end}", zero_points=(end, end), every_dtype=True)
    whole = ConcatSample(name="", shapes=((256,), (256,)), axis=0)
    yield replace(whole, name="every_level")
    yield replace(whole, name="exact_ties", shapes=((521,), (521,)), scales=(0.5, 0.25), y_scale=1.0, every_dtype=True)
    yield replace(whole, name="exact_ties_odd_zero_points", shapes=((300,), (300,)), scales=(0.5, 0.25), y_scale=1.0,
                  zero_points=(1, 3), y_zero_point=2)  # fmt: skip
    yield replace(whole, name="scales_of_many_bits", scales=MANY_BITS[:2], y_scale=MANY_BITS[2], every_dtype=True)
    yield replace(whole, name="saturation", scales=(1.0, 2.0), y_scale=0.01, every_dtype=True)
    yield replace(whole, name="y_scale_large", y_scale=1e6)
    for axis in (0, 1, 2, -1, -2, -3):
        first, second = [2, 3, 4], [2, 3, 4]
        second[axis] = 5
        name = f"axis_{'minus_' if axis < 0 else ''}{abs(axis)}"
        yield ConcatSample(name=name, shapes=(tuple(first), tuple(second)), axis=axis, every_dtype=axis in (0, -1))
    yield ConcatSample(name="one_input", shapes=((2, 3),), scales=(0.02,), zero_points=(5,), every_dtype=True)
    yield ConcatSample(name="one_input_as_y", shapes=((2, 3),), scales=(0.04,), zero_points=("middle",))
    yield ConcatSample(
        name="three_inputs", shapes=((2, 3), (2, 1), (2, 4)), scales=(0.02, 0.3, 0.01), zero_points=(1, 2, 3)
    )
    # Ratios of scales that are exact, and even zero points: no element may be a step off.
    exact = ConcatSample(name="", scales=(0.5, 2.0, 0.25), zero_points=(2, 4, 6), y_scale=1.0, y_zero_point=8)
    for axis in (0, 1, 2, -1, -2, -3):
        three = [[2, 3, 4], [2, 3, 4], [2, 3, 4]]
        three[1][axis], three[2][axis] = 1, 5
        name = f"three_inputs_axis_{'minus_' if axis < 0 else ''}{abs(axis)}"
        yield replace(exact, name=name, shapes=tuple(map(tuple, three)), axis=axis, every_dtype=axis in (0, -1))
    yield replace(exact, name="four_inputs_axis_0_alike", shapes=((3, 3),) * 4, scales=(0.5, 2.0, 0.25, 4.0),
                  zero_points=(2, 4, 6, 0), axis=0)  # fmt: skip
    yield replace(exact, name="three_inputs_rank_5_axis_2", rank=5, shapes=((2, 1, 3, 2, 2),) * 3, axis=2)
    many = 17
    yield ConcatSample(
        name="many_inputs", shapes=((2, 3),) * many, scales=tuple(0.01 * (1 + i) for i in range(many)),
        zero_points=tuple(range(many)), y_scale=0.1,
    )  # fmt: skip
    yield ConcatSample(name="a_size_0", shapes=((2, 0), (2, 4)))
    yield ConcatSample(name="nothing", shapes=((0, 3), (0, 4)))
    yield ConcatSample(name="scales_of_one_element", scale_shape=(1,))
    for rank in (4, 5, 8):
        shape = tuple(2 + axis % 2 for axis in range(rank))
        yield ConcatSample(name=f"rank_{rank}_first_axis", rank=rank, shapes=(shape, shape), axis=0)
        yield ConcatSample(name=f"rank_{rank}_last_axis", rank=rank, shapes=(shape, shape), axis=-1)
    yield ConcatSample(name="length_1025", shapes=((1025,), (3,)), axis=0)
    yield expect_refusal(ConcatSample(name="sizes_differ", shapes=((2, 3), (3, 3))))
    yield expect_refusal(ConcatSample(name="ranks_differ", shapes=((2, 3), (2, 3, 1))))
    yield expect_refusal(ConcatSample(name="axis_at_rank", axis=2))


def concat_bindings(sample: ConcatSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if dtypes != ("uint8",):
        return (graph.INITIALIZER,) if sample.every_dtype else ()
    return tuple(graph.BINDINGS) if sample.every_dtype else (graph.INITIALIZER, graph.RUNTIME)


def concat_node(sample: ConcatSample, context: CaseContext) -> Node:
    """Y_scale float32, Y_zero_point; then x, scale and zero point of each input (inputs_2, inputs_3, ...)."""
    dtype, rng = context.dtype, context.rng

    def parameters(names: tuple[str, str], scale: float, zero_point: Ends) -> list[Operand]:
        level = quantization.level(zero_point, dtype)
        return [
            Operand(names[0], np.full(sample.scale_shape, scale, np.float32), parameter=True),
            Operand(names[1], np.full(sample.scale_shape, level, dtype), parameter=True),
        ]

    operands = parameters(("Y_scale", "Y_zero_point"), sample.y_scale, sample.y_zero_point)
    for shape, scale, zero_point in zip(sample.shapes, sample.scales, sample.zero_points, strict=True):
        first = len(operands)
        operands.append(Operand(f"inputs_{first}", draw_levels(shape, dtype, rng)))
        operands += parameters((f"inputs_{first + 1}", f"inputs_{first + 2}"), scale, zero_point)
    attributes: dict[str, Attribute] = {"axis": sample.axis}
    return Node("QLinearConcat", MICROSOFT, context.since_version, tuple(operands), ("Y",), attributes)


def concat_truth(node: Node) -> Truth:
    """Each input dequantised, all joined along the axis, the result quantised."""
    values = [operand.value for operand in node.inputs if operand is not None]
    y_scale, y_zero = float(values[0].reshape(())), int(values[1].reshape(()))
    tensors, scales, zeros = values[2::3], values[3::3], values[4::3]
    axis, rank = node.integer("axis", 0), tensors[0].ndim
    if not -rank <= axis < rank:
        return Refusal(f"axis {axis} must be within [{-rank}, {rank - 1}]")
    others = {tuple(size for at, size in enumerate(t.shape) if at != axis % rank) for t in tensors}
    if len({t.ndim for t in tensors}) > 1 or len(others) > 1:
        return Refusal(f"the shapes {[t.shape for t in tensors]} differ beside axis {axis}")
    reals, errors = [], []
    for tensor, scale, zero in zip(tensors, scales, zeros, strict=True):
        levels = tensor.astype(np.int64) - int(zero.reshape(()))
        real = quantization.exact_ratio(levels, Fraction(float(scale.reshape(()))), Fraction(y_scale))
        is_exact = bool(quantization.is_power_of_two(np.array([float(scale.reshape(())), y_scale])).all())
        reals.append(real)
        errors.append(np.where(is_exact, -1.0, abs(real) * quantization.ROUNDINGS * quantization.SINGLE))
    joined, error = np.concatenate(reals, axis), np.concatenate(errors, axis)
    return Outputs((quantization.quantise("Y", joined, y_zero, values[1].dtype, error),))


def _parameter(node: Node, name: str, rank: int = 0, rows: bool = False) -> tuple[TensorDesc, Array]:
    value = node.array(name)
    if value.ndim == 1 and value.size > 1 and rank:
        value = _align(value, rank, rows) if rows else value[None, :]
    return lowering.broadcast(value)


def product_lower(node: Node) -> Lowering | None:
    """DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY; None for scales in float16, which it lacks, and nothing to multiply."""
    if isinstance(product_truth(node), Refusal) or node.array("y_scale").dtype != np.float32:
        return None
    matrices = lowering.as_matrices(node.array("a"), node.array("b"))
    if matrices is None:
        return None
    a, b, sizes = matrices
    tensors = [
        lowering.broadcast(a),
        *(_parameter(node, f"a_{kind}", a.ndim, rows=True) for kind in ("scale", "zero_point")),
        lowering.broadcast(b),
        *(_parameter(node, f"b_{kind}", b.ndim) for kind in ("scale", "zero_point")),
        *(_parameter(node, f"y_{kind}") for kind in ("scale", "zero_point")),
    ]
    output = lowering.result(node.array("y_zero_point").dtype, sizes)
    desc = QuantizedLinearMatrixMultiply(*cast(Any, [*(desc for desc, _ in tensors), output]))
    return Lowering(desc, tuple(view for _, view in tensors))


def add_lower(node: Node) -> Lowering | None:
    """DML_ELEMENT_WISE_QUANTIZED_LINEAR_ADD, A and B broadcast to the result; None for nothing to add."""
    judged = add_truth(node)
    if isinstance(judged, Refusal) or not isinstance(judged, Outputs) or not judged.outputs[0].value.size:
        return None
    sizes = judged.outputs[0].value.shape

    def tensors(name: str) -> list[tuple[TensorDesc | None, Array | None]]:
        return [lowering.broadcast(node.array(f"{name}_scale")), lowering.optional(node.value(f"{name}_zero_point"))]

    described = [
        lowering.broadcast(node.array("A"), sizes), *tensors("A"),
        lowering.broadcast(node.array("B"), sizes), *tensors("B"), *tensors("C"),
    ]  # fmt: skip
    output = lowering.result(node.array("A").dtype, sizes)
    desc = ElementWiseQuantizedLinearAdd(*cast(Any, [*(desc for desc, _ in described), output]))
    return Lowering(desc, tuple(view for _, view in described))


OPTIONAL_IO: Mapping[str, tuple[OptionalIO, ...]] = {
    "com.microsoft::QLinearAdd": (
        OptionalIO("defaults", inputs=each_alone("A_zero_point", "B_zero_point", "C_zero_point")),
    ),
}

OPERATORS = declare(
    (
    _ByVersion(
        "QLinearMatMul", product_samples, product_bindings, product_node, product_truth, product_lower,
        varied=("T1", "T2", "T3"),
    ),
    Operator(
        "QLinearAdd", add_samples, elementwise_bindings, make_elementwise_node("QLinearAdd", ("A", "B", "C")),
        add_truth, add_lower, varied=("T",), domain=MICROSOFT,
    ),
    Operator(
        "QLinearSigmoid", sigmoid_samples, elementwise_bindings, make_elementwise_node("QLinearSigmoid", ("X", "Y")),
        sigmoid_truth, GRAPH, varied=("T",), domain=MICROSOFT,
    ),
    Operator(
        "QLinearConcat", concat_samples, concat_bindings, concat_node, concat_truth, GRAPH,
        varied=("T8",), domain=MICROSOFT,
    ),
),
    optional_io=OPTIONAL_IO,
)  # fmt: skip
