"""Mutants of BitCast: a conversion of values, bits that are lost on the way, a width that is not looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.node import Node
from tests.mutants.mutant import Mutant, by_truth, inputs, misread, outputs, outputs_of

OPERATOR = "BitCast"


def converted(built: BuiltCase) -> Mapping[str, Array] | None:
    """What Cast says."""
    right = outputs_of(built.truth)
    with np.errstate(all="ignore"):
        return right and {name: built.node.array("input").astype(value.dtype) for name, value in right.items()}


def quiet(_: str, value: Array) -> Array:
    """A signalling NaN is made quiet, as arithmetic does."""
    if value.dtype not in (np.float32, np.float64, np.float16):
        return value
    bits = value.view(f"u{value.itemsize}").copy()
    bits[np.isnan(value)] |= np.array(1 << (np.finfo(value.dtype).nmant - 1), bits.dtype)
    return np.asarray(bits.view(value.dtype))


def flushed(_: str, value: Array) -> Array:
    """Denormals become 0."""
    if value.dtype.kind != "f":
        return value
    return np.where(np.abs(value) < np.finfo(value.dtype).tiny, value.dtype.type(0), value)


def accepts_another_width() -> Mutant:
    """Reads so many bytes as the input has, whatever type they are."""

    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        right = outputs_of(built.truth)
        if right is None and "another_width" in built.case.sample:
            return {"output": built.node.array("input")}
        return right

    return Mutant(OPERATOR, "another width is accepted", answer)


def to_like_the_input(node: Node) -> Node:
    """`to` is ignored."""
    return replace(node, attributes={"to": {"float32": 1, "int32": 6}.get(node.array("input").dtype.name, 0)})


MUTANTS = [
    by_truth(OPERATOR, "values are converted", converted),
    inputs(OPERATOR, "a signalling NaN becomes a quiet one", quiet),
    inputs(OPERATOR, "denormals become 0", flushed),
    inputs(
        OPERATOR,
        "NaN is one bit pattern",
        lambda _, v: np.where(v != v, v.dtype.type(np.nan), v) if v.dtype.kind == "f" else v,
    ),
    inputs(OPERATOR, "bytes are big endian", lambda _, v: v.byteswap()),
    inputs(
        OPERATOR,
        "at most 1024 elements are read",
        lambda _, v: np.where(np.arange(v.size) < 1024, v.ravel(), v.dtype.type(0)).reshape(v.shape) if v.ndim else v,
    ),
    inputs(OPERATOR, "the sign of a zero is lost", lambda _, v: v + v.dtype.type(0) if v.dtype.kind == "f" else v),
    outputs(OPERATOR, "the output is flat", np.ravel),
    misread(OPERATOR, "to is ignored", to_like_the_input),
    accepts_another_width(),
]
