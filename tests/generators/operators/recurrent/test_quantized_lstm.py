"""DynamicQuantizeLSTM: one step worked out by hand, and a bound that an error of quantisation stays within."""

from __future__ import annotations

import numpy as np

from epcheck.generators import registry, suite
from epcheck.generators.node import Node, Operand
from epcheck.generators.truth import Outputs, Refusal, Ulp

WEIGHTS = [[[138, 118, 128, 148]]]  # of i, o, f and c; the zero point is 128


def step(x: float, scale: float, weights: object = WEIGHTS) -> Node:
    values = {"X": np.float32([[[x]]]), "W": np.array(weights, np.uint8), "R": np.full((1, 1, 4), 128, np.uint8)}
    operands: list[Operand | None] = [Operand(name, value) for name, value in values.items()]
    operands += [None] * 5
    for name in ("W", "R"):
        operands.append(Operand(f"{name}_scale", np.float32([scale])))
        operands.append(Operand(f"{name}_zero_point", np.uint8([128])))
    outputs = ("Y", "Y_h", "Y_c")
    return Node("DynamicQuantizeLSTM", "com.microsoft", 1, tuple(operands), outputs, {"hidden_size": 1})


def sigmoid(x: float) -> float:
    return float(1 / (1 + np.exp(-x)))


def test_a_step_has_the_weights_that_the_levels_stand_for() -> None:
    found = registry.operator_of("com.microsoft::DynamicQuantizeLSTM").truth(step(2.0, 0.05))
    assert isinstance(found, Outputs)
    cell = sigmoid(1.0) * np.tanh(2.0)  # i: 10 * 0.05 * 2, c: 20 * 0.05 * 2
    np.testing.assert_allclose(found.outputs[2].value, [[[cell]]], rtol=1e-6)
    np.testing.assert_allclose(found.outputs[1].value, [[[sigmoid(-1.0) * np.tanh(cell)]]], rtol=1e-6)
    assert isinstance(found.outputs[2].bound, Ulp)
    step_of_x = 2.0 / 255  # what the gates may be off, times the slopes of sigmoid at 1 and of tanh at 2
    off = step_of_x * (0.5 * sigmoid(1.0) * sigmoid(-1.0) * np.tanh(2.0) + sigmoid(1.0) * (1 - np.tanh(2.0) ** 2))
    assert off < float(np.max(found.outputs[2].bound.floor)) < 1.1 * off


def test_weights_of_another_size_are_refused() -> None:
    truth = registry.operator_of("com.microsoft::DynamicQuantizeLSTM").truth(step(2.0, 0.05, [[[1, 2, 3, 4]] * 2] * 1))
    assert isinstance(truth, Refusal)
    assert "W must have the shape" in truth.reason


def test_columns_have_scales_and_zero_points_of_their_own() -> None:
    built = suite.case_by_id(
        "com.microsoft::DynamicQuantizeLSTM-1/uint8/columns_of_other_zero_points_forward[initializer]"
    ).build()
    zero = built.node.array("W_zero_point")
    assert zero.shape == (1, 24)
    assert len(set(zero.ravel().tolist())) == 3
