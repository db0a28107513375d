"""Mutants of GatherBlockQuantized: blocks, packing, zero points and indices misread."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Node
from tests.mutants.mutant import attribute, inputs, misread, outputs

OPERATOR = "com.microsoft::GatherBlockQuantized"
LEVELS = ("data", "zero_points")


def with_attribute(node: Node, name: str, value: int) -> Node:
    """The node with another value of one attribute."""
    return replace(node, attributes={**node.attributes, name: value})


def without_zero_points(node: Node) -> Node:
    """Zero points that are there are not read."""
    return replace(node, inputs=node.inputs[:3])


def zero_by_default(node: Node) -> Node:
    """Without zero points, those of uint8 are 0."""
    data, scales = node.array("data"), node.array("scales")
    if data.dtype != np.uint8 or node.value("zero_points") is not None:
        return node
    per_byte = 8 // node.integer("bits", 4)
    zero = np.zeros((*scales.shape[:-1], -(-scales.shape[-1] // per_byte)), np.uint8)
    operand = node.inputs[2]
    assert operand is not None
    return replace(node, inputs=(*node.inputs[:3], replace(operand, name="zero_points", value=zero)))


def middle_by_default(node: Node) -> Node:
    """Without zero points, those of uint4 are 8, as for uint8."""
    data, scales = node.array("data"), node.array("scales")
    if data.dtype.name != "uint4" or node.value("zero_points") is not None:
        return node
    operand = node.inputs[2]
    assert operand is not None
    zero = replace(operand, name="zero_points", value=np.full(scales.shape, 8).astype(data.dtype))
    return replace(node, inputs=(*node.inputs[:3], zero))


def halves_exchanged(name: str, value: Array) -> Array:
    """The first of two elements lies in the high bits."""
    return value << 4 | value >> 4 if name in LEVELS and value.dtype == np.uint8 else value


def signed(name: str, value: Array) -> Array:
    """uint4 is read as int4."""
    if name not in LEVELS or value.dtype.name != "uint4":
        return value
    return ((value.astype(np.int8) + 8) % 16 - 8).astype("int4")


def clamped(node: Node) -> Node:
    """An index beyond the ends is the nearest that is not."""
    axis = node.integer("gather_axis", 0)
    size = node.array("data").shape[axis]
    return with_indices(node, np.clip(node.array("indices"), -size, size - 1))


def wrapped(node: Node) -> Node:
    """An index beyond the ends goes around."""
    return with_indices(node, node.array("indices") % node.array("data").shape[node.integer("gather_axis", 0)])


def with_indices(node: Node, indices: Array) -> Node:
    """The node with other indices."""
    return replace(
        node, inputs=tuple(o and (replace(o, value=indices) if o.name == "indices" else o) for o in node.inputs)
    )


def absolute_axes(node: Node) -> Node:
    """-1 is read as 1."""
    return replace(node, attributes={name: abs(node.integer(name, 0)) for name in node.attributes})


def broadcast_by_block(name: str, value: Array) -> Array:
    """The scale of the first block is that of all."""
    return np.broadcast_to(value[..., :1], value.shape).copy() if name == "scales" and value.ndim else value


def first_row(name: str, value: Array) -> Array:
    """The scales of the first row are those of all."""
    return np.broadcast_to(value[:1], value.shape).copy() if name == "scales" and value.ndim else value


MUTANTS = [
    attribute(OPERATOR, "bits", 4),
    attribute(OPERATOR, "bits", 8),
    attribute(OPERATOR, "bits", None),
    attribute(OPERATOR, "block_size", None),
    attribute(OPERATOR, "block_size", 16),
    attribute(OPERATOR, "gather_axis", None),
    attribute(OPERATOR, "quantize_axis", None),
    attribute(OPERATOR, "quantize_axis", -1),
    misread(OPERATOR, "a negative axis is absolute", absolute_axes),
    misread(OPERATOR, "zero points are not read", without_zero_points),
    misread(OPERATOR, "zero points of uint8 are 0 by default", zero_by_default),
    misread(OPERATOR, "zero points of uint4 are 8 by default", middle_by_default),
    misread(OPERATOR, "an index beyond the ends is clamped", clamped),
    misread(OPERATOR, "an index beyond the ends goes around", wrapped),
    inputs(OPERATOR, "the first element lies in the high bits", halves_exchanged),
    inputs(OPERATOR, "uint4 is signed", signed),
    inputs(OPERATOR, "the first block's scale is that of all", broadcast_by_block),
    inputs(OPERATOR, "the first row's scales are those of all", first_row),
    inputs(OPERATOR, "negative indices are absolute", lambda n, v: abs(v) if n == "indices" else v),
    inputs(OPERATOR, "indices beyond 1024 are 0",
           lambda n, v: np.where(np.arange(v.size).reshape(v.shape) < 1024, v, 0) if n == "indices" else v),
    inputs(OPERATOR, "scales are positive", lambda n, v: abs(v) if n == "scales" else v),
    inputs(OPERATOR, "scales are rounded to float16",
           lambda n, v: v.astype(np.float16).astype(v.dtype) if n == "scales" else v),
    inputs(OPERATOR, "the zero points are those of the block before",
           lambda n, v: np.roll(v, 1, -1) if n == "zero_points" else v),
    outputs(OPERATOR, "the result is transposed", lambda v: v.T),
    outputs(OPERATOR, "the last element of a row is 0",
            lambda v: np.concatenate([v[..., :-1], np.zeros_like(v[..., -1:])], -1)),
]  # fmt: skip
