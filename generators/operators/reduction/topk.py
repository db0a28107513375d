"""TopK-1, 10, 11, 24 -> DML_TOP_K1_OPERATOR_DESC.

Sources: the operator pages TopK-1 (k is an attribute), TopK-10 (K is an input), TopK-11 and TopK-24 (largest, sorted).
How the DML EP lowers it: TopKHelper in ONNX Runtime's OperatorHelper.cpp; TopK-24 has no kernel there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epcheck.generators import data, graph
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.interaction import BESIDE_INT32, Interaction, Literal, Random, int64s
from epcheck.generators.declaration.parameter_space import ANY_VALUE, Parts, Values
from epcheck.generators.directml import AxisDirection, TensorDesc, TopK1
from epcheck.generators.directml.lowering import Lowering, count_missing, pad_rank
from epcheck.generators.families.axis_space import AXES, draw_data, make_axis_space, select_attributes
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import OTHER_RANK, Operator, declare, spread
from epcheck.generators.truth import Refusal, Selection, Truth

DECLARES = ("TopK",)

OUTPUTS = ("Values", "Indices")
DIM = 7
LARGEST_AND_SORTED = 11
"""TopK-11 brings both attributes."""

INT64 = np.iinfo(np.int64)
FLOAT_DATA = frozenset({"nan", "all_nan", "infinities", "signed_zeros", "denormals"})
WIDE_DATA = frozenset({"beyond_2_53"})


@dataclass(frozen=True, kw_only=True)
class TopKSample(Sample):
    """axis, largest, sorted: None leaves the attribute out. values: what the data looks like, see `_values`."""

    shape: tuple[int, ...] = (3, DIM)
    axis: int | None = None
    k: tuple[int, ...] = (3,)
    largest: int | None = None
    sorted: int | None = None
    values: str = "distinct"


def samples() -> Iterator[TopKSample]:
    yield from _attributes()
    yield from _axes_and_ranks()
    yield from _data()
    yield from _sizes()
    yield from map(expect_refusal, _list_refused())


def _attributes() -> Iterator[TopKSample]:
    yield TopKSample(name="defaults", every_dtype=True)
    for largest in (1, 0):
        side = "largest" if largest else "smallest"
        for is_sorted in (1, 0):
            order = "sorted" if is_sorted else "unsorted"
            for name, k in {"0": 0, "1": 1, "2": 2, "dim_minus_1": DIM - 1, "dim": DIM}.items():
                yield TopKSample(
                    name=f"{side}_{order}_k_{name}",
                    k=(k,),
                    largest=largest,
                    sorted=is_sorted,
                    every_dtype=bool(is_sorted and k in (2, DIM)),
                )
    for k in (0, 1, DIM - 1, DIM):
        yield TopKSample(name=f"default_attributes_k_{k}", k=(k,))
    yield TopKSample(name="smallest_sorted_omitted", largest=0)
    yield TopKSample(name="unsorted_largest_omitted", sorted=0)


def _axes_and_ranks() -> Iterator[TopKSample]:
    for axis in (0, 1, 2, -1, -2, -3):
        for largest in (None, 0):
            name = f"axis_{'minus_' if axis < 0 else ''}{abs(axis)}_{'smallest' if largest == 0 else 'largest'}"
            yield TopKSample(name=name, shape=(4, 5, 6), axis=axis, k=(2,), largest=largest, every_dtype=axis == 0)
    for rank in range(1, 9):
        shape = tuple(2 + axis % 2 for axis in range(rank))
        for position, axis in (("first", 0), ("last", -1)):
            yield TopKSample(
                name=f"rank_{rank}_{position}_axis", rank=rank, shape=shape, axis=axis, k=(2,), every_dtype=rank == 8
            )


def _data() -> Iterator[TopKSample]:
    kinds = ("ties", "all_equal", "ascending", "descending", "boundary", "beyond_2_53", *sorted(FLOAT_DATA))
    for kind in kinds:
        for side, largest in (("largest", None), ("smallest", 0)):
            yield TopKSample(
                name=f"{kind}_{side}", shape=(2, 15), k=(5,), largest=largest, values=kind, every_dtype=True
            )
            yield TopKSample(name=f"{kind}_{side}_whole_axis", shape=(2, 15), k=(15,), largest=largest, values=kind)
        yield TopKSample(name=f"{kind}_unsorted", shape=(2, 15), k=(4,), sorted=0, values=kind)
    for side, largest in (("largest", None), ("smallest", 0)):
        yield TopKSample(
            name=f"ties_along_first_axis_{side}", shape=(9, 4), axis=0, k=(4,), largest=largest, values="ties"
        )


def _sizes() -> Iterator[TopKSample]:
    yield TopKSample(name="dim_1", shape=(4, 1), k=(1,))
    yield TopKSample(name="size_1_elsewhere", shape=(1, 6, 1), axis=1, k=(3,))
    yield TopKSample(name="size_0_elsewhere", shape=(0, 5), k=(2,))
    yield TopKSample(name="size_0_axis_k_0", shape=(3, 0), k=(0,))
    for length in (31, 32, 33, 127, 257, 1025, 4097):
        for side, largest in (("largest", None), ("smallest", 0)):
            for kind in ("distinct", "ties"):
                yield TopKSample(
                    name=f"length_{length}_{kind}_{side}",
                    shape=(2, length),
                    k=(length // 2,),
                    largest=largest,
                    values=kind,
                )
    yield TopKSample(name="length_1025_all_equal", shape=(1025,), k=(600,), values="all_equal")
    yield TopKSample(name="many_sequences", shape=(300, 5), k=(2,))
    yield TopKSample(name="many_sequences_first_axis", shape=(5, 300), axis=0, k=(2,))


def _list_refused() -> Iterator[TopKSample]:
    yield TopKSample(name="k_beyond_dim", k=(DIM + 1,))
    yield TopKSample(name="k_int64_max", k=(INT64.max,))
    yield TopKSample(name="k_2_to_the_32_plus_1", k=(2**32 + 1,))
    yield TopKSample(name="k_minus_1", k=(-1,))
    yield TopKSample(name="two_ks", k=(2, 3))
    yield TopKSample(name="axis_at_rank", axis=2)
    yield TopKSample(name="axis_below_rank", axis=-3)
    yield TopKSample(name="k_1_of_size_0_axis", shape=(3, 0), k=(1,))
    yield TopKSample(name="scalar_data", shape=(), k=(1,))


def bindings(sample: TopKSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    kind = np.dtype(dtypes[0]).kind
    has_data = {
        **dict.fromkeys(FLOAT_DATA, kind == "f"),
        **dict.fromkeys(WIDE_DATA, dtypes[0] in ("int64", "uint64", "float64")),
    }.get(sample.values, True)
    if not has_data:
        return ()
    if since_version < LARGEST_AND_SORTED and (sample.largest is not None or sample.sorted is not None):
        return ()
    first = dtypes == ("float32",) or sample.values in WIDE_DATA
    if since_version == 1:
        # For the attribute k the shape inference of onnx itself asks for more than 0; K, an input, may be 0.
        expressible = len(sample.k) == 1 and sample.k != (0,) and (first or sample.every_dtype)
        return (graph.RUNTIME,) if expressible else ()
    return spread(sample, first=first, newest=since_version == LARGEST_AND_SORTED, scalar=not sample.shape)


def node(sample: TopKSample, context: CaseContext) -> Node:
    """X [a0, ..., an-1] of any dtype; K int64 [1] (an attribute in TopK-1). Values has X's dtype, Indices int64."""
    operand = Operand("X", _values(sample, context.dtype, context.rng))
    settings = {"axis": sample.axis, "largest": sample.largest, "sorted": sample.sorted}
    attributes: dict[str, Attribute] = {name: value for name, value in settings.items() if value is not None}
    if context.since_version == 1:
        return Node("TopK", "", 1, (operand,), OUTPUTS, attributes | {"k": sample.k[0]})
    k = Operand("K", np.array(sample.k, np.int64), parameter=True)
    return Node("TopK", "", context.since_version, (operand, k), OUTPUTS, attributes)


def _values(sample: TopKSample, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    count = int(np.prod(sample.shape, dtype=np.int64))
    match sample.values:
        case "distinct":
            return data.distinct(sample.shape, dtype, rng)
        case "ties":
            flat = rng.integers(0, 4, count).astype(dtype)
        case "all_equal":
            flat = np.full(count, 3, dtype)
        case "ascending":
            flat = np.arange(count).astype(dtype)
        case "descending":
            flat = np.arange(count)[::-1].astype(dtype)
        case "boundary":
            return _shuffle_values(data.boundary(dtype), sample.shape, rng)
        case "beyond_2_53":
            top = 2**63 if dtype == np.uint64 else 2**53
            flat = np.array([top + int(v) for v in rng.integers(-3, 4, count)], dtype)
        case "nan":
            rows = (rng.permutation(count) - count // 2).astype(dtype).reshape(sample.shape)
            rows[..., :: sample.shape[-1] // 4] = np.nan
            rows[..., 1], rows[..., 2] = np.inf, -np.inf
            return rows
        case "all_nan":
            flat = np.full(count, np.nan, dtype)
        case "infinities":
            flat = rng.choice(np.array([np.inf, -np.inf, 1.0, -1.0, 0.0], dtype), count)
        case "signed_zeros":
            flat = rng.choice(np.array([0.0, -0.0], dtype), count)
        case "denormals":
            return _shuffle_values(data.denormals(dtype), sample.shape, rng)
        case other:
            raise ValueError(f"TopK sample {sample.name}: unknown kind of data '{other}'")
    return flat.reshape(sample.shape)


def _shuffle_values(values: Array, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Every row holds all of `values`, as often as there is room, in an order of its own."""
    rows = np.resize(values, (int(np.prod(shape[:-1], dtype=np.int64)), shape[-1]))
    return rng.permuted(rows, axis=1).reshape(shape)


@dataclass(frozen=True)
class _Question:
    """A valid node in plain terms: axis is not negative."""

    values: Array
    axis: int
    k: int
    largest: bool
    ordered: bool


def truth(node: Node) -> Truth:
    """TopK-24's text: the k largest (smallest) along the axis; among equals the lower index first.

    k = 0 selects nothing (the page calls K positive and gives a shape that is well defined for 0; runtimes accept it).
    The standard is silent on where NaN stands: at either end is accepted, in between is not, since then no total
    order exists and elements are lost.
    """
    question = _question(node)
    if isinstance(question, str):
        return Refusal(question)
    has_nan = question.values.dtype.kind == "f" and bool(np.isnan(question.values).any())
    nan_first = (question.largest, not question.largest) if has_nan else (question.largest,)
    accepted = tuple(_select(question, first) for first in nan_first)
    return Selection(question.values, question.axis, accepted, question.ordered, OUTPUTS)


def _question(node: Node) -> _Question | str:
    x = node.value("X")
    assert x is not None
    counts = node.value("K")
    ks = np.array([node.attributes["k"]]) if counts is None else counts
    axis = node.integer("axis", -1)
    if not -x.ndim <= axis < x.ndim:
        return f"axis {axis} must be within [{-x.ndim}, {x.ndim - 1}] for rank {x.ndim}"
    if ks.shape != (1,):
        return "K must be a 1-D tensor with a single value"
    if not 0 <= int(ks[0]) <= x.shape[axis]:
        return f"k = {int(ks[0])} must be within [0, {x.shape[axis]}], the length of the axis"
    largest, is_sorted = (bool(node.attributes.get(name, 1)) for name in ("largest", "sorted"))
    return _Question(x, axis % x.ndim, int(ks[0]), largest, is_sorted)


def _select(question: _Question, nan_first: bool) -> tuple[Array, Array]:
    """(values, indices int64), sorted by value, NaN at one end, equal elements by ascending index."""
    rows = np.moveaxis(question.values, question.axis, -1)
    floating = rows.dtype.kind == "f"
    key = rows if not question.largest else -rows if floating else ~rows
    if floating and (nan := np.isnan(rows)).any():
        order = np.lexsort((np.where(nan, key.dtype.type(0), key), ~nan if nan_first else nan), axis=-1)
    else:
        order = np.argsort(key, axis=-1, kind="stable")
    order = order[..., : question.k]
    selected = np.take_along_axis(rows, order, -1)
    back = (np.moveaxis(part, -1, question.axis) for part in (selected, order.astype(np.int64)))
    values, indices = (np.ascontiguousarray(part) for part in back)
    return values, indices


def lower(node: Node) -> Lowering | None:
    """Rank padded to 4, indices UINT64; `sorted` has no counterpart; None when nothing is selected."""
    question = _question(node)
    if isinstance(question, str) or question.k == 0 or question.values.size == 0:
        return None
    values = pad_rank(question.values)
    axis = question.axis + count_missing(question.values.ndim)
    sizes = (*values.shape[:axis], question.k, *values.shape[axis + 1 :])
    desc = TopK1(
        input_tensor=TensorDesc.of(values),
        output_value_tensor=TensorDesc.of(values, sizes=sizes),
        output_index_tensor=TensorDesc.of(np.empty(0, np.uint64), sizes=sizes),
        axis=axis,
        k=question.k,
        axis_direction=AxisDirection.DECREASING if question.largest else AxisDirection.INCREASING,
    )
    return Lowering(desc, (values,))


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "TopK": (
        Interaction("beyond_int32", (Literal(BESIDE_INT32), int64s(3)), {"axis": 0}, "int64", 2),
        Interaction("least_beyond_int32", (Literal(BESIDE_INT32), int64s(3)), {"axis": 0, "largest": 0}, "int64", 2),
        Interaction("one_of_two_greatest", (Literal([1.0, 5.0, 5.0, 2.0]), int64s(1)), {"axis": 0}, "float32", 2),
        Interaction("one_of_two_least", (Literal([3.0, 1.0, 1.0]), int64s(1)), {"axis": 0, "largest": 0}, "float32",
                2),
        Interaction("all_least_along_the_first_axis", (Random((4, 3)), int64s(4)), {"axis": 0, "largest": 0},
                "float32",
                2),
    ),
}  # fmt: skip


def _make_parts(values: Values, rng: np.random.Generator) -> Parts:
    """Values that all differ, so that their order is defined."""
    data = draw_data(values, rng)
    data = rng.permutation(np.arange(data.size, dtype=np.float32)).reshape(data.shape)
    inputs = (data, np.array([values["k"]], np.int64))
    return Parts(inputs, select_attributes(values, "axis", "largest", "sorted"), (1,))


PARAMETER_SPACES = {
    "TopK": make_axis_space(
        _make_parts, {"axis": AXES, "largest": (1, 0), "sorted": (1, 0), "k": (1, 2)}, ANY_VALUE[1:]
    )
}

OPERATORS = declare(
    (Operator("TopK", samples, bindings, node, truth, lower, without_rank_9=OTHER_RANK),),
    interactions=INTERACTIONS,
    parameter_spaces=PARAMETER_SPACES,
)
