"""MatMul-1, 9, 13, com.microsoft::FusedMatMul, ::TransposeMatMul (its name before), ::FusedMatMulActivation and
com.microsoft.dml::DmlFusedMatMul -> DML_GEMM_OPERATOR_DESC.

Sources: the page MatMul-13, which is numpy.matmul; ONNX Runtime's ContribOperators.md for FusedMatMul (transBatchA
and transBatchB move the leading dimension of 3 and more behind the others but the last, then transA and transB
exchange the last two; alpha scales the product); DmlOperatorMatMul.cpp and DmlOperatorFusedMatMul.cpp for the
lowering. DmlFusedMatMul is MatMul and an activation, which the EP's own graph fusion makes.

Integers: the page does not say what an overflow gives, so no sum here leaves its type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epcheck.generators import data
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.interaction import ABOVE_GROUPS, DISPATCHED, Interaction, Literal, Random
from epcheck.generators.declaration.parameter_space import ANY_VALUE, ParameterSpace, Parts, Values
from epcheck.generators.directml import lowering
from epcheck.generators.directml.descriptions.matmul.matrix_multiply import Gemm, MatrixTransform
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.families import fused_activation
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator, declare, spread
from epcheck.generators.oracle_math.activations import FUNCTIONS
from epcheck.generators.schema import since_versions
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = (
    "MatMul",
    "com.microsoft::FusedMatMul",
    "com.microsoft::TransposeMatMul",
    "com.microsoft::FusedMatMulActivation",
    "com.microsoft.dml::DmlFusedMatMul",
)

MICROSOFT, DML = "com.microsoft", "com.microsoft.dml"
SIZES = {"one": 1, "three": 3, "sixteen": 16, "seventeen": 17}


@dataclass(frozen=True, kw_only=True)
class MatMulSample(Sample):
    """a, b: shapes. values: what the data looks like, see `values_of`. attributes: of the node, none by default.

    floats: the values exist for floating point only.
    """

    a: tuple[int, ...] = (3, 4)
    b: tuple[int, ...] = (4, 5)
    values: str = "uniform"
    attributes: tuple[tuple[str, Attribute], ...] = ()
    floats: bool = False


def samples() -> Iterator[MatMulSample]:
    yield from _list_plain()
    yield from _broadcast()
    yield from _sizes()
    yield from _values()
    yield from map(expect_refusal, _list_refused())


def _list_plain() -> Iterator[MatMulSample]:
    yield MatMulSample(name="matrices", every_dtype=True)
    yield MatMulSample(name="vector_by_vector", a=(6,), b=(6,), every_dtype=True)
    yield MatMulSample(name="vector_by_matrix", a=(4,), b=(4, 5), every_dtype=True)
    yield MatMulSample(name="matrix_by_vector", a=(3, 4), b=(4,), every_dtype=True)
    yield MatMulSample(name="row_by_column", a=(1, 7), b=(7, 1))
    yield MatMulSample(name="column_by_row", a=(6, 1), b=(1, 5))
    yield MatMulSample(name="one_by_one", a=(1, 1), b=(1, 1))
    yield MatMulSample(name="vectors_of_one", a=(1,), b=(1,))


def _broadcast() -> Iterator[MatMulSample]:
    yield MatMulSample(name="batch_of_both", a=(3, 2, 4), b=(3, 4, 5), every_dtype=True)
    yield MatMulSample(name="batch_of_a", a=(3, 2, 4), b=(4, 5), every_dtype=True)
    yield MatMulSample(name="batch_of_b", a=(2, 4), b=(3, 4, 5), every_dtype=True)
    yield MatMulSample(name="batch_1_in_a", a=(1, 2, 4), b=(3, 4, 5))
    yield MatMulSample(name="batch_1_in_b", a=(3, 2, 4), b=(1, 4, 5))
    yield MatMulSample(name="batch_both_ways", a=(3, 1, 2, 4), b=(1, 2, 4, 5), every_dtype=True)
    yield MatMulSample(name="batch_of_rank_4_and_3", rank=4, a=(2, 3, 2, 4), b=(3, 4, 5))
    yield MatMulSample(name="batch_of_rank_3_and_4", rank=3, a=(3, 2, 4), b=(2, 3, 4, 5))
    yield MatMulSample(name="vector_by_batch", a=(4,), b=(3, 4, 5), every_dtype=True)
    yield MatMulSample(name="batch_by_vector", a=(3, 2, 4), b=(4,))
    yield MatMulSample(name="vector_by_rank_4", rank=4, a=(4,), b=(2, 3, 4, 5))
    yield MatMulSample(name="rank_4_by_vector", rank=4, a=(2, 3, 2, 4), b=(4,))
    for rank in range(4, 9):
        lead = tuple(2 - axis % 2 for axis in range(rank - 2))
        yield MatMulSample(name=f"rank_{rank}", rank=rank, a=(*lead, 2, 3), b=(*lead, 3, 2), every_dtype=rank == 5)
        yield MatMulSample(name=f"rank_{rank}_by_matrix", rank=rank, a=(*lead, 2, 3), b=(3, 2))


def _sizes() -> Iterator[MatMulSample]:
    yield MatMulSample(name="sum_of_nothing", a=(3, 0), b=(0, 5), every_dtype=True)
    yield MatMulSample(name="sum_of_nothing_in_batches", a=(2, 3, 0), b=(2, 0, 5))
    yield MatMulSample(name="dot_of_nothing", a=(0,), b=(0,))
    yield MatMulSample(name="no_rows", a=(0, 4), b=(4, 5))
    yield MatMulSample(name="no_columns", a=(3, 4), b=(4, 0))
    yield MatMulSample(name="no_batches", a=(0, 3, 4), b=(0, 4, 5))
    yield MatMulSample(name="no_batches_broadcast", a=(0, 3, 4), b=(1, 4, 5))
    for size in (2, 3, 7, 8, 15, 16, 17, 31, 32, 33):
        yield MatMulSample(name=f"square_{size}", a=(size, size), b=(size, size), every_dtype=size == 17)
    for inner in (63, 64, 65, 127, 255, 257, 1023, 1025, 2049):
        values = "positive" if inner == 257 else "uniform"
        yield MatMulSample(name=f"inner_{inner}", a=(2, inner), b=(inner, 3), values=values, every_dtype=inner == 257)
    yield MatMulSample(name="rows_1025", a=(1025, 3), b=(3, 2))
    yield MatMulSample(name="columns_1025", a=(2, 3), b=(3, 1025))
    yield MatMulSample(name="vector_by_1025_columns", a=(3,), b=(3, 1025))
    yield MatMulSample(name="batches_257", a=(257, 2, 3), b=(257, 3, 2))


def _values() -> Iterator[MatMulSample]:
    for kind in ("integers", "zeros", "identity"):
        yield MatMulSample(name=f"values_{kind}", a=(5, 5), b=(5, 5), values=kind, every_dtype=True)
    for kind in ("cancellation", "infinities", "nan", "denormals", "large", "small"):
        inner = 64 if kind == "cancellation" else 6
        yield MatMulSample(
            name=f"values_{kind}", a=(4, inner), b=(inner, 4), values=kind, floats=True, every_dtype=True
        )


def _list_refused() -> Iterator[MatMulSample]:
    yield MatMulSample(name="inner_sizes_differ", a=(3, 4), b=(5, 6))
    yield MatMulSample(name="vectors_differ", a=(4,), b=(5,))
    yield MatMulSample(name="batches_differ", a=(2, 3, 4), b=(3, 4, 5))
    yield MatMulSample(name="inner_1_does_not_broadcast", a=(3, 4), b=(1, 5))
    yield MatMulSample(name="scalar_a", a=(), b=(4, 5))
    yield MatMulSample(name="scalar_b", a=(3, 4), b=())


def fused_samples() -> Iterator[MatMulSample]:
    """What FusedMatMul adds, beside the plain samples that matter for it too."""
    plain = {"matrices", "vector_by_vector", "vector_by_matrix", "matrix_by_vector", "batch_of_a", "batch_both_ways",
             "sum_of_nothing", "no_rows", "square_17", "inner_257", "rank_5", "values_integers", "values_infinities",
             "values_nan", "values_cancellation", "refused_inner_sizes_differ", "refused_batches_differ"}  # fmt: skip
    yield from (sample for sample in samples() if sample.name in plain)
    for name, alpha in {"half": 0.5, "negative": -1.5, "zero": 0.0, "tenth": 0.1, "one": 1.0}.items():
        yield MatMulSample(name=f"alpha_{name}", attributes=(("alpha", alpha),), every_dtype=name in ("tenth", "zero"))
    for trans_a in (0, 1):
        for trans_b in (0, 1):
            attributes: tuple[tuple[str, Attribute], ...] = (("transA", trans_a), ("transB", trans_b))
            a, b = ((4, 3) if trans_a else (3, 4)), ((5, 4) if trans_b else (4, 5))
            sample = MatMulSample(name=f"trans_a_{trans_a}_trans_b_{trans_b}", a=a, b=b, attributes=attributes)
            yield replace(sample, every_dtype=True)
            yield replace(sample, name=f"{sample.name}_batch", a=(2, *a), b=(2, *b))
            yield replace(sample, name=f"{sample.name}_broadcast", a=(3, 1, *a), b=(2, *b))
            yield replace(sample, name=f"{sample.name}_alpha", attributes=(*attributes, ("alpha", 0.25)))
            square = replace(sample, name=f"{sample.name}_square", a=(4, 4), b=(4, 4))
            yield square
            yield replace(square, name=f"{square.name}_positive", values="positive", floats=True, every_dtype=True)
            for batch_a in (0, 1):
                for batch_b in (0, 1):
                    if batch_a or batch_b:
                        yield _batch_transposed(trans_a, trans_b, batch_a, batch_b)
    batched: tuple[tuple[str, Attribute], ...] = (("transBatchA", 1), ("transBatchB", 1))
    yield MatMulSample(name="trans_batch_rank_4", rank=4, a=(3, 2, 4, 5), b=(5, 2, 4, 6), attributes=batched)
    yield expect_refusal(MatMulSample(name="trans_batch_of_matrices", a=(3, 4), b=(4, 5), attributes=batched))
    yield expect_refusal(MatMulSample(name="trans_a_mismatch", a=(3, 4), b=(4, 5), attributes=(("transA", 1),)))
    yield expect_refusal(MatMulSample(name="trans_b_mismatch", a=(3, 4), b=(4, 5), attributes=(("transB", 1),)))


def transposed_samples() -> Iterator[MatMulSample]:
    """TransposeMatMul, which FusedMatMul has taken the place of: it does not transpose batches."""
    for sample in fused_samples():
        if not {"transBatchA", "transBatchB"} & dict(sample.attributes).keys():
            yield sample


def _batch_transposed(trans_a: int, trans_b: int, batch_a: int, batch_b: int) -> MatMulSample:
    """Shapes whose batch is 2, rows 3, inner size 4 and columns 5 once the transpositions are done."""
    a, b = ((4, 3) if trans_a else (3, 4)), ((5, 4) if trans_b else (4, 5))
    attributes = {"transA": trans_a, "transB": trans_b, "transBatchA": batch_a, "transBatchB": batch_b}
    return MatMulSample(
        name=f"trans_batch_a_{batch_a}_b_{batch_b}_trans_a_{trans_a}_trans_b_{trans_b}",
        a=(a[0], 2, a[1]) if batch_a else (2, *a),
        b=(b[0], 2, b[1]) if batch_b else (2, *b),
        attributes=tuple(attributes.items()),
    )


def softmax_samples() -> Iterator[MatMulSample]:
    """FusedMatMulActivation: the one activation that the EP fuses is Softmax."""
    softmax: tuple[tuple[str, Attribute], ...] = (("activation", "Softmax"),)
    sample = MatMulSample(name="softmax", attributes=softmax, every_dtype=True)
    yield sample
    for axis in (-1, 1):
        name = f"softmax_axis_{'minus_' if axis < 0 else ''}{abs(axis)}"
        yield replace(sample, name=name, attributes=(*softmax, ("activation_axis", axis)))
    first = (*softmax, ("activation_axis", 0))
    yield replace(sample, name="softmax_axis_0", attributes=first)
    yield replace(sample, name="softmax_axis_0_of_3", a=(3, 2, 4), b=(3, 4, 5), attributes=first)
    yield replace(
        sample,
        name="softmax_axis_minus_2_of_3",
        a=(3, 2, 4),
        b=(3, 4, 5),
        attributes=(*softmax, ("activation_axis", -2)),
    )
    last = (*softmax, ("activation_axis", -1))
    yield replace(sample, name="softmax_of_other_ranks", a=(2, 4), b=(1, 4, 5), attributes=last, every_dtype=False)
    yield replace(sample, name="softmax_batch", a=(2, 3, 2, 4), b=(2, 3, 4, 5))
    yield replace(sample, name="softmax_broadcast", a=(3, 1, 2, 4), b=(2, 4, 5))
    yield replace(sample, name="softmax_alpha", attributes=(*softmax, ("alpha", 0.125)))
    yield replace(sample, name="softmax_negative_alpha", attributes=(*softmax, ("alpha", -2.0)), every_dtype=False)
    yield replace(sample, name="softmax_trans_a", a=(4, 3), attributes=(*softmax, ("transA", 1)))
    yield replace(sample, name="softmax_trans_b", b=(5, 4), attributes=(*softmax, ("transB", 1)))
    yield replace(sample, name="softmax_trans_b_batch", a=(2, 3, 4), b=(2, 5, 4), attributes=(*softmax, ("transB", 1)))
    yield replace(sample, name="softmax_one_column", b=(4, 1), every_dtype=False)
    yield replace(sample, name="softmax_257_columns", b=(4, 257), every_dtype=False)
    yield replace(sample, name="softmax_integers", values="integers", every_dtype=False)
    yield replace(sample, name="softmax_zeros", values="zeros", every_dtype=False)
    yield replace(sample, name="softmax_no_rows", a=(0, 4), every_dtype=False)
    yield expect_refusal(MatMulSample(name="inner_sizes_differ", a=(3, 4), b=(5, 6), attributes=softmax))


def dml_fused_samples() -> Iterator[MatMulSample]:
    for name in fused_activation.CONTINUOUS:
        attributes = fused_activation.attributes(name, *FUNCTIONS[name].parameters.values())
        sample = MatMulSample(name=name.lower(), attributes=attributes)
        yield replace(sample, every_dtype=True)
        yield replace(sample, name=f"{sample.name}_batch", a=(3, 1, 2, 4), b=(2, 4, 5))
    for alpha in (0.0, 0.5, 2.0, -1.0):
        yield MatMulSample(
            name=f"leakyrelu_alpha_{str(alpha).replace('.', '_').replace('-', 'minus_')}",
            attributes=fused_activation.attributes("LeakyRelu", alpha),
        )
    relu = MatMulSample(name="", attributes=fused_activation.attributes("Relu"))
    yield replace(relu, name="relu_vector_by_vector", a=(6,), b=(6,), every_dtype=True)
    yield replace(relu, name="relu_vector_by_matrix", a=(4,), b=(4, 5))
    yield replace(relu, name="relu_matrix_by_vector", a=(3, 4), b=(4,))
    yield replace(relu, name="relu_square_33", a=(33, 33), b=(33, 33))
    yield replace(relu, name="relu_inner_257", a=(2, 257), b=(257, 3))
    yield replace(relu, name="relu_integers", values="integers")
    yield replace(relu, name="relu_infinities", a=(4, 6), b=(6, 4), values="one_infinity")
    yield replace(relu, name="relu_no_rows", a=(0, 4))
    yield replace(relu, name="relu_sum_of_nothing", a=(3, 0), b=(0, 5))
    yield expect_refusal(replace(relu, name="inner_sizes_differ", a=(3, 4), b=(5, 6)))


def _bindings(name: str, domain: str) -> Any:
    def bindings(sample: MatMulSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        if sample.floats and np.dtype(dtypes[0]).kind != "f":
            return ()
        newest = since_version == since_versions(name, domain)[-1]
        chosen = spread(sample, first=dtypes[0] == "float32", newest=newest, scalar=sample.refused)
        if sample.a[-1:] == (0,):
            return chosen[:1]  # a wrong sum of nothing is what the memory held, and costs many runs to confirm
        return chosen if not domain or sample.refused else chosen[:3:2] if len(chosen) > 2 else chosen

    return bindings


def values_of(kind: str, shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator, second: bool) -> Array:
    """The data of A (B where `second`): `uniform` in [-2, 2], of integer types in [0, 9] (signed [-9, 9])."""
    count = int(np.prod(shape, dtype=np.int64))
    if dtype.kind != "f":
        if kind == "identity":
            return np.eye(shape[-1], dtype=dtype)[: shape[-2]]
        low, high = (0, 1) if kind == "zeros" else (0 if dtype.kind == "u" else -9, 10)
        return rng.integers(low, high, shape).astype(dtype)
    uniform = rng.uniform(-2, 2, count)
    match kind:
        case "uniform":
            flat = uniform
        case "positive":  # of whose sums every dtype shows more than it may lose
            flat = np.abs(uniform) / 2 + 0.25
        case "integers":
            flat = rng.integers(-8, 9, count).astype(np.float64)
        case "zeros":
            flat = rng.choice(np.array([0.0, -0.0]), count)
        case "identity":
            return np.eye(shape[-1], dtype=dtype)[: shape[-2]] if second else uniform.reshape(shape).astype(dtype)
        case "cancellation":  # every term has its negative further on, but for one that is larger
            pairs = uniform.reshape(shape) * 8
            axis, half = (-2, shape[-2] // 2) if second else (-1, shape[-1] // 2)
            front = np.take(pairs, np.arange(half), axis)
            terms = np.concatenate([front, front if second else -front], axis)
            terms[(0, slice(None)) if second else (..., 0)] = 64.0 if dtype == np.float16 else 8.0
            return terms.astype(dtype)
        case "infinities":
            flat = np.where(rng.random(count) < 0.1, rng.choice(np.array([np.inf, -np.inf]), count), uniform)
        case "one_infinity":  # and never an infinity minus another
            flat = uniform
            if not second:
                flat[0], flat[shape[-1]] = np.inf, -np.inf
        case "nan":
            flat = np.where(rng.random(count) < 0.1, np.nan, uniform)
        case "denormals":
            return rng.choice(data.denormals(dtype), shape) if not second else np.ones(shape, dtype)
        case "large":  # products beside the largest number, of one sign each, and beyond it
            flat = np.sqrt(float(np.finfo(dtype).max)) * rng.uniform(0.1, 0.3, count)
        case "small":
            flat = np.sqrt(float(np.finfo(dtype).tiny)) * rng.uniform(1, 9, count)
        case other:
            raise ValueError(f"unknown kind of data '{other}'")
    result: Array = flat.reshape(shape).astype(dtype)
    return result


def _node(name: str, domain: str) -> Any:
    def node(sample: MatMulSample, context: CaseContext) -> Node:
        """A and B of any dtype, B as exporters write weights; output Y."""
        a, b = (
            values_of(sample.values, shape, context.dtype, context.rng, second)
            for shape, second in ((sample.a, False), (sample.b, True))
        )
        operands = (Operand("A", a), Operand("B", b, parameter=True))
        return Node(name, domain, context.since_version, operands, ("Y",), dict(sample.attributes))

    return node


def transpose_input(array: Array, batch: bool, matrix: bool) -> Array:
    """FusedMatMul's view of an input: the first dimension behind the batch, then the last two exchanged."""
    if batch:
        array = np.moveaxis(array, 0, -2)
    return np.swapaxes(array, -1, -2) if matrix and array.ndim > 1 else array


def operands(node: Node) -> tuple[Array, Array] | str:
    """A and B as they are multiplied, or the rule that the node breaks."""
    a, b = node.array("A"), node.array("B")
    trans_batch_a, trans_batch_b = node.integer("transBatchA", 0), node.integer("transBatchB", 0)
    if (trans_batch_a or trans_batch_b) and not (a.ndim == b.ndim >= 3):
        return "transBatchA and transBatchB need two inputs of the same rank, at least 3"
    if not a.ndim or not b.ndim:
        return "numpy.matmul does not take scalars"
    a = transpose_input(a, bool(trans_batch_a), bool(node.integer("transA", 0)))
    b = transpose_input(b, bool(trans_batch_b), bool(node.integer("transB", 0)))
    rows = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != rows:
        return f"the last dimension of A, {a.shape[-1]}, must equal the rows of B, {rows}"
    try:
        np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        return f"the batches {a.shape[:-2]} and {b.shape[:-2]} do not broadcast"
    return a, b


def truth(node: Node) -> Truth:
    """numpy.matmul in float64 (integers exactly), scaled by alpha, rounded once."""
    parsed = operands(node)
    if isinstance(parsed, str):
        return Refusal(parsed)
    a, b = parsed
    dtype = a.dtype
    if dtype.kind != "f":
        return Outputs((Output("Y", np.asarray(np.matmul(a, b))),))
    wide = (a.astype(np.float64), b.astype(np.float64))
    alpha = node.number("alpha", 1.0)
    with np.errstate(all="ignore"):
        exact = np.asarray(np.matmul(*wide) * alpha)
        magnitude = np.asarray(np.matmul(abs(wide[0]), abs(wide[1])) * abs(alpha))
    bound = bounds.bound_sum(a.shape[-1], dtype, magnitude, roundings=1 if alpha == 1.0 else 2)
    exact, bound = fused_activation.apply_activation(node, exact, bound, dtype)
    if "activation" in node.attributes:
        return _softmax(exact, bound.floor, node.integer("activation_axis", -1), dtype)
    return Outputs((bounds.round_output("Y", exact, dtype, bound),))


def _softmax(logits: Array, error: float | Array, axis: int, dtype: np.dtype[Any]) -> Truth:
    """exp(x) / sum(exp(x)) along the axis. An error e of every x changes a result by a factor within exp(+-2 e)."""
    if not logits.size:
        return Outputs((Output("Y", logits.astype(dtype)),))
    shifted = np.exp(logits - logits.max(axis, keepdims=True))
    exact = shifted / shifted.sum(axis, keepdims=True)
    spacing = 2 * float(bounds.finfo(dtype).eps) * abs(logits)
    floor = exact * np.expm1(2 * (np.asarray(error) + spacing).max(axis, keepdims=True))
    ulps = 3 * logits.shape[axis] + 3
    bound = bounds.ulp(ulps, (bounds.WEBNN.cite_row("softmax"),), dtype, floor)
    return Outputs((bounds.round_output("Y", exact, dtype, bound),))


def lower(node: Node) -> Lowering | None:
    """DML_GEMM with transpositions and broadcasting as strides; None for types that it lacks and Softmax."""
    parsed = operands(node)
    if isinstance(parsed, str) or parsed[0].dtype.name not in ("float32", "float16"):
        return None
    matrices = lowering.as_matrices(*parsed)
    if matrices is None or "activation" in node.attributes:
        return None
    a, b, sizes = matrices
    (a_desc, a_view), (b_desc, b_view) = lowering.broadcast(a), lowering.broadcast(b)
    none = MatrixTransform.NONE
    activation, alpha = fused_activation.description(node), node.number("alpha", 1.0)
    desc = Gemm(a_desc, b_desc, None, lowering.result(a.dtype, sizes), none, none, alpha, 0.0, activation)
    return Lowering(desc, (a_view, b_view, None))


def _operator(name: str, domain: str, its_samples: Any) -> Operator[MatMulSample]:
    return Operator(name, its_samples, _bindings(name, domain), _node(name, domain), truth, lower, domain=domain)


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "MatMul": (
        Interaction(ABOVE_GROUPS, (Random((DISPATCHED, 4)), Random((4, 64)))),
        Interaction("matrix_by_column_of_64", (Random((5, 64)), Random((64, 1)))),
        Interaction("row_of_64_by_matrix", (Random((1, 64)), Random((64, 5)))),
        Interaction("dot_of_300", (Random((300,)), Random((300,)))),
        Interaction("dot_of_512_ones", (Literal(np.ones((1, 512)).tolist()), Literal(np.ones((512, 1)).tolist())),
                {}, "float16"),
        Interaction("product_beyond_32_bits", (Literal([[2**20, 1]]), Literal([[2**20], [1]])), {}, "int64"),
        Interaction("product_beyond_float32", (Literal([[16777217, 1]]), Literal([[1], [0]])), {}, "int32"),
        Interaction("product_beyond_float32", (Literal([[16777217, 1]]), Literal([[1], [0]])), {}, "uint32"),
    ),
}  # fmt: skip


SIZES_OF_A_SIDE = (1, 7, 16, 17, 33, 65, 129, 257)
"""Beside the tiles of 8, 16, 32, 64, 128 and 256."""

SIDES = {
    "m": (*SIZES_OF_A_SIDE, 1025),
    "n": (*SIZES_OF_A_SIDE, 1025),
    "k": (*SIZES_OF_A_SIDE, 513, 4097),
}
"""The borders of [m, k] x [k, n]; products are added over k."""


def draw_matrix(rng: np.random.Generator, *shape: int) -> Array:
    """float32 from [-1, 1)."""
    return rng.uniform(-1, 1, shape).astype(np.float32)


def _make_parts(values: Values, rng: np.random.Generator) -> Parts:
    m, n, k = (values[name] for name in "mnk")
    return Parts((draw_matrix(rng, m, k), draw_matrix(rng, k, n)))


PARAMETER_SPACES = {
    "MatMul": ParameterSpace(
        {"m": 3, "n": 5, "k": 4}, _make_parts, borders=SIDES, empty=("m", "n"), row="k", extremes=ANY_VALUE
    )
}

OPERATORS = declare(
    (
        _operator("MatMul", "", samples),
        _operator("FusedMatMul", MICROSOFT, fused_samples),
        replace(_operator("TransposeMatMul", MICROSOFT, transposed_samples), lower=NO_KERNEL),
        _operator("FusedMatMulActivation", MICROSOFT, softmax_samples),
        _operator("DmlFusedMatMul", DML, dml_fused_samples),
    ),
    interactions=INTERACTIONS,
    parameter_spaces=PARAMETER_SPACES,
    magnitudes={
        "MatMul": ("products",),
        "com.microsoft::FusedMatMul": ("products",),
    },
)
