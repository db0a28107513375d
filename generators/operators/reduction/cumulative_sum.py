"""CumSum-11, 14 -> DML_CUMULATIVE_SUMMATION_OPERATOR_DESC.

Source: the operator page. `axis` is a 0-D tensor of int32 or int64; `exclusive` leaves the element itself out of its
sum, `reverse` adds from the end. Integers stay small: what wrapping around gives is said nowhere.

Bound: each element is a sum, `bounds.bound_sum` over the whole axis with the magnitudes that are added for it.
How the DML EP lowers it: DmlOperatorCumSum.cpp, rank padded to 4, the axis is read on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext
from epcheck.generators.declaration.interaction import Interaction, Literal
from epcheck.generators.declaration.parameter_space import ANY_VALUE, Parts, Values
from epcheck.generators.directml import AxisDirection, TensorDesc
from epcheck.generators.directml.descriptions.reduction.reduction import CumulativeSummation
from epcheck.generators.directml.lowering import Lowering, count_missing, pad_rank
from epcheck.generators.directml.tensor import MAX_RANK
from epcheck.generators.families import cumulative
from epcheck.generators.families.axis_space import AXES, draw_data, make_axis_space, select_attributes
from epcheck.generators.families.cumulative import CumulativeSample
from epcheck.generators.node import Node
from epcheck.generators.operator import Operator, declare, spread
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("CumSum",)

FLOAT_DATA = frozenset({"nan", "infinities", "cancellation"})


def samples() -> Iterator[CumulativeSample]:
    yield from cumulative.samples()
    for values in sorted(FLOAT_DATA):
        for side, reverse_or_not in (("", None), ("_reverse", 1)):
            yield CumulativeSample(
                name=f"{values}{side}", shape=(3, 8), axis=1, reverse=reverse_or_not, values=values, every_dtype=True
            )
    yield from cumulative.list_refused()


def bindings(sample: CumulativeSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if sample.values in FLOAT_DATA and np.dtype(dtypes[0]).kind != "f":
        return ()
    newest = since_version == schema.since_versions("CumSum")[-1]
    every = spread(sample, first=dtypes[0] == "float32", newest=newest)
    return tuple(binding for binding in every if binding != graph.CONSTANT)


def node(sample: CumulativeSample, context: CaseContext) -> Node:
    return cumulative.node("CumSum", sample, context, _values(sample, context))


def _values(sample: CumulativeSample, context: CaseContext) -> Array:
    rng, dtype = context.rng, context.dtype
    if dtype.kind != "f":
        low = 0 if dtype.kind == "u" else -9
        return np.asarray(rng.integers(low, 9, sample.shape, endpoint=True)).astype(dtype)
    values = np.asarray(rng.uniform(-4, 4, sample.shape)).astype(dtype)
    match sample.values:
        case "nan":
            values[0, 0], values[1, 3] = np.nan, np.nan
        case "infinities":
            values[0, 2], values[1, 3], values[2, 1], values[2, 5] = np.inf, -np.inf, np.inf, -np.inf
        case "cancellation":
            values[:, 1::2] = -1000 * values[:, ::2]
            values[:, ::2] *= 1000
    return values


def _axis(node: Node) -> int | str:
    axis, rank = int(node.array("axis").item()), node.array("x").ndim
    return axis % rank if -rank <= axis < rank else f"axis {axis} must be within [{-rank}, {rank - 1}] for rank {rank}"


def _sums(x: Array, axis: int, *, exclusive: bool, reverse: bool) -> Array:
    turned = np.flip(x, axis) if reverse else x
    sums = np.cumsum(turned, axis=axis, dtype=x.dtype)
    if exclusive:
        nothing = np.zeros_like(np.take(sums, [0] if x.shape[axis] else [], axis=axis))
        sums = np.concatenate([nothing, np.take(sums, range(x.shape[axis] - 1), axis=axis)], axis=axis)
    return np.flip(sums, axis) if reverse else sums


def truth(node: Node) -> Truth:
    """The sums, in longdouble or in the integers themselves."""
    axis = _axis(node)
    if isinstance(axis, str):
        return Refusal(axis)
    x = node.array("x")
    how = {name: node.integer(name, 0) != 0 for name in ("exclusive", "reverse")}
    if x.dtype.kind != "f":
        return Outputs((Output("y", _sums(x, axis, **how)),))
    wide = x.astype(np.longdouble)
    with np.errstate(invalid="ignore"):
        exact, magnitude = _sums(wide, axis, **how), _sums(np.abs(wide), axis, **how)
    bound = bounds.bound_sum(x.shape[axis], x.dtype, magnitude, roundings=0)
    return Outputs((bounds.round_output("y", exact.astype(np.float64), x.dtype, bound),))


def lower(node: Node) -> Lowering | None:
    axis = _axis(node)
    x = node.array("x")
    if isinstance(axis, str) or x.size == 0 or x.ndim > MAX_RANK:
        return None
    axis, x = axis + count_missing(x.ndim), pad_rank(x)
    direction = AxisDirection.DECREASING if node.integer("reverse", 0) else AxisDirection.INCREASING
    tensor = TensorDesc.of(x)
    exclusive = node.integer("exclusive", 0) != 0
    return Lowering(CumulativeSummation(tensor, tensor, axis, direction, exclusive), (x,))


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "CumSum": (
        Interaction("beyond_32_bits", (Literal([2**31, 1, 2**31]), Literal(0, "int64")), {}, "int64"),
    ),
}  # fmt: skip


def _make_parts(values: Values, rng: np.random.Generator) -> Parts:
    inputs = (draw_data(values, rng), np.array(values["axis"], np.int64))
    return Parts(inputs, select_attributes(values, "exclusive", "reverse"), (1,))


PARAMETER_SPACES = {
    "CumSum": make_axis_space(_make_parts, {"axis": AXES, "exclusive": (0, 1), "reverse": (0, 1)}, ANY_VALUE)
}

OPERATORS = declare(
    (Operator("CumSum", samples, bindings, node, truth, lower),),
    interactions=INTERACTIONS,
    parameter_spaces=PARAMETER_SPACES,
)
