"""Casts to the types that numpy lacks: a quantisation, so that what comes out has the type itself."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.generators.families import narrow
from epcheck.generators.node import Node

TYPES = {
    int(getattr(onnx.TensorProto, onnx_name.upper())): name
    for name, onnx_name in narrow.ONNX_NAMES.items()
    if name != "bfloat16" and hasattr(onnx.TensorProto, onnx_name.upper())
}
"""TensorProto.DataType -> name in ml_dtypes. bfloat16 is computed in float64, as every wider one."""


def evaluate(node: Node) -> Array | str:
    """What a Cast to one of TYPES gives; why nobody knows it, where the page defines nothing."""
    value = node.array("input")
    name = TYPES[node.integer("to", 0)]
    dtype = np.dtype(getattr(ml_dtypes, name))
    is_whole = value.dtype.kind in "iub" or value.dtype.name in narrow.INTEGERS
    wide = value.astype(np.float64)
    if name in narrow.INTEGERS:
        low, high = narrow.INTEGERS[name]
        if not is_whole and not bool(((np.rint(wide) >= low) & (np.rint(wide) <= high)).all()):
            return f"floating point beyond the range of {name} is cast to it, which the page leaves undefined"
        return narrow.lower_bits(value.astype(np.int64) if is_whole else wide, name).astype(np.int8).astype(dtype)
    if name == narrow.E8M0 and not bool((wide > 0).all()):
        return "0, a negative number or NaN is cast to float8e8m0, which the page leaves open"
    with np.errstate(all="ignore"):
        return narrow.round_values(wide, name, node).astype(dtype)
