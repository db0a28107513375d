"""CumProd-26: what CumSum is for sums, for products.

Source: the operator page. `axis` is a 0-D tensor of int32 or int64; `exclusive` leaves the element itself out of its
product, which then begins with 1, and `reverse` multiplies from the end. Integers are so few and small that no product
leaves the type: what wrapping around gives is said nowhere. Floating-point products overflow or underflow only where
every factor works in the same direction, since the page leaves the order of the multiplications open.

Bound: each element is a product of up to n factors, so n - 1 roundings in any order: gamma(n - 1) of it (Higham, 3.1).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.bounds.propagation import gamma
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.families import cumulative
from epcheck.generators.families.cumulative import CumulativeSample
from epcheck.generators.node import Node
from epcheck.generators.operator import NO_KERNEL, Operator, spread
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("CumProd",)

FLOAT_DATA = frozenset({"nan", "infinities", "overflow", "underflow"})
INTEGER_DATA = frozenset({"powers_of_3"})


def samples() -> Iterator[CumulativeSample]:
    yield from cumulative.samples()
    yield CumulativeSample(name="size_0_axis_exclusive", shape=(3, 0), axis=1, exclusive=1)
    yield CumulativeSample(name="zeros", shape=(3, 8), axis=1, values="zeros", every_dtype=True)
    yield CumulativeSample(name="zeros_reverse", shape=(3, 8), axis=1, reverse=1, values="zeros", every_dtype=True)
    for values in sorted(FLOAT_DATA):
        sample = CumulativeSample(name=values, shape=(3, 8), axis=1, values=values, every_dtype=True)
        yield sample
        yield replace(sample, name=f"{values}_reverse", reverse=1)
    for values in sorted(INTEGER_DATA):
        yield CumulativeSample(name=values, shape=(2, 43), axis=1, values=values, every_dtype=True)
    yield from cumulative.list_refused()
    yield expect_refusal(CumulativeSample(name="axis_of_rank_2", axis=1, axis_shape=(1, 1)))


def bindings(sample: CumulativeSample, _: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if sample.values in (INTEGER_DATA if np.dtype(dtypes[0]).kind == "f" else FLOAT_DATA):
        return ()
    every = spread(sample, first=dtypes[0] == "float32", newest=True)
    return tuple(binding for binding in every if binding != graph.CONSTANT)


def node(sample: CumulativeSample, context: CaseContext) -> Node:
    return cumulative.node("CumProd", sample, context, _values(sample, context))


def _values(sample: CumulativeSample, context: CaseContext) -> Array:
    """Integers of ±1, and each fifth of an axis as large as 3; floats around 1 whose products stay around 1."""
    rng, dtype, shape = context.rng, context.dtype, sample.shape
    signs = np.ones(shape) if dtype.kind == "u" else rng.choice([-1.0, 1.0], shape)
    if dtype.kind != "f":
        values = signs * np.where(rng.random(shape) < 0.2, rng.integers(2, 4, shape), 1)
    else:
        values = signs * np.exp2(rng.uniform(-0.4, 0.4, shape))
    match sample.values:
        case "zeros":
            values[0, 3], values[1, 0], values[2, 7] = 0, 0, 0
        case "nan":
            values[0, 0], values[1, 3] = np.nan, np.nan
        case "infinities":
            values[0, 2], values[1, 3], values[2, 1], values[2, 5] = np.inf, -np.inf, np.inf, 0
        case "overflow":
            values = signs * 2.0 ** (np.finfo(dtype).maxexp // 3)
        case "underflow":
            values = signs * 2.0 ** (np.finfo(dtype).minexp // 3)
        case "powers_of_3":  # up to the largest that the type holds, which neither half of its bits nor float64 do
            most = math.floor(math.log(np.iinfo(dtype).max, 3))
            values = signs * np.where(np.arange(shape[1]) < most, 3, 1)
    return np.asarray(values).astype(dtype)


def _broken_rule(node: Node) -> str | None:
    axis, rank = node.array("axis"), node.array("x").ndim
    if axis.ndim:
        return f"axis must be a 0-D tensor; it has {axis.ndim} dimensions"
    if not -rank <= axis.item() < rank:
        return f"axis {axis.item()} must be within [{-rank}, {rank - 1}] for rank {rank}"
    return None


def _products(x: Array, axis: int, *, exclusive: bool, reverse: bool) -> Array:
    turned = np.flip(x, axis) if reverse else x
    if exclusive:
        turned = np.take(np.insert(turned, 0, 1, axis), range(x.shape[axis]), axis)
    products = np.cumprod(turned, axis=axis, dtype=x.dtype)
    return np.flip(products, axis) if reverse else products


def truth(node: Node) -> Truth:
    """The products, in longdouble or in the integers themselves."""
    if broken := _broken_rule(node):
        return Refusal(broken)
    x = node.array("x")
    axis = int(node.array("axis").item()) % x.ndim
    how = {name: node.integer(name, 0) != 0 for name in ("exclusive", "reverse")}
    if x.dtype.kind != "f":
        return Outputs((Output("y", _products(x, axis, **how)),))
    with np.errstate(all="ignore"):
        exact = _products(x.astype(np.longdouble), axis, **how).astype(np.float64)
    allowed = np.nan_to_num(gamma(max(x.shape[axis] - 1, 1), x.dtype) * np.abs(exact), nan=0.0, posinf=0.0)
    citation = replace(
        bounds.HIGHAM, text=f"{bounds.ACCURACY_AND_STABILITY}, 3.1: a product of {x.shape[axis]} factors"
    )
    return Outputs((bounds.round_output("y", exact, x.dtype, bounds.ulp(1.0, (citation,), x.dtype, allowed)),))


OPERATORS = (Operator("CumProd", samples, bindings, node, truth, NO_KERNEL),)
