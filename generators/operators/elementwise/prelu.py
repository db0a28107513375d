"""PRelu-7, 9, 16 -> DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC.

Source: the pages of PRelu (slope x for x < 0, x elsewhere; slope must be unidirectionally broadcastable to X). In
unsigned types no x is negative; products of signed ones stay within their type here, since no page says what else.
The sign of a zero is not compared. Bound: WebNN conformance tests, prelu, 1 ULP.
How the DML EP lowers it: DmlOperatorActivation.cpp in ONNX Runtime; the slope gets X's sizes by strides of 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds, zero_signs
from epcheck.generators.bounds.elementary import bound_formula
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.claims import newest_claimed_version
from epcheck.generators.declaration.interaction import Interaction, Literal
from epcheck.generators.directml import DataType, TensorDesc
from epcheck.generators.directml.descriptions.elementwise.activation import ParameterizedRelu
from epcheck.generators.directml.lowering import Lowering, pad_rank
from epcheck.generators.directml.tensor import MAX_RANK
from epcheck.generators.families import elementwise
from epcheck.generators.node import Node, Operand
from epcheck.generators.operator import Operator, declare, spread
from epcheck.generators.truth import Output, Outputs, Refusal, Truth, ZeroSigns

DECLARES = ("PRelu",)

WEBNN_PRELU = bounds.WEBNN.cite_row("prelu")
SIGNS = ZeroSigns(zero_signs.LINEAR)


@dataclass(frozen=True, kw_only=True)
class PReluSample(Sample):
    """values: 'ordinary', 'whole_range' of magnitudes, 'special' or 'denormals'. slope_values: None are ordinary ones,
    otherwise each of them in turn."""

    shape: tuple[int, ...] = (2, 3, 4, 5)
    slope: tuple[int, ...] = (3, 1, 1)
    values: str = "ordinary"
    slope_values: tuple[float, ...] | None = None


def samples() -> Iterator[PReluSample]:
    yield from _list_broadcasts()
    yield from _values()
    yield from _sizes()
    yield from map(expect_refusal, _list_refused())


def _list_broadcasts() -> Iterator[PReluSample]:
    slopes: dict[str, tuple[int, ...]] = {
        "channel": (3, 1, 1),
        "same_shape": (2, 3, 4, 5),
        "one_element": (1,),
        "scalar": (),
        "last_axis": (5,),
        "last_two_axes": (4, 5),
        "last_three_axes": (3, 4, 5),
        "first_axis": (2, 1, 1, 1),
        "channel_of_rank_4": (1, 3, 1, 1),
        "second_last_axis": (4, 1),
        "outer_and_inner_axis": (2, 1, 1, 5),
        "middle_axes": (1, 3, 4, 1),
        "all_ones": (1, 1, 1, 1),
    }
    for name, slope in slopes.items():
        worth = name in ("channel", "same_shape", "last_axis", "scalar")
        yield PReluSample(name=name, rank=4 if name == "channel_of_rank_4" else None, slope=slope, every_dtype=worth)


def _values() -> Iterator[PReluSample]:
    for values in ("whole_range", "special", "denormals"):
        yield PReluSample(name=values, shape=(2, 3, 14), slope=(3, 1), values=values, every_dtype=True)
    for name, slope in {
        "slope_0": (0.0,),
        "slope_1": (1.0,),
        "slope_minus_1": (-1.0,),
        "slope_beyond_1": (3.0,),
        "slopes_of_both_signs": (-2.0, 0.5, 2.0),
    }.items():
        yield PReluSample(name=name, slope_values=slope, every_dtype=True)


def _sizes() -> Iterator[PReluSample]:
    for rank in range(9):
        shape = tuple(2 + axis % 2 for axis in range(rank))
        yield PReluSample(name=f"rank_{rank}_same_shape", rank=rank, shape=shape, slope=shape)
        if rank > 1:
            yield PReluSample(name=f"rank_{rank}_first_axis", rank=rank, shape=shape, slope=(2, *(1,) * (rank - 1)))
            yield PReluSample(name=f"rank_{rank}_last_axis", rank=rank, shape=shape, slope=shape[-1:])
    yield PReluSample(name="size_0", shape=(2, 0, 3), slope=(3,))
    yield PReluSample(name="size_0_slope_too", shape=(2, 0), slope=(0,))
    yield PReluSample(name="size_1", shape=(1,), slope=(1,))
    yield PReluSample(name="beyond_a_thread_group", shape=(1031,), slope=(1,))
    yield PReluSample(name="many_channels", shape=(2, 257, 3), slope=(257, 1))
    yield PReluSample(name="long_slope", shape=(2, 2049), slope=(2049,))


def _list_refused() -> Iterator[PReluSample]:
    yield PReluSample(name="slope_of_another_size", shape=(2, 3), slope=(2,))
    yield PReluSample(name="slope_of_higher_rank", shape=(3,), slope=(2, 3))
    yield PReluSample(name="slope_wider_than_data", shape=(3, 1), slope=(3, 4))


def bindings(sample: PReluSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    kind = np.dtype(dtypes[0]).kind
    if kind != "f" and sample.values != "ordinary":
        return ()
    slopes = sample.slope_values or ()
    if (kind == "u" and min(slopes, default=0.0) < 0) or (kind != "f" and any(slope % 1 for slope in slopes)):
        return ()
    if sample.refused:
        return (graph.INITIALIZER, graph.SYMBOLIC) if dtypes == ("float32",) else ()
    scalar = not sample.shape
    return spread(
        sample, first=dtypes == ("float32",), newest=since_version == newest_claimed_version("PRelu"), scalar=scalar
    )


def node(sample: PReluSample, context: CaseContext) -> Node:
    """X of any shape, slope of a shape that is broadcast to it, one dtype."""
    rng, dtype = context.rng, context.dtype
    slope = rng.uniform(0.05, 2, sample.slope) if dtype.kind == "f" else rng.integers(0, 5, sample.slope)
    if sample.slope_values is not None:
        slope = np.resize(np.array(sample.slope_values), sample.slope)
    return Node(
        "PRelu",
        "",
        context.since_version,
        (Operand("X", _data(sample, context)), Operand("slope", np.asarray(slope).astype(dtype), parameter=True)),
        ("Y",),
    )


def _data(sample: PReluSample, context: CaseContext) -> Array:
    dtype, rng = context.dtype, context.rng
    if dtype.kind != "f":
        return rng.integers(0 if dtype.kind == "u" else -100, 100, sample.shape).astype(dtype)
    if sample.values == "ordinary":
        return rng.uniform(-4, 4, sample.shape).astype(dtype)
    kinds = elementwise.ElementwiseSample(name="", shape=sample.shape, values=sample.values)
    values = elementwise.values_of(kinds, elementwise.Domain(), dtype, rng)
    return np.resize(values, sample.shape)


def truth(node: Node) -> Truth:
    """Floating point in float64, rounded once; integers exactly."""
    x, slope = node.array("X"), node.array("slope")
    if not _is_broadcastable(slope.shape, x.shape):
        return Refusal(f"slope {list(slope.shape)} is not unidirectionally broadcastable to X {list(x.shape)}")
    if x.dtype.kind != "f":
        return Outputs((Output("Y", np.where(x < 0, slope * x, x)),))
    wide, factor = x.astype(np.float64), slope.astype(np.float64)
    with np.errstate(all="ignore"):
        y = np.where(wide < 0, factor * wide, wide)
    return Outputs((bounds.round_output("Y", y, x.dtype, bound_formula(1, (WEBNN_PRELU,), x.dtype), SIGNS),))


def _is_broadcastable(sizes: tuple[int, ...], to: tuple[int, ...]) -> bool:
    pairs = zip(reversed(sizes), reversed(to), strict=False)
    return len(sizes) <= len(to) and all(size in (1, target) for size, target in pairs)


def lower(node: Node) -> Lowering | None:
    """Rank padded to 4; the slope has X's sizes, with strides of 0 along the axes where it is broadcast."""
    x, slope = node.array("X"), node.array("slope")
    if not _is_broadcastable(slope.shape, x.shape) or not x.size or x.ndim > MAX_RANK:
        return None
    source = pad_rank(x)
    aligned = slope.reshape((1,) * (source.ndim - slope.ndim) + slope.shape)
    tensor = TensorDesc.of(source)
    strides = _strides(aligned.shape, source.shape)
    slope_tensor = TensorDesc(DataType.of(slope.dtype), source.shape, strides)
    return Lowering(ParameterizedRelu(tensor, slope_tensor, tensor), (source, np.broadcast_to(aligned, source.shape)))


def _strides(sizes: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...] | None:
    """Elements from one index to the next; None for a packed tensor."""
    if sizes == target:
        return None
    packed = [int(np.prod(sizes[axis + 1 :], dtype=np.int64)) for axis in range(len(sizes))]
    return tuple(0 if size == 1 else step for size, step in zip(sizes, packed, strict=True))


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "PRelu": (
        Interaction("integers_beyond_float32", (Literal([-16777217, -5]), Literal([1])), {}, "int64"),
        Interaction("integers_beyond_float32", (Literal([-16777217, -5]), Literal([1])), {}, "int32"),
    ),
}  # fmt: skip

OPERATORS = declare(
    (Operator("PRelu", samples, bindings, node, truth, lower),),
    interactions=INTERACTIONS,
)
