"""Softmax, LogSoftmax, Hardmax -1, 11, 13 -> DML_ACTIVATION_SOFTMAX, LOG_SOFTMAX, HARDMAX(1)_OPERATOR_DESC.

Sources: the operator pages. Until revision 11 the input is coerced into 2-D at `axis` (default 1): all dimensions from
it on are one row; from revision 13 on the axis itself (default -1) is meant. Negative axes begin with revision 11.
Rows of -infinity alone, +infinity and NaN leave 0/0 or an order that the pages do not define: no samples.

Bounds, by propagation: x - max is rounded once, exp has 3 + 2 |x| ULP (Vulkan), so each term has a relative error; the
sum has the weighted one of its terms and gamma(n) of its own; the division adds 2.5 ULP (OpenCL C). LogSoftmax turns
these relative errors into absolute ones and adds that of log. Hardmax is exact: the first of equals (ONNX: "the first
maximum").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds, propagation
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.interaction import ABOVE_GROUPS, DISPATCHED, Arange, Interaction, Literal, Random
from epcheck.generators.declaration.parameter_space import ANY_NUMBER
from epcheck.generators.directml import OperatorDesc, TensorDesc
from epcheck.generators.directml.descriptions.reduction import softmax as descs
from epcheck.generators.directml.lowering import Lowering, count_missing, pad_rank
from epcheck.generators.directml.tensor import MAX_RANK
from epcheck.generators.families.axis_space import AXES, make_axis_parts, make_axis_space
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import Operator, declare
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = (
    "Softmax",
    "LogSoftmax",
    "Hardmax",
)

PER_AXIS = 13
"""From this revision on the axis is one dimension; before, it is where the tensor is cut into two."""

SOURCES = (propagation.VULKAN, bounds.HIGHAM, bounds.OPENCL)


@dataclass(frozen=True, kw_only=True)
class SoftmaxSample(Sample):
    """axis: None leaves the attribute out. values: what the data looks like, see `_values`."""

    shape: tuple[int, ...] = (3, 4, 5)
    axis: int | None = None
    values: str = "plain"


def samples() -> Iterator[SoftmaxSample]:
    yield SoftmaxSample(name="defaults", every_dtype=True)
    for axis in (0, 1, 2, -1, -2, -3):
        name = f"axis_{'minus_' if axis < 0 else ''}{abs(axis)}"
        yield SoftmaxSample(name=name, axis=axis, every_dtype=axis in (0, -1))
    for rank in range(1, 9):
        shape = tuple(2 + axis % 2 for axis in range(rank))
        yield SoftmaxSample(name=f"rank_{rank}_first_axis", rank=rank, shape=shape, axis=0)
        if rank > 1:
            yield SoftmaxSample(name=f"rank_{rank}_last_axis", rank=rank, shape=shape, axis=rank - 1)
        if rank > 3:
            yield SoftmaxSample(name=f"rank_{rank}_inner_axis", rank=rank, shape=shape, axis=rank - 2)
            yield SoftmaxSample(name=f"rank_{rank}_default_axis", rank=rank, shape=shape)
    yield SoftmaxSample(name="size_1_axis", shape=(4, 1), axis=1)
    yield SoftmaxSample(name="size_1_elsewhere", shape=(1, 6, 1), axis=1)
    yield SoftmaxSample(name="size_0_elsewhere", shape=(0, 5), axis=1)
    for length in (31, 33, 257, 1025, 4097):
        yield SoftmaxSample(name=f"length_{length}", shape=(2, length), axis=1)
    yield SoftmaxSample(name="length_1025_first_axis", shape=(1025, 3), axis=0)
    yield SoftmaxSample(name="many_rows", shape=(400, 3), axis=1)
    for values in ("large", "very_negative", "far_apart", "minus_infinity", "all_equal", "ties"):
        yield SoftmaxSample(name=values, shape=(3, 7), axis=1, values=values, every_dtype=True)
    yield SoftmaxSample(name="large_length_300", shape=(2, 300), axis=1, values="large")
    yield expect_refusal(SoftmaxSample(name="axis_beyond_rank", axis=4))
    yield expect_refusal(SoftmaxSample(name="axis_below_rank", axis=-4))


def bindings(name: str, sample: SoftmaxSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if since_version == 1 and (sample.axis or 0) < 0:
        return ()
    if dtypes[0] != "float32":
        return (graph.RUNTIME,) if sample.every_dtype else ()
    newest = since_version == schema.since_versions(name)[-1]
    return (graph.RUNTIME, graph.SYMBOLIC) if newest else (graph.RUNTIME,)


def node(name: str, sample: SoftmaxSample, context: CaseContext) -> Node:
    """input and output have one shape and one floating-point dtype."""
    attributes: dict[str, Attribute] = {} if sample.axis is None else {"axis": sample.axis}
    operand = Operand("input", _values(sample, context.dtype, context.rng))
    return Node(name, "", context.since_version, (operand,), ("output",), attributes)


def _values(sample: SoftmaxSample, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    plain = np.asarray(rng.uniform(-4, 4, sample.shape)).astype(dtype)
    match sample.values:
        case "plain":
            return plain
        case "large":
            return (plain + 1000).astype(dtype)
        case "very_negative":
            return (plain - 1000).astype(dtype)
        case "far_apart":
            plain[:, ::3] *= 4000
            return plain
        case "minus_infinity":
            plain[:, 1::3] = -np.inf
            return plain
        case "all_equal":
            return np.full(sample.shape, 3, dtype)
        case "ties":
            return np.asarray(rng.integers(0, 3, sample.shape)).astype(dtype)
        case other:
            raise ValueError(f"sample {sample.name}: unknown kind of data '{other}'")


def _axis(node: Node) -> int | str:
    """The axis, not negative. The coercion into 2-D also takes the rank itself: rows of one element."""
    rank = node.array("input").ndim
    per_axis = node.since_version >= PER_AXIS
    axis = node.integer("axis", -1 if per_axis else 1)
    if not -rank <= axis < rank:
        return f"axis {axis} must be within [{-rank}, {rank - 1}] for rank {rank}"
    return axis % rank


def axes_of(node: Node) -> tuple[int, ...] | str:
    """The dimensions that make up one row."""
    axis = _axis(node)
    if isinstance(axis, str):
        return axis
    return (axis,) if node.since_version >= PER_AXIS else tuple(range(axis, node.array("input").ndim))


@dataclass(frozen=True)
class _Shares:
    """Along the axes: shifted = x - max, share = exp(shifted), total their sum, relative the error of share / total."""

    shifted: Array
    share: Array
    total: Array
    relative: Array

    @classmethod
    def of(cls, x: Array, axes: tuple[int, ...], dtype: np.dtype[Any]) -> _Shares:
        count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
        shifted = x - np.max(x, axis=axes, keepdims=True)
        share = np.exp(shifted)
        total = np.sum(share, axis=axes, keepdims=True)
        of_exp = propagation.exp_error(np.where(share > 0, shifted, 0), dtype)
        of_sum = np.sum(share * of_exp, axis=axes, keepdims=True) / total + propagation.gamma(count, dtype)
        return cls(shifted, share, total, of_exp + of_sum)


def _first_maximum(x: Array, axes: tuple[int, ...]) -> Array:
    """1 where an element is the first greatest one of its row; the axes follow each other."""
    rows = x.reshape(int(np.prod(x.shape[: axes[0]])), -1, int(np.prod(x.shape[axes[-1] + 1 :])))
    greatest = rows == rows.max(axis=1, keepdims=True)
    first = greatest & (np.cumsum(greatest, axis=1) == 1)
    return np.asarray(first, x.dtype).reshape(x.shape)


def truth(node: Node) -> Truth:
    """The page's formula in longdouble; Hardmax marks the first maximum."""
    axes = axes_of(node)
    if isinstance(axes, str):
        return Refusal(axes)
    x = node.array("input")
    if x.size == 0:
        return Outputs((Output("output", x),))
    if node.op_type == "Hardmax":
        return Outputs((Output("output", _first_maximum(x, axes)),))
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        shares = _Shares.of(x.astype(np.longdouble), axes, x.dtype)
        if node.op_type == "Softmax":
            exact = shares.share / shares.total
            floor = exact * shares.relative
        else:
            exact = shares.shifted - np.log(shares.total)
            floor = shares.relative + propagation.log_error(shares.total, x.dtype)
    bound = bounds.ulp(3, SOURCES, x.dtype, np.nan_to_num(floor.astype(np.float64), nan=0.0, posinf=0.0))
    return Outputs((bounds.round_output("output", exact.astype(np.float64), x.dtype, bound),))


Along = Callable[[TensorDesc, TensorDesc, tuple[int, ...]], OperatorDesc]
DESCS: dict[str, tuple[Callable[[TensorDesc, TensorDesc], OperatorDesc], Along]] = {
    "Softmax": (descs.ActivationSoftmax, descs.ActivationSoftmax1),
    "LogSoftmax": (descs.ActivationLogSoftmax, descs.ActivationLogSoftmax1),
    "Hardmax": (descs.ActivationHardmax, descs.ActivationHardmax1),
}


def lower(node: Node) -> Lowering | None:
    """Until revision 11 [1, 1, rows, elements]; then the tensor itself, rank padded to 4, with one axis."""
    axis = _axis(node)
    x = node.array("input")
    if isinstance(axis, str) or x.size == 0 or x.ndim > MAX_RANK:
        return None
    coerced, along = DESCS[node.op_type]
    if node.since_version < PER_AXIS:
        x = x.reshape(1, 1, int(np.prod(x.shape[:axis])), -1)
        return Lowering(coerced(TensorDesc.of(x), TensorDesc.of(x)), (x,))
    values = pad_rank(x)
    tensor = TensorDesc.of(values)
    return Lowering(along(tensor, tensor, (axis + count_missing(x.ndim),)), (values,))


ROWS_FROM_MINUS_INFINITY = tuple(
    Interaction(name, (Literal(row),), {"axis": -1})
    for name, row in {
        "minus_infinity_first": [[-np.inf, 1.0, 2.0]],
        "first_vector_of_minus_infinity": [[-np.inf] * 4 + [1.0, 2.0]],
    }.items()
)
INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "Hardmax": (
        Interaction("greatest_at_the_end_of_257", (Arange((1, 257)),), {"axis": -1}),
    ),
    "Softmax": (
        Interaction(ABOVE_GROUPS, (Random((DISPATCHED, 3)),), {"axis": -1}),
        *ROWS_FROM_MINUS_INFINITY,
    ),
    "LogSoftmax": (
        *ROWS_FROM_MINUS_INFINITY,
    ),
}  # fmt: skip


PARAMETER_SPACES = dict.fromkeys(DESCS, make_axis_space(make_axis_parts, {"axis": AXES}, ("minus_inf", *ANY_NUMBER)))

OPERATORS = declare(
    tuple(
        Operator(
            name,
            samples,
            partial(bindings, name),
            partial(node, name),
            truth,
            lower,
            propagates=() if name == "Hardmax" else ("NaN",),
        )
        for name in DESCS
    ),
    interactions=INTERACTIONS,
    parameter_spaces=PARAMETER_SPACES,
    magnitudes={
        "Softmax": ("exponentials",),
        "LogSoftmax": ("exponentials",),
    },
)
