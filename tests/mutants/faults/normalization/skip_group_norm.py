"""Mutants of SkipGroupNorm."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import attribute, inputs

SKIP = "com.microsoft::SkipGroupNorm"

MUTANTS = [
    attribute(SKIP, "epsilon", None),
    attribute(SKIP, "activation", 0),
    attribute(SKIP, "groups", 1),
    attribute(SKIP, "groups", 2),
    inputs(SKIP, "the bias is left out", lambda n, v: np.zeros_like(v) if n == "bias" else v),
    inputs(SKIP, "skip is left out", lambda n, v: np.zeros_like(v) if n == "skip" else v),
    inputs(SKIP, "the first skip is that of all",
           lambda n, v: np.broadcast_to(v[:1], v.shape).copy() if n == "skip" else v),
    inputs(SKIP, "beta is left out", lambda n, v: np.zeros_like(v) if n == "beta" else v),
]  # fmt: skip
