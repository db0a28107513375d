"""What the pages of QuantizeLinear and DequantizeLinear say of a node.

Sources: the operator pages, every version; ONNX Runtime's ContribOperators.md for com.microsoft, where an axis that is
left out means one scale for all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.node import Attribute, Node
from epcheck.generators.oracle_math import quantization
from epcheck.generators.truth import Output, Outputs, Refusal, Truth


def broadcast_parameter(x: tuple[int, ...], parameter: Array, attributes: dict[str, Attribute]) -> Array:
    """A scale or zero point as an array that broadcasts with x: per tensor, per axis, or one per block."""
    if not parameter.ndim:
        return parameter
    axis = int(attributes.get("axis", 1)) % len(x)  # type: ignore[arg-type]
    block = int(attributes.get("block_size", 0))  # type: ignore[arg-type]
    if block:
        return np.take(np.repeat(parameter, block, axis), np.arange(x[axis]), axis)
    return parameter.reshape(tuple(-1 if at == axis else 1 for at in range(len(x))))


def find_broken_rule(node: Node, scale: Array, zero_point: Array | None) -> str | None:
    """The rule of the standard that the node breaks."""
    x = node.array("x").shape
    axis, block = node.integer("axis", 1), node.integer("block_size", 0)
    if zero_point is not None and zero_point.shape != scale.shape:
        return f"the zero point has shape {zero_point.shape}, the scale {scale.shape}"
    if not scale.ndim:
        return None
    if not -len(x) <= axis < len(x):
        return f"axis {axis} must be within [{-len(x)}, {len(x) - 1}]"
    if block < 0:
        return f"block_size {block} must be positive"
    length = x[axis]
    if block:
        expected = tuple(-(-length // block) if at == axis % len(x) else size for at, size in enumerate(x))
        return None if scale.shape == expected else f"the scale has shape {scale.shape} instead of {expected}"
    if scale.shape != (length,):
        return f"the scale has shape {scale.shape}; axis {axis} has {length} elements"
    return None


def y_dtype_of(node: Node) -> np.dtype[Any]:
    """The dtype of y: output_dtype, else that of the zero point (uint8) or of the scale."""
    output_dtype = node.integer("output_dtype", 0)
    if output_dtype:
        return np.dtype(helper.tensor_dtype_to_np_dtype(output_dtype))
    if node.op_type == "DequantizeLinear":
        return node.array("x_scale").dtype
    zero_point = node.value("y_zero_point")
    return np.dtype(np.uint8) if zero_point is None else zero_point.dtype


DIVISION_ROUNDINGS = 3
"""A reciprocal within 1 ULP, which is what Direct3D asks of it, and a product: half ULP."""


def truth_of_quantize(node: Node) -> Truth:
    """saturate(round_half_even(x / y_scale) + y_zero_point); exact where every scale is a power of two."""
    x, scale, zero_point = node.array("x"), node.array("y_scale"), node.value("y_zero_point")
    if broken := find_broken_rule(node, scale, zero_point):
        return Refusal(broken)
    dtype = y_dtype_of(node)
    attributes = dict(node.attributes)
    each = broadcast_parameter(x.shape, scale, attributes)
    zero = np.zeros((), np.int64)
    if zero_point is not None:
        zero = broadcast_parameter(x.shape, zero_point, attributes).astype(np.int64)
    with np.errstate(over="ignore"):
        real = x.astype(np.float64) / each.astype(np.float64)
    conversion = (abs(x.astype(np.float64)) > 2**24) if x.dtype.kind == "i" else np.zeros(x.shape, bool)
    precision = quantization.unit(scale.dtype if scale.dtype.kind == "f" else np.dtype(np.float32))
    error = np.minimum(abs(real), 2.0**60) * (DIVISION_ROUNDINGS + conversion) * precision
    error = np.where(quantization.is_power_of_two(each) & ~conversion, -1.0, error)
    return Outputs((quantization.quantise("y", real, zero, dtype, error),))


def truth_of_dequantize(node: Node) -> Truth:
    """(x - x_zero_point) * x_scale: an exact difference, and one rounding of it and one of the product."""
    x, scale, zero_point = node.array("x"), node.array("x_scale"), node.value("x_zero_point")
    if broken := find_broken_rule(node, scale, zero_point):
        return Refusal(broken)
    attributes = dict(node.attributes)
    difference = x.astype(np.int64)
    if zero_point is not None:
        difference = difference - broadcast_parameter(x.shape, zero_point, attributes).astype(np.int64)
    exact = difference.astype(np.float64) * broadcast_parameter(x.shape, scale, attributes).astype(np.float64)
    dtype = y_dtype_of(node)
    fits = bool((abs(difference) <= 2.0 ** (np.finfo(dtype).nmant + 1)).all())
    roundings = 1 + (not fits) + (scale.dtype.itemsize > dtype.itemsize)
    citation = bounds.D3D.add_remark("a product within 1 ULP, and 1 for each factor that the output's type rounds")
    result: Output = bounds.round_output("y", np.asarray(exact), dtype, bounds.ulp(roundings, (citation,), dtype))
    return Outputs((result,))
