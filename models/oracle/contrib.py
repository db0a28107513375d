"""Operators that the suite and onnx.reference lack, and that exporters and quantisers write.

Sources: ONNX's page of ZipMap (ai.onnx.ml); the schemas of onnxruntime for `com.microsoft` (contrib_defs.cc).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from epcheck.generators.array import Array
from epcheck.models.graph.feed import Feed


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def _zip_map(node: onnx.NodeProto, inputs: Sequence[Feed]) -> tuple[Feed, ...]:
    """A map for each row: class -> its score."""
    found = _attributes(node)
    texts = found.get("classlabels_strings")
    labels = [text.decode() for text in texts] if texts else list(found["classlabels_int64s"])
    scores = np.atleast_2d(np.asarray(inputs[0]))
    if scores.shape[-1] != len(labels):
        raise ValueError(f"it has {len(labels)} labels for {scores.shape[-1]} scores")
    return ([dict(zip(labels, row, strict=True)) for row in scores],)


def _fill(inputs: Sequence[Feed], count: int) -> list[Feed]:
    """So many inputs, None for those that are left out."""
    missing: list[Feed] = [None] * (count - len(inputs))
    return [*inputs, *missing]


def _dequantize(value: Feed, scale: Feed, zero: Feed) -> Array:
    offset: Any = 0.0 if zero is None else np.asarray(zero, np.float64)
    return np.asarray((np.asarray(value, np.float64) - offset) * np.asarray(scale, np.float64))


def _quantize(value: Array, scale: Feed, zero: Feed, like: Feed) -> Array:
    dtype = np.asarray(like if zero is None else zero).dtype
    limits = np.iinfo(dtype)
    offset: Any = 0.0 if zero is None else np.asarray(zero, np.float64)
    steps = np.rint(value / np.asarray(scale, np.float64)) + offset
    return np.asarray(np.clip(steps, limits.min, limits.max), dtype)


def _q_gemm(node: onnx.NodeProto, inputs: Sequence[Feed]) -> tuple[Feed, ...]:
    """alpha times A times B, plus C, an integer whose scale is the product of alpha and those of A and B."""
    a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero = _fill(inputs, 9)
    found = _attributes(node)
    alpha = found.get("alpha", 1.0)
    offset: Any = 0.0 if b_zero is None else np.asarray(b_zero, np.float64)
    left, right = _dequantize(a, np.ones(()), a_zero), np.asarray(b, np.float64)
    left = left.T if found.get("transA", 0) else left
    right = (right.T if found.get("transB", 0) else right) - offset  # of a tensor or of a column
    total = left @ right + (0 if c is None else np.asarray(c, np.float64))
    total = total * (alpha * np.asarray(a_scale, np.float64) * np.asarray(b_scale, np.float64))
    return (total if y_scale is None else _quantize(total, y_scale, y_zero, a),)


OPERATORS: Mapping[tuple[str, str], Callable[[onnx.NodeProto, Sequence[Feed]], tuple[Feed, ...]]] = {
    ("ai.onnx.ml", "ZipMap"): _zip_map,
    ("com.microsoft", "QGemm"): _q_gemm,
}
"""(domain, operator) -> its outputs."""

RECURRENT = ("com.microsoft", "DynamicQuantizeLSTM")


def as_lstm(node: onnx.NodeProto, inputs: Sequence[Feed]) -> tuple[onnx.NodeProto, list[Feed]]:
    """A DynamicQuantizeLSTM as the LSTM of ONNX that it stands for: its weights dequantized, [directions, inputs, 4 *
    hidden] turned to [directions, 4 * hidden, inputs]. What it rounds on the way, its activations, is its own error."""
    x, w, r, *rest = _fill(inputs, 12)
    # B, lengths, h, c, P, and scale and zero point of W and R
    weights = [
        np.swapaxes(_dequantize(weight, _of_columns(scale), _of_columns(zero)), 1, 2)
        for weight, scale, zero in ((w, rest[5], rest[6]), (r, rest[7], rest[8]))
    ]
    plain = onnx.NodeProto()
    plain.CopyFrom(node)
    plain.op_type, plain.domain = "LSTM", ""
    del plain.input[:]
    kept: list[Feed] = [x, *weights, *rest[:5]]
    while kept[-1] is None:
        kept.pop()
    plain.input.extend("" if value is None else f"i{at}" for at, value in enumerate(kept))
    return plain, kept


def _of_columns(value: Feed) -> Feed:
    """A scale or zero point of each direction, or of each column of a direction, that broadcasts over the weights."""
    if value is None:
        return None
    array = np.asarray(value)
    return array.reshape(array.shape[0], 1, -1) if array.ndim else array
