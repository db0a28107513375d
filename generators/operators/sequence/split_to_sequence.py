"""SplitToSequence-11 and SplitToSequence-24: a tensor as a sequence of parts along an axis.

A model's ends are tensors, so the nodes after the one under test read the length of its sequence and each tensor, as
in `sequence.py`. Source: the operator's page, which says both that parts must be longer than 0 and that they may be 0
long: no case has such a part. Types that numpy cannot hold have none either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from epcheck.generators import data, graph
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.families.movement import RefusedError, normalize_axis, shape_of_rank
from epcheck.generators.node import Attribute, Node, Operand, Surroundings
from epcheck.generators.operator import NO_KERNEL, NO_TENSOR, Operator, spread
from epcheck.generators.operators.sequence.sequence import LENGTH, TENSOR, read_length, read_tensors, sequence_type
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("SplitToSequence",)

ESTABLISHED = 24


@dataclass(frozen=True, kw_only=True)
class SplitSample(Sample):
    """shape: of the input. split: None leaves the input out; an integer is a scalar. axis, keepdims: None leaves the
    attribute out. split_dtype: of that input."""

    shape: tuple[int, ...] = (4, 3)
    split: int | tuple[int, ...] | None = None
    axis: int | None = None
    keepdims: int | None = None
    split_dtype: str = "int64"
    special: bool = False
    matrix: bool = False


def samples() -> Iterator[SplitSample]:
    yield SplitSample(name="defaults", every_dtype=True)
    yield SplitSample(name="keepdims_0", keepdims=0, every_dtype=True)
    yield SplitSample(name="keepdims_1", keepdims=1)
    for axis in (0, 1, -1, -2):
        place = f"axis_{'minus_' if axis < 0 else ''}{abs(axis)}"
        yield SplitSample(name=f"{place}_omitted", axis=axis)
        yield SplitSample(name=f"{place}_keepdims_0", axis=axis, keepdims=0, every_dtype=axis == 1)
        yield SplitSample(name=f"{place}_scalar", shape=(5, 5), axis=axis, split=2, every_dtype=axis == -1)
        yield SplitSample(name=f"{place}_lengths", shape=(6, 6), axis=axis, split=(1, 3, 2), every_dtype=axis == 1)
    for split_dtype in ("int32", "int64"):
        yield SplitSample(name=f"scalar_of_{split_dtype}", split=2, split_dtype=split_dtype)
        yield SplitSample(name=f"lengths_of_{split_dtype}", split=(3, 1), split_dtype=split_dtype)
    for name, split in (("scalar_1", 1), ("scalar_2", 2), ("lengths", (1, 1, 1, 1)), ("one_length", (4,))):
        yield SplitSample(name=f"keepdims_0_ignored_{name}", split=split, keepdims=0, every_dtype=name == "scalar_1")
    for split in (1, 2, 3, 4, 7, np.iinfo(np.int64).max):
        yield SplitSample(name=f"chunks_of_{'int64_max' if split > 9 else split}_of_7", shape=(7, 2), split=split)
    yield SplitSample(name="one_part", split=(4,))
    yield SplitSample(name="forty_parts", shape=(40, 2), axis=0, split=1)
    yield SplitSample(name="every_value", shape=(4, 16), split=(1, 3), special=True, every_dtype=True)
    for rank in range(1, 9):
        yield SplitSample(name=f"rank_{rank}_last_axis", rank=rank, shape=shape_of_rank(rank), axis=rank - 1, split=1)
        yield SplitSample(name=f"rank_{rank}_keepdims_0", rank=rank, shape=shape_of_rank(rank), keepdims=0)
    yield SplitSample(name="inner_axis", shape=(2, 5, 3), axis=1, split=(4, 1))
    yield SplitSample(name="size_1", shape=(1, 1), axis=1)
    yield SplitSample(name="size_0_beside_the_axis", shape=(2, 0), axis=0, split=1)
    yield SplitSample(name="size_0_beside_the_axis_keepdims_0", shape=(2, 0), keepdims=0)
    yield SplitSample(name="size_0_along_the_axis", shape=(0, 3))
    yield SplitSample(name="more_than_a_thread_group", shape=(3, 1031), axis=1, split=(1025, 6))
    yield SplitSample(name="long_chunks", shape=(2, 2055), axis=1, split=1024)
    yield expect_refusal(SplitSample(name="lengths_too_short", split=(1, 2)))
    yield expect_refusal(SplitSample(name="lengths_too_long", split=(3, 2)))
    yield expect_refusal(SplitSample(name="length_negative", split=(5, -1)))
    yield expect_refusal(SplitSample(name="scalar_negative", split=-2))
    yield expect_refusal(SplitSample(name="split_matrix", split=(1, 3), matrix=True))
    yield expect_refusal(SplitSample(name="axis_at_rank", axis=2))
    yield expect_refusal(SplitSample(name="axis_below_minus_rank", axis=-3))


def bindings(sample: SplitSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    known = set(spread(sample, first=dtypes == ("float32",), newest=since_version == ESTABLISHED))
    if known and sample.split is None:
        known = (known - {graph.INITIALIZER}) | {graph.RUNTIME}
    return tuple(binding for binding in graph.BINDINGS if binding in known)


def node(sample: SplitSample, context: CaseContext) -> Node:
    """input of any shape and of the case's dtype; split int32 or int64, a scalar or [parts]."""
    dtype = context.dtype
    operands = [Operand("input", _values(sample, context))]
    if sample.split is not None:
        split = np.array(sample.split, sample.split_dtype)
        operands.append(Operand("split", split.reshape(1, -1) if sample.matrix else split, parameter=True))
    settings = {"axis": sample.axis, "keepdims": sample.keepdims}
    attributes: dict[str, Attribute] = {name: value for name, value in settings.items() if value is not None}
    bare = Node("SplitToSequence", "", context.since_version, tuple(operands), (), attributes)
    try:
        count = len(parts_of(bare))
    except RefusedError:
        count = 1
    results = {LENGTH: "int64", **{f"{TENSOR}{i}": dtype.name for i in range(count)}}
    types = {"T": dtype.name, "I": sample.split_dtype, "S": sequence_type(dtype)}
    after = (read_length("result", LENGTH), *read_tensors("result", count))
    around = Surroundings(tuple(o.name for o in operands), ("result",), results, types, after=after)
    return Node(bare.op_type, "", context.since_version, bare.inputs, tuple(results), attributes, around)


def _values(sample: SplitSample, context: CaseContext) -> Array:
    if sample.special:
        return np.resize(data.every_value(context.dtype), sample.shape)
    return data.distinct(sample.shape, context.dtype, context.rng)


def parts_of(node: Node) -> list[Array]:
    """The tensors of the sequence. Raises RefusedError."""
    values, split = node.array("input"), node.value("split")
    axis = normalize_axis(node.integer("axis", 0), values.ndim)
    size = values.shape[axis]
    if split is None or split.ndim == 0:
        step = 1 if split is None else int(split)
        if step < 0:
            raise RefusedError(f"split must not be negative; it is {step}")
        starts = list(range(0, size, step))
        ends = [min(size, start + step) for start in starts]
    else:
        if split.ndim > 1:
            raise RefusedError(f"split must be a scalar or have one dimension, not {split.ndim}")
        if (split < 0).any() or int(split.sum()) != size:
            raise RefusedError(f"split {split.tolist()} must be lengths that add up to {size}")
        ends = np.cumsum(split).tolist()
        starts = [0, *ends[:-1]]
    parts = [np.take(values, range(start, end), axis) for start, end in zip(starts, ends, strict=True)]
    if split is None and not node.integer("keepdims", 1):
        parts = [part.squeeze(axis) for part in parts]
    return parts


def truth(node: Node) -> Truth:
    """The length of the sequence and its tensors, bit by bit."""
    try:
        parts = parts_of(node)
    except RefusedError as error:
        return Refusal(str(error))
    length = Output(LENGTH, np.array(len(parts), np.int64))
    return Outputs((length, *(Output(f"{TENSOR}{index}", part) for index, part in enumerate(parts))))


OPERATORS = (
    Operator(
        "SplitToSequence",
        samples,
        bindings,
        node,
        truth,
        NO_KERNEL,
        without_rank_9=NO_TENSOR,
        without_rank_dtypes=NO_TENSOR,
    ),
)
