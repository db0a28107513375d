"""Faults in AffineGrid."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import attribute, inputs, outputs

OPERATOR = "AffineGrid"


def reversed_size(name: str, value: np.ndarray) -> np.ndarray:
    """The spatial sizes are read from the innermost on."""
    return np.concatenate([value[:2], value[:1:-1]]) if name == "size" else value


def without_shift(name: str, value: np.ndarray) -> np.ndarray:
    return np.where(np.arange(value.shape[-1]) == value.shape[-1] - 1, 0, value) if name == "theta" else value


def transposed(name: str, value: np.ndarray) -> np.ndarray:
    """The square part of the matrix is transposed."""
    if name != "theta" or value.ndim != 3:
        return value
    return np.concatenate([value[..., :-1].swapaxes(1, 2), value[..., -1:]], -1)


MUTANTS = [
    attribute(OPERATOR, "align_corners", None),
    attribute(OPERATOR, "align_corners", 1),
    inputs(OPERATOR, "the sizes are read in reverse", reversed_size),
    inputs(OPERATOR, "the shift is ignored", without_shift),
    inputs(OPERATOR, "theta is transposed", transposed),
    inputs(OPERATOR, "the first matrix serves every batch",
           lambda n, v: np.broadcast_to(v[:1], v.shape) if n == "theta" else v),
    outputs(OPERATOR, "the coordinates are exchanged", lambda v: v[..., ::-1]),
    outputs(OPERATOR, "positions are pixels lower by a thousandth", lambda v: v - v.dtype.type(1e-3)),
]  # fmt: skip
