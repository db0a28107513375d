"""MatMulInteger-10, com.microsoft::MatMulIntegerToFloat and ::DynamicQuantizeMatMul ->
DML_MATRIX_MULTIPLY_INTEGER and DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC.

Sources: the page MatMulInteger-10; ONNX Runtime's ContribOperators.md for the others; DmlOperatorMatMulInteger.cpp,
DmlOperatorMatMulIntegerToFloat.cpp and DmlOperatorDynamicQuantizeMatMul.cpp for the lowering.

DynamicQuantizeMatMul is judged with its two steps: where an element of A lies on a rounding boundary within float32
error, one step of it may be missing in the product.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.citation import statement
from epcheck.generators.declaration.interaction import Interaction, Literal, Random
from epcheck.generators.declaration.optional_io import OptionalIO, each_alone
from epcheck.generators.directml import TensorDesc, lowering
from epcheck.generators.directml.descriptions.matmul.matrix_multiply import (
    MatrixMultiplyInteger,
    MatrixMultiplyIntegerToFloat,
)
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.node import Node, Operand
from epcheck.generators.operator import GRAPH, Operator, declare
from epcheck.generators.operators.quantized import dynamic_quantize
from epcheck.generators.oracle_math import quantization
from epcheck.generators.oracle_math.quantization import Ends
from epcheck.generators.truth import Output, Outputs, Refusal, Truth, Ulp

DECLARES = (
    "MatMulInteger",
    "com.microsoft::MatMulIntegerToFloat",
    "com.microsoft::DynamicQuantizeMatMul",
)

MICROSOFT = "com.microsoft"
Parameter = Ends | tuple[int, ...] | None
"""A zero point: one level; the shape of a tensor of random ones; None leaves it out."""


@dataclass(frozen=True, kw_only=True)
class IntegerSample(Sample):
    """a, b: shapes. a_fill, b_fill: a level for all elements; None is random.

    a_zero_point, b_zero_point: see `Parameter`. b_scale: the shape of b_scale. bias: whether there is one.
    """

    a: tuple[int, ...] = (3, 4)
    b: tuple[int, ...] = (4, 5)
    a_zero_point: Parameter = "middle"
    b_zero_point: Parameter = "middle"
    a_fill: Ends | None = None
    b_fill: Ends | None = None
    b_scale: tuple[int, ...] = ()
    a_scale: tuple[int, ...] = ()
    bias: tuple[int, ...] | None = None
    values: str = "random"


def samples() -> Iterator[IntegerSample]:
    """MatMulInteger."""
    yield from _zero_points()
    yield from _products()
    yield IntegerSample(name="a_zero_point_per_row", a_zero_point=(3,), every_dtype=True)
    yield IntegerSample(name="a_zero_point_per_row_alone", a_zero_point=(3,), b_zero_point=None, every_dtype=True)
    yield IntegerSample(name="b_zero_point_per_column_alone", a_zero_point=None, b_zero_point=(5,), every_dtype=True)
    yield IntegerSample(name="a_zero_point_per_row_of_batches", a=(2, 3, 4), b=(2, 4, 5), a_zero_point=(2, 3, 1))
    yield IntegerSample(name="b_zero_point_per_column", b_zero_point=(5,), every_dtype=True)
    yield IntegerSample(name="b_zero_point_per_column_square", b=(4, 4), b_zero_point=(4,))
    yield IntegerSample(name="b_zero_point_per_column_of_batches", a=(2, 3, 4), b=(2, 4, 5), b_zero_point=(2, 1, 5))
    yield IntegerSample(name="zero_points_per_row_and_column", a_zero_point=(3,), b_zero_point=(5,), every_dtype=True)
    yield expect_refusal(IntegerSample(name="a_zero_points_of_wrong_length", a_zero_point=(2,)))
    yield expect_refusal(IntegerSample(name="b_zero_points_of_wrong_length", b_zero_point=(3,)))


def _zero_points() -> Iterator[IntegerSample]:
    yield IntegerSample(name="zero_points_omitted", a_zero_point=None, b_zero_point=None, every_dtype=True)
    yield IntegerSample(name="zero_points", every_dtype=True)
    yield IntegerSample(name="a_zero_point_only", a_zero_point=3, b_zero_point=None, every_dtype=True)
    yield IntegerSample(name="b_zero_point_only", a_zero_point=None, b_zero_point=3, every_dtype=True)
    for end in ("low", "high"):
        yield IntegerSample(name=f"zero_points_{end}", a_zero_point=end, b_zero_point=end, every_dtype=True)
    yield IntegerSample(name="zero_points_at_both_ends", a_zero_point="low", b_zero_point="high")
    yield IntegerSample(name="zero_points_of_one_element", a_zero_point=(1,), b_zero_point=(1,))


def _products() -> Iterator[IntegerSample]:
    for a_end in ("low", "high"):
        for b_end in ("low", "high"):
            yield IntegerSample(
                name=f"largest_products_{a_end}_{b_end}", a=(2, 64), b=(64, 3), a_fill=a_end, b_fill=b_end,
                a_zero_point="high" if a_end == "low" else "low", b_zero_point="high" if b_end == "low" else "low",
                every_dtype=a_end == b_end,
            )  # fmt: skip
    yield IntegerSample(name="pairs_beyond_int16", a=(2, 64), b=(64, 3), a_fill="high", b_fill="high",
                        a_zero_point=None, b_zero_point=None, every_dtype=True)  # fmt: skip
    yield IntegerSample(name="vector_by_vector", a=(6,), b=(6,))
    yield IntegerSample(name="vector_by_matrix", a=(4,))
    yield IntegerSample(name="matrix_by_vector", b=(4,))
    yield IntegerSample(name="row_by_column", a=(1, 7), b=(7, 1))
    yield IntegerSample(name="one_by_one", a=(1, 1), b=(1, 1))
    yield IntegerSample(name="batch_of_both", a=(2, 3, 4), b=(2, 4, 5), every_dtype=True)
    yield IntegerSample(name="batch_of_a", a=(2, 3, 4))
    yield IntegerSample(name="batch_of_b", b=(2, 4, 5))
    yield IntegerSample(name="batch_both_ways", a=(3, 1, 2, 4), b=(2, 4, 5))
    yield IntegerSample(name="rank_4", rank=4, a=(2, 3, 2, 4), b=(2, 3, 4, 5))
    yield IntegerSample(name="rank_5", a=(1, 2, 3, 2, 4), b=(1, 2, 3, 4, 5))
    yield IntegerSample(name="sum_of_nothing", a=(3, 0), b=(0, 5))
    yield IntegerSample(name="no_rows", a=(0, 4))
    yield IntegerSample(name="no_columns", b=(4, 0))
    for size in (16, 17, 33):
        yield IntegerSample(name=f"square_{size}", a=(size, size), b=(size, size))
    for inner in (3, 63, 65, 257, 1025):
        yield IntegerSample(name=f"inner_{inner}", a=(2, inner), b=(inner, 3))
    yield IntegerSample(name="columns_1025", a=(2, 3), b=(3, 1025))
    yield IntegerSample(name="rows_1025", a=(1025, 3), b=(3, 2))
    yield expect_refusal(IntegerSample(name="inner_sizes_differ", b=(5, 5)))
    yield expect_refusal(IntegerSample(name="batches_differ", a=(2, 3, 4), b=(3, 4, 5)))


def to_float_samples() -> Iterator[IntegerSample]:
    """MatMulIntegerToFloat."""
    yield from _zero_points()
    yield from _products()
    yield IntegerSample(name="bias", bias=(5,), every_dtype=True)
    yield IntegerSample(name="bias_without_zero_points", bias=(5,), a_zero_point=None, b_zero_point=None)
    yield IntegerSample(name="bias_batch", a=(2, 3, 4), b=(2, 4, 5), bias=(5,))
    yield from _per_column()
    yield IntegerSample(name="a_scale_of_one_element", a_scale=(1,))
    yield expect_refusal(IntegerSample(name="bias_of_wrong_length", bias=(4,)))


def _per_column() -> Iterator[IntegerSample]:
    sample = IntegerSample(name="per_column", b_scale=(5,), b_zero_point=(5,))
    yield replace(sample, every_dtype=True)
    yield replace(sample, name="per_column_bias", bias=(5,))
    yield replace(sample, name="per_column_square", b=(4, 4), b_scale=(4,), b_zero_point=(4,))
    yield replace(sample, name="per_column_scale_zero_point_omitted", b_zero_point=None, every_dtype=True)
    yield replace(sample, name="per_column_batch", a=(2, 3, 4))
    yield IntegerSample(name="b_scale_of_one_element", b_scale=(1,))
    yield expect_refusal(IntegerSample(name="b_scales_of_wrong_length", b_scale=(3,)))


def dynamic_samples() -> Iterator[IntegerSample]:
    """DynamicQuantizeMatMul; `steps` makes A multiples of a power of two that is its scale."""
    for sample in (*_zero_points(), *_products(), *_per_column()):
        if sample.a_fill is None and sample.a_zero_point in ("middle", None, (1,)) and sample.a != (3, 0):
            yield sample
            if sample.every_dtype:
                yield replace(sample, name=f"{sample.name}_whole_steps", values="steps")
    yield IntegerSample(name="bias", bias=(5,), every_dtype=True)
    yield IntegerSample(name="bias_whole_steps", bias=(5,), values="steps", every_dtype=True)
    yield IntegerSample(name="bias_batch", a=(2, 3, 4), bias=(5,))
    yield IntegerSample(name="a_positive", values="positive", every_dtype=True)
    yield IntegerSample(name="a_negative", values="negative", every_dtype=True)
    yield expect_refusal(IntegerSample(name="bias_of_wrong_length", bias=(4,)))


FIRST = {"MatMulInteger": ("uint8", "int8"), "MatMulIntegerToFloat": ("float32", "uint8", "int8"),
         "DynamicQuantizeMatMul": ("int8",)}  # fmt: skip


@dataclass(frozen=True)
class _Family:
    """What depends on the operator."""

    name: str
    domain: str = ""

    def bindings(self, sample: IntegerSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        if dtypes != FIRST[self.name]:
            return (graph.INITIALIZER,) if sample.every_dtype else ()
        if sample.a[-1:] == (0,):
            return (graph.INITIALIZER,)  # a wrong sum of nothing costs many runs to confirm
        return tuple(graph.BINDINGS) if sample.every_dtype else (graph.INITIALIZER, graph.RUNTIME)

    def node(self, sample: IntegerSample, context: CaseContext) -> Node:
        """A, B of 8 bits (A float32 in DynamicQuantizeMatMul); scales, zero points and bias after them; output Y."""
        rng = context.rng
        dynamic = self.name == "DynamicQuantizeMatMul"
        to_float = self.name == "MatMulIntegerToFloat"
        b_dtype = context.dtypes[-1]
        a_dtype = np.dtype(np.uint8) if dynamic else context.dtypes[-2]
        full = context.dtypes[0] if to_float else np.dtype(np.float32)
        a = _draw_full(sample, rng) if dynamic else _levels(sample.a, sample.a_fill, a_dtype, rng)
        zero_points = (
            _zero_point("a_zero_point", sample.a_zero_point, a_dtype, rng),
            _zero_point("b_zero_point", sample.b_zero_point, b_dtype, rng),
        )
        b_scale = Operand("b_scale", rng.uniform(0.01, 0.03, sample.b_scale).astype(full), parameter=True)
        a_scale = Operand("a_scale", rng.uniform(0.01, 0.03, sample.a_scale).astype(full), parameter=True)
        operands: list[Operand | None] = [
            Operand("A", a),
            Operand("B", _levels(sample.b, sample.b_fill, b_dtype, rng), parameter=True),
        ]
        if to_float:
            operands += [a_scale, b_scale, *zero_points]
        else:
            operands += [b_scale, zero_points[1]] if dynamic else zero_points
        if sample.bias is not None:
            operands.append(Operand("bias", rng.uniform(-2, 2, sample.bias).astype(full), parameter=True))
        while operands[-1] is None:
            operands.pop()
        return Node(self.name, self.domain, context.since_version, tuple(operands), ("Y",))


def _levels(shape: tuple[int, ...], fill: Ends | None, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    info = np.iinfo(dtype)
    if fill is None:
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return np.full(shape, quantization.level(fill, dtype), dtype)


def _draw_full(sample: IntegerSample, rng: np.random.Generator) -> Array:
    """A of DynamicQuantizeMatMul."""
    match sample.values:
        case "steps":
            steps = rng.integers(-100, 156, sample.a).astype(np.float32)
            flat = steps.reshape(-1)
            flat[:1], flat[-1:] = -100, 155
            return steps / 64
        case "positive":
            return rng.uniform(0.5, 2, sample.a).astype(np.float32)
        case "negative":
            return rng.uniform(-2, -0.5, sample.a).astype(np.float32)
    values = rng.uniform(-2, 2, sample.a).astype(np.float32)
    values.reshape(-1)[:2] = np.array([-1.9, 2.1], np.float32)[: values.size]
    return values


def _zero_point(name: str, zero_point: Parameter, dtype: np.dtype[Any], rng: np.random.Generator) -> Operand | None:
    if zero_point is None:
        return None
    if isinstance(zero_point, tuple):
        return Operand(name, _levels(zero_point, None, dtype, rng), parameter=True)
    return Operand(name, np.array(quantization.level(zero_point, dtype), dtype), parameter=True)


def _center(node: Node, name: str, side: str, values: Array | None = None) -> Array | str:
    """The matrix less its zero point (one, one per row of A, one per column of B), int64; or the rule it breaks."""
    matrix = node.array(name) if values is None else values
    zero_point = node.value(f"{side}_zero_point")
    wide = matrix.astype(np.int64)
    if zero_point is None or zero_point.size == 1:
        return wide - (0 if zero_point is None else int(zero_point.reshape(())))
    vector = wide.shape[-2] if side == "a" else wide.shape[-1]
    if zero_point.shape == (vector,):
        zero = zero_point.astype(np.int64)
        return wide - (zero[:, None] if side == "a" else zero)
    whole = (*wide.shape[:-1], 1) if side == "a" else (*wide.shape[:-2], 1, wide.shape[-1])
    if zero_point.shape == whole:
        return wide - zero_point.astype(np.int64)
    return f"{side}_zero_point has shape {zero_point.shape} for a matrix of shape {wide.shape}"


def _broken_rule(a: tuple[int, ...], b: tuple[int, ...]) -> str | None:
    if a[-1] != b[-2 if len(b) > 1 else 0]:
        return f"the last dimension of A {a} must equal the rows of B {b}"
    try:
        np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        return f"the batches {a[:-2]} and {b[:-2]} do not broadcast"
    return None


def _broken_vector(node: Node, name: str, columns: int) -> str | None:
    value = node.value(name)
    if value is not None and value.shape not in ((), (1,), (columns,)):
        return f"{name} has shape {value.shape}; B has {columns} columns"
    return None


def _broken_rule_of_floats(node: Node) -> str | None:
    """Of an operator that scales the product and adds a bias."""
    shape = node.array("B").shape
    columns = shape[-1] if len(shape) > 1 else 1
    broken = _broken_rule(node.array("A").shape, shape)
    broken = broken or _broken_vector(node, "b_scale", columns) or _broken_vector(node, "b_zero_point", columns)
    bias = node.value("bias")
    if broken is None and bias is not None and bias.shape != (columns,):
        return f"bias has shape {bias.shape}; B has {columns} columns"
    return broken


def truth(node: Node) -> Truth:
    """MatMulInteger: the exact product; no sum here leaves int32."""
    if broken := _broken_rule(node.array("A").shape, node.array("B").shape):
        return Refusal(broken)
    a, b = _center(node, "A", "a"), _center(node, "B", "b")
    for problem in (a, b):
        if isinstance(problem, str):
            return Refusal(problem)
    assert not isinstance(a, str)
    assert not isinstance(b, str)
    return Outputs((Output("Y", np.asarray(a @ b).astype(np.int32)),))


def truth_to_float(node: Node) -> Truth:
    """(A - a_zero_point) (B - b_zero_point) * a_scale * b_scale + bias."""
    if broken := _broken_rule_of_floats(node):
        return Refusal(broken)
    a, b = _center(node, "A", "a"), _center(node, "B", "b")
    assert not isinstance(a, str)
    assert not isinstance(b, str)
    factor = node.array("a_scale").astype(np.float64) * node.array("b_scale").astype(np.float64)
    return Outputs((_rescale(a, b, factor, node.value("bias"), node.array("b_scale").dtype),))


def _rescale(
    a: Array, b: Array, factor: Array, bias: Array | None, dtype: np.dtype[Any], slack: Array | None = None
) -> Output:
    """a b (int64) * factor + bias. Each term may be rounded when it is dequantised: a, b and their product.

    slack: float64 of a's shape, the steps that each element of a may miss.
    """
    if factor.ndim and factor.size == 1:
        factor = factor.reshape(())
    exact, magnitude = (a @ b) * factor, (abs(a) @ abs(b)) * factor
    if bias is not None:
        exact, magnitude = exact + bias.astype(np.float64), magnitude + abs(bias.astype(np.float64))
    bound = bounds.bound_sum(a.shape[-1] + 1, dtype, np.asarray(magnitude), roundings=4)
    if slack is not None and slack.any():
        missing = np.asarray((slack @ abs(b).astype(np.float64)) * factor)
        floor = np.asarray(bound.floor) + missing
        missed = statement("elements of A on a rounding boundary may miss a step")
        bound = Ulp(bound.bound, (*bound.citations, missed), np.asarray(floor))
    return bounds.round_output("Y", np.asarray(exact), dtype, bound)


def truth_dynamic_matmul(node: Node) -> Truth:
    """DynamicQuantizeLinear of A, then MatMulIntegerToFloat."""
    if broken := _broken_rule_of_floats(node):
        return Refusal(broken)
    b = _center(node, "B", "b")
    assert not isinstance(b, str)
    factor_of_b = node.array("b_scale").astype(np.float64)
    if not node.array("A").size:
        empty = np.zeros(np.matmul(node.array("A"), b).shape, np.float32)
        return Outputs((Output("Y", empty),))
    dynamic = dynamic_quantize.quantise(node.array("A"))
    a = dynamic.y.value.astype(np.int64) - int(dynamic.y_zero_point.value)
    slack = np.asarray(dynamic.y.bound.allowed, np.float64)  # type: ignore[union-attr]
    return Outputs((_rescale(a, b, factor_of_b * dynamic.y_scale, node.value("bias"), np.dtype(np.float32), slack),))


def _parameter(node: Node, name: str, side: str) -> tuple[TensorDesc | None, Array | None]:
    """A scale or zero point: one element, one for each row of A [M, 1], or one for each column of B [1, N]."""
    value = node.value(name)
    if value is not None and value.ndim == 1 and value.size > 1:
        value = value[:, None] if side == "a" else value[None, :]
    return lowering.optional(value)


def lower(node: Node) -> Lowering | None:
    """DML_MATRIX_MULTIPLY_INTEGER or DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT; None for nothing to multiply."""
    judged = truth_to_float(node) if node.op_type == "MatMulIntegerToFloat" else truth(node)
    matrices = None if isinstance(judged, Refusal) else lowering.as_matrices(node.array("A"), node.array("B"))
    if matrices is None:
        return None
    a, b, sizes = matrices
    (a_desc, a_view), (b_desc, b_view) = lowering.broadcast(a), lowering.broadcast(b)
    (a_zero, a_zero_view), (b_zero, b_zero_view) = (_parameter(node, f"{n}_zero_point", n) for n in "ab")
    if node.op_type == "MatMulInteger":
        output = lowering.result(np.dtype(np.int32), sizes)
        return Lowering(
            MatrixMultiplyInteger(a_desc, a_zero, b_desc, b_zero, output), (a_view, a_zero_view, b_view, b_zero_view)
        )
    (a_scale, a_scale_view), (b_scale, b_scale_view) = (_parameter(node, f"{n}_scale", n) for n in "ab")
    assert a_scale is not None
    assert b_scale is not None
    bias, bias_view = lowering.optional(node.value("bias"), sizes)
    output = lowering.result(node.array("a_scale").dtype, sizes)
    desc = MatrixMultiplyIntegerToFloat(a_desc, a_scale, a_zero, b_desc, b_scale, b_zero, bias, output)
    return Lowering(desc, (a_view, a_scale_view, a_zero_view, b_view, b_scale_view, b_zero_view, bias_view))


_INTEGER, _TO_FLOAT, _DYNAMIC = (
    _Family("MatMulInteger"),
    _Family("MatMulIntegerToFloat", MICROSOFT),
    _Family("DynamicQuantizeMatMul", MICROSOFT),
)

INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "com.microsoft::MatMulIntegerToFloat": (
        Interaction("zero_points_negative", (
            Literal((-128, -5, 0, 7, 9, 127), "int8", (2, 3)), Literal((-9, -1, 3, 60, 126, -128), "int8", (3, 2)),
            Literal(0.05), Literal(0.04), Literal(-3, "int8"), Literal(-5, "int8"),
        ), dtype="float32-int8-int8"),
    ),
    "MatMulInteger": (
        Interaction("zero_points_of_columns_of_a_batch",
                (Random((2, 3, 4), 0, 255, "uint8"), Random((4, 5), 0, 255, "uint8"), Literal(7, "uint8"),
                 Literal([3, 9, 0, 250, 17], "uint8")), {}, "uint8-uint8"),
    ),
}  # fmt: skip

OPTIONAL_IO: Mapping[str, tuple[OptionalIO, ...]] = {
    "com.microsoft::MatMulIntegerToFloat": (
        OptionalIO("bias", inputs=each_alone("a_zero_point", "b_zero_point", "bias")),
    ),
    "com.microsoft::DynamicQuantizeMatMul": (OptionalIO("bias", inputs=each_alone("b_zero_point", "bias")),),
}

OPERATORS = declare(
    (
    Operator("MatMulInteger", samples, _INTEGER.bindings, _INTEGER.node, truth, lower, varied=("T1", "T2")),
    Operator(
        "MatMulIntegerToFloat", to_float_samples, _TO_FLOAT.bindings, _TO_FLOAT.node, truth_to_float, lower,
        varied=("T3", "T1", "T2"), domain=MICROSOFT,
    ),
    Operator(
        "DynamicQuantizeMatMul", dynamic_samples, _DYNAMIC.bindings, _DYNAMIC.node, truth_dynamic_matmul, GRAPH,
        varied=("T2",), domain=MICROSOFT,
    ),
),
    interactions=INTERACTIONS, optional_io=OPTIONAL_IO,
)  # fmt: skip
