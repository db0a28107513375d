"""Einsum-12, 28 -> DML_GEMM, DML_REDUCE, DML_ELEMENT_WISE_MULTIPLY1 or DML_ELEMENT_WISE_IDENTITY, by the equation.

Sources: the page Einsum-12, which numpy.einsum implements; which equations the DML EP takes for one operator:
EinSumHelper in ONNX Runtime's OperatorHelper.cpp (products of two matrices in up to four dimensions, the outer product,
permutations, sums over everything or one of two dimensions, elementwise products). Others, among them ones that look
alike, stand beside them.

A label whose sizes are 1 and n has no sample: only the ellipsis broadcasts by the page, numpy goes further. No sum of
integers leaves its type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.interaction import Interaction, Literal, Random
from epcheck.generators.directml import lowering
from epcheck.generators.directml.descriptions.matmul.matrix_multiply import Gemm, MatrixTransform
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.node import Node, Operand
from epcheck.generators.operator import Operator, declare
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("Einsum",)

SIZES = {"i": 3, "j": 4, "k": 5, "l": 2, "a": 2, "b": 3, "A": 4, "B": 2, "I": 2}
"""Of the labels in equations, unless a sample gives shapes."""


@dataclass(frozen=True, kw_only=True)
class EinsumSample(Sample):
    """equation: as the attribute. shapes: of the inputs; None takes the sizes of SIZES."""

    equation: str
    shapes: tuple[tuple[int, ...], ...] | None = None
    values: str = "uniform"

    @property
    def inputs(self) -> tuple[tuple[int, ...], ...]:
        if self.shapes is not None:
            return self.shapes
        terms = self.equation.replace(" ", "").partition("->")[0].split(",")
        return tuple(tuple(SIZES[label] for label in term) for term in terms)


MATRIX_PRODUCTS = {
    "matmul": "ij,jk->ik",
    "matmul_batch": "bij,bjk->bik",
    "matmul_batches": "abij,abjk->abik",
    "matmul_trans_a": "ji,jk->ik",
    "matmul_trans_a_batch": "bji,bjk->bik",
    "matmul_trans_a_batches": "abji,abjk->abik",
    "matmul_trans_b": "ij,kj->ik",
    "matmul_trans_b_batch": "bij,bkj->bik",
    "matmul_trans_b_batches": "abij,abkj->abik",
    "nhcw": "aibj,ajbk->aibk",
    "nhcw_trans_a": "ajbi,ajbk->aibk",
    "nhcw_trans_b": "aibj,akbj->aibk",
    "outer_product": "i,j->ij",
    "inner_product": "i,i->",
}
"""The products that are one DML_GEMM for the DML EP."""

LOOKALIKES = {
    "matmul_result_transposed": "ij,jk->ki",
    "matmul_batch_behind": "bij,bjk->ibk",
    "outer_product_transposed": "i,j->ji",
    "both_transposed": "ji,kj->ik",
    "batch_in_b_only": "ij,bjk->bik",
    "batch_in_a_only": "bij,jk->bik",
    "batch_summed": "bij,bjk->ik",
    "multiply_transposed": "ij,ji->ij",
    "multiply_by_row": "ij,j->ij",
    "multiply_by_column": "ij,i->ij",
    "multiply_and_sum": "ij,ij->i",
    "multiply_and_sum_all": "ij,ij->",
    "bilinear_sum": "i,j->",
    "matrix_by_vector": "ij,j->i",
    "vector_by_matrix": "i,ij->j",
    "tensor_dot": "ijk,kl->ijl",
    "tensor_dot_two_axes": "ijk,jkl->il",
}


def samples() -> Iterator[EinsumSample]:
    for name, equation in MATRIX_PRODUCTS.items():
        yield EinsumSample(name=name, equation=equation, every_dtype="batch" not in name)
    for name, equation in LOOKALIKES.items():
        yield EinsumSample(name=name, equation=equation)
    yield from _one_input()
    yield from _diagonals()
    yield from _implicit()
    yield from _ellipsis()
    yield from _more_inputs()
    yield from _sizes_and_values()
    yield from map(expect_refusal, _list_refused())


def _one_input() -> Iterator[EinsumSample]:
    for labels in ("", "i", "ij", "ijk", "ijkl", "ijkla", "ijklab"):
        yield EinsumSample(
            name=f"identity_rank_{len(labels)}",
            rank=len(labels),
            equation=f"{labels}->{labels}",
            every_dtype=labels == "ij",
        )
    for equation in ("ij->ji", "ijk->kji", "ijk->ikj", "ijk->jik", "ijk->jki", "ijk->kij", "ijkl->lkji", "ijkl->ikjl",
                     "ijkl->klij", "abijk->kjiba"):  # fmt: skip
        name = f"transpose_{equation.replace('->', '_to_')}"
        yield EinsumSample(name=name, equation=equation, every_dtype=equation == "ij->ji")
    for equation in ("i->", "ij->", "ijk->", "ijkl->", "ij->i", "ij->j", "ijk->i", "ijk->ij", "ijk->k", "ijk->ki"):
        name = f"sum_{equation.replace('->', '_to_').rstrip('_')}"
        yield EinsumSample(name=name, equation=equation, every_dtype=equation in ("ij->i", "ij->j", "i->"))
    for labels in ("i", "ij", "ijk", "ijkl"):
        equation = f"{labels},{labels}->{labels}"
        yield EinsumSample(
            name=f"multiply_rank_{len(labels)}", rank=len(labels), equation=equation, every_dtype=labels == "ij"
        )


def _diagonals() -> Iterator[EinsumSample]:
    """A label twice in one term takes its diagonal."""
    square = ((4, 4),)
    yield EinsumSample(name="trace", equation="ii->", shapes=square, every_dtype=True)
    yield EinsumSample(name="trace_implicit", equation="ii", shapes=square)
    yield EinsumSample(name="diagonal", equation="ii->i", shapes=square, every_dtype=True)
    yield EinsumSample(name="trace_of_3", equation="iii->", shapes=((3, 3, 3),))
    yield EinsumSample(name="diagonal_of_batches", equation="bii->bi", shapes=((2, 3, 3),))
    yield EinsumSample(name="traces_of_batches", equation="bii->b", shapes=((2, 3, 3),))
    yield EinsumSample(name="diagonal_of_outer_axes", equation="iji->ij", shapes=((3, 2, 3),))
    yield EinsumSample(name="diagonal_by_matrix", equation="ii,ij->ij", shapes=((3, 3), (3, 4)))
    yield EinsumSample(name="product_of_traces", equation="ii,jj->", shapes=((3, 3), (4, 4)))


def _implicit() -> Iterator[EinsumSample]:
    """Without an arrow the labels that occur once are the result's, in the order of ASCII."""
    for name, equation in {
        "matmul": "ij,jk", "transposes": "ba", "matmul_transposes": "kj,ji", "upper_case_first": "aB",
        "upper_and_lower_differ": "iI", "outer_product": "i,j", "inner_product": "i,i", "one_vector": "i",
        "elementwise_is_a_sum": "ij,ij",
    }.items():  # fmt: skip
        yield EinsumSample(name=f"implicit_{name}", equation=equation)
    yield EinsumSample(name="upper_case_labels", equation="AB,Bi->Ai")
    yield EinsumSample(name="spaces", equation=" i j , j k -> i k ")
    yield EinsumSample(name="spaces_without_arrow", equation="i j, j k")


def _ellipsis() -> Iterator[EinsumSample]:
    def sample(name: str, equation: str, *shapes: tuple[int, ...]) -> EinsumSample:
        return EinsumSample(name=f"ellipsis_{name}", equation=equation, shapes=shapes)

    yield sample("identity", "...->...", (2, 3))
    yield sample("matmul", "...ij,...jk->...ik", (2, 3, 4), (2, 4, 5))
    yield sample("matmul_of_nothing_before", "...ij,...jk->...ik", (3, 4), (4, 5))
    yield sample("matmul_broadcast", "...ij,...jk->...ik", (2, 1, 3, 4), (1, 3, 4, 5))
    yield sample("matmul_implicit", "...ij,...jk", (2, 3, 4), (2, 4, 5))
    yield sample("moved", "i...->...i", (2, 3, 4))
    yield sample("in_the_middle", "i...j->ij...", (2, 3, 4))
    yield sample("summed_beside", "...i->...", (2, 3, 4))
    yield sample("last_product", "...i,...i->...", (2, 3), (2, 3))
    yield sample("in_one_input", "...ij,jk->...ik", (2, 3, 4), (4, 5))
    yield sample("diagonal", "...ii->...i", (2, 3, 3))


def _more_inputs() -> Iterator[EinsumSample]:
    yield EinsumSample(name="chain_of_3", equation="ij,jk,kl->il")
    yield EinsumSample(name="outer_product_of_3", equation="i,j,k->ijk")
    yield EinsumSample(name="bilinear_form", equation="i,ij,j->")
    yield EinsumSample(name="chain_of_4", equation="ij,jk,kl,la->ia")
    yield EinsumSample(name="product_of_scalars", equation=",->", shapes=((), ()))
    yield EinsumSample(name="scalar_by_matrix", equation=",ij->ij", shapes=((), (3, 4)))


def _sizes_and_values() -> Iterator[EinsumSample]:
    def product(name: str, i: int, j: int, k: int, values: str = "uniform") -> EinsumSample:
        return EinsumSample(name=name, equation="ij,jk->ik", shapes=((i, j), (j, k)), values=values)

    yield product("sum_of_nothing", 3, 0, 2)
    yield product("no_rows", 0, 4, 2)
    yield product("all_ones", 1, 1, 1)
    yield product("inner_257", 2, 257, 3)
    yield product("square_33", 33, 33, 33)
    yield product("columns_1025", 2, 3, 1025)
    yield product("infinities", 4, 6, 4, "infinities")
    yield EinsumSample(name="sum_of_1025", equation="i->", shapes=((1025,),))
    yield EinsumSample(name="sum_of_no_elements", equation="i->", shapes=((0,),))
    yield EinsumSample(name="inner_product_of_1025", equation="i,i->", shapes=((1025,), (1025,)))
    yield EinsumSample(name="multiply_1025", equation="i,i->i", shapes=((1025,), (1025,)))


def _list_refused() -> Iterator[EinsumSample]:
    two = ((3, 4), (4, 5))
    yield EinsumSample(name="sizes_differ", equation="ij,jk->ik", shapes=((3, 4), (5, 6)))
    yield EinsumSample(name="too_few_labels", equation="i,jk->ik", shapes=two)
    yield EinsumSample(name="too_many_labels", equation="ijk,jk->ik", shapes=two)
    yield EinsumSample(name="too_few_terms", equation="ij->ij", shapes=two)
    yield EinsumSample(name="too_many_terms", equation="ij,jk,kl->il", shapes=two)
    yield EinsumSample(name="unknown_label_in_result", equation="ij,jk->iz", shapes=two)
    yield EinsumSample(name="digit", equation="i1,1k->ik", shapes=two)


def bindings(sample: EinsumSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if np.dtype(dtypes[0]).kind != "f" and sample.values != "uniform":
        return ()
    established = since_version == schema.since_versions("Einsum")[0]
    if dtypes != ("float32",):
        is_known = established or sample.equation == MATRIX_PRODUCTS["matmul"]
        return (graph.RUNTIME,) if sample.every_dtype and is_known else ()
    if not established:
        return (graph.RUNTIME,) if sample.every_dtype else ()
    if not any(sample.inputs):
        return (graph.RUNTIME, graph.CONSTANT)
    return (
        (graph.RUNTIME, graph.SYMBOLIC) if not sample.every_dtype else (graph.RUNTIME, graph.SYMBOLIC, graph.CONSTANT)
    )


def node(sample: EinsumSample, context: CaseContext) -> Node:
    """Inputs of any dtype, uniform in [-2, 2] or small integers; output Output."""
    shapes = sample.inputs
    names = [f"Inputs_{i}" for i in range(len(shapes))]
    values = (_values(sample.values, shape, context.dtype, context.rng) for shape in shapes)
    operands = tuple(Operand(name, value) for name, value in zip(names, values, strict=True))
    return Node("Einsum", "", context.since_version, operands, ("Output",), {"equation": sample.equation})


def _values(kind: str, shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    if dtype.kind != "f":
        return rng.integers(0 if dtype.kind == "u" else -3, 4, shape).astype(dtype)
    uniform = np.asarray(rng.uniform(-2, 2, shape))
    if kind == "infinities":
        uniform = np.where(rng.random(shape) < 0.1, np.inf, uniform)
    return uniform.astype(dtype)


def _broken_rule(equation: str, shapes: list[tuple[int, ...]]) -> str | None:
    """The rule of the page that the equation breaks."""
    plain = equation.replace(" ", "").replace("...", "")
    left, _, right = plain.partition("->")
    terms = left.split(",")
    if not all(c.isascii() and (c.isalpha() or c == ",") for c in left + right):
        return "an equation has letters, commas, one arrow, ellipses and spaces only"
    if len(terms) != len(shapes):
        return f"the equation has {len(terms)} terms for {len(shapes)} inputs"
    if unknown := set(right) - set(left):
        return f"the result has the label {min(unknown)} of no input"
    sizes: dict[str, int] = {}
    with_dots = equation.replace(" ", "").partition("->")[0].split(",")
    for term, full, shape in zip(terms, with_dots, shapes, strict=True):
        if len(term) > len(shape) or ("..." not in full and len(term) != len(shape)):
            return f"the term {full} has {len(term)} labels for {len(shape)} dimensions"
        if "..." in full:
            continue
        for label, size in zip(term, shape, strict=True):
            if sizes.setdefault(label, size) != size:
                return f"the label {label} stands for sizes {sizes[label]} and {size}"
    return None


def truth(node: Node) -> Truth:
    """numpy.einsum in float64 (int64 for integers), rounded once."""
    values = [operand.value for operand in node.inputs if operand is not None]
    equation = node.text("equation", "")
    if broken := _broken_rule(equation, [value.shape for value in values]):
        return Refusal(broken)
    dtype = values[0].dtype
    wide = [value.astype(np.float64 if dtype.kind == "f" else np.int64) for value in values]
    with np.errstate(all="ignore"):
        exact = np.asarray(np.einsum(equation, *wide))
        magnitude = np.asarray(np.einsum(equation, *map(abs, wide)))
        terms = np.einsum(equation, *(np.ones(value.shape) for value in values))
    if dtype.kind != "f":
        return Outputs((Output("Output", exact.astype(dtype)),))
    length = int(terms.max(initial=0))
    bound = bounds.bound_sum(length, dtype, magnitude, roundings=len(values) - 1)
    return Outputs((bounds.round_output("Output", exact, dtype, bound),))


def _canonical(equation: str) -> str:
    """The equation without spaces, its labels named in the order in which they appear."""
    names: dict[str, str] = {}
    return "".join(
        names.setdefault(c, chr(ord("a") + len(names))) if c.isalpha() else c for c in equation.replace(" ", "")
    )


_GEMM = frozenset(_canonical(equation) for name, equation in MATRIX_PRODUCTS.items() if "nhcw" not in name)


def lower(node: Node) -> Lowering | None:
    """DML_GEMM for the products of matrices, transposed by strides; None for all else.

    Sums, permutations and elementwise products become operators of other families; the NHCW products write a permuted
    output.
    """
    values = [operand.value for operand in node.inputs if operand is not None]
    if _canonical(node.text("equation", "")) not in _GEMM or isinstance(truth(node), Refusal):
        return None
    a, b = values
    if a.dtype.name not in ("float32", "float16") or not a.size or not b.size:
        return None
    left, _, result = node.text("equation", "").replace(" ", "").partition("->")
    a_labels, b_labels = left.split(",")
    shared = [label for label in a_labels if label in b_labels]
    batch = [label for label in shared if label in result]
    inner = [label for label in shared if label not in result]
    rows = [label for label in a_labels if label not in shared]
    columns = [label for label in b_labels if label not in shared]

    def matrices(array: Array, labels: str, first: list[str], second: list[str]) -> Array:
        view = array.transpose([labels.index(label) for label in (*batch, *first, *second)])
        view = view if first else np.expand_dims(view, len(batch))
        return view if second else view[..., None]

    (a_desc, a_view), (b_desc, b_view) = (
        lowering.broadcast(view) for view in (matrices(a, a_labels, rows, inner), matrices(b, b_labels, inner, columns))
    )
    output = lowering.result(a.dtype, (*a_view.shape[:-1], b_view.shape[-1]))
    none = MatrixTransform.NONE
    return Lowering(Gemm(a_desc, b_desc, None, output, none, none, alpha=1.0, beta=0.0), (a_view, b_view, None))


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "Einsum": (
        Interaction("two_sums_in_another_order", (Random((2, 3, 4)), Random((4, 3, 5))),
                {"equation": "ijk,kjl->il"}),
        Interaction("sum_beyond_float64", (Literal([2**53, 1]),), {"equation": "i->"}, "int64"),
    ),
}  # fmt: skip

OPERATORS = declare(
    (Operator("Einsum", samples, bindings, node, truth, lower, propagates=("NaN",)),),
    interactions=INTERACTIONS,
)
