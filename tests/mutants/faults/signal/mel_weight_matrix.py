"""Faults in MelWeightMatrix."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import attribute, inputs, outputs

OPERATOR = "MelWeightMatrix"


def scaled(name: str, factor: float) -> object:
    return lambda key, value: np.asarray(value * factor).astype(value.dtype) if key == name else value


MUTANTS = [
    attribute(OPERATOR, "output_datatype", None),
    inputs(OPERATOR, "the lower edge is 0", scaled("lower_edge_hertz", 0)),
    inputs(OPERATOR, "the upper edge is a tenth lower", scaled("upper_edge_hertz", 0.9)),
    inputs(OPERATOR, "the sample rate is doubled", scaled("sample_rate", 2)),
    inputs(OPERATOR, "the sample rate is 16000",
           lambda n, v: np.array(16000, v.dtype) if n == "sample_rate" else v),
    inputs(OPERATOR, "the length is even", lambda n, v: v + v % 2 if n == "dft_length" else v),
    inputs(OPERATOR, "there is one band more", lambda n, v: v + 1 if n == "num_mel_bins" else v),
    outputs(OPERATOR, "the matrix is transposed", lambda v: v.T),
    outputs(OPERATOR, "each band has the sum 1", lambda v: v / np.maximum(v.sum(0, keepdims=True), 1)),
    outputs(OPERATOR, "the bands are reversed", lambda v: v[:, ::-1]),
    outputs(OPERATOR, "peaks are left out", lambda v: np.where(v == 1, 0, v)),
    outputs(OPERATOR, "only 1024 lines are written",
            lambda v: np.where(np.arange(len(v))[:, None] < 1024, v, 0)),
]  # fmt: skip
