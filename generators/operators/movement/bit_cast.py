"""BitCast-26: the bits of a tensor, read as another type of the same width.

Source: the BitCast page. The shape stays, and bytes are little endian. `to` names T2 and must be as wide as the input,
whose bits all arrive: NaN with any payload, denormals, the sign of a zero. bool is read from bytes of 0 and 1 alone;
what another byte means the page does not say. Types that numpy cannot hold have no case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from epcheck.generators import data, graph
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.families import elementwise
from epcheck.generators.node import Node, Operand
from epcheck.generators.operator import NO_KERNEL, PAIRS_OF_DTYPES, Operator
from epcheck.generators.schema import NUMPY_NAMES
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("BitCast",)

FIRST = ("float32", "int32")
"""T1 and T2 in which every sample has a case."""

REFUSED_PAIRS = frozenset({
    ("float32", "int64"), ("float32", "float16"), ("int64", "float32"), ("float64", "int32"), ("uint8", "uint16"),
    ("int16", "int8"), ("bool", "uint16"),
})  # fmt: skip
"""T1 and T2 of different widths that `refused_another_width` is about."""


@dataclass(frozen=True, kw_only=True)
class BitCastSample(Sample):
    """values: 'bits', any of them; or 'boundary', every value that T1 has a word for. to: instead of T2."""

    shape: tuple[int, ...] = (3, 7)
    values: str = "bits"
    to: int | None = None
    every_binding: bool = False
    another_width: bool = False


def samples() -> Iterator[BitCastSample]:
    yield BitCastSample(name="matrix", every_dtype=True, every_binding=True)
    yield BitCastSample(name="boundary", values="boundary", every_dtype=True)
    for name, shape in elementwise.shapes():
        yield BitCastSample(name=name, shape=shape, rank=len(shape), every_dtype=name == "length_1025")
    yield expect_refusal(BitCastSample(name="another_width", another_width=True))
    yield expect_refusal(BitCastSample(name="to_undefined", to=TensorProto.UNDEFINED))
    yield expect_refusal(BitCastSample(name="to_string", to=TensorProto.STRING))
    yield expect_refusal(BitCastSample(name="to_no_type", to=1000))


def bindings(sample: BitCastSample, _: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Every pair of types as wide as each other; those that are not for one sample."""
    source, target = dtypes
    if sample.another_width:
        return (graph.RUNTIME,) if dtypes in REFUSED_PAIRS else ()
    if np.dtype(source).itemsize != np.dtype(target).itemsize:
        return ()
    if dtypes != FIRST:
        return (graph.RUNTIME,) if sample.every_dtype else ()
    return (graph.RUNTIME, graph.SYMBOLIC, graph.CONSTANT) if sample.every_binding else (graph.RUNTIME,)


def node(sample: BitCastSample, context: CaseContext) -> Node:
    """input of any shape and type T1; output of the same shape and type T2."""
    source, target = context.dtypes
    to = int(helper.np_dtype_to_tensor_dtype(target)) if sample.to is None else sample.to
    operand = Operand("input", _values(sample, source, target, context.rng))
    return Node("BitCast", "", context.since_version, (operand,), ("output",), {"to": to})


def _values(sample: BitCastSample, source: np.dtype[Any], target: np.dtype[Any], rng: np.random.Generator) -> Array:
    if sample.values == "boundary":
        values = data.every_value(source)
        return np.abs(values) % 2 if target.kind == "b" and source.kind != "b" else values
    if "b" in (source.kind, target.kind):
        return rng.integers(0, 2, sample.shape).astype(source)
    count = int(np.prod(sample.shape, dtype=np.int64))
    return np.frombuffer(rng.bytes(count * source.itemsize), source).reshape(sample.shape)


TYPES = {int(helper.np_dtype_to_tensor_dtype(np.dtype(name))): name for name in sorted(set(NUMPY_NAMES.values()))}
"""TensorProto.DataType -> numpy dtype name."""


def truth(node: Node) -> Truth:
    """The same bytes."""
    values, to = node.array("input"), node.integer("to", 0)
    if to not in TYPES:
        return Refusal(f"to = {to} is no type that bits can be read as")
    target = np.dtype(TYPES[to])
    if values.dtype.itemsize != target.itemsize:
        return Refusal(f"{values.dtype} has {8 * values.dtype.itemsize} bits, {target} {8 * target.itemsize}")
    cast = np.ascontiguousarray(values).view(target).reshape(values.shape)
    return Outputs((Output("output", cast),))


OPERATORS = (
    Operator(
        "BitCast", samples, bindings, node, truth, NO_KERNEL, varied=("T1", "T2"), without_rank_dtypes=PAIRS_OF_DTYPES
    ),
)
