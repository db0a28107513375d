"""Unique-11 and Unique-28: the different values, or slices along an axis, with where they stand and how often.

Source: the operator's page. Slices are sorted like numpy's: by their first element, then the next. The page does not
say whether NaN equals NaN, nor which of +0 and -0 stays: no case has them. Nor has any a type that numpy cannot hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from epcheck.generators import data, graph
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.optional_io import OptionalIO
from epcheck.generators.families.movement import RefusedError, normalize_axis
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator, declare
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("Unique",)

ESTABLISHED = 11
"""The newest version that a released opset resolves to; Unique-28 adds types that numpy cannot hold."""

OUTPUTS = ("Y", "indices", "inverse_indices", "counts")


@dataclass(frozen=True, kw_only=True)
class UniqueSample(Sample):
    """shape: of X. values: see `_values`. axis, order: None leaves the attributes `axis` and `sorted` out. outputs:
    which there are, `1` or `0` for each."""

    shape: tuple[int, ...] = (3, 4)
    values: str = "few"
    axis: int | None = None
    order: int | None = None
    outputs: str = "1111"


def samples() -> Iterator[UniqueSample]:
    yield UniqueSample(name="defaults", every_dtype=True)
    yield UniqueSample(name="y_alone", outputs="1000", every_dtype=True)
    for outputs in ("1100", "1010", "1001", "1110", "1011", "1101"):
        yield UniqueSample(name=f"outputs_{outputs}", outputs=outputs)
    for axis, order in product((None, 0, 1, -1, -2), (0, 1)):
        place = "flattened" if axis is None else f"axis_{'minus_' if axis < 0 else ''}{abs(axis)}"
        name = f"{place}_{'sorted' if order else 'as_found'}"
        yield UniqueSample(name=name, shape=(4, 3), axis=axis, order=order, values="rows", every_dtype=axis != -2)
    for order in (0, 1):
        end = "sorted" if order else "as_found"
        for values in ("distinct", "same", "falling", "rising", "boundary"):
            yield UniqueSample(name=f"{values}_{end}", shape=(17,), values=values, order=order, every_dtype=True)
        for rank in range(1, 9):
            shape = tuple(2 + i % 2 for i in range(rank))
            yield UniqueSample(name=f"rank_{rank}_{end}", rank=rank, shape=shape, order=order)
            yield UniqueSample(name=f"rank_{rank}_first_axis_{end}", rank=rank, shape=shape, axis=0, order=order)
            if rank > 1:
                yield UniqueSample(
                    name=f"rank_{rank}_last_axis_{end}", rank=rank, shape=shape, axis=rank - 1, order=order
                )
        yield UniqueSample(name=f"slices_of_two_axes_{end}", shape=(2, 4, 2), axis=1, order=order, values="page")
        yield UniqueSample(name=f"slices_that_differ_at_the_end_{end}", shape=(6, 5), axis=0, order=order, values="end")
        for length in (257, 1025, 4097):
            yield UniqueSample(name=f"length_{length}_{end}", shape=(length,), order=order)
        yield UniqueSample(name=f"many_slices_{end}", shape=(1031, 2), axis=0, order=order)
        yield UniqueSample(name=f"long_slices_{end}", shape=(5, 1031), axis=0, order=order, values="end")
        yield UniqueSample(name=f"scalar_{end}", shape=(), order=order)
        yield UniqueSample(name=f"size_1_{end}", shape=(1, 1), order=order)
        yield UniqueSample(name=f"size_1_along_an_axis_{end}", shape=(1, 4), axis=0, order=order)
        yield UniqueSample(name=f"size_0_{end}", shape=(0,), order=order)
        yield UniqueSample(name=f"size_0_along_the_axis_{end}", shape=(0, 3), axis=0, order=order)
    yield expect_refusal(UniqueSample(name="axis_at_rank", axis=2))
    yield expect_refusal(UniqueSample(name="axis_below_minus_rank", axis=-3))
    yield expect_refusal(UniqueSample(name="sorted_2", order=2))


def bindings(sample: UniqueSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if dtypes != ("float32",) or since_version != ESTABLISHED:
        plain = sample.axis is None and sample.values == "few"
        wanted = sample.every_dtype and (since_version == ESTABLISHED or dtypes == ("float32",) or plain)
        return (graph.RUNTIME,) if wanted else ()
    return (graph.RUNTIME, graph.SYMBOLIC, graph.CONSTANT) if sample.shape else (graph.RUNTIME, graph.CONSTANT)


def node(sample: UniqueSample, context: CaseContext) -> Node:
    """X of any shape and of the case's dtype; Y and up to three outputs int64 [unique] or, inverse_indices, [count]."""
    settings = {"axis": sample.axis, "sorted": sample.order}
    attributes: dict[str, Attribute] = {name: value for name, value in settings.items() if value is not None}
    names = tuple(name if flag == "1" else "" for name, flag in zip(OUTPUTS, sample.outputs, strict=True))
    while not names[-1]:
        names = names[:-1]
    x = Operand("X", _values(sample, context))
    return Node("Unique", "", context.since_version, (x,), names, attributes)


def _values(sample: UniqueSample, context: CaseContext) -> Array:
    shape, dtype, rng = sample.shape, context.dtype, context.rng
    count = int(np.prod(shape, dtype=np.int64))
    match sample.values:
        case "distinct":
            return data.distinct(shape, dtype, rng)
        case "same":
            return np.resize(_levels(dtype)[1:2], shape)
        case "rising":
            return np.sort(np.resize(_levels(dtype), count)).reshape(shape)
        case "falling":
            return np.sort(np.resize(_levels(dtype), count))[::-1].reshape(shape)
        case "boundary":
            return rng.permutation(np.resize(_drop_minus_0(data.boundary(dtype)), count)).reshape(shape)
        case "rows":
            table = _levels(dtype)[rng.integers(0, 2, (2, shape[1]))]
            table[0, 0], table[1, 0] = _levels(dtype)[1], _levels(dtype)[0]
            rows: Array = table[np.arange(shape[0]) % 2]
            rows[:, -1] = rows[:, 0]
            return rows
        case "page":
            found = np.array([[[1, 1], [0, 1], [2, 1], [0, 1]]] * 2)
            return found.astype(dtype)
        case "end":
            found = np.resize(_levels(dtype)[:1], shape)
            found[:, -1] = np.resize(_levels(dtype)[[1, 0, 1]], shape[0])
            return found
    levels = _levels(dtype)
    return levels[rng.integers(0, len(levels), shape)]


def _levels(dtype: np.dtype[Any]) -> Array:
    """A few values that compare differently as bits, as numbers and by their size."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind == "f":
        return np.array([-2.5, 1.25, 0, 3.5, -0.75, 1024], dtype)
    if dtype.kind == "i":
        return np.array([-2, 1, 0, 3, np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    return np.array([2, 1, 0, 3, np.iinfo(dtype).max, np.iinfo(dtype).max - 1], dtype)


def _drop_minus_0(values: Array) -> Array:
    return values[~(np.signbit(values) & (values == 0))] if values.dtype.kind == "f" else values


def truth(node: Node) -> Truth:
    x, order = node.array("X"), node.integer("sorted", 1)
    if order not in (0, 1):
        return Refusal(f"sorted must be 0 or 1, not {order}")
    try:
        axis = normalize_axis(node.integer("axis", 0), x.ndim) if "axis" in node.attributes else None
    except RefusedError as error:
        return Refusal(str(error))
    slices = x.reshape(-1) if axis is None else np.moveaxis(x, axis, 0)
    keys = [tuple(each.ravel().tolist()) for each in slices]
    first: dict[tuple[Any, ...], int] = {}
    for place, key in enumerate(keys):
        first.setdefault(key, place)
    kept = sorted(first) if order else list(first)
    rank_of = {key: place for place, key in enumerate(kept)}
    indices = [first[key] for key in kept]
    inverse = [rank_of[key] for key in keys]
    y = slices[indices] if indices else slices[:0]
    found = {
        "Y": np.ascontiguousarray(y if axis is None else np.moveaxis(y, 0, axis)),
        "indices": np.array(indices, np.int64),
        "inverse_indices": np.array(inverse, np.int64),
        "counts": np.bincount(np.array(inverse, np.int64), minlength=len(kept)).astype(np.int64),
    }
    return Outputs(tuple(Output(name, found[name]) for name in node.results))


OPTIONAL_IO: Mapping[str, tuple[OptionalIO, ...]] = {
    "Unique": (OptionalIO("defaults", outputs=("indices", "inverse_indices", "counts"), versions=(28,)),),
}

OPERATORS = declare(
    (Operator("Unique", samples, bindings, node, truth, NO_KERNEL),),
    optional_io=OPTIONAL_IO,
)
