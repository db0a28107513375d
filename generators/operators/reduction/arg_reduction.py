"""ArgMax and ArgMin -> DML_ARGMAX_OPERATOR_DESC, DML_ARGMIN_OPERATOR_DESC.

Sources: the operator pages. Among equals the first index is right, or the last one with `select_last_index` (from
revision 12 on); +0 and -0 are equal. Where NaN stands is said nowhere, and so is the index among no elements: neither
has a sample. Negative axes begin with revision 11.

How the DML EP lowers it: DmlOperatorReduce.cpp, rank at least 1, the axis stays with size 1, INT64 indices;
`select_last_index` becomes AxisDirection DECREASING.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from epcheck.generators import data, graph, schema
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.interaction import BESIDE_INT32, Interaction, Literal
from epcheck.generators.declaration.parameter_space import ANY_VALUE
from epcheck.generators.declaration.undefined_sample import (
    EMPTY_ROWS,
    NO_IDENTITY,
    Answer,
    UndefinedSample,
    UndefinedSamples,
)
from epcheck.generators.directml import AxisDirection, TensorDesc
from epcheck.generators.directml.descriptions.reduction.reduction import ArgMax, ArgMin
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.directml.tensor import MAX_RANK
from epcheck.generators.families.axis_space import AXES, make_axis_parts, make_axis_space
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import Operator, declare
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = (
    "ArgMax",
    "ArgMin",
)

DESCS = {"ArgMax": ArgMax, "ArgMin": ArgMin}
FLOAT_DATA = frozenset({"infinities", "signed_zeros"})
WIDE_DATA = frozenset({"beyond_2_53"})


@dataclass(frozen=True, kw_only=True)
class ArgSample(Sample):
    """axis, keepdims, last: None leaves the attribute out. values: what the data looks like, see `_values`."""

    shape: tuple[int, ...] = (3, 4, 5)
    axis: int | None = None
    keepdims: int | None = None
    last: int | None = None
    values: str = "distinct"


def samples() -> Iterator[ArgSample]:
    yield ArgSample(name="defaults", every_dtype=True)
    yield ArgSample(name="keepdims_0", keepdims=0)
    yield ArgSample(name="keepdims_1", keepdims=1)
    for axis in (0, 1, 2, -1, -3):
        name = f"axis_{'minus_' if axis < 0 else ''}{abs(axis)}"
        yield ArgSample(name=name, axis=axis)
        yield ArgSample(name=f"{name}_keepdims_0", axis=axis, keepdims=0, every_dtype=axis == 1)
    yield from _data()
    yield from _sizes()
    yield expect_refusal(ArgSample(name="axis_at_rank", axis=3))
    yield expect_refusal(ArgSample(name="axis_below_rank", axis=-4))


def _data() -> Iterator[ArgSample]:
    for values in ("ties", "all_equal", "boundary", *sorted(FLOAT_DATA), *sorted(WIDE_DATA)):
        every_dtype = values not in ("all_equal", "signed_zeros")
        for last in (None, 0, 1):
            side = {None: "", 0: "_first", 1: "_last"}[last]
            yield ArgSample(
                name=f"{values}{side}", shape=(4, 9), axis=1, last=last, values=values, every_dtype=every_dtype
            )
        if values == "ties":
            yield ArgSample(name="ties_first_axis_last", shape=(9, 4), axis=0, last=1, keepdims=0, values=values)


def _sizes() -> Iterator[ArgSample]:
    for rank in range(1, 9):
        shape = tuple(2 + axis % 2 for axis in range(rank))
        yield ArgSample(name=f"rank_{rank}_last_axis", rank=rank, shape=shape, axis=rank - 1)
        if rank > 3:
            yield ArgSample(name=f"rank_{rank}_axis_1_keepdims_0", rank=rank, shape=shape, axis=1, keepdims=0)
    yield ArgSample(name="size_1_axis", shape=(4, 1), axis=1)
    yield ArgSample(name="size_1_elsewhere", shape=(1, 6, 1), axis=1, keepdims=0)
    yield ArgSample(name="size_0_elsewhere", shape=(0, 5), axis=1)
    for length in (31, 33, 257, 1025, 4097):
        for values in ("distinct", "ties"):
            yield ArgSample(name=f"length_{length}_{values}", shape=(2, length), axis=1, values=values)
        yield ArgSample(name=f"length_{length}_ties_last", shape=(2, length), axis=1, values="ties", last=1)
    yield ArgSample(name="length_1025_first_axis", shape=(1025, 3), axis=0)
    yield ArgSample(name="many_windows", shape=(400, 3), axis=1)


def bindings(name: str, sample: ArgSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    dtype = np.dtype(dtypes[0])
    if sample.last is not None and "select_last_index" not in schema.schema(name, since_version).attributes:
        return ()
    if since_version == 1 and (sample.axis or 0) < 0:
        return ()
    if sample.values in FLOAT_DATA and dtype.kind != "f":
        return ()
    if sample.values in WIDE_DATA:
        return (graph.RUNTIME,) if dtypes[0] in ("int64", "uint64", "float64") else ()
    if dtypes[0] != "float32":
        return (graph.RUNTIME,) if sample.every_dtype else ()
    newest = since_version == schema.since_versions(name)[-1]
    return (graph.RUNTIME, graph.SYMBOLIC) if newest else (graph.RUNTIME,)


def node(name: str, sample: ArgSample, context: CaseContext) -> Node:
    """data of rank 1 or more and any number type; reduced is int64."""
    settings = {"axis": sample.axis, "keepdims": sample.keepdims, "select_last_index": sample.last}
    attributes: dict[str, Attribute] = {key: value for key, value in settings.items() if value is not None}
    operand = Operand("data", _values(name, sample, context.dtype, context.rng))
    return Node(name, "", context.since_version, (operand,), ("reduced",), attributes)


def _values(name: str, sample: ArgSample, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    match sample.values:
        case "distinct":
            return data.distinct(sample.shape, dtype, rng)
        case "ties":
            return np.asarray(rng.integers(0, 4, sample.shape)).astype(dtype)
        case "all_equal":
            return np.full(sample.shape, 3, dtype)
        case "boundary":
            return rng.choice(data.boundary(dtype), sample.shape)
        case "beyond_2_53":
            top = 2**63 if dtype == np.uint64 else 2**53
            return np.array([top + int(v) for v in rng.integers(-3, 4, np.prod(sample.shape))], dtype).reshape(
                sample.shape
            )
        case "infinities":
            rows = rng.choice(np.array([np.inf, -np.inf, 1.0, -1.0], dtype), sample.shape)
            rows[0] = np.inf if name == "ArgMin" else -np.inf
            return rows
        case "signed_zeros":
            away = 1 if name == "ArgMin" else -1
            return rng.choice(np.array([0.0, -0.0, away], dtype), sample.shape)
        case other:
            raise ValueError(f"{name} sample {sample.name}: unknown kind of data '{other}'")


def _axis(node: Node) -> int | str:
    rank = node.array("data").ndim
    axis = node.integer("axis", 0)
    return axis % rank if -rank <= axis < rank else f"axis {axis} must be within [{-rank}, {rank - 1}] for rank {rank}"


def truth(node: Node) -> Truth:
    """The first index of the best element along the axis, or the last one with select_last_index."""
    axis = _axis(node)
    if isinstance(axis, str):
        return Refusal(axis)
    x = node.array("data")
    best = np.argmax if node.op_type == "ArgMax" else np.argmin
    if node.integer("select_last_index", 0):
        index = x.shape[axis] - 1 - best(np.flip(x, axis), axis=axis)
    else:
        index = best(x, axis=axis)
    if node.integer("keepdims", 1):
        index = np.expand_dims(index, axis)
    return Outputs((Output("reduced", np.asarray(index, np.int64)),))


def lower(node: Node) -> Lowering | None:
    axis = _axis(node)
    x = node.array("data")
    if isinstance(axis, str) or x.size == 0 or x.ndim > MAX_RANK:
        return None
    sizes = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    last = node.integer("select_last_index", 0)
    desc = DESCS[node.op_type](
        TensorDesc.of(x),
        TensorDesc.of(np.empty(0, np.int64), sizes=sizes),
        (axis,),
        AxisDirection.DECREASING if last else AxisDirection.INCREASING,
    )
    return Lowering(desc, (x,))


def _index_of_nothing() -> UndefinedSamples:
    answer = Answer(np.zeros((2, 1, 3), np.int64))
    yield UndefinedSample("of_nothing", "float32", NO_IDENTITY, (EMPTY_ROWS,), (answer,), {"axis": 1})


UNDEFINED = {"ArgMax": _index_of_nothing, "ArgMin": _index_of_nothing}


PARAMETER_SPACES = dict.fromkeys(
    DESCS,
    make_axis_space(make_axis_parts, {"axis": AXES, "keepdims": (1, 0), "select_last_index": (0, 1)}, ANY_VALUE[1:]),
)

OPERATORS = declare(
    tuple(Operator(name, samples, partial(bindings, name), partial(node, name), truth, lower) for name in DESCS),
    interactions=dict.fromkeys(
        DESCS, (Interaction("beyond_int32", (Literal(BESIDE_INT32, "", (4, 2)),), {"axis": 1}, "int64"),)
    ),
    undefined=UNDEFINED,
    parameter_spaces=PARAMETER_SPACES,
)
