"""Mutants of Compress: a condition that is not ended by its own length, an axis misread, elements out of order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Node
from tests.mutants.mutant import attribute, inputs, misread, outputs

OPERATOR = "Compress"


def with_value(node: Node, name: str, value: Array) -> Node:
    """The node with another value of one input."""
    return replace(node, inputs=tuple(o and (replace(o, value=value) if o.name == name else o) for o in node.inputs))


def lengthened(node: Node) -> Node:
    """What lies behind the end of a short condition is selected."""
    values, condition = node.array("input"), node.array("condition")
    length = values.shape[node.integer("axis", 0)] if "axis" in node.attributes else values.size
    longer = np.concatenate([condition, np.ones(max(0, length - condition.size), bool)])
    return with_value(node, "condition", longer)


def absolute_axis(node: Node) -> Node:
    """-1 is read as 1."""
    return replace(node, attributes={key: abs(node.integer(key, 0)) for key in node.attributes})


def rows_by_default(node: Node) -> Node:
    """Without an axis, rows are selected instead of elements."""
    if "axis" in node.attributes:
        return node
    rows = node.array("condition")[: node.array("input").shape[0]]
    return replace(with_value(node, "condition", rows), attributes={"axis": 0})


def column_major(node: Node) -> Node:
    """Without an axis, the input is flattened column by column."""
    return node if "axis" in node.attributes else with_value(node, "input", node.array("input").ravel("F"))


def flushed(values: Array) -> Array:
    """Denormals become 0."""
    if values.dtype.kind != "f":
        return values
    return np.where(np.abs(values) < np.finfo(values.dtype).tiny, values.dtype.type(0), values)


MUTANTS = [
    attribute(OPERATOR, "axis", None),
    attribute(OPERATOR, "axis", 0),
    misread(OPERATOR, "a negative axis is absolute", absolute_axis),
    misread(OPERATOR, "the default axis is 0", rows_by_default),
    misread(OPERATOR, "flattening goes by columns", column_major),
    misread(OPERATOR, "what lies behind the condition is selected", lengthened),
    inputs(OPERATOR, "the condition is inverted", lambda n, v: ~v if n == "condition" else v),
    inputs(OPERATOR, "the condition is read from its end", lambda n, v: v[::-1] if n == "condition" else v),
    inputs(OPERATOR, "the condition has at most 1024 elements", lambda n, v: v[:1024] if n == "condition" else v),
    inputs(OPERATOR, "the last of the condition is not seen", lambda n, v: v[:-1] if n == "condition" else v),
    outputs(OPERATOR, "denormals are flushed", flushed),
    outputs(OPERATOR, "-0 becomes +0", lambda v: v + v.dtype.type(0) if v.dtype.kind == "f" else v),
    outputs(OPERATOR, "the selected are reversed", lambda v: v[::-1]),
    outputs(OPERATOR, "64-bit integers go through float64",
            lambda v: v.astype(np.float64).astype(v.dtype) if v.dtype.kind in "iu" else v),
    outputs(OPERATOR, "an empty result has an element", lambda v: v if v.size else np.zeros((1,) * v.ndim, v.dtype)),
]  # fmt: skip
