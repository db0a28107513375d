"""Operators of com.microsoft whose results are exact: ExpandDims, UnfoldTensor, Unique, NGramRepeatBlock and
MatMulInteger16.

Source: ONNX Runtime's ContribOperators.md. The page of UnfoldTensor names no defaults, so that every node has all
attributes; that of MatMulInteger16 lets sums that leave 32 bits overflow, and no sample has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator, spread
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = (
    "com.microsoft::ExpandDims",
    "com.microsoft::UnfoldTensor",
    "com.microsoft::Unique",
    "com.microsoft::NGramRepeatBlock",
    "com.microsoft::MatMulInteger16",
)

MICROSOFT = "com.microsoft"


@dataclass(frozen=True, kw_only=True)
class ExactSample(Sample):
    """shapes: of the inputs. highest: of integers that are drawn, from 0 on (of MatMulInteger16 also below); None for
    the whole type. fixed: inputs by name that are not drawn."""

    shapes: tuple[tuple[int, ...], ...]
    highest: int | None = None
    fixed: Mapping[str, int | tuple[int, ...]] = field(default_factory=dict)
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


def _label(value: int) -> str:
    return f"minus_{-value}" if value < 0 else str(value)


def expand_samples() -> Iterator[ExactSample]:
    for rank in (0, 1, 2, 3, 4, 7):
        shape = tuple(2 + axis % 2 for axis in range(rank))
        for axis in sorted({0, rank, rank // 2, -1, -rank - 1}):
            yield ExactSample(name=f"rank_{rank}_axis_{_label(axis)}", rank=rank, shapes=(shape,), fixed={"axis": axis},
                              every_dtype=rank == 2)  # fmt: skip
    yield ExactSample(name="size_0", shapes=((2, 0),), fixed={"axis": 1})
    yield ExactSample(name="length_1025", shapes=((1025,),), fixed={"axis": 0})
    yield expect_refusal(ExactSample(name="axis_beyond_rank", shapes=((2, 3),), fixed={"axis": 3}))
    yield expect_refusal(ExactSample(name="axis_below", shapes=((2, 3),), fixed={"axis": -4}))


def expand(node: Node) -> list[Array] | str:
    x, axis = node.array("X"), int(node.array("axis"))
    if not -x.ndim - 1 <= axis <= x.ndim:
        return f"axis {axis} must be within [{-x.ndim - 1}, {x.ndim}]"
    return [np.expand_dims(x, axis)]


def unfold_samples() -> Iterator[ExactSample]:
    for dim in (0, 1, 2, -1, -2, -3):
        for size, step in ((2, 1), (3, 2), (1, 3), (5, 1)):
            attributes: Mapping[str, Attribute] = {"dim": dim, "size": size, "step": step}
            yield ExactSample(name=f"dim_{_label(dim)}_size_{size}_step_{step}", shapes=((6, 7, 5),),
                              attributes=attributes, every_dtype=(size, step) == (3, 2))  # fmt: skip
    long: Mapping[str, Attribute] = {"dim": 0, "size": 17, "step": 5}
    yield ExactSample(name="length_1025", shapes=((1025,),), attributes=long)
    yield ExactSample(name="rows_1025", shapes=((1025, 4),), attributes={"dim": 1, "size": 3, "step": 1})
    yield ExactSample(name="rest_left_out", shapes=((8,),), attributes={"dim": 0, "size": 3, "step": 3})
    yield expect_refusal(ExactSample(name="size_beyond", shapes=((4,),), attributes={"dim": 0, "size": 5, "step": 1}))
    yield expect_refusal(ExactSample(name="dim_at_rank", shapes=((4,),), attributes={"dim": 1, "size": 2, "step": 1}))


def unfold(node: Node) -> list[Array] | str:
    x, dim = node.array("input"), node.integer("dim", -1)
    size, step = node.integer("size", 1), node.integer("step", 1)
    if not -x.ndim <= dim < x.ndim:
        return f"dim {dim} must be within [{-x.ndim}, {x.ndim - 1}]"
    if size > x.shape[dim]:
        return f"size {size} is larger than dimension {dim}, {x.shape[dim]}"
    starts = np.arange(0, x.shape[dim] - size + 1, step)
    pieces = np.take(x, starts[:, None] + np.arange(size), dim % x.ndim)
    return [np.moveaxis(pieces, dim % x.ndim + 1, -1)]


def unique_samples() -> Iterator[ExactSample]:
    for length, highest in ((6, 3), (1, 3), (0, 3), (257, 9), (1025, 999), (33, 0)):
        yield ExactSample(name=f"length_{length}_of_{highest + 1}", shapes=((length,),), highest=highest)
    yield expect_refusal(ExactSample(name="matrix", shapes=((2, 3),), highest=3))


def list_unique(node: Node) -> list[Array] | str:
    x = node.array("x")
    if x.ndim != 1:
        return f"x must have one dimension, not {x.ndim}"
    _, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return [x[first[order]], place[inverse].astype(np.int64), counts[order].astype(np.int64)]


def repeat_samples() -> Iterator[ExactSample]:
    for size in (1, 2, 3, 4):
        for batch, sequence, vocabulary in ((1, 12, 3), (3, 33, 4), (2, 257, 7)):
            yield ExactSample(name=f"size_{size}_sequence_{sequence}", shapes=((batch, sequence), (batch, vocabulary)),
                              highest=vocabulary - 1, attributes={"ngram_size": size})  # fmt: skip
    shapes = ((2, 3), (2, 5))
    yield ExactSample(name="sequence_shorter", shapes=shapes, highest=4, attributes={"ngram_size": 4})
    yield ExactSample(name="sequence_as_long", shapes=shapes, highest=4, attributes={"ngram_size": 3})


def block_repeats(node: Node) -> list[Array]:
    tokens, scores = node.array("input_ids"), node.array("scores").copy()
    size = node.integer("ngram_size", 1)
    for row, ids in enumerate(tokens):
        tail = ids[len(ids) - size + 1 :]
        for start in range(len(ids) - size + 1):
            if np.array_equal(ids[start : start + size - 1], tail):
                scores[row, ids[start + size - 1]] = -np.inf
    return [scores]


def product_samples() -> Iterator[ExactSample]:
    for name, a, b in (
        ("matrices", (3, 4), (4, 5)), ("batch", (2, 3, 4), (2, 4, 5)), ("batch_of_a", (2, 3, 4), (4, 5)),
        ("batch_of_b", (3, 4), (2, 4, 5)), ("both_ways", (3, 1, 2, 4), (2, 4, 3)), ("one_by_one", (1, 1), (1, 1)),
        ("square_17", (17, 17), (17, 17)), ("rows_1025", (1025, 3), (3, 2)), ("columns_1025", (2, 3), (3, 1025)),
        ("vector_by_matrix", (4,), (4, 5)), ("matrix_by_vector", (3, 4), (4,)), ("no_rows", (0, 4), (4, 5)),
    ):  # fmt: skip
        yield ExactSample(name=name, shapes=(a, b), highest=1000)
    yield ExactSample(name="ends", shapes=((5, 1), (1, 5)))
    yield ExactSample(name="inner_257", shapes=((2, 257), (257, 3)), highest=2000)
    yield expect_refusal(ExactSample(name="inner_sizes_differ", shapes=((3, 4), (5, 4)), highest=9))


def multiply(node: Node) -> list[Array] | str:
    a, b = (node.array(name).astype(np.int64) for name in "AB")
    try:
        return [np.asarray(np.matmul(a, b)).astype(np.int32)]
    except ValueError:
        return f"the shapes {a.shape} and {b.shape} have no product"


@dataclass(frozen=True)
class Exact:
    """An operator. inputs: name -> its dtype, empty for that of the case. first: of which all samples are."""

    name: str
    inputs: Mapping[str, str]
    outputs: tuple[str, ...]
    samples: Callable[[], Iterator[ExactSample]]
    evaluate: Callable[[Node], list[Array] | str]
    varied: tuple[str, ...] = ("T",)
    first: str = "float32"
    without_rank_dtypes: str = ""

    def bindings(self, sample: ExactSample, _version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        scalar = not any(sample.shapes)
        ways = spread(sample, first=dtypes[0] == self.first, newest=True, scalar=scalar)
        if sample.fixed:
            # A constant axis ends the process of releases before 1.31 while a model is loaded: a few cases tell that.
            constant = graph.INITIALIZER in ways and len(ways) > 2 and (sample.every_dtype or sample.refused)
            return (graph.INITIALIZER, graph.RUNTIME) if constant else (graph.RUNTIME,) if graph.RUNTIME in ways else ()
        return tuple(way for way in ways if way != graph.INITIALIZER) or ways[:1]

    def node(self, sample: ExactSample, context: CaseContext) -> Node:
        operands, shapes = [], iter(sample.shapes)
        for name, own in self.inputs.items():
            dtype = np.dtype(own) if own else context.dtype
            if name in sample.fixed:
                operands.append(Operand(name, np.array(sample.fixed[name], dtype), parameter=True))
            else:
                operands.append(Operand(name, self._draw(next(shapes), dtype, sample, context.rng)))
        attributes = dict(sample.attributes)
        return Node(self.name, MICROSOFT, context.since_version, tuple(operands), self.outputs, attributes)

    def _draw(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], sample: ExactSample, rng: np.random.Generator
    ) -> Array:
        if sample.highest is not None and (dtype.kind != "f" or self.name == "Unique"):
            low = -sample.highest if dtype == np.int16 else 0
            return rng.integers(low, sample.highest, shape, endpoint=True).astype(dtype)
        if dtype.kind == "b":
            return rng.random(shape) < 0.5
        if dtype.kind == "f":
            return rng.standard_normal(shape).astype(dtype)
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)

    def truth(self, node: Node) -> Truth:
        """What the page says, exactly."""
        found = self.evaluate(node)
        if isinstance(found, str):
            return Refusal(found)
        return Outputs(tuple(Output(name, value) for name, value in zip(node.results, found, strict=True)))


CONSTANT_AXIS = "they would have a constant axis, which ends the process of releases before 1.31"

FAMILIES = (
    Exact("ExpandDims", {"X": "", "axis": "int32"}, ("Y",), expand_samples, expand, without_rank_dtypes=CONSTANT_AXIS),
    Exact("UnfoldTensor", {"input": ""}, ("output",), unfold_samples, unfold),
    Exact("Unique", {"x": ""}, ("y", "idx", "counts"), unique_samples, list_unique),
    Exact("NGramRepeatBlock", {"input_ids": "int64", "scores": ""}, ("scores_out",), repeat_samples, block_repeats),
    Exact("MatMulInteger16", {"A": "int16", "B": "int16"}, ("Y",), product_samples, multiply, ("T1",), "int16"),
)

OPERATORS = tuple(
    Operator(each.name, each.samples, each.bindings, each.node, each.truth, NO_KERNEL, each.varied, MICROSOFT,
             without_rank_dtypes=each.without_rank_dtypes)
    for each in FAMILIES
)  # fmt: skip
