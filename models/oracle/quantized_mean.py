"""QLinearReduceMean (com.microsoft), for which the CPU provider of ONNX Runtime 1.32 has no kernel.

Source: its schema, "Dequantize(Input) -> ReduceMean on fp32 data -> Quantize(output)".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

from epcheck.generators.array import Array
from epcheck.models.graph.feed import Feed


def evaluate(node: onnx.NodeProto, inputs: Sequence[Feed]) -> Array:
    """The quantised mean along `axes`, of all elements where there are none; the mean is that of real numbers."""
    values = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    data, scale, zero, reduced_scale, reduced_zero = (
        np.zeros(()) if value is None else np.asarray(value) for value in (*inputs, *[None] * (5 - len(inputs)))
    )
    wide = (data.astype(np.float64) - zero) * scale
    mean = wide.mean(axis=tuple(values.get("axes") or range(data.ndim)), keepdims=bool(values.get("keepdims", 1)))
    level = np.rint(mean / reduced_scale) + reduced_zero.astype(np.float64)
    limits = np.iinfo(data.dtype)
    return np.asarray(np.clip(level, limits.min, limits.max), data.dtype)
