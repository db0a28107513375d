"""Faults in attention, rotary embeddings and the embedding layer's normalisation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from epcheck.generators.node import Node
from tests.mutants.mutant import Mutant, attribute, inputs, misread, swapped

STREAMS = "com.microsoft::MRotaryEmbedding"
ATTENTION, QUANTIZED, MULTI_HEAD, GROUP, ROTARY, EMBED = (
    f"com.microsoft::{name}"
    for name in (
        "Attention",
        "QAttention",
        "MultiHeadAttention",
        "GroupQueryAttention",
        "RotaryEmbedding",
        "EmbedLayerNormalization",
    )
)


def without(operator: str, *names: str) -> Mutant:
    """The provider does not read these inputs."""

    def change(node: Node) -> Node:
        kept = tuple(None if o is not None and o.name in names else o for o in node.inputs)
        return replace(node, inputs=kept)

    return misread(operator, f"{' and '.join(names)} ignored", change)


def _first_of_columns(name: str, value: np.ndarray) -> np.ndarray:
    return value.reshape(-1)[:1].reshape(()) if name == "weight_scale" else value


def _later(name: str, value: np.ndarray) -> np.ndarray:
    return np.maximum(value - 1, 0) if name == "position_ids" else value


def _ones(name: str, value: np.ndarray) -> np.ndarray:
    return np.ones_like(value) if name == "gamma" else value


def _all_set(name: str, value: np.ndarray) -> np.ndarray:
    return np.ones_like(value) if name == "mask" else value


def _mirrored(name: str, value: np.ndarray) -> np.ndarray:
    return -value if name == "sin_cache" else value


def _padded_one_more(name: str, value: np.ndarray) -> np.ndarray:
    return value + 1 if name in ("mask_index", "key_padding_mask") and value.ndim == 1 else value


def _first_length(name: str, value: np.ndarray) -> np.ndarray:
    return np.broadcast_to(value[:1], value.shape).copy() if name == "seqlens_k" else value


def _first_batch(name: str, value: np.ndarray) -> np.ndarray:
    return np.broadcast_to(value[:1], value.shape).copy() if name == "attention_bias" else value


def _first_head(name: str, value: np.ndarray) -> np.ndarray:
    if name == "head_sink":
        return np.broadcast_to(value[:1], value.shape).copy()
    return np.broadcast_to(value[:, :1], value.shape).copy() if name == "attention_bias" else value


def _one_stream(name: str, value: np.ndarray) -> np.ndarray:
    return np.broadcast_to(value[:1], value.shape).copy() if name == "position_ids" and value.ndim == 3 else value


def _streams_exchanged(name: str, value: np.ndarray) -> np.ndarray:
    return value[[0, 2, 1]] if name == "position_ids" and value.ndim == 3 else value


def _window_one_more(node: Node) -> Node:
    size = node.integer("local_window_size", -1)
    return node if size < 0 else replace(node, attributes={**node.attributes, "local_window_size": size + 1})


def _without_window_of_past(node: Node) -> Node:
    """Without a window where there is a past."""
    if node.value("past_key") is None:
        return node
    return replace(node, attributes={k: v for k, v in node.attributes.items() if k != "local_window_size"})


MUTANTS = (
    attribute(STREAMS, "mrope_layout", None),
    attribute(STREAMS, "mrope_layout", 1),
    attribute(STREAMS, "interleaved", None),
    attribute(STREAMS, "mrope_section", (8, 0, 0)),
    inputs(STREAMS, "the positions of time are those of all streams", _one_stream),
    inputs(STREAMS, "height and width are exchanged", _streams_exchanged),
    attribute(GROUP, "smooth_softmax", None),
    without(GROUP, "head_sink"),
    without(GROUP, "attention_bias"),
    inputs(GROUP, "the first batch's length is that of all", _first_length),
    inputs(GROUP, "the first batch's bias is that of all", _first_batch),
    inputs(GROUP, "the first head's sink and bias are those of all", _first_head),
    attribute(ATTENTION, "scale", None),
    attribute(ATTENTION, "unidirectional", None),
    attribute(ATTENTION, "mask_filter_value", None),
    attribute(ATTENTION, "num_heads", 1),
    without(ATTENTION, "mask_index"),
    without(ATTENTION, "bias"),
    without(ATTENTION, "attention_bias"),
    inputs(ATTENTION, "a length includes the first key of the padding", _padded_one_more),
    attribute(QUANTIZED, "scale", None),
    attribute(QUANTIZED, "unidirectional", None),
    without(QUANTIZED, "mask_index"),
    without(QUANTIZED, "input_zero_point"),
    without(QUANTIZED, "weight_zero_point"),
    inputs(QUANTIZED, "the first column's scale serves all", _first_of_columns),
    attribute(MULTI_HEAD, "scale", None),
    attribute(MULTI_HEAD, "unidirectional", None),
    attribute(MULTI_HEAD, "mask_filter_value", None),
    without(MULTI_HEAD, "key_padding_mask"),
    without(MULTI_HEAD, "bias"),
    without(MULTI_HEAD, "attention_bias"),
    without(MULTI_HEAD, "past_key", "past_value"),
    swapped(MULTI_HEAD, 1, 2),
    inputs(MULTI_HEAD, "a length includes the first key of the padding", _padded_one_more),
    attribute(GROUP, "scale", None),
    attribute(GROUP, "softcap", None),
    attribute(GROUP, "do_rotary", None),
    attribute(GROUP, "rotary_interleaved", None),
    attribute(GROUP, "kv_num_heads", 1),
    attribute(GROUP, "local_window_size", None),
    misread(GROUP, "local_window_size does not count the token itself", _window_one_more),
    misread(GROUP, "the window ends at the past", _without_window_of_past),
    without(GROUP, "past_key", "past_value"),
    attribute("Attention", "scale", None),
    attribute("Attention", "softcap", None),
    attribute("Attention", "is_causal", None),
    attribute("Attention", "left_window_size", None),
    attribute("Attention", "right_window_size", None),
    attribute("Attention", "qk_matmul_output_mode", None),
    without("Attention", "attn_mask"),
    without("Attention", "nonpad_kv_seqlen"),
    without("Attention", "past_key", "past_value"),
    *(
        fault
        for operator in (ROTARY, "RotaryEmbedding")
        for fault in (
            attribute(operator, "interleaved", None),
            attribute(operator, "interleaved", 1),
            inputs(operator, "the angle has the other sign", _mirrored),
            inputs(operator, "positions lag behind by one", _later),
        )
    ),
    attribute(EMBED, "epsilon", None),
    without(EMBED, "position_ids"),
    inputs(EMBED, "the mask's padding is counted", _all_set),
    without(EMBED, "segment_ids"),
    inputs(EMBED, "gamma ignored", _ones),
)
