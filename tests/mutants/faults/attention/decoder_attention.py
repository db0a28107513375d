"""Mutants of DecoderMaskedMultiHeadAttention."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import attribute, inputs

DECODER = "com.microsoft::DecoderMaskedMultiHeadAttention"

MUTANTS = [
    attribute(DECODER, "scale", None),
    attribute(DECODER, "mask_filter_value", None),
    inputs(DECODER, "the first mask is that of all",
           lambda n, v: np.broadcast_to(v[:1], v.shape).copy() if n == "mask_index" else v),
    inputs(DECODER, "the mask is ignored", lambda n, v: np.ones_like(v) if n == "mask_index" else v),
    inputs(DECODER, "beams read their own tokens",
           lambda n, v: v * 0 + np.arange(v.shape[1])[:, None].astype(np.int32) if n == "cache_indirection" else v),
    inputs(DECODER, "one token of the cache is left out",
           lambda n, v: np.maximum(v - 1, 0) if n == "past_sequence_length" else v),
    inputs(DECODER, "the first added score is that of all",
           lambda n, v: np.broadcast_to(v[:1, :1], v.shape).copy() if n == "attention_bias" else v),
    inputs(DECODER, "the bias is left out", lambda n, v: np.zeros_like(v) if n == "bias" else v),
    inputs(DECODER, "the keys stand as those of a head do",
           lambda n, v: v.reshape(*v.shape[:2], v.shape[3] // 4, v.shape[2], 4).swapaxes(2, 3).reshape(v.shape)
           if n == "past_key" else v),
]  # fmt: skip
