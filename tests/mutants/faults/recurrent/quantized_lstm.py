"""Mutants of DynamicQuantizeLSTM."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import attribute, inputs

LSTM = "com.microsoft::DynamicQuantizeLSTM"

MUTANTS = [
    attribute(LSTM, "clip", None),
    attribute(LSTM, "input_forget", None),
    attribute(LSTM, "direction", None),
    inputs(LSTM, "the zero point is 1", lambda n, v: np.full_like(v, 1) if n == "W_zero_point" else v),
    inputs(LSTM, "the zero point of R is 1", lambda n, v: np.full_like(v, 1) if n == "R_zero_point" else v),
    inputs(LSTM, "the first scale is that of all columns",
           lambda n, v: np.broadcast_to(v[..., :1], v.shape).copy() if n == "W_scale" and v.ndim == 2 else v),
    inputs(LSTM, "the first scale is that of both directions",
           lambda n, v: np.broadcast_to(v[:1], v.shape).copy() if n == "W_scale" else v),
    inputs(LSTM, "the initial state is 0", lambda n, v: np.zeros_like(v) if n == "initial_h" else v),
    inputs(LSTM, "peepholes are left out", lambda n, v: np.zeros_like(v) if n == "P" else v),
]  # fmt: skip
