"""Mutants of AttnLSTM."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import attribute, inputs

LSTM = "com.microsoft::AttnLSTM"

MUTANTS = [
    attribute(LSTM, "direction", "forward"),
    attribute(LSTM, "input_forget", None),
    attribute(LSTM, "clip", None),
    attribute(LSTM, "activations", None),
    inputs(LSTM, "the memory is 0", lambda n, v: np.zeros_like(v) if n == "M" else v),
    inputs(LSTM, "all of the memory counts alike", lambda n, v: np.zeros_like(v) if n == "V" else v),
    inputs(LSTM, "the query does not count", lambda n, v: np.zeros_like(v) if n == "QW" else v),
    inputs(LSTM, "the first memory length is that of all",
           lambda n, v: np.full_like(v, v[0]) if n == "memory_seq_lens" else v),
    inputs(LSTM, "the layer has the context first", lambda n, v: v[:, ::-1].copy() if n == "AW" else v),
    inputs(LSTM, "sequences are of the first length",
           lambda n, v: np.full_like(v, v[0]) if n == "sequence_lens" else v),
]  # fmt: skip
