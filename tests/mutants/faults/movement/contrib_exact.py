"""Mutants of ExpandDims, UnfoldTensor, Unique, NGramRepeatBlock and MatMulInteger16."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import attribute, inputs, outputs, swapped

EXPAND, UNFOLD, UNIQUE, REPEAT, PRODUCT = (
    f"com.microsoft::{name}" for name in ("ExpandDims", "UnfoldTensor", "Unique", "NGramRepeatBlock", "MatMulInteger16")
)

MUTANTS = [
    inputs(EXPAND, "axis is 0", lambda n, v: np.zeros_like(v) if n == "axis" else v),
    inputs(EXPAND, "a negative axis is absolute", lambda n, v: np.abs(v) if n == "axis" else v),
    attribute(UNFOLD, "step", 1),
    attribute(UNFOLD, "dim", 0),
    attribute(UNFOLD, "dim", -1),
    attribute(UNFOLD, "size", 2),
    outputs(UNIQUE, "values are sorted", lambda v: np.sort(v) if v.dtype == np.float32 else v),
    outputs(UNIQUE, "indices count from 1", lambda v: v + 1 if v.dtype == np.int64 else v),
    attribute(REPEAT, "ngram_size", 1),
    attribute(REPEAT, "ngram_size", 3),
    inputs(REPEAT, "the first row's tokens are those of all",
           lambda n, v: np.broadcast_to(v[:1], v.shape).copy() if n == "input_ids" else v),
    swapped(PRODUCT),
    inputs(PRODUCT, "A is read as 8 bits", lambda n, v: v.astype(np.int8).astype(v.dtype) if n == "A" else v),
    inputs(PRODUCT, "A is unsigned", lambda n, v: np.abs(v) if n == "A" else v),
]  # fmt: skip
