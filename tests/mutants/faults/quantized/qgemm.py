"""Mutants of QGemm."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import attribute, inputs

QGEMM = "com.microsoft::QGemm"

MUTANTS = [
    attribute(QGEMM, "alpha", None),
    attribute(QGEMM, "transA", None),
    attribute(QGEMM, "transB", None),
    inputs(QGEMM, "C is left out", lambda n, v: np.zeros_like(v) if n == "C" else v),
    inputs(QGEMM, "the first scale of B is that of all columns",
           lambda n, v: np.full_like(v, v.flat[0]) if n == "b_scale" else v),
    inputs(QGEMM, "the first zero point of B is that of all columns",
           lambda n, v: np.full_like(v, v.flat[0]) if n == "b_zero_point" else v),
    inputs(QGEMM, "the zero point of A is 0", lambda n, v: np.zeros_like(v) if n == "a_zero_point" else v),
    inputs(QGEMM, "the zero point of Y is 0", lambda n, v: np.zeros_like(v) if n == "y_zero_point" else v),
    inputs(QGEMM, "the scale of Y is 1", lambda n, v: np.ones_like(v) if n == "y_scale" else v),
]  # fmt: skip
