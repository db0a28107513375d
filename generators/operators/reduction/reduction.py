"""ReduceL1, L2, LogSum, LogSumExp, Max, Mean, Min, Prod, Sum, SumSquare -> DML_REDUCE_OPERATOR_DESC.

Sources: the operator pages. `axes` is an attribute of the older revisions and an input of the newer ones; with
`noop_with_empty_axes` and no axes, nothing is reduced, but what else the operator does (log, square, absolute value)
still happens. Reducing nothing gives 0 for a sum, 1 for a product, -infinity or the least value for Max, the opposite
for Min, -infinity for the logarithms; the newer revisions are asked for it, in a few dtypes. The mean of nothing is
undefined and has no sample, and integers have none for the logarithm of nothing. Negative axes begin with revision 11.

NaN: the pages of Max and Min are silent; the suite follows IEEE 754-2019 `maximum` and ReferenceEvaluator: NaN stays.
Integers are kept small enough that nothing wraps around, and such that a mean, a root or a logarithm is an integer,
since how an operator rounds to an integer type is said nowhere. Squares that leave the range of a float while
their root is within it, too, are left out: the page defines ReduceL2 by its formula.

Bounds: a sum by `bounds.bound_sum`. A mean and L2 divide it or take its root. The logarithm of a sum s: the sum's
relative error becomes absolute, and log has its own. LogSumExp: exp's relative error of each term, weighted by the
share of the term, goes through the logarithm in the same way; shifted by the maximum or not is left to the provider, so
the greater of both arguments counts.

How the DML EP lowers it: DmlOperatorReduce.cpp, rank at least 1, the reduced axes stay with size 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from epcheck.generators import data, graph, schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds, propagation
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.interaction import (
    ABOVE_GROUPS,
    BESIDE_INT32,
    DISPATCHED,
    Arange,
    Interaction,
    Literal,
    Random,
    int64s,
)
from epcheck.generators.declaration.parameter_space import ANY_VALUE, Parts, Values
from epcheck.generators.declaration.undefined_sample import (
    EMPTY_ROWS,
    NO_IDENTITY,
    Answer,
    UndefinedSample,
    UndefinedSamples,
)
from epcheck.generators.directml import TensorDesc
from epcheck.generators.directml.descriptions.reduction.reduction import Reduce, ReduceFunction
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.directml.tensor import MAX_RANK
from epcheck.generators.families.axis_space import make_axis_space, make_shape
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import Operator, declare
from epcheck.generators.truth import Exact, Output, Outputs, Refusal, Truth, Ulp

DECLARES = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
)

Axes = tuple[int, ...]
EMPTY_DTYPES = frozenset({"int8", "uint32", "bool"})
FLOAT_DATA = frozenset({"nan", "infinities", "cancellation", "offset", "large", "very_negative", "minus_infinity"})


@dataclass(frozen=True, kw_only=True)
class ReduceSample(Sample):
    """axes, keepdims, noop: None leaves them out. values: what the data looks like, see `_values`.

    only: the operators for which the sample says something; empty for all.
    """

    shape: tuple[int, ...] = (3, 4, 5)
    axes: Axes | None = None
    keepdims: int | None = None
    noop: int | None = None
    values: str = "plain"
    only: tuple[str, ...] = ()


def samples(name: str) -> Iterator[ReduceSample]:
    for sample in (*_attributes(), *_ranks_and_sizes(), *_data(), *map(expect_refusal, _list_refused())):
        if not sample.only or name in sample.only:
            yield sample


def _attributes() -> Iterator[ReduceSample]:
    yield ReduceSample(name="defaults", every_dtype=True)
    yield ReduceSample(name="keepdims_0", keepdims=0)
    yield ReduceSample(name="keepdims_1", keepdims=1)
    for axis in range(3):
        yield ReduceSample(name=f"axis_{axis}", axes=(axis,), every_dtype=axis == 1)
    yield ReduceSample(name="axis_1_keepdims_0", axes=(1,), keepdims=0, every_dtype=True)
    yield ReduceSample(name="axes_0_1", axes=(0, 1))
    yield ReduceSample(name="axes_0_2", axes=(0, 2))
    yield ReduceSample(name="axes_0_2_keepdims_0", axes=(0, 2), keepdims=0)
    yield ReduceSample(name="axes_2_0", axes=(2, 0))
    yield ReduceSample(name="axes_0_1_2_keepdims_0", axes=(0, 1, 2), keepdims=0)
    for axis in (1, 3):
        yield ReduceSample(name=f"axis_minus_{axis}", axes=(-axis,))
    yield ReduceSample(name="axes_minus_1_minus_3_keepdims_0", axes=(-1, -3), keepdims=0)
    yield ReduceSample(name="axes_0_minus_1", axes=(0, -1), every_dtype=True)
    yield ReduceSample(name="axes_empty", axes=(), noop=0)
    yield ReduceSample(name="axes_empty_keepdims_0", axes=(), keepdims=0)
    yield ReduceSample(name="noop_axes_empty", axes=(), noop=1)
    yield ReduceSample(name="noop_axes_empty_keepdims_0", axes=(), noop=1, keepdims=0)
    yield ReduceSample(name="noop_axes_omitted", noop=1)
    yield ReduceSample(name="noop_with_an_axis", axes=(1,), noop=1)


def _ranks_and_sizes() -> Iterator[ReduceSample]:
    for rank in range(9):
        shape = tuple(2 + axis % 2 for axis in range(rank))
        yield ReduceSample(name=f"rank_{rank}", rank=rank, shape=shape)
        if rank > 3:
            yield ReduceSample(
                name=f"rank_{rank}_outer_axes_keepdims_0", rank=rank, shape=shape, axes=(0, rank - 1), keepdims=0
            )
    yield ReduceSample(name="size_1_reduced", shape=(4, 1, 3), axes=(1,), keepdims=0, every_dtype=True)
    yield ReduceSample(name="size_1_kept", shape=(1, 5, 1), axes=(1,))
    yield ReduceSample(name="size_1_everywhere", shape=(1, 1))
    defined = tuple(name for name in FUNCTIONS if name != "ReduceMean")
    yield ReduceSample(name="size_0_reduced", shape=(3, 0, 2), axes=(1,), only=defined)
    extremes = ("ReduceMax", "ReduceMin")
    yield ReduceSample(name="size_0_least_value", shape=(0, 3), axes=(0,), every_dtype=True, only=extremes)
    yield ReduceSample(name="size_0_kept", shape=(0, 3), axes=(1,))
    for length in (31, 33, 127, 257, 1025, 4097):
        yield ReduceSample(name=f"length_{length}", shape=(2, length), axes=(1,))
    yield ReduceSample(name="length_1025_first_axis", shape=(1025, 3), axes=(0,))
    yield ReduceSample(name="length_2145_both_axes", shape=(33, 65))
    yield ReduceSample(name="many_windows", shape=(400, 3), axes=(1,), keepdims=0)


def _data() -> Iterator[ReduceSample]:
    yield ReduceSample(name="nan", shape=(4, 5), axes=(1,), values="nan", every_dtype=True)
    yield ReduceSample(name="infinities", shape=(4, 5), axes=(1,), values="infinities", every_dtype=True)
    yield ReduceSample(
        name="boundary", shape=(4, 6), axes=(1,), values="boundary", every_dtype=True, only=("ReduceMax", "ReduceMin")
    )
    linear = ("ReduceSum", "ReduceMean")
    yield ReduceSample(name="cancellation", shape=(3, 64), axes=(1,), values="cancellation", only=linear)
    yield ReduceSample(name="cancellation_length_2048", shape=(2048,), values="cancellation", only=linear)
    yield ReduceSample(name="offset", shape=(3, 40), axes=(1,), values="offset", only=(*linear, "ReduceLogSum"))
    norms = ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceProd", "ReduceSumSquare")
    yield ReduceSample(name="zeros", shape=(3, 5), axes=(1,), values="zeros", only=norms)
    for values in ("large", "very_negative", "minus_infinity"):
        yield ReduceSample(
            name=values, shape=(3, 5), axes=(1,), values=values, only=("ReduceLogSumExp",), every_dtype=True
        )


def _list_refused() -> Iterator[ReduceSample]:
    yield ReduceSample(name="axis_at_rank", axes=(3,))
    yield ReduceSample(name="axis_below_rank", axes=(-4,))


def axes_are_input(name: str, since_version: int) -> bool:
    return len(schema.schema(name, since_version).inputs) > 1


@cache
def _first_with_input(name: str) -> int:
    """The revision in which every way for the axes to enter the model is tried; the newer ones differ in types only."""
    return next(version for version in schema.since_versions(name) if axes_are_input(name, version))


def bindings(name: str, sample: ReduceSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    dtype = np.dtype(dtypes[0])
    first = dtypes[0] == "float32"
    as_input = axes_are_input(name, since_version)
    if not (first or sample.every_dtype) or not _applies(name, sample, since_version, dtype):
        return ()
    if _reduces_nothing(sample):
        asked = dtypes[0] in EMPTY_DTYPES if sample.every_dtype else first
        return (graph.RUNTIME,) if as_input and asked else ()
    if not as_input:
        return (graph.RUNTIME,)
    has_axes = sample.axes is not None
    if since_version > _first_with_input(name):
        return (graph.INITIALIZER,) if has_axes else (graph.RUNTIME,)
    if not first:
        return (graph.INITIALIZER, graph.RUNTIME) if has_axes else (graph.RUNTIME,)
    symbolic = (graph.SYMBOLIC,) if sample.shape else ()
    return (graph.INITIALIZER, graph.RUNTIME, *symbolic) if has_axes else (graph.RUNTIME, *symbolic)


def _reduces_nothing(sample: ReduceSample) -> bool:
    axes = _axes(sample.axes, sample.noop, len(sample.shape))
    return not isinstance(axes, str) and any(sample.shape[axis] == 0 for axis in axes)


def _applies(name: str, sample: ReduceSample, since_version: int, dtype: np.dtype[Any]) -> bool:
    if not axes_are_input(name, since_version) and (sample.noop is not None or sample.axes == ()):
        return False
    axes = _axes(sample.axes, sample.noop, len(sample.shape))
    if since_version == 1 and min(sample.axes or (0,)) < 0:
        return False
    nothing = _reduces_nothing(sample)
    if nothing and (name == "ReduceMean" or "empty set" not in (schema.schema(name, since_version).doc or "")):
        return False
    if dtype.kind == "f":
        return True
    if sample.values in FLOAT_DATA or (nothing and "Log" in name):
        return False
    windows_of_one = not isinstance(axes, str) and all(sample.shape[axis] == 1 for axis in axes)
    return name != "ReduceLogSumExp" or windows_of_one


def node(name: str, sample: ReduceSample, context: CaseContext) -> Node:
    """data of any rank; axes int64 [count], an attribute of the older revisions. reduced has the dtype of data."""
    inputs = [Operand("data", _values(name, sample, context))]
    settings = {"keepdims": sample.keepdims, "noop_with_empty_axes": sample.noop, "axes": sample.axes}
    if axes_are_input(name, context.since_version):
        if sample.axes is not None:
            inputs.append(Operand("axes", np.array(sample.axes, np.int64), parameter=True))
        del settings["axes"]
    attributes: dict[str, Attribute] = {key: value for key, value in settings.items() if value is not None}
    return Node(name, "", context.since_version, tuple(inputs), ("reduced",), attributes)


def _values(name: str, sample: ReduceSample, context: CaseContext) -> Array:
    axes = _axes(sample.axes, sample.noop, len(sample.shape))
    reduced = () if isinstance(axes, str) else axes
    if context.dtype.kind == "f":
        return _floats(name, sample, context.dtype, context.rng)
    if name in ("ReduceMax", "ReduceMin"):
        if sample.values == "boundary":
            return context.rng.choice(data.boundary(context.dtype), sample.shape)
        return data.distinct(sample.shape, context.dtype, context.rng)
    return _integers(name, sample.shape, reduced, context.dtype, context.rng)


def _floats(name: str, sample: ReduceSample, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    low, high = {"ReduceProd": (0.86, 1.16), "ReduceLogSum": (0.25, 4.0)}.get(name, (-4.0, 4.0))
    plain = np.asarray(rng.uniform(low, high, sample.shape)).astype(dtype)
    if name == "ReduceProd":
        plain = plain * rng.choice(np.array([-1, 1], dtype), sample.shape)
    match sample.values:
        case "plain":
            return plain
        case "nan":
            for row, column in enumerate((0, 2, 4)):
                plain[row, column] = np.nan
        case "infinities":
            plain[0, 1], plain[1, 3] = np.inf, -np.inf
            plain[2, 0], plain[2, 4] = -np.inf, np.inf
        case "boundary":
            # max(+0, -0) is said nowhere.
            ordered = data.boundary_floats(dtype)
            return rng.choice(ordered[~((ordered == 0) & np.signbit(ordered))], sample.shape)
        case "cancellation":
            half = (1000 * plain[..., ::2]).astype(dtype)
            both = np.concatenate([half, -half], axis=-1) + np.asarray(rng.uniform(0, 1, sample.shape)).astype(dtype)
            return rng.permuted(both.astype(dtype), axis=-1)
        case "offset":
            return (plain / 8 + 500).astype(dtype)
        case "zeros":
            plain[0], plain[1, 2] = 0, 0
        case "large":
            return (plain + 100).astype(dtype)
        case "very_negative":
            return (plain - 100).astype(dtype)
        case "minus_infinity":
            plain[0], plain[1, 1:4], plain[2, 2] = -np.inf, -np.inf, -np.inf
        case other:
            raise ValueError(f"{name} sample {sample.name}: unknown kind of data '{other}'")
    return plain


def _integers(name: str, shape: tuple[int, ...], axes: Axes, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Small integers whose reduction is an integer without wrapping around."""
    low = 0 if dtype.kind == "u" else -9
    small = np.asarray(rng.integers(low, 9, shape, endpoint=True)).astype(dtype)
    match name:
        case "ReduceMean":
            count = np.prod([shape[axis] for axis in axes], dtype=np.int64)
            return np.asarray(small * dtype.type(count))
        case "ReduceProd":
            flat = rng.choice(np.array([1, 1, 1] if low == 0 else [1, 1, -1], dtype), small.size)
            flat[: min(12, small.size) : 2] = 3
            return rng.permutation(flat).reshape(shape)
        case "ReduceL2" | "ReduceLogSum":
            is_small = np.ones(shape, bool)
            for axis in axes:
                place = np.arange(shape[axis]) == shape[axis] // 2
                is_small &= place.reshape([-1 if axis == other else 1 for other in range(len(shape))])
            return np.where(is_small, small if name == "ReduceL2" else dtype.type(1), dtype.type(0)).astype(dtype)
        case "ReduceLogSumExp":
            return np.zeros(shape, dtype)
    return small


def _axes(axes: Axes | None, noop: int | None, rank: int) -> Axes | str:
    """The axes that are reduced, none of them negative, ascending; the rule that they break as a sentence."""
    if not axes:
        return () if noop else tuple(range(rank))
    for axis in axes:
        if not -rank <= axis < rank:
            return f"axis {axis} must be within [{-rank}, {rank - 1}] for rank {rank}"
    return tuple(sorted({axis % rank for axis in axes}))


def axes_of(node: Node) -> Axes | str:
    """What a node reduces, wherever its revision has the axes."""
    operand = node.value("axes")
    listed = node.attributes.get("axes") if operand is None else operand
    axes = None if listed is None else tuple(int(axis) for axis in np.atleast_1d(listed))
    return _axes(axes, node.integer("noop_with_empty_axes", 0), node.array("data").ndim)


@dataclass(frozen=True)
class _Window:
    """What is reduced: x is wide (longdouble, or the integers themselves), dtype that of the node."""

    x: Array
    axes: Axes
    dtype: np.dtype[Any]

    @property
    def count(self) -> int:
        return int(np.prod([self.x.shape[axis] for axis in self.axes], dtype=np.int64))

    def sum(self, x: Array) -> Array:
        return np.sum(x, axis=self.axes, keepdims=True, dtype=x.dtype)


def _sum_like(term: Callable[[Array], Array], roundings: int, window: _Window) -> tuple[Array, Ulp]:
    terms = term(window.x)
    magnitude = window.sum(np.abs(terms))
    return window.sum(terms), bounds.bound_sum(window.count, window.dtype, magnitude, roundings=roundings)


def _mean(window: _Window) -> tuple[Array, Ulp]:
    magnitude = window.sum(np.abs(window.x)) / window.count
    bound = bounds.bound_sum(window.count, window.dtype, magnitude, ulps=3.5)
    return window.sum(window.x) / window.count, bound


def _l2(window: _Window) -> tuple[Array, Ulp]:
    norm = np.sqrt(window.sum(window.x * window.x))
    return norm, bounds.bound_sum(window.count, window.dtype, norm, ulps=4)


def _product(window: _Window) -> tuple[Array, Ulp]:
    product = np.prod(window.x, axis=window.axes, keepdims=True)
    return product, bounds.bound_sum(window.count, window.dtype, np.abs(product))


def _log_sum(window: _Window) -> tuple[Array, Ulp]:
    total, magnitude = window.sum(window.x), window.sum(np.abs(window.x))
    relative = propagation.gamma(window.count, window.dtype) * magnitude / np.abs(total)
    floor = np.nan_to_num(relative + propagation.log_error(total, window.dtype), nan=0.0, posinf=0.0)
    return np.log(total), bounds.ulp(2, (bounds.HIGHAM, propagation.VULKAN), window.dtype, floor)


def _log_sum_exp(window: _Window) -> tuple[Array, Ulp]:
    largest = np.max(window.x, axis=window.axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(largest), largest, 0)
    shifted = window.x - shift
    share = np.exp(shifted)
    total = window.sum(share)
    argument = np.where(share > 0, np.maximum(np.abs(shifted), np.abs(window.x)), 0)
    of_terms = window.sum(share * propagation.exp_error(argument, window.dtype)) / total
    floor = of_terms + propagation.gamma(window.count, window.dtype) + propagation.log_error(total, window.dtype)
    exact = np.log(total) + shift
    floor = np.nan_to_num(floor, nan=0.0, posinf=0.0)
    return exact, bounds.ulp(2, (bounds.HIGHAM, propagation.VULKAN), window.dtype, floor)


def _extreme(name: str, x: Array, axes: Axes) -> Array:
    if name == "ReduceMax":
        lowest = {"f": -np.inf, "b": False}.get(x.dtype.kind)
        initial = np.iinfo(x.dtype).min if lowest is None else lowest
        return np.asarray(np.max(x, axis=axes, keepdims=True, initial=initial)).astype(x.dtype)
    highest = {"f": np.inf, "b": True}.get(x.dtype.kind)
    initial = np.iinfo(x.dtype).max if highest is None else highest
    return np.asarray(np.min(x, axis=axes, keepdims=True, initial=initial)).astype(x.dtype)


REDUCTIONS: Mapping[str, Callable[[_Window], tuple[Array, Ulp]]] = {
    "ReduceL1": partial(_sum_like, np.abs, 0),
    "ReduceL2": _l2,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMean": _mean,
    "ReduceProd": _product,
    "ReduceSum": partial(_sum_like, np.positive, 0),
    "ReduceSumSquare": partial(_sum_like, np.square, 1),
}

FUNCTIONS = {
    "ReduceL1": ReduceFunction.L1,
    "ReduceL2": ReduceFunction.L2,
    "ReduceLogSum": ReduceFunction.LOG_SUM,
    "ReduceLogSumExp": ReduceFunction.LOG_SUM_EXP,
    "ReduceMax": ReduceFunction.MAX,
    "ReduceMean": ReduceFunction.AVERAGE,
    "ReduceMin": ReduceFunction.MIN,
    "ReduceProd": ReduceFunction.MULTIPLY,
    "ReduceSum": ReduceFunction.SUM,
    "ReduceSumSquare": ReduceFunction.SUM_SQUARE,
}


def truth(node: Node) -> Truth:
    """The page's reduction, in longdouble or, where it stays among the integers, in integers."""
    axes = axes_of(node)
    if isinstance(axes, str):
        return Refusal(axes)
    x = node.array("data")
    keep = node.integer("keepdims", 1) != 0

    def give_shape(result: Array) -> Array:
        return np.asarray(result if keep else np.squeeze(result, axis=axes))

    if node.op_type in ("ReduceMax", "ReduceMin"):
        return Outputs((Output("reduced", give_shape(_extreme(node.op_type, x, axes)), Exact()),))
    stays_integer = x.dtype.kind != "f" and node.op_type in ("ReduceL1", "ReduceProd", "ReduceSum", "ReduceSumSquare")
    window = _Window(x if stays_integer else x.astype(np.longdouble), axes, _float_of(x.dtype))
    with np.errstate(all="ignore"):
        exact, bound = REDUCTIONS[node.op_type](window)
        if x.dtype.kind != "f":
            whole = exact if stays_integer else np.rint(exact)
            return Outputs((Output("reduced", give_shape(whole.astype(x.dtype)), Exact()),))
        bound = Ulp(
            bound.bound, bound.citations, give_shape(np.broadcast_to(bound.floor, exact.shape)).astype(np.float64)
        )
        return Outputs((bounds.round_output("reduced", give_shape(exact).astype(np.float64), x.dtype, bound),))


def _float_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype.kind == "f" else np.dtype(np.float64)


def lower(node: Node) -> Lowering | None:
    """One description; None where nothing is reduced or nothing comes out, and for bool, which no function takes."""
    axes = axes_of(node)
    x = node.array("data")
    if isinstance(axes, str) or x.size == 0 or x.ndim > MAX_RANK:
        return None
    sizes = x.shape or (1,)
    reduced = tuple(1 if axis in axes else size for axis, size in enumerate(sizes))
    x = x.reshape(sizes)
    desc = Reduce(FUNCTIONS[node.op_type], TensorDesc.of(x), TensorDesc.of(x, sizes=reduced), axes)
    return Lowering(desc, (x,))


SUMS_BEYOND = {
    "float32": ([2**24, 1], "int32"),
    "int32": ([2**31, 2**31, 3], "int64"),
    "31_bits": ([2**31, 5], "uint32"),
    "float64": ([2**53, 1], "int64"),
}
"""What holds the numbers, and not their sum -> numbers, and their dtype."""

AXES_0_2_4 = Interaction("axes_0_2_4_of_rank_5", (Random((2, 3, 2, 3, 2)), int64s(0, 2, 4)))
ROWS_BEYOND_16_BITS = Interaction("rows_beyond_16_bits", (Random((65537, 2)), int64s(1)))


def _infinite_rows(infinity: float) -> Iterator[Interaction]:
    for dtype in ("float32", "float16", "float64"):
        yield Interaction("infinite_row", (Literal([[infinity] * 3, [1, 2, 3]]), int64s(1)), {}, dtype)


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "ReduceSum": (
        Interaction(ABOVE_GROUPS, (Random((DISPATCHED, 5)), int64s(1))),
        *(
Interaction(f"beyond_{name}", (Literal(values), int64s(0)), {}, dtype)
for name, (values, dtype) in SUMS_BEYOND.items()
),
        Interaction("many_beyond_float64", (Literal([2**41 + 1] * 4097), int64s(0)), {}, "int64"),
        AXES_0_2_4,
        ROWS_BEYOND_16_BITS,
    ),
    "ReduceL1": (
        Interaction("beyond_float64", (Literal([2**53 + 1, 1]), int64s(0)), {}, "int64"),
    ),
    "ReduceProd": (
        Interaction("beyond_float64", (Literal([2**53 + 1, 1]), int64s(0)), {}, "int64"),
    ),
    "ReduceSumSquare": (
        Interaction("beyond_float64", (Literal([94906267, 0]), int64s(0)), {}, "int64"),
    ),
    "ReduceMax": (
        *_infinite_rows(-np.inf),
        Interaction("beyond_int32", (Literal(BESIDE_INT32, "", (4, 2)), int64s(1)), {}, "int64"),
        Interaction("greatest_at_the_end_of_1025", (Arange((1025,)), int64s(0))),
        AXES_0_2_4,
        ROWS_BEYOND_16_BITS,
    ),
    "ReduceMin": (
        *_infinite_rows(np.inf),
        Interaction("beyond_int32", (Literal(BESIDE_INT32, "", (4, 2)), int64s(1)), {}, "int64"),
        Interaction("least_at_the_end_of_1025", (Literal([-float(i) for i in range(1025)]), int64s(0))),
    ),
    "ReduceMean": (
        AXES_0_2_4,
        ROWS_BEYOND_16_BITS,
    ),
    "ReduceL2": (
        AXES_0_2_4,
    ),
}  # fmt: skip


def _mean_of_nothing() -> UndefinedSamples:
    answer = Answer(np.zeros((2, 1, 3), np.float32))
    yield UndefinedSample("of_nothing", "float32", NO_IDENTITY, (EMPTY_ROWS, np.array([1], np.int64)), (answer,))


def _extremum_of_nothing() -> UndefinedSamples:
    answer = Answer(np.zeros((2, 1, 3), np.float32))
    yield UndefinedSample("of_nothing", "float32", NO_IDENTITY, (EMPTY_ROWS,), (answer,), {"axes": (1,)}, version=13)


UNDEFINED = {"ReduceMean": _mean_of_nothing, "ReduceMax": _extremum_of_nothing, "ReduceMin": _extremum_of_nothing}


SUBSETS = ((1,), (0, 2), (1, 3), (0, 3), (3, 1), (1, 2), (0, 1, 3), (0, 2, 3), (-1, -3))
"""Of the axes of rank 4, in any order: neighbours, not neighbours, from both ends."""


def _make_parts(name: str, values: Values, rng: np.random.Generator) -> Parts:
    shape = make_shape(values) if values["axes"] is None else (2, 3, 4, 5)
    data = rng.uniform(0.5, 2, shape) if name == "ReduceLogSum" else rng.uniform(-2, 2, shape)
    if name == "ReduceProd":
        data = 1 + data / max(shape[1], 1)
    axes = np.array((1,) if values["axes"] is None else values["axes"], np.int64)
    return Parts((data.astype(np.float32), axes), {"keepdims": values["keepdims"]}, (1,))


PARAMETER_SPACES = {
    name: make_axis_space(partial(_make_parts, name), {"axes": (None, *SUBSETS), "keepdims": (1, 0)}, ANY_VALUE)
    for name in FUNCTIONS
}

OPERATORS = declare(
    tuple(
        Operator(
            name,
            partial(samples, name),
            partial(bindings, name),
            partial(node, name),
            truth,
            lower,
            gives_fractions=name in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean"),
        )
        for name in FUNCTIONS
    ),
    interactions=INTERACTIONS,
    undefined=UNDEFINED,
    parameter_spaces=PARAMETER_SPACES,
    magnitudes={
        "ReduceL2": ("squares",),
        "ReduceMean": ("sums",),
        "ReduceLogSum": ("sums",),
        "ReduceLogSumExp": ("exponentials",),
    },
)
