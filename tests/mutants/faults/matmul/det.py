"""Faults in Det."""

from __future__ import annotations

import numpy as np

from epcheck.generators.case import BuiltCase
from tests.mutants.mutant import by_truth, inputs, outputs

OPERATOR = "Det"


def without_exchanges(built: BuiltCase) -> dict[str, np.ndarray]:
    """Elimination without a pivot: a zero on the diagonal ends it."""
    wide = built.node.array("X").astype(np.float64).copy()
    found = np.ones(wide.shape[:-2])
    for index in np.ndindex(wide.shape[:-2]):
        matrix = wide[index]
        for k in range(len(matrix)):
            found[index] *= matrix[k, k]
            with np.errstate(all="ignore"):
                matrix[k + 1 :] -= np.outer(matrix[k + 1 :, k] / matrix[k, k], matrix[k])
    return {"Y": np.asarray(found).astype(built.node.array("X").dtype)}


MUTANTS = [
    by_truth(OPERATOR, "no rows are exchanged", without_exchanges),
    outputs(OPERATOR, "the sign is lost", np.abs),
    outputs(OPERATOR, "the sign is wrong", np.negative),
    outputs(OPERATOR, "singular matrices have a small determinant", lambda v: v + (v == 0) * v.dtype.type(0.01)),
    outputs(OPERATOR, "the result of one matrix has a dimension", lambda v: v.reshape(1) if v.ndim == 0 else v),
    outputs(OPERATOR, "the batches are reversed", lambda v: v[::-1] if v.ndim else v),
    outputs(OPERATOR, "only 1024 matrices are read",
            lambda v: np.where(np.arange(v.size).reshape(v.shape) < 1024, v, 0)),
    outputs(OPERATOR, "the result is a thousandth off", lambda v: v * v.dtype.type(1.001)),
    inputs(OPERATOR, "the last row is not read", lambda _, v: np.where(_is_last(v), 0, v)),
    inputs(OPERATOR, "the lower triangle is not read", lambda _, v: np.triu(v) if v.ndim > 1 else v),
    inputs(OPERATOR, "the first matrix serves every batch",
           lambda _, v: np.broadcast_to(v[:1], v.shape) if v.ndim > 2 else v),
]  # fmt: skip


def _is_last(values: np.ndarray) -> np.ndarray:
    return (np.arange(values.shape[-2]) == values.shape[-2] - 1)[:, None] if values.ndim > 1 else np.zeros((), bool)
