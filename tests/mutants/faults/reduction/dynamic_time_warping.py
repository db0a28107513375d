"""Mutants of DynamicTimeWarping."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import inputs, outputs

WARPING = "com.microsoft::DynamicTimeWarping"

MUTANTS = [
    inputs(WARPING, "costs are made positive", lambda _, v: np.abs(v)),
    inputs(WARPING, "the dearest path is taken", lambda _, v: -v),
    inputs(WARPING, "the first row is that of all", lambda _, v: np.broadcast_to(v[..., :1, :], v.shape).copy()),
    outputs(WARPING, "rows and columns are exchanged", lambda v: v[::-1].copy()),
    outputs(WARPING, "the path is reversed", lambda v: v[:, ::-1].copy()),
]
