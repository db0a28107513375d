"""Mutants of CDist and Inverse."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import attribute, inputs, outputs, swapped

CDIST, INVERSE = "com.microsoft::CDist", "com.microsoft::Inverse"

MUTANTS = [
    attribute(CDIST, "metric", None),
    attribute(CDIST, "metric", "euclidean"),
    swapped(CDIST),
    inputs(CDIST, "the last column is left out", lambda _, v: np.where(np.arange(v.shape[-1]) < 4, v, 0)),
    inputs(INVERSE, "the matrix is transposed",
           lambda _, v: np.swapaxes(v, -1, -2) if v.ndim > 1 and v.shape[-1] == v.shape[-2] else v),
    inputs(INVERSE, "the first matrix is that of all",
           lambda _, v: np.broadcast_to(v[:1], v.shape).copy() if v.ndim == 3 else v),
    outputs(INVERSE, "the sign is wrong", np.negative),
]  # fmt: skip
