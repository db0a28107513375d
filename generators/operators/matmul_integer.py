"""MatMulInteger-10, com.microsoft::MatMulIntegerToFloat, ::DynamicQuantizeMatMul, ::MatMulNBits and
DynamicQuantizeLinear-11 -> DML_MATRIX_MULTIPLY_INTEGER, DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT,
DML_DYNAMIC_QUANTIZE_LINEAR, DML_DEQUANTIZE and DML_GEMM_OPERATOR_DESC.

Sources: the pages MatMulInteger-10 and DynamicQuantizeLinear-11; ONNX Runtime's ContribOperators.md for the others;
DmlOperatorMatMulInteger.cpp, DmlOperatorMatMulIntegerToFloat.cpp, DmlOperatorDynamicQuantizeMatMul.cpp and
DmlOperatorMatMulNBits.cpp for the lowering.

DynamicQuantizeLinear of nothing but zeros divides by 0, and a range beyond float32 is infinite: no sample.
DynamicQuantizeMatMul is judged with its two steps: where an element of A lies on a rounding boundary within float32
error, one step of it may be missing in the product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epcheck.generators import bounds, graph, lowering, quantisation
from epcheck.generators.case import (
    Array,
    Attribute,
    Binding,
    Lowering,
    Node,
    Operand,
    Output,
    Outputs,
    Refusal,
    Sample,
    Truth,
    Ulp,
)
from epcheck.generators.directml import TensorDesc
from epcheck.generators.directml.linear_quantization import DynamicQuantizeLinear as DynamicQuantizeLinearDesc
from epcheck.generators.directml.matrix_multiply import MatrixMultiplyInteger, MatrixMultiplyIntegerToFloat
from epcheck.generators.operator import Operator, spread
from epcheck.generators.operators.matmul import as_matrices
from epcheck.generators.quantisation import Ends

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
    yield IntegerSample(name="a_zero_point_per_row_of_batches", a=(2, 3, 4), b=(2, 4, 5), a_zero_point=(2, 3, 1))
    yield IntegerSample(name="b_zero_point_per_column", b_zero_point=(5,), every_dtype=True)
    yield IntegerSample(name="b_zero_point_per_column_square", b=(4, 4), b_zero_point=(4,))
    yield IntegerSample(name="b_zero_point_per_column_of_batches", a=(2, 3, 4), b=(2, 4, 5), b_zero_point=(2, 1, 5))
    yield IntegerSample(name="zero_points_per_row_and_column", a_zero_point=(3,), b_zero_point=(5,), every_dtype=True)
    yield IntegerSample(name="refused_a_zero_points_of_wrong_length", a_zero_point=(2,))
    yield IntegerSample(name="refused_b_zero_points_of_wrong_length", b_zero_point=(3,))


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
    yield IntegerSample(name="rank_4", a=(2, 3, 2, 4), b=(2, 3, 4, 5))
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
    yield IntegerSample(name="refused_inner_sizes_differ", b=(5, 5))
    yield IntegerSample(name="refused_batches_differ", a=(2, 3, 4), b=(3, 4, 5))


def to_float_samples() -> Iterator[IntegerSample]:
    """MatMulIntegerToFloat."""
    yield from _zero_points()
    yield from _products()
    yield IntegerSample(name="bias", bias=(5,), every_dtype=True)
    yield IntegerSample(name="bias_without_zero_points", bias=(5,), a_zero_point=None, b_zero_point=None)
    yield IntegerSample(name="bias_batch", a=(2, 3, 4), b=(2, 4, 5), bias=(5,))
    yield from _per_column()
    yield IntegerSample(name="a_scale_of_one_element", a_scale=(1,))
    yield IntegerSample(name="refused_bias_of_wrong_length", bias=(4,))


def _per_column() -> Iterator[IntegerSample]:
    one = IntegerSample(name="per_column", b_scale=(5,), b_zero_point=(5,))
    yield replace(one, every_dtype=True)
    yield replace(one, name="per_column_bias", bias=(5,))
    yield replace(one, name="per_column_square", b=(4, 4), b_scale=(4,), b_zero_point=(4,))
    yield replace(one, name="per_column_scale_zero_point_omitted", b_zero_point=None, every_dtype=True)
    yield replace(one, name="per_column_batch", a=(2, 3, 4))
    yield IntegerSample(name="b_scale_of_one_element", b_scale=(1,))
    yield IntegerSample(name="refused_b_scales_of_wrong_length", b_scale=(3,))


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
    yield IntegerSample(name="refused_bias_of_wrong_length", bias=(4,))


FIRST = {"MatMulInteger": ("uint8", "int8"), "MatMulIntegerToFloat": ("float32", "uint8", "int8"),
         "DynamicQuantizeMatMul": ("int8",)}  # fmt: skip


@dataclass(frozen=True)
class _Family:
    """What depends on the operator."""

    name: str
    domain: str = ""

    def variants(self, sample: IntegerSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        if dtypes != FIRST[self.name]:
            return (graph.INITIALIZER,) if sample.every_dtype else ()
        if sample.a[-1:] == (0,):
            return (graph.INITIALIZER,)  # a wrong sum of nothing costs many runs to confirm
        return tuple(graph.VARIANTS) if sample.every_dtype else (graph.INITIALIZER, graph.RUNTIME)

    def node(self, sample: IntegerSample, binding: Binding) -> Node:
        """A, B of 8 bits (A float32 in DynamicQuantizeMatMul); scales, zero points and bias after them; output Y."""
        rng = binding.rng
        dynamic = self.name == "DynamicQuantizeMatMul"
        to_float = self.name == "MatMulIntegerToFloat"
        b_dtype = binding.dtypes[-1]
        a_dtype = np.dtype(np.uint8) if dynamic else binding.dtypes[-2]
        full = binding.dtypes[0] if to_float else np.dtype(np.float32)
        a = _full(sample, rng) if dynamic else _levels(sample.a, sample.a_fill, a_dtype, rng)
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
        return Node(self.name, self.domain, binding.since_version, tuple(operands), ("Y",))


def _levels(shape: tuple[int, ...], fill: Ends | None, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    info = np.iinfo(dtype)
    if fill is None:
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return np.full(shape, quantisation.level(fill, dtype), dtype)


def _full(sample: IntegerSample, rng: np.random.Generator) -> Array:
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


def _zero_point(name: str, given: Parameter, dtype: np.dtype[Any], rng: np.random.Generator) -> Operand | None:
    if given is None:
        return None
    if isinstance(given, tuple):
        return Operand(name, _levels(given, None, dtype, rng), parameter=True)
    return Operand(name, np.array(quantisation.level(given, dtype), dtype), parameter=True)


def _centred(node: Node, name: str, side: str, values: Array | None = None) -> Array | str:
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


def truth(node: Node) -> Truth:
    """MatMulInteger: the exact product; no sum here leaves int32."""
    if broken := _broken_rule(node.array("A").shape, node.array("B").shape):
        return Refusal(broken)
    a, b = _centred(node, "A", "a"), _centred(node, "B", "b")
    for one in (a, b):
        if isinstance(one, str):
            return Refusal(one)
    assert not isinstance(a, str)
    assert not isinstance(b, str)
    return Outputs((Output("Y", np.asarray(a @ b).astype(np.int32)),))


def truth_to_float(node: Node) -> Truth:
    """(A - a_zero_point) (B - b_zero_point) * a_scale * b_scale + bias."""
    shape = node.array("B").shape
    columns = shape[-1] if len(shape) > 1 else 1
    broken = _broken_rule(node.array("A").shape, shape)
    broken = broken or _broken_vector(node, "b_scale", columns) or _broken_vector(node, "b_zero_point", columns)
    bias = node.value("bias")
    if broken is None and bias is not None and bias.shape != (columns,):
        broken = f"bias has shape {bias.shape}; B has {columns} columns"
    if broken:
        return Refusal(broken)
    a, b = _centred(node, "A", "a"), _centred(node, "B", "b")
    assert not isinstance(a, str)
    assert not isinstance(b, str)
    factor = node.array("a_scale").astype(np.float64) * node.array("b_scale").astype(np.float64)
    return Outputs((_scaled(a, b, factor, bias, node.array("b_scale").dtype),))


def _scaled(
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
    bound = bounds.accumulated(a.shape[-1] + 1, dtype, np.asarray(magnitude), roundings=4)
    if slack is not None and slack.any():
        missing = np.asarray((slack @ abs(b).astype(np.float64)) * factor)
        floor = np.asarray(bound.floor) + missing
        bound = Ulp(
            bound.bound, f"{bound.source}; elements of A on a rounding boundary may miss a step", np.asarray(floor)
        )
    return bounds.rounded("Y", np.asarray(exact), dtype, bound)


@dataclass(frozen=True)
class _Dynamic:
    """x quantised as DynamicQuantizeLinear says: y and y_zero_point as they come out, y_scale float64."""

    y: Output
    y_scale: float
    y_zero_point: Output


SCALE_ROUNDINGS = 3
"""Of y_scale in float32: the difference, a reciprocal of 255 within 1 ULP."""


def _dynamically_quantised(x: Array) -> _Dynamic:
    low, high = (float(np.float64(end)) for end in (min(0.0, x.min(initial=0.0)), max(0.0, x.max(initial=0.0))))
    scale = (high - low) / 255
    # Where float32 has the scale exactly and it is a power of two, all that follows is exact.
    is_exact = float(np.float32(scale)) == scale and bool(quantisation.is_power_of_two(np.array(scale)))
    roundings = SCALE_ROUNDINGS + quantisation.ROUNDINGS
    used = float(np.float32(scale))
    real_zero = np.array(np.clip(0 - low / used, 0, 255))
    error = -1.0 if is_exact else float(real_zero) * roundings * quantisation.SINGLE
    dtype = np.dtype(np.uint8)
    zero_point = quantisation.quantised("y_zero_point", real_zero, 0, dtype, error)
    real = x.astype(np.float64) / used
    errors = np.where(is_exact, -1.0, abs(real) * roundings * quantisation.SINGLE)
    if bool(zero_point.bound.allowed):  # type: ignore[union-attr]
        errors = np.ones(x.shape)  # another zero point moves every level by one
    y = quantisation.quantised("y", real, zero_point.value.astype(np.int64), dtype, errors)
    return _Dynamic(y, scale, zero_point)


def truth_dynamic_quantize(node: Node) -> Truth:
    """y, y_scale, y_zero_point: the range of x, with 0 in it, in 255 steps."""
    x = node.array("x")
    dynamic = _dynamically_quantised(x)
    scale = np.array(dynamic.y_scale)
    bound = bounds.ulp(2, f"{bounds.D3D}: a difference and a quotient within 1 ULP each", np.dtype(np.float32))
    return Outputs((dynamic.y, bounds.rounded("y_scale", scale, np.dtype(np.float32), bound), dynamic.y_zero_point))


def truth_dynamic_matmul(node: Node) -> Truth:
    """DynamicQuantizeLinear of A, then MatMulIntegerToFloat."""
    shape = node.array("B").shape
    columns = shape[-1] if len(shape) > 1 else 1
    broken = _broken_rule(node.array("A").shape, shape)
    broken = broken or _broken_vector(node, "b_scale", columns) or _broken_vector(node, "b_zero_point", columns)
    bias = node.value("bias")
    if broken is None and bias is not None and bias.shape != (columns,):
        broken = f"bias has shape {bias.shape}; B has {columns} columns"
    if broken:
        return Refusal(broken)
    b = _centred(node, "B", "b")
    assert not isinstance(b, str)
    factor_of_b = node.array("b_scale").astype(np.float64)
    if not node.array("A").size:
        empty = np.zeros(np.matmul(node.array("A"), b).shape, np.float32)
        return Outputs((Output("Y", empty),))
    dynamic = _dynamically_quantised(node.array("A"))
    a = dynamic.y.value.astype(np.int64) - int(dynamic.y_zero_point.value)
    slack = np.asarray(dynamic.y.bound.allowed, np.float64)  # type: ignore[union-attr]
    return Outputs((_scaled(a, b, factor_of_b * dynamic.y_scale, bias, np.dtype(np.float32), slack),))


@dataclass(frozen=True, kw_only=True)
class DynamicSample(Sample):
    """x: shape. values: `random` over [low, high], or `steps`: whole and half steps of a scale that is 2^-6."""

    x: tuple[int, ...] = (3, 7)
    low: float = -2.0
    high: float = 3.0
    values: str = "random"


def dynamic_quantize_samples() -> Iterator[DynamicSample]:
    for name, low, high in (
        ("both_signs", -2, 3), ("positive", 0.5, 3), ("negative", -3, -0.5), ("from_zero", 0, 2), ("to_zero", -2, 0),
        ("mostly_negative", -5, 0.1), ("small", -1e-30, 2e-30), ("large", -1e37, 2e37), ("symmetric", -1, 1),
    ):  # fmt: skip
        yield DynamicSample(name=name, low=low, high=high)
    for zero in (0, 1, 100, 127, 128, 254, 255):
        yield DynamicSample(name=f"whole_steps_zero_point_{zero}", x=(520,), low=-zero, high=255 - zero, values="steps")
        yield DynamicSample(name=f"half_steps_zero_point_{zero}", x=(520,), low=-zero, high=255 - zero, values="halves")
    for rank in (0, 1, 2, 3, 4, 5, 6, 7, 8):
        yield DynamicSample(name=f"rank_{rank}", x=tuple(2 + axis % 2 for axis in range(rank)))
    for length in (1, 31, 257, 1025, 4097):
        yield DynamicSample(name=f"length_{length}", x=(length,))
    yield DynamicSample(name="one_negative", x=(1,), low=-2, high=-2)
    yield DynamicSample(name="all_equal", x=(9,), low=1.5, high=1.5)


def dynamic_quantize_variants(sample: DynamicSample, _since_version: int, _dtypes: tuple[str, ...]) -> tuple[str, ...]:
    return (graph.RUNTIME, graph.SYMBOLIC, graph.CONSTANT) if sample.x else (graph.RUNTIME, graph.CONSTANT)


def dynamic_quantize_node(sample: DynamicSample, binding: Binding) -> Node:
    """x float32, whose least and greatest element are `low` and `high` from two elements on."""
    count = int(np.prod(sample.x, dtype=np.int64))
    if sample.values == "random":
        flat = binding.rng.uniform(sample.low, sample.high, count)
        unit = 1.0
    else:
        unit = 2.0**-6
        flat = binding.rng.integers(2 * int(sample.low), 2 * int(sample.high) + 1, count).astype(np.float64)
        flat = flat / 2 if sample.values == "halves" else flat // 2
    if count > 1:
        flat[0], flat[-1] = sample.low, sample.high
    x = (flat * unit).astype(np.float32).reshape(sample.x)
    names = ("y", "y_scale", "y_zero_point")
    return Node("DynamicQuantizeLinear", "", binding.since_version, (Operand("x", x),), names)


@dataclass(frozen=True, kw_only=True)
class BitsSample(Sample):
    """A [..., k] times the transpose of B [n, k], which lies in blocks of `block` along k in `bits` bits each.

    zero_points: `packed` like B, `float` in A's type, None is the middle. flat: scales and zero points are 1-D.
    """

    a: tuple[int, ...] = (3, 64)
    n: int = 5
    bits: int = 4
    block: int = 32
    zero_points: str | None = "packed"
    flat: bool = False
    bias: bool = False
    attributes: tuple[tuple[str, Attribute], ...] = ()
    fill: int | None = None


def bits_samples() -> Iterator[BitsSample]:
    for bits in (4, 8):
        for zero_points in ("packed", "float", None):
            name = f"bits_{bits}_zero_points_{zero_points or 'omitted'}"
            yield BitsSample(name=name, bits=bits, zero_points=zero_points, every_dtype=True)
            yield BitsSample(name=f"{name}_flat", bits=bits, zero_points=zero_points, flat=True)
            yield BitsSample(name=f"{name}_odd_blocks", a=(3, 96), bits=bits, zero_points=zero_points)
            yield BitsSample(name=f"{name}_one_block", a=(3, 32), bits=bits, zero_points=zero_points)
            yield BitsSample(name=f"{name}_part_of_a_block", a=(3, 80), bits=bits, zero_points=zero_points)
            yield BitsSample(name=f"{name}_bias", bits=bits, zero_points=zero_points, bias=True)
        for block in (16, 64, 128, 256):
            yield BitsSample(name=f"bits_{bits}_block_{block}", a=(3, 256), bits=bits, block=block,
                             every_dtype=block in (16, 128))  # fmt: skip
    for zero_points in ("packed", None):
        kind = zero_points or "omitted"
        yield BitsSample(name=f"one_row_{kind}", a=(1, 64), zero_points=zero_points)
        yield BitsSample(name=f"one_column_{kind}", n=1, zero_points=zero_points)
        yield BitsSample(name=f"batch_{kind}", a=(2, 3, 64), zero_points=zero_points, every_dtype=True)
        yield BitsSample(name=f"rank_4_{kind}", a=(2, 1, 3, 64), zero_points=zero_points)
        yield BitsSample(name=f"batch_of_one_{kind}", a=(1, 1, 64), zero_points=zero_points)
        yield BitsSample(name=f"columns_257_{kind}", n=257, zero_points=zero_points)
        yield BitsSample(name=f"inner_1024_{kind}", a=(2, 1024), zero_points=zero_points, every_dtype=True)
    for fill in (0, 7, 8, 15):
        yield BitsSample(name=f"levels_{fill}", fill=fill, zero_points=None)
    yield BitsSample(name="bits_default", attributes=(("bits", ()),))
    for accuracy in (0, 1, 2):
        yield BitsSample(name=f"accuracy_level_{accuracy}", attributes=(("accuracy_level", accuracy),))
    yield BitsSample(name="no_rows", a=(0, 64))
    yield BitsSample(name="refused_k_differs", attributes=(("K", 32),))
    yield BitsSample(name="refused_n_differs", attributes=(("N", 4),))


def bits_variants(sample: BitsSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    chosen = spread(sample, first=dtypes == ("float32",), newest=True)
    return tuple(v for v in chosen if v != graph.CONSTANT and (v != graph.RUNTIME or sample.every_dtype))


def packed(levels: Array, bits: int) -> Array:
    """Levels [..., count] as bytes, the first in the lowest bits; the last byte is filled with zeros."""
    if bits == 8:
        return levels.astype(np.uint8)
    even = np.concatenate([levels, np.zeros((*levels.shape[:-1], levels.shape[-1] % 2), levels.dtype)], -1)
    joined: Array = even[..., ::2] | even[..., 1::2] << 4
    return joined.astype(np.uint8)


def unpacked(data: Array, bits: int, count: int) -> Array:
    """`count` levels of the last dimension of packed bytes, int64."""
    wide = data.astype(np.int64)
    if bits == 8:
        return wide[..., :count]
    return np.stack([wide & 15, wide >> 4], -1).reshape(*wide.shape[:-1], -1)[..., :count]


def bits_node(sample: BitsSample, binding: Binding) -> Node:
    """A of T1; B uint8 [n, blocks, block * bits / 8]; scales of T1; zero points; bias of T1 [n]; output Y."""
    rng, dtype = binding.rng, binding.dtype
    k, bits = sample.a[-1], sample.bits
    blocks = -(-k // sample.block)
    levels = rng.integers(0, 2**bits, (sample.n, k))
    if sample.fill is not None:
        levels[:] = sample.fill
    filled = np.zeros((sample.n, blocks * sample.block), np.int64)
    filled[:, :k] = levels
    scales = rng.uniform(0.01, 0.1, (sample.n, blocks)).astype(dtype)
    operands: list[Operand | None] = [
        Operand("A", rng.uniform(-1, 1, sample.a).astype(dtype)),
        Operand("B", packed(filled.reshape(sample.n, blocks, sample.block), bits), parameter=True),
        Operand("scales", scales.ravel() if sample.flat else scales, parameter=True),
    ]
    if sample.zero_points is not None:
        zero = rng.integers(0, 2**bits, (sample.n, blocks))
        value = packed(zero, bits) if sample.zero_points == "packed" else (zero + 0.5).astype(dtype)
        operands.append(Operand("zero_points", value.ravel() if sample.flat else value, parameter=True))
    if sample.bias:
        operands += [None] * (5 - len(operands))
        operands.append(Operand("bias", rng.uniform(-1, 1, sample.n).astype(dtype), parameter=True))
    attributes: dict[str, Attribute] = {"K": k, "N": sample.n, "bits": bits, "block_size": sample.block}
    attributes |= dict(sample.attributes)
    if attributes["bits"] == ():
        del attributes["bits"]
    return Node("MatMulNBits", MICROSOFT, binding.since_version, tuple(operands), ("Y",), attributes)


def truth_bits(node: Node) -> Truth:
    """A times the transpose of (level - zero point) * scale, plus bias, in float64."""
    a, b, scales = node.array("A"), node.array("B"), node.array("scales")
    k, n, bits = node.integer("K", 0), node.integer("N", 0), node.integer("bits", 4)
    block = node.integer("block_size", 0)
    blocks = -(-k // block)
    if a.shape[-1] != k:
        return Refusal(f"K is {k}; A has {a.shape[-1]} columns")
    if b.shape[:2] != (n, blocks):
        return Refusal(f"B has shape {b.shape}; N is {n}, K is {k}")
    levels = unpacked(b, bits, block).reshape(n, blocks * block)[:, :k].astype(np.float64)
    zero_points = node.value("zero_points")
    if zero_points is None:
        zero = np.full((n, blocks), 2.0 ** (bits - 1))
    elif zero_points.dtype == np.uint8:
        zero = unpacked(zero_points.reshape(n, -1), bits, blocks).astype(np.float64)
    else:
        zero = zero_points.reshape(n, blocks).astype(np.float64)
    spread_zero, spread_scale = (np.repeat(v, block, 1)[:, :k] for v in (zero, scales.reshape(n, blocks)))
    weights = (levels - spread_zero) * spread_scale.astype(np.float64)
    wide = a.astype(np.float64)
    # level * scale - zero point * scale is as good as their difference times the scale.
    steps = (levels + spread_zero) * spread_scale.astype(np.float64)
    exact, magnitude = wide @ weights.T, abs(wide) @ steps.T
    bias = node.value("bias")
    if bias is not None:
        exact, magnitude = exact + bias.astype(np.float64), magnitude + abs(bias.astype(np.float64))
    bound = bounds.accumulated(k + 1, a.dtype, magnitude, roundings=4)
    return Outputs((bounds.rounded("Y", exact, a.dtype, bound),))


def _parameter(node: Node, name: str, side: str) -> tuple[TensorDesc | None, Array | None]:
    """A scale or zero point: one element, one for each row of A [M, 1], or one for each column of B [1, N]."""
    value = node.value(name)
    if value is not None and value.ndim == 1 and value.size > 1:
        value = value[:, None] if side == "a" else value[None, :]
    return lowering.optional(value)


def lower(node: Node) -> Lowering | None:
    """DML_MATRIX_MULTIPLY_INTEGER or DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT; None for nothing to multiply."""
    judged = truth_to_float(node) if node.op_type == "MatMulIntegerToFloat" else truth(node)
    matrices = None if isinstance(judged, Refusal) else as_matrices(node.array("A"), node.array("B"))
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


def lower_dynamic_quantize(node: Node) -> Lowering:
    """DML_DYNAMIC_QUANTIZE_LINEAR; its outputs of one element have as many dimensions as the input."""
    desc, view = lowering.broadcast(node.array("x"))
    levels, one = np.dtype(np.uint8), (1,) * view.ndim
    outputs = (lowering.result(t, s) for t, s in ((levels, view.shape), (np.dtype(np.float32), one), (levels, one)))
    return Lowering(DynamicQuantizeLinearDesc(desc, *outputs), (view,))


def lower_graph(_node: Node) -> None:
    """A graph of several DirectML operators, which is no single description."""


_INTEGER, _TO_FLOAT, _DYNAMIC = (
    _Family("MatMulInteger"),
    _Family("MatMulIntegerToFloat", MICROSOFT),
    _Family("DynamicQuantizeMatMul", MICROSOFT),
)

OPERATORS = (
    Operator("MatMulInteger", samples, _INTEGER.variants, _INTEGER.node, truth, lower, varied=("T1", "T2")),
    Operator(
        "MatMulIntegerToFloat", to_float_samples, _TO_FLOAT.variants, _TO_FLOAT.node, truth_to_float, lower,
        varied=("T3", "T1", "T2"), domain=MICROSOFT,
    ),
    Operator(
        "DynamicQuantizeMatMul", dynamic_samples, _DYNAMIC.variants, _DYNAMIC.node, truth_dynamic_matmul, lower_graph,
        varied=("T2",), domain=MICROSOFT,
    ),
    Operator(
        "MatMulNBits", bits_samples, bits_variants, bits_node, truth_bits, lower_graph, varied=("T1",), domain=MICROSOFT
    ),
    Operator(
        "DynamicQuantizeLinear", dynamic_quantize_samples, dynamic_quantize_variants, dynamic_quantize_node,
        truth_dynamic_quantize, lower_dynamic_quantize, varied=("T1",),
    ),
)  # fmt: skip
