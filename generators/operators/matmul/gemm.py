"""Gemm-7, 9, 11, 13, com.microsoft::FusedGemm and com.microsoft.dml::DmlFusedGemm -> DML_GEMM_OPERATOR_DESC.

Sources: the page Gemm-13 (alpha * A' * B' + beta * C, C broadcast to [M, N]), Gemm-7 and -9, where C is required;
DmlOperatorGemm.cpp. DmlFusedGemm is Gemm-9 and an activation, which the EP's own graph fusion makes, FusedGemm Gemm-11
and one, which ONNX Runtime's makes for the CPU provider.

Integers: the page does not say how a fraction of an integer is rounded nor what an overflow gives, so alpha and beta
are whole numbers there and no sum leaves its type. For an infinite C 0 * C is IEEE 754's NaN by the formula, where
BLAS does not read C, so no sample has both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx.defs import OpSchema

from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.interaction import Interaction, Random
from epcheck.generators.declaration.parameter_space import ANY_VALUE, ParameterSpace, Parts, Values
from epcheck.generators.directml import lowering
from epcheck.generators.directml.descriptions.matmul.matrix_multiply import Gemm, MatrixTransform
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.families import fused_activation
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator, declare, spread
from epcheck.generators.operators.matmul.matmul import DML, MICROSOFT, SIDES, draw_matrix, values_of
from epcheck.generators.oracle_math.activations import FUNCTIONS
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = (
    "Gemm",
    "com.microsoft::FusedGemm",
    "com.microsoft.dml::DmlFusedGemm",
)


@dataclass(frozen=True, kw_only=True)
class GemmSample(Sample):
    """a, b, c: shapes; c None leaves C out. attributes: of the node. values, c_values: see `matmul.values_of`."""

    a: tuple[int, ...] = (3, 4)
    b: tuple[int, ...] = (4, 5)
    c: tuple[int, ...] | None = (3, 5)
    attributes: tuple[tuple[str, Attribute], ...] = ()
    values: str = "uniform"
    c_values: str = "uniform"
    floats: bool = False


C_FORMS = {"whole": (3, 5), "row": (1, 5), "column": (3, 1), "vector": (5,), "one": (1,), "one_by_one": (1, 1),
           "scalar": ()}  # fmt: skip


def samples() -> Iterator[GemmSample]:
    yield GemmSample(name="defaults", every_dtype=True)
    yield from _list_transposed()
    yield from _c_forms()
    yield from _factors()
    yield from _sizes()
    yield from _values()
    yield from map(expect_refusal, _list_refused())


def _list_transposed() -> Iterator[GemmSample]:
    for trans_a in (0, 1):
        for trans_b in (0, 1):
            attributes: tuple[tuple[str, Attribute], ...] = (("transA", trans_a), ("transB", trans_b))
            a, b = ((4, 3) if trans_a else (3, 4)), ((5, 4) if trans_b else (4, 5))
            sample = GemmSample(name=f"trans_a_{trans_a}_trans_b_{trans_b}", a=a, b=b, attributes=attributes)
            yield replace(sample, every_dtype=True)
            yield replace(sample, name=f"{sample.name}_no_c", c=None)
            yield replace(sample, name=f"{sample.name}_square", a=(5, 5), b=(5, 5), c=(5,))
            yield replace(
                sample, name=f"{sample.name}_factors", attributes=(*attributes, ("alpha", 0.5), ("beta", 2.0))
            )
            yield replace(
                sample, name=f"{sample.name}_large", a=tuple(9 * s for s in a), b=tuple(9 * s for s in b), c=(45,)
            )
    yield GemmSample(name="trans_a_2", a=(4, 3), attributes=(("transA", 2),))


def _c_forms() -> Iterator[GemmSample]:
    yield GemmSample(name="c_absent", c=None, every_dtype=True)
    yield GemmSample(name="c_absent_alpha", c=None, attributes=(("alpha", 3.0),), every_dtype=True)
    yield GemmSample(name="c_absent_beta", c=None, attributes=(("beta", 3.0),))
    for name, shape in C_FORMS.items():
        if name != "whole":
            yield GemmSample(name=f"c_{name}", c=shape, every_dtype=name in ("row", "column", "vector", "scalar"))
        yield GemmSample(name=f"c_{name}_beta", c=shape, attributes=(("beta", -2.0),))
    yield GemmSample(name="c_vector_where_square", a=(4, 4), b=(4, 4), c=(4,))
    yield GemmSample(name="c_column_where_square", a=(4, 4), b=(4, 4), c=(4, 1))


def _factors() -> Iterator[GemmSample]:
    for name, value in {"zero": 0.0, "one": 1.0, "minus_one": -1.0, "three": 3.0}.items():
        yield GemmSample(name=f"alpha_{name}", attributes=(("alpha", value),), every_dtype=name == "three")
        yield GemmSample(name=f"beta_{name}", attributes=(("beta", value),), every_dtype=name == "zero")
    for name, value in {"tenth": 0.1, "large": 1e4, "small": 1e-4}.items():
        yield GemmSample(name=f"alpha_{name}", attributes=(("alpha", value),), floats=True)
        yield GemmSample(name=f"beta_{name}", attributes=(("beta", value),), floats=True)
    yield GemmSample(name="alpha_zero_beta_zero", attributes=(("alpha", 0.0), ("beta", 0.0)), every_dtype=True)
    yield GemmSample(name="alpha_zero_c_absent", c=None, attributes=(("alpha", 0.0),))
    yield GemmSample(name="alpha_two_beta_three", attributes=(("alpha", 2.0), ("beta", 3.0)), every_dtype=True)


def _sizes() -> Iterator[GemmSample]:
    yield GemmSample(name="sum_of_nothing", a=(3, 0), b=(0, 5), every_dtype=True)
    yield GemmSample(name="sum_of_nothing_beta", a=(3, 0), b=(0, 5), c=(5,), attributes=(("beta", 2.0),))
    yield GemmSample(name="sum_of_nothing_c_absent", a=(3, 0), b=(0, 5), c=None)
    yield GemmSample(name="no_rows", a=(0, 4), c=(5,))
    yield GemmSample(name="no_columns", b=(4, 0), c=(3, 1))
    yield GemmSample(name="one_by_one", a=(1, 1), b=(1, 1), c=(1, 1))
    yield GemmSample(name="row_by_column", a=(1, 7), b=(7, 1), c=(1,))
    yield GemmSample(name="column_by_row", a=(6, 1), b=(1, 5), c=(6, 5))
    for size in (8, 16, 17, 31, 32, 33):
        yield GemmSample(name=f"square_{size}", a=(size, size), b=(size, size), c=(size,), every_dtype=size == 17)
    for inner in (64, 65, 257, 1025):
        values = "positive" if inner == 257 else "uniform"
        yield GemmSample(
            name=f"inner_{inner}", a=(2, inner), b=(inner, 3), c=(3,), values=values, every_dtype=inner == 257
        )
    yield GemmSample(name="rows_1025", a=(1025, 3), b=(3, 2), c=(2,))
    yield GemmSample(name="columns_1025", a=(2, 3), b=(3, 1025), c=(2, 1))


def _values() -> Iterator[GemmSample]:
    yield GemmSample(name="values_integers", values="integers", c_values="integers", floats=True, every_dtype=True)
    yield GemmSample(name="values_zeros", values="zeros", c_values="zeros")
    for kind in ("infinities", "nan", "cancellation"):
        inner = 64 if kind == "cancellation" else 6
        yield GemmSample(
            name=f"values_{kind}", a=(4, inner), b=(inner, 4), c=(4,), values=kind, floats=True, every_dtype=True
        )
    for kind in ("infinities", "nan"):
        yield GemmSample(name=f"c_values_{kind}", c_values=kind, c=(3, 5), floats=True, every_dtype=True)


def _list_refused() -> Iterator[GemmSample]:
    yield GemmSample(name="inner_sizes_differ", b=(5, 5))
    yield GemmSample(name="c_larger_than_result", c=(2, 3, 5))
    yield GemmSample(name="c_does_not_broadcast", c=(4,))
    yield GemmSample(name="c_column_of_wrong_length", c=(2, 1))
    yield GemmSample(name="a_of_rank_3", rank=3, a=(1, 3, 4))
    yield GemmSample(name="a_of_rank_1", a=(4,), c=(5,))
    yield GemmSample(name="trans_a_mismatch", attributes=(("transA", 1),))


def fused_samples() -> Iterator[GemmSample]:
    """DmlFusedGemm: every activation, and with one of them what a Gemm has."""
    for name in fused_activation.CONTINUOUS:
        defaults = FUNCTIONS[name].parameters.values()
        sample = GemmSample(name=name.lower(), attributes=fused_activation.attributes(name, *defaults))
        yield replace(sample, every_dtype=True)
        if defaults:
            others = fused_activation.attributes(name, *fused_activation.OTHERS[name])
            yield replace(sample, name=f"{sample.name}_other_parameters", attributes=others)
            yield replace(
                sample, name=f"{sample.name}_default_parameters", attributes=fused_activation.attributes(name)
            )
        yield replace(
            sample, name=f"{sample.name}_alpha_beta", attributes=(*sample.attributes, ("alpha", 2.0), ("beta", -1.0))
        )
        if name != "Softsign":  # inf / inf by the page's formula, 1 by its limit
            yield replace(sample, name=f"{sample.name}_infinities", values="one_infinity", floats=True)
        if name != "Relu":
            yield from _transpose(sample)
    relu = fused_activation.attributes("Relu")
    plain = (replace(sample, name=f"relu_{sample.name}") for sample in (*_list_transposed(), *_c_forms(), *_sizes()))
    for sample in (*plain, *map(expect_refusal, _list_refused())):
        if sample.c is not None:
            yield replace(sample, attributes=(*relu, *sample.attributes), every_dtype=False)


def _transpose(sample: GemmSample) -> Iterator[GemmSample]:
    """The activation of a sample with each transposition; those of Relu are in `_list_transposed`."""
    for trans_a, trans_b in ((1, 0), (0, 1), (1, 1)):
        attributes: tuple[tuple[str, Attribute], ...] = (*sample.attributes, ("transA", trans_a), ("transB", trans_b))
        a, b = ((4, 3) if trans_a else (3, 4)), ((5, 4) if trans_b else (4, 5))
        name = f"{sample.name}_trans_a_{trans_a}_trans_b_{trans_b}"
        yield replace(sample, name=name, a=a, b=b, attributes=attributes)
        yield replace(sample, name=f"{name}_square", a=(5, 5), b=(5, 5), c=(5,), attributes=attributes)


def contrib_samples() -> Iterator[GemmSample]:
    """FusedGemm: as DmlFusedGemm, with parameters that are spelled out, and C optional."""
    for name in fused_activation.NAMES:
        defaults = tuple(FUNCTIONS[name].parameters.values())
        sample = GemmSample(name=name.lower(), attributes=fused_activation.attributes_of_gemm(name, *defaults))
        jumps = FUNCTIONS[name].jumps
        if jumps:  # a sum beside the threshold may fall to either side
            sample = replace(sample, values="integers", c_values="integers")
        yield replace(sample, every_dtype=True, floats=True)
        if defaults:
            others = fused_activation.attributes_of_gemm(name, *fused_activation.OTHERS[name])
            yield replace(sample, name=f"{sample.name}_other_parameters", attributes=others, floats=True)
        factors: tuple[tuple[str, Attribute], ...] = (*sample.attributes, ("alpha", 2.0), ("beta", -1.0))
        yield replace(sample, name=f"{sample.name}_alpha_beta", attributes=factors, floats=True)
        if not jumps and name != "Softsign":
            yield replace(sample, name=f"{sample.name}_infinities", values="one_infinity", floats=True)
        if name != "Relu":
            yield from _transpose(replace(sample, floats=True))
            if defaults:
                named = f"{sample.name}_other_parameters"
                yield from _transpose(replace(sample, name=named, attributes=others, floats=True))
    relu = fused_activation.attributes_of_gemm("Relu")
    plain = (replace(sample, name=f"relu_{sample.name}") for sample in (*_list_transposed(), *_c_forms(), *_sizes()))
    for sample in (*plain, *map(expect_refusal, _list_refused())):
        yield replace(sample, attributes=(*relu, *sample.attributes), every_dtype=False, floats=True)


@dataclass(frozen=True)
class _Family:
    """What depends on the operator."""

    name: str
    domain: str = ""

    def bindings(self, sample: GemmSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        if sample.floats and np.dtype(dtypes[0]).kind != "f":
            return ()
        optional = schema.schema(self.name, since_version, self.domain).inputs[2].option
        if sample.c is None and optional != OpSchema.FormalParameterOption.Optional:
            return ()
        newest = since_version == schema.since_versions(self.name, self.domain)[-1]
        chosen = spread(sample, first=dtypes[0] == "float32", newest=newest)
        if sample.a[-1:] == (0,):
            return chosen[:1]  # as in MatMul
        return chosen[:3:2] if self.domain and len(chosen) > 2 else chosen

    def node(self, sample: GemmSample, context: CaseContext) -> Node:
        """A, B and C of any dtype, B and C as exporters write weights; output Y."""
        a, b = (
            values_of(sample.values, shape, context.dtype, context.rng, second)
            for shape, second in ((sample.a, False), (sample.b, True))
        )
        operands = [Operand("A", a), Operand("B", b, parameter=True)]
        if sample.c is not None:
            c = values_of(sample.c_values, sample.c, context.dtype, context.rng, second=False)
            operands.append(Operand("C", c, parameter=True))
        return Node(
            self.name, self.domain, context.since_version, tuple(operands), ("Y",), self._attributes(sample, context)
        )

    @staticmethod
    def _attributes(sample: GemmSample, context: CaseContext) -> dict[str, Attribute]:
        """Without a sign for unsigned integers, which have none."""
        attributes = dict(sample.attributes)
        if context.dtype.kind == "u":
            attributes |= {k: abs(v) for k, v in attributes.items() if k in ("alpha", "beta") and isinstance(v, float)}
        return attributes


def _parse_node(node: Node) -> tuple[Array, Array, Array | None] | str:
    """A', B' and C, or the rule that the node breaks."""
    a, b, c = node.array("A"), node.array("B"), node.value("C")
    if a.ndim != 2 or b.ndim != 2:
        return f"A and B must be matrices; they have {a.ndim} and {b.ndim} dimensions"
    a = a.T if node.integer("transA", 0) else a
    b = b.T if node.integer("transB", 0) else b
    if a.shape[1] != b.shape[0]:
        return f"A' has {a.shape[1]} columns, B' {b.shape[0]} rows"
    result = (a.shape[0], b.shape[1])
    if c is not None:
        try:
            broadcast = np.broadcast_shapes(c.shape, result)
        except ValueError:
            broadcast = ()
        if broadcast != result:
            return f"C {c.shape} does not broadcast to {result}"
    return a, b, c


def truth(node: Node) -> Truth:
    """alpha * A' * B' + beta * C in float64 (integers exactly), rounded once."""
    operands = _parse_node(node)
    if isinstance(operands, str):
        return Refusal(operands)
    a, b, c = operands
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    dtype = a.dtype
    if dtype.kind != "f":
        whole = int(alpha) * np.matmul(a.astype(object), b.astype(object)) if a.size and b.size else _zeros(a, b)
        if c is not None:
            whole = whole + int(beta) * c.astype(object)
        return Outputs((Output("Y", np.asarray(whole).astype(dtype)),))
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    wide_c = np.zeros(()) if c is None else c.astype(np.float64)
    with np.errstate(all="ignore"):
        exact = alpha * (wide_a @ wide_b)
        magnitude = abs(alpha) * (abs(wide_a) @ abs(wide_b))
        if c is not None:
            exact, magnitude = exact + beta * wide_c, magnitude + abs(beta * wide_c)
    bound = bounds.bound_sum(a.shape[1] + 1, dtype, magnitude, roundings=2)
    exact, bound = fused_activation.apply_activation(node, exact, bound, dtype)
    return Outputs((bounds.round_output("Y", exact, dtype, bound),))


def _zeros(a: Array, b: Array) -> Array:
    return np.zeros((a.shape[0], b.shape[1]), object)


def lower(node: Node) -> Lowering | None:
    """DML_GEMM, C broadcast by strides; None for types that it lacks and where there is nothing to multiply."""
    operands = _parse_node(node)
    a, b = node.array("A"), node.array("B")
    if isinstance(operands, str) or a.dtype.name not in ("float32", "float16"):
        return None
    if not a.size or not b.size:
        return None
    sizes = (operands[0].shape[0], operands[1].shape[1])
    (a_desc, a_view), (b_desc, b_view) = lowering.broadcast(a), lowering.broadcast(b)
    c_desc, c_view = lowering.optional(operands[2], sizes)
    trans_a, trans_b = (MatrixTransform(int(bool(node.integer(name, 0)))) for name in ("transA", "transB"))
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    desc = Gemm(
        a_desc,
        b_desc,
        c_desc,
        lowering.result(a.dtype, sizes),
        trans_a,
        trans_b,
        alpha,
        beta,
        fused_activation.description(node),
    )
    return Lowering(desc, (a_view, b_view, c_view))


def _operator(name: str, domain: str, its_samples: Any) -> Operator[GemmSample]:
    family = _Family(name, domain)
    return Operator(name, its_samples, family.bindings, family.node, truth, lower, domain=domain)


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "Gemm": (
        Interaction("row_of_c_and_alpha", (Random((3, 5)), Random((5, 2)), Random((1, 2))), {"alpha": 0.5}),
        Interaction("both_transposed_tall", (Random((3, 5)), Random((2, 3))), {"transA": 1, "transB": 1}),
        Interaction("column_of_c_and_transposed_a", (Random((4, 3)), Random((4, 5)), Random((3, 1))), {"transA": 1}),
    ),
}  # fmt: skip


def _make_parts(values: Values, rng: np.random.Generator) -> Parts:
    m, n, k = (values[name] for name in "mnk")
    a = draw_matrix(rng, *((k, m) if values["transA"] else (m, k)))
    b = draw_matrix(rng, *((n, k) if values["transB"] else (k, n)))
    shapes = {"row": (n,), "scalar": (), "column": (m, 1), "matrix": (m, n), "one": (1,)}
    c = (np.asarray(draw_matrix(rng, *shapes[values["C"]])),) if values["C"] else ()
    return Parts((a, b, *c), {name: values[name] for name in ("transA", "transB", "alpha", "beta")}, (1,))


PARAMETER_SPACES = {
    "Gemm": ParameterSpace(
        {"m": 3, "n": 5, "k": 4},
        _make_parts,
        {
            "transA": (0, 1),
            "transB": (0, 1),
            "alpha": (1.0, 0.5, -2.0),
            "beta": (1.0, 0.25, 0.0),
            "C": ("row", "", "scalar", "column", "matrix", "one"),
        },
        SIDES,
        ("m", "n"),
        row="k",
        extremes=ANY_VALUE,
    )
}

OPERATORS = declare(
    (
        _operator("Gemm", "", samples),
        replace(_operator("FusedGemm", MICROSOFT, contrib_samples), lower=NO_KERNEL),
        _operator("DmlFusedGemm", DML, fused_samples),
    ),
    interactions=INTERACTIONS,
    parameter_spaces=PARAMETER_SPACES,
    magnitudes={
        "Gemm": ("products",),
    },
)
