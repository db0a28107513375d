"""Mutants of MatMulBnb4: codes, their order in a byte, and blocks misread."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import attribute, inputs, outputs

OPERATOR = "com.microsoft::MatMulBnb4"

MUTANTS = [
    attribute(OPERATOR, "quant_type", 0),
    attribute(OPERATOR, "quant_type", 1),
    attribute(OPERATOR, "transB", 1),
    inputs(OPERATOR, "the first element lies in the low bits", lambda n, v: v << 4 | v >> 4 if n == "B" else v),
    inputs(OPERATOR, "the sign of a code is lost", lambda n, v: v & 0x77 if n == "B" else v),
    inputs(OPERATOR, "the first block's scale is that of all",
           lambda n, v: np.full_like(v, v[0]) if n == "absmax" else v),
    inputs(OPERATOR, "scales are those of the block before", lambda n, v: np.roll(v, 1) if n == "absmax" else v),
    inputs(OPERATOR, "A is read by way of float16",
           lambda n, v: v.astype(np.float16).astype(v.dtype) if n == "A" else v),
    outputs(OPERATOR, "the last column is 0",
            lambda v: np.concatenate([v[..., :-1], np.zeros_like(v[..., -1:])], -1)),
]  # fmt: skip
