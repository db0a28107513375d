"""What com.microsoft's attention operators compute. Bounds: `estimate`.

Sources: ONNX Runtime's docs/ContribOperators.md; where that is short, the input checks of its CPU kernels
(attention_base.h, multihead_attention_helper.h) for shapes. A mask's filter value is added to the scores, as
DirectML's page and the CPU kernel have it.
"""

from __future__ import annotations

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds.estimate import (
    Estimate,
    Precision,
    attention,
    concatenate,
    exact,
    join_heads,
    split_heads,
)
from epcheck.generators.node import Node
from epcheck.generators.truth import Output, Outputs, Truth

MASK_FILTER_VALUE = -10000.0


def attention_truth(node: Node) -> Truth:
    """Attention of the projections input x weights + bias, split into heads."""
    precision = Precision(node.array("input").dtype)
    projected = precision.dot(exact(node.array("input")), exact(node.array("weights")))
    if (bias := node.value("bias")) is not None:
        projected = precision.add(projected, exact(bias))
    third = projected.value.shape[-1] // 3
    query, key, _ = node.integers("qkv_hidden_sizes", (third, third, third))
    return _make_truth(
        node, precision, projected[..., :query], projected[..., query : query + key], projected[..., query + key :]
    )


def quantized_truth(node: Node) -> Truth:
    """The same of (input - its zero point) (weight - its zero point) times both scales. No page says whether the
    integers are multiplied first, which is exact, or scaled first, so the bound is that of the latter."""
    precision = Precision(node.array("bias").dtype)
    dequantized = []
    for name in ("input", "weight"):
        zero_point = node.value(f"{name}_zero_point")
        wide = node.array(name).astype(np.float64) - (0 if zero_point is None else zero_point)
        dequantized.append(precision.multiply(exact(wide), exact(node.array(f"{name}_scale"))))
    projected = precision.dot(*dequantized)
    projected = precision.add(projected, exact(node.array("bias")))
    third = projected.value.shape[-1] // 3
    return _make_truth(
        node, precision, projected[..., :third], projected[..., third : 2 * third], projected[..., 2 * third :]
    )


def _make_truth(node: Node, precision: Precision, query: Estimate, key: Estimate, value: Estimate) -> Truth:
    heads = node.integer("num_heads", 1)
    query, key, value = (split_heads(part, heads) for part in (query, key, value))
    past = node.value("past")
    if past is not None:
        key, value = (concatenate((exact(past[i]), part), 2) for i, part in enumerate((key, value)))
    output = _attend(node, precision, query, key, value, node.value("mask_index"))
    if past is None:
        return Outputs((output,))
    present = concatenate((key.reshape(1, *key.value.shape), value.reshape(1, *value.value.shape)), 0)
    return Outputs((output, precision.output("present", present)))


def multi_head_truth(node: Node) -> Truth:
    """Attention of query, key and value plus their parts of the bias; what is packed is taken apart first."""
    precision, heads = Precision(node.array("query").dtype), node.integer("num_heads", 1)
    query, keys = node.array("query"), node.value("key")
    if query.ndim == 5:
        parts = [exact(query[:, :, :, i].transpose(0, 2, 1, 3)) for i in range(3)]
    elif keys is not None and keys.ndim == 5:
        parts = [split_heads(exact(query), heads), *(exact(keys[:, :, :, i].transpose(0, 2, 1, 3)) for i in range(2))]
    else:
        tensors = [node.array(name) for name in ("query", "key", "value")]
        parts = [exact(tensor) if tensor.ndim == 4 else split_heads(exact(tensor), heads) for tensor in tensors]
    if (bias := node.value("bias")) is not None:
        widths = [heads * part.value.shape[-1] for part in parts]
        pieces = np.split(bias, np.cumsum(widths)[:-1])
        parts = [
            precision.add(part, split_heads(exact(piece.reshape(1, 1, -1)), heads))
            for part, piece in zip(parts, pieces, strict=True)
        ]
    split_query, key, value = parts
    if (past_key := node.value("past_key")) is not None:
        key = concatenate((exact(past_key), key), 2)
        value = concatenate((exact(node.array("past_value")), value), 2)
    outputs = [_attend(node, precision, split_query, key, value, node.value("key_padding_mask"))]
    if past_key is not None:
        outputs += [precision.output("present_key", key), precision.output("present_value", value)]
    return Outputs(tuple(outputs))


def _attend(
    node: Node, precision: Precision, query: Estimate, key: Estimate, value: Estimate, mask: Array | None
) -> Output:
    scale = node.number("scale", 0.0) or query.value.shape[-1] ** -0.5
    bias = exact(np.zeros((1, 1, query.value.shape[2], key.value.shape[2])))
    if (added := node.value("attention_bias")) is not None:
        bias = exact(added)
    if mask is not None:
        filtered = _filter_keys(mask, query.value.shape[0], query.value.shape[2], key.value.shape[2])
        bias = precision.add(bias, exact(np.where(filtered, node.number("mask_filter_value", MASK_FILTER_VALUE), 0.0)))
    if node.integer("unidirectional", 0):
        bias = Estimate(np.where(_future(query, key), -np.inf, bias.value), bias.error)
    output, _ = attention(precision, query, key, value, scale=scale, bias=bias)
    return precision.output("output", join_heads(output))


def _future(query: Estimate, key: Estimate) -> Array:
    """bool [S, T]: the keys that come after the query's token, which are the last of all."""
    sequence, total = query.value.shape[2], key.value.shape[2]
    return np.asarray(np.arange(total) > np.arange(total - sequence, total)[:, None])


def _filter_keys(mask: Array, batch: int, sequence: int, total: int) -> Array:
    """bool [B, 1, S or 1, T]: the keys that the mask filters."""
    keys = np.arange(total)
    if mask.ndim == 1:
        ends = mask[:batch, None]
        starts = mask[batch:, None] if mask.size == 2 * batch else np.zeros_like(ends)
        return np.asarray((keys >= ends) | (keys < starts))[:, None, None]
    if mask.ndim == 2:
        return np.asarray(mask == 0)[:, None, None]
    if mask.ndim == 3:
        return np.asarray(mask == 0)[:, None]
    return np.asarray(mask[:, :, total - sequence : total, :total] == 0)
