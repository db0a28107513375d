"""Mutants of CumProd: attributes misread, sums instead of products, what comes first, factors that are lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.node import Node, Operand
from epcheck.generators.operators.reduction import cumulative_sum
from tests.mutants.mutant import Mutant, attribute, by_truth, inputs, misread, outputs, outputs_of

OPERATOR = "CumProd"


def sums(built: BuiltCase) -> Mapping[str, Array] | None:
    """What CumSum says."""
    right = outputs_of(built.truth)
    return right and outputs_of(cumulative_sum.truth(replace(built.node, op_type="CumSum")))


def begins_with_0(built: BuiltCase) -> Mapping[str, Array] | None:
    """An exclusive product begins as a sum does."""
    right = outputs_of(built.truth)
    if right is None or not built.node.integer("exclusive", 0):
        return right
    y, axis = right["y"].copy(), int(built.node.array("axis").item())
    edge = -1 if built.node.integer("reverse", 0) else 0
    if y.shape[axis]:
        np.moveaxis(y, axis, 0)[edge] = 0
    return {"y": y}


def in_blocks(built: BuiltCase) -> Mapping[str, Array] | None:
    """A thread group of 1024 does not know the product of the one before it."""
    right = outputs_of(built.truth)
    x, axis = built.node.array("x"), int(built.node.array("axis").item())
    if right is None or x.shape[axis] <= 1024 or built.node.attributes:
        return right
    y = right["y"].copy()
    rest = np.take(x, range(1024, x.shape[axis]), axis)
    np.moveaxis(y, axis, 0)[1024:] = np.moveaxis(np.cumprod(rest, axis, dtype=x.dtype), axis, 0)
    return {"y": y}


def negative_axis_from_the_front(node: Node) -> Node:
    """-1 is read as 0."""
    axis = node.array("axis")
    return replace(node, inputs=(node.inputs[0], Operand("axis", np.where(axis < 0, -axis - 1, axis))))


def without_nan(name: str, value: Array) -> Array:
    """NaN is passed over."""
    return np.where(np.isnan(value), value.dtype.type(1), value) if name == "x" and value.dtype.kind == "f" else value


def through(dtype: type[np.generic]) -> Mutant:
    """Integers are multiplied in another type."""

    def change(values: Array) -> Array:
        with np.errstate(invalid="ignore"):
            return values.astype(dtype).astype(values.dtype) if values.dtype.kind in "iu" else values

    return outputs(OPERATOR, f"integers pass through {np.dtype(dtype)}", change)


MUTANTS = [
    attribute(OPERATOR, "exclusive", None),
    attribute(OPERATOR, "reverse", None),
    attribute(OPERATOR, "exclusive", 1),
    attribute(OPERATOR, "reverse", 1),
    inputs(OPERATOR, "the axis is always 0", lambda name, x: np.zeros_like(x) if name == "axis" else x),
    misread(OPERATOR, "a negative axis counts from the front", negative_axis_from_the_front),
    by_truth(OPERATOR, "computes CumSum", sums),
    by_truth(OPERATOR, "an exclusive product begins with 0", begins_with_0),
    by_truth(OPERATOR, "1024 elements at a time", in_blocks),
    inputs(OPERATOR, "NaN is passed over", without_nan),
    inputs(
        OPERATOR, "a zero factor is passed over", lambda n, x: np.where(x == 0, x.dtype.type(1), x) if n == "x" else x
    ),
    inputs(OPERATOR, "the sign is lost", lambda n, x: np.abs(x) if n == "x" else x),
    outputs(OPERATOR, "products pass through float16", lambda y: y.astype(np.float16).astype(y.dtype)),
    outputs(
        OPERATOR,
        "what overflows is the largest number",
        lambda y: np.nan_to_num(y, nan=np.nan) if y.dtype.kind == "f" else y,
    ),
    through(np.float64),
    through(np.int32),
]
