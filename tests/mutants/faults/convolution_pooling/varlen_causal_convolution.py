"""Mutants of VarlenCausalConvWithState."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import attribute, inputs

CONVOLUTION = "com.microsoft::VarlenCausalConvWithState"

MUTANTS = [
    attribute(CONVOLUTION, "activation", None),
    attribute(CONVOLUTION, "activation", "silu"),
    inputs(CONVOLUTION, "states begin with 0", lambda n, v: np.zeros_like(v) if n == "initial_state" else v),
    inputs(CONVOLUTION, "the first state is that of all",
           lambda n, v: np.broadcast_to(v[:1], v.shape).copy() if n == "initial_state" else v),
    inputs(CONVOLUTION, "taps are reversed", lambda n, v: v[..., ::-1].copy() if n == "weight" else v),
    inputs(CONVOLUTION, "the bias is left out", lambda n, v: np.zeros_like(v) if n == "bias" else v),
    inputs(CONVOLUTION, "the first count is that of all",
           lambda n, v: np.full_like(v, v[0]) if n == "capture_count" else v),
]  # fmt: skip
