"""Why DirectML's provider declines a node that it has a kernel for: the support queries of its registration.

The rules are those of OperatorRegistration.cpp and OperatorAuthorHelper of ONNX Runtime; the table of claims names the
query of each kernel (`support_query`). Each query takes one node and returns the reason, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx
from onnx import helper

from epcheck.models.graph.values import Type


def why_declined(query: str, node: onnx.NodeProto, types: Sequence[Type]) -> str | None:
    """Why the support query of that name declines the node; None where it accepts the node or is not known.

    types: of the node's inputs.
    """
    declines = _QUERIES.get(query)
    return declines(node, types) if declines else None


def _attribute(node: onnx.NodeProto, name: str, otherwise: Any = None) -> Any:
    value = next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), otherwise)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _has(names: Sequence[str], at: int) -> bool:
    return len(names) > at and bool(names[at])


def _batch_normalization(node: onnx.NodeProto, types: Sequence[Type]) -> str | None:
    if _attribute(node, "training_mode", 0):
        return "training_mode is set"
    if len(node.input) < 5:
        return "it has fewer than 5 inputs"
    dtypes = {t.dtype for t in types[:5] if t.dtype}
    return f"its inputs differ in dtype: {', '.join(sorted(dtypes))}" if len(dtypes) > 1 else None


def _recurrent(node: onnx.NodeProto, _types: Sequence[Type]) -> str | None:
    return "layout is not 0" if _attribute(node, "layout", 0) else None


def _layer_normalization(node: onnx.NodeProto, _types: Sequence[Type]) -> str | None:
    return "it has more than one output" if sum(map(bool, node.output)) != 1 else None


def _max_pool(node: onnx.NodeProto, _types: Sequence[Type]) -> str | None:
    return "storage_order is not 0" if _attribute(node, "storage_order", 0) else None


def _pad(node: onnx.NodeProto, _types: Sequence[Type]) -> str | None:
    return "it pads by a negative number" if any(pad < 0 for pad in _attribute(node, "pads", ())) else None


def _resize(node: onnx.NodeProto, _types: Sequence[Type]) -> str | None:
    if _attribute(node, "mode", "nearest") == "cubic":
        return "mode is cubic"
    if _attribute(node, "exclude_outside", 0):
        return "exclude_outside is set"
    return "extrapolation_value is not 0" if _attribute(node, "extrapolation_value", 0.0) else None


def _scatter(node: onnx.NodeProto, _types: Sequence[Type]) -> str | None:
    reduction = _attribute(node, "reduction", "none")
    return f"reduction is {reduction}" if reduction != "none" else None


def _slice(node: onnx.NodeProto, _types: Sequence[Type]) -> str | None:
    return "it has more than 5 inputs" if len(node.input) > 5 else None


def _attention(node: onnx.NodeProto, _types: Sequence[Type]) -> str | None:
    if _has(node.input, 4) or _has(node.output, 1):
        return "it has a past or a present state"
    for name in ("unidirectional", "do_rotary", "past_present_share_buffer"):
        if _attribute(node, name, 0):
            return f"{name} is set"
    return None


def _quantized_attention(node: onnx.NodeProto, _types: Sequence[Type]) -> str | None:
    if _attribute(node, "unidirectional", 0) and _has(node.input, 5):
        return "it is unidirectional and has a mask"
    set_ones = (name for name in ("do_rotary", "past_present_share_buffer") if _attribute(node, name, 0))
    return next((f"{name} is set" for name in set_ones), None)


def _matmul_bits(node: onnx.NodeProto, _types: Sequence[Type]) -> str | None:
    bits, inner, block = (_attribute(node, name, 0) for name in ("bits", "K", "block_size"))
    if bits not in (4, 8):
        return f"bits is {bits}, neither 4 nor 8"
    return "K is no multiple of block_size" if not block or inner % block else None


def _qlinear_sigmoid(node: onnx.NodeProto, _types: Sequence[Type]) -> str | None:
    return "its zero points are left out" if len(node.input) < 5 else None


def _skip_layer_normalization(node: onnx.NodeProto, _types: Sequence[Type]) -> str | None:
    return "its mean or inv_std_var is an output" if _has(node.output, 1) or _has(node.output, 2) else None


_QUERIES: Mapping[str, Callable[[onnx.NodeProto, Sequence[Type]], str | None]] = {
    "QueryBatchNormalization": _batch_normalization,
    "QueryRecurrentNeuralNetwork": _recurrent,
    "QueryLayerNormalization": _layer_normalization,
    "QueryMaxPool": _max_pool,
    "QueryPad": _pad,
    "QueryResize": _resize,
    "QueryScatter": _scatter,
    "QuerySlice": _slice,
    "QueryAttention": _attention,
    "QueryQAttention": _quantized_attention,
    "QueryMatMulNBits": _matmul_bits,
    "QueryQLinearSigmoid": _qlinear_sigmoid,
    "QuerySkipLayerNormalization": _skip_layer_normalization,
}
