"""Where -> DML_ELEMENT_WISE_IF; Clip -> DML_ELEMENT_WISE_CLIP (Clip-6) or DML_ELEMENT_WISE_CLIP1.

Sources: the operator pages Where, Clip-6 (min and max are attributes), Clip-11, 12 and 13 (they are inputs). Both move
values: bits are kept. min and max default to the least and the greatest finite number of the type, so that they clip
infinities; the attributes of Clip-6 default to those of float32, and of infinities in another type it has no sample.
NaN is neither above max nor below min and stays. Where min is greater than max, everything is max from Clip-13 on; the
older texts say nothing, and have no sample.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epcheck.generators import data, graph, schema
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.interaction import (
    ABOVE_GROUPS,
    BESIDE_INT32,
    DISPATCHED,
    Interaction,
    Literal,
    Random,
)
from epcheck.generators.directml import DataType, OperatorDesc, TensorDesc
from epcheck.generators.directml.descriptions.elementwise.elementwise import (
    ElementWiseClip,
    ElementWiseClip1,
    ElementWiseIf,
)
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.directml.tensor import MAX_RANK
from epcheck.generators.families.broadcasting import (
    ElementwiseSample,
    Rule,
    Shape,
    broadcast,
    broadcasts,
    call_plain,
    edge_values,
    operands,
    operator,
)
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import Operator, declare, spread
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = (
    "Where",
    "Clip",
)


def _where_samples() -> Iterator[ElementwiseSample]:
    """Every pair of shapes for X and Y under a condition of their shape, then each of the three alone at its size."""
    for sample in broadcasts():
        x, y = sample.shapes
        yield replace(sample, shapes=(np.broadcast_shapes(x, y), x, y))
    shapes: dict[str, tuple[Shape, Shape, Shape]] = {
        "condition_scalar": ((), (3, 5), (3, 5)),
        "condition_row": ((5,), (3, 5), (3, 5)),
        "condition_column": ((3, 1), (3, 5), (3, 5)),
        "condition_row_x_scalar": ((5,), (), (3, 5)),
        "condition_row_y_scalar": ((5,), (3, 5), ()),
        "only_condition_large": ((3, 5), (), ()),
        "only_x_large": ((), (3, 5), (1,)),
        "only_y_large": ((1,), (), (3, 5)),
        "each_along_its_axis": ((3, 1, 1), (1, 4, 1), (1, 1, 5)),
        "condition_of_higher_rank": ((2, 3, 1), (4,), (3, 4)),
        "condition_size_0": ((0, 1), (1, 5), ()),
    }
    for name, sizes in shapes.items():
        yield ElementwiseSample(
            name=name, shapes=sizes, every_dtype=name in ("condition_column", "each_along_its_axis")
        )
    yield ElementwiseSample(name="every_value", boundary="every", every_dtype=True)
    yield ElementwiseSample(name="always_true", boundary="true", every_dtype=True)
    yield ElementwiseSample(name="always_false", boundary="false", every_dtype=True)
    yield expect_refusal(ElementwiseSample(name="x_and_y_differ", shapes=((2, 3), (2, 3), (2, 4))))
    yield expect_refusal(ElementwiseSample(name="condition_differs", shapes=((4,), (2, 3), (2, 3))))


def _where_draw(shapes: tuple[Shape, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> tuple[Array, ...]:
    condition = rng.integers(0, 2, shapes[0]).astype(np.bool_)
    return condition, *(data.distinct(shape, dtype, rng) for shape in shapes[1:])


def _where_edges(which: str, dtype: np.dtype[Any]) -> tuple[Array, ...]:
    """Every value of the dtype on either side, its neighbour on the other."""
    values = np.repeat(edge_values("every", dtype), 2)
    condition = np.tile([True, False], values.size // 2)
    if which != "every":
        condition = np.full(values.size, which == "true")
    return condition, values, np.roll(values, 3)


def _where_rejects(node: Node) -> str | None:
    condition, x, y = operands(node)
    if condition.dtype != np.bool_ or x.dtype != y.dtype:
        return f"condition is {condition.dtype}, X {x.dtype} and Y {y.dtype}"
    return None


WHERE = Rule(
    "Where",
    tuple(_where_samples()),
    draw=_where_draw,
    compute=call_plain(np.where),
    describe=lambda _node, tensors, result: ElementWiseIf(tensors[0], tensors[1], tensors[2], result),
    rejects=_where_rejects,
    arity=3,
    one_type=False,
    typed=1,
    edges=_where_edges,
)

INSIDE_OUT = "greater than 'max'"
"""The words of the versions that say what a min beyond max does."""


@dataclass(frozen=True, kw_only=True)
class ClipSample(Sample):
    """low, high: min and max, None where they are left out; numbers, or 'lowest' and 'highest' of the dtype.

    values: what is clipped; those that the dtype cannot hold are left out. Without values: `boundary` values, or
    the numbers from -8 to 8 in `shape`. trailing: an omitted input at the end has an empty name instead of none.
    """

    low: float | str | None = None
    high: float | str | None = None
    shape: Shape = (4, 5)
    values: tuple[float, ...] = ()
    boundary: str = ""
    kinds: str = "fiu"
    trailing: bool = False
    bound_shape: Shape = ()
    since: str = ""
    inputs_only: bool = False


def clip_samples() -> Iterator[ClipSample]:
    yield from _clip_intervals()
    yield from _clip_shapes()
    yield from _clip_values()
    yield expect_refusal(
        ClipSample(name="min_is_a_matrix", low=1, high=3, bound_shape=(2, 2), inputs_only=True, every_dtype=True)
    )


def _clip_intervals() -> Iterator[ClipSample]:
    ends: dict[str, tuple[float | str | None, float | str | None]] = {
        "min_and_max": (2, 5),
        "min_only": (3, None),
        "max_only": (None, 4),
        "neither": (None, None),
        "one_value": (3, 3),
        "everything_below": (100, 120),
        "everything_above": (0, 1),
        "whole_range": ("lowest", "highest"),
        "zero_to_six": (0, 6),
    }
    for name, (low, high) in ends.items():
        yield ClipSample(name=name, low=low, high=high, every_dtype=name != "everything_below")
    negative: dict[str, tuple[float | None, float | None]] = {
        "both_negative": (-5, -2), "around_zero": (-2, 3), "max_zero": (-4, 0), "min_zero": (0, None),
    }  # fmt: skip
    for name, (least, most) in negative.items():
        yield ClipSample(name=name, low=least, high=most, kinds="fi", every_dtype=name == "around_zero")
    yield ClipSample(name="fractions", low=-1.5, high=2.25, kinds="f", every_dtype=True)
    yield ClipSample(name="limits_of_many_bits", low=-1.1003, high=2.3007, kinds="f", every_dtype=True)
    yield ClipSample(name="limits_negative", low=-6, high=-2, kinds="fi", every_dtype=True)
    yield ClipSample(
        name="infinite_ends", low=-math.inf, high=math.inf, boundary="boundary", kinds="f", every_dtype=True
    )
    yield ClipSample(name="infinite_max", low=1, high=math.inf, boundary="boundary", kinds="f", every_dtype=True)
    yield ClipSample(name="neither_with_empty_names", trailing=True, inputs_only=True)
    yield ClipSample(name="min_only_with_empty_name", low=3, trailing=True, inputs_only=True)
    for name, (low, high) in {"by_1": (4, 3), "by_far": (100, 2)}.items():
        yield ClipSample(name=f"min_beyond_max_{name}", low=low, high=high, since=INSIDE_OUT, every_dtype=True)


def _clip_shapes() -> Iterator[ClipSample]:
    for rank in range(9):
        yield ClipSample(
            name=f"rank_{rank}", rank=rank, low=2, high=5, shape=tuple(2 + axis % 2 for axis in range(rank))
        )
    for name, shape in {"size_0": (0,), "size_0_inside": (2, 0, 3), "size_1": (1, 1)}.items():
        yield ClipSample(name=name, low=2, high=5, shape=shape)
    for length in (31, 257, 1025, 4097):
        yield ClipSample(name=f"length_{length}", low=2, high=5, shape=(length,))


def _clip_values() -> Iterator[ClipSample]:
    yield ClipSample(name="boundary_values", low=1, high=100, boundary="boundary", every_dtype=True)
    yield ClipSample(name="boundary_values_min_only", low=1, boundary="boundary", every_dtype=True)
    yield ClipSample(name="boundary_values_max_only", high=1, boundary="boundary", every_dtype=True)
    yield ClipSample(name="denormals", low=-1, high=1, boundary="denormals", kinds="f", every_dtype=True)
    nan = (math.nan, 1.0, 9.0, -math.nan)
    yield ClipSample(name="nan", low=2, high=5, values=nan, kinds="f", every_dtype=True)
    yield ClipSample(name="nan_neither", values=nan, kinds="f", every_dtype=True)
    infinities = (math.inf, -math.inf, 3.0)
    yield ClipSample(name="infinities", low=2, high=5, values=infinities, kinds="f", every_dtype=True)
    yield ClipSample(name="infinities_neither", values=infinities, kinds="f", every_dtype=True)
    yield ClipSample(name="infinities_min_only", low=2, values=infinities, kinds="f", every_dtype=True)
    wide = (2**24 + 1, 2**53 + 1, 2**62 + 1, 2**53 + 3, 5)
    yield ClipSample(name="beyond_float", low=3, high=2**53 + 1, values=wide, kinds="iu", every_dtype=True)
    yield ClipSample(name="min_beyond_float", low=2**53 + 1, values=wide, kinds="iu", every_dtype=True)


def clip_bindings(sample: ClipSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Attributes in Clip-6; from then on initializers, and inputs of every kind in the newest version."""
    dtype = np.dtype(dtypes[0])
    definition = schema.schema("Clip", since_version)
    as_attributes = _has_attributes(since_version)
    if dtype.kind not in sample.kinds or sample.since not in (definition.doc or "") or not _fit(sample, dtype):
        return ()
    if as_attributes and (sample.inputs_only or not _is_for_attributes(sample, dtype)):
        return ()
    newest = since_version == schema.since_versions("Clip")[-1]
    chosen = spread(sample, first=dtypes == ("float32",) or "f" not in sample.kinds, newest=newest)
    if as_attributes:
        return (graph.RUNTIME,) if chosen else ()
    few = sample.shape != (4, 5) or (sample.low is None and sample.high is None)
    return chosen[:1] if few else chosen


def _is_for_attributes(sample: ClipSample, dtype: np.dtype[Any]) -> bool:
    """The attributes are float32; of its defaults only the text for float32 itself is clear about infinities."""
    if "lowest" in (sample.low, sample.high):
        return dtype == np.float32
    return dtype == np.float32 or math.inf not in (*sample.values, *data.boundary(dtype)[: 1 if sample.boundary else 0])


def _has_attributes(since_version: int) -> bool:
    return "min" in schema.schema("Clip", since_version).attributes


def _fit(sample: ClipSample, dtype: np.dtype[Any]) -> bool:
    if dtype.kind == "f":
        return True
    info = np.iinfo(dtype)
    ends = [end for end in (sample.low, sample.high) if end is not None and not isinstance(end, str)]
    return all(info.min <= end <= info.max for end in ends) and (not sample.values or bool(_list_held(sample, dtype)))


def _list_held(sample: ClipSample, dtype: np.dtype[Any]) -> list[float]:
    if dtype.kind == "f":
        return list(sample.values)
    info = np.iinfo(dtype)
    return [value for value in sample.values if info.min <= value <= info.max]


def clip_node(sample: ClipSample, context: CaseContext) -> Node:
    """input of any shape and dtype T; min and max are scalars of T, or float attributes in Clip-6."""
    dtype = context.dtype
    values = Operand("input", _clipped_values(sample, dtype, context.rng))
    low, high = (_end(end, dtype) for end in (sample.low, sample.high))
    if _has_attributes(context.since_version):
        settings = {"min": low, "max": high}
        attributes: dict[str, Attribute] = {name: float(end) for name, end in settings.items() if end is not None}
        return Node("Clip", "", context.since_version, (values,), ("output",), attributes)
    ends = [
        None if end is None else Operand(name, np.full(sample.bound_shape, end, dtype), parameter=True)
        for name, end in (("min", low), ("max", high))
    ]
    while ends and ends[-1] is None and not sample.trailing:
        ends.pop()
    return Node("Clip", "", context.since_version, (values, *ends), ("output",))


def _clipped_values(sample: ClipSample, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    if sample.values:
        return np.array(_list_held(sample, dtype), dtype)
    if sample.boundary:
        return edge_values(sample.boundary, dtype)
    whole = rng.integers(0 if dtype.kind == "u" else -8, 9, sample.shape)
    return (whole + (0.25 * rng.integers(0, 4, sample.shape) if dtype.kind == "f" else 0)).astype(dtype)


def _end(end: float | str | None, dtype: np.dtype[Any]) -> Any:
    if not isinstance(end, str):
        return end
    info = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    return info.min if end == "lowest" else info.max


def _ends(node: Node) -> tuple[Array, Array]:
    """min and max as scalars of the dtype of the input, the defaults among them."""
    dtype = node.array("input").dtype
    if _has_attributes(node.since_version):
        limit = float(np.finfo(np.float32).max)
        with np.errstate(over="ignore"):
            return np.array(node.number("min", -limit)).astype(dtype), np.array(node.number("max", limit)).astype(dtype)
    least, most = (np.asarray(_end(end, dtype), dtype) for end in ("lowest", "highest"))
    low, high = (node.value(name) for name in ("min", "max"))
    return least if low is None else low, most if high is None else high


def clip_truth(node: Node) -> Truth:
    """Min(max, Max(input, min)) of values; NaN stays."""
    values = node.array("input")
    low, high = _ends(node)
    if low.size != 1 or high.size != 1 or max(low.ndim, high.ndim) > 1:
        return Refusal("min and max must be scalars")
    raised = np.where(values < low.reshape(()), low.reshape(()), values)
    return Outputs((Output(node.outputs[0], np.where(raised > high.reshape(()), high.reshape(()), raised)),))


def clip_lower(node: Node) -> Lowering | None:
    """CLIP with float ends, or CLIP1 with those of the type."""
    values = node.array("input")
    low, high = _ends(node)
    if values.size == 0 or values.ndim > MAX_RANK or max(low.size, high.size) > 1:
        return None
    tensor, feed = broadcast(values, values.shape)
    return Lowering(_clip_description(node, tensor, low, high), (feed,))


def _clip_description(node: Node, tensor: TensorDesc, low: Array, high: Array) -> OperatorDesc:
    if _has_attributes(node.since_version):
        limit = float(np.finfo(np.float32).max)
        return ElementWiseClip(tensor, tensor, None, node.number("min", -limit), node.number("max", limit))
    return ElementWiseClip1(tensor, tensor, None, DataType.of(low.dtype), low.reshape(-1)[0], high.reshape(-1)[0])


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "Clip": (
        Interaction("beyond_int32", (Literal(BESIDE_INT32), Literal(-(2**31)), Literal(2**31 - 1)), {}, "int64"),
        Interaction("from_1_beyond_int32", (Literal(BESIDE_INT32), Literal(1), Literal(2**31)), {}, "int64"),
    ),
    "Where": (
        Interaction(ABOVE_GROUPS, (Random((DISPATCHED, 64), 0, 1, "bool"), Literal(1), Literal([2] * 64)), {}, "int32"),
        Interaction("condition_of_one_in_the_middle",
                (Literal([True, False, False, True, True, False], "bool", (2, 1, 3)), Random((2, 4, 3)), Random((2, 4,
                3)))),
    ),
}  # fmt: skip

OPERATORS = declare(
    (
        operator(WHERE),
        Operator("Clip", clip_samples, clip_bindings, clip_node, clip_truth, clip_lower),
    ),
    interactions=INTERACTIONS,
)
