"""Mutants of QLinearMul, QLinearLeakyRelu, QLinearSoftmax and QLinearWhere."""

from __future__ import annotations

import numpy as np

from tests.mutants.mutant import Mutant, attribute, inputs, outputs, swapped

MUL, LEAKY, SOFTMAX, WHERE = (
    f"com.microsoft::{name}" for name in ("QLinearMul", "QLinearLeakyRelu", "QLinearSoftmax", "QLinearWhere")
)


def zeroed(operator: str, wanted: str) -> Mutant:
    """A zero point is not read."""
    return inputs(operator, f"{wanted} is not read", lambda n, v: np.zeros_like(v) if n == wanted else v)


MUTANTS = [
    *(zeroed(MUL, f"{name}_zero_point") for name in "ABC"),
    swapped(MUL, 2, 5),
    *(zeroed(LEAKY, f"{name}_zero_point") for name in "XY"),
    attribute(LEAKY, "alpha", None),
    attribute(LEAKY, "alpha", 0.25),
    inputs(LEAKY, "X is unsigned", lambda n, v: v.astype(np.int16).clip(0).astype(v.dtype) if n == "X" else v),
    zeroed(SOFTMAX, "y_zero_point"),
    attribute(SOFTMAX, "axis", None),
    attribute(SOFTMAX, "opset", 13),
    attribute(SOFTMAX, "opset", 1),
    inputs(SOFTMAX, "X_scale is 1", lambda n, v: np.ones_like(v) if n == "X_scale" else v),
    *(zeroed(WHERE, f"{name}_zero_point") for name in "xyz"),
    swapped(WHERE, 1, 4),
    swapped(WHERE, 2, 5),
    inputs(WHERE, "the condition is inverted", lambda n, v: ~v if n == "condition" else v),
    *(outputs(operator, "the highest level is not used", lambda v: np.minimum(v, np.iinfo(v.dtype).max - 1))
      for operator in (MUL, LEAKY, SOFTMAX, WHERE)),
]  # fmt: skip
