"""RNN, GRU and LSTM by hand, and the running error against sums that are really rounded."""

from __future__ import annotations

from math import exp, tanh

import numpy as np
import pytest

from epcheck.generators import suite
from epcheck.generators.bounds.running_error import Approximate, dot, total, unit_of
from epcheck.generators.directml.descriptions.recurrent.recurrent import Lstm, RecurrentNetworkDirection
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operators.recurrent.recurrent import oracle
from epcheck.generators.oracle_math.activations import consume
from epcheck.generators.truth import Outputs, Ulp

F32 = np.dtype(np.float32)


def sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x))


def outputs(operator: str, gates: int, attributes: dict[str, Attribute], **more: list[float]) -> list[float]:
    """The outputs of a cell with one input, hidden unit and step; X is 1, every weight the number of its gate / 8."""
    weights = np.arange(1, gates + 1, dtype=np.float32).reshape(1, gates, 1) / 8
    values = {"X": np.ones((1, 1, 1), np.float32), "W": weights, "R": weights}
    values |= {name: np.array(value, np.float32).reshape(1, -1) for name, value in more.items() if name in ("B", "P")}
    values |= {name: np.array(value, np.float32).reshape(1, 1, 1) for name, value in more.items() if "initial" in name}
    inputs = tuple(Operand(name, value) for name, value in values.items())
    names = ("Y", "Y_h", "Y_c") if operator == "LSTM" else ("Y", "Y_h")
    truth = oracle.truth(Node(operator, "", 14, inputs, names, attributes))
    assert isinstance(truth, Outputs), truth
    return [float(output.exact.item()) for output in truth.outputs if output.exact is not None]


def test_rnn_by_hand() -> None:
    assert outputs("RNN", 1, {}, initial_h=[0.5], B=[0.25, 1.0]) == pytest.approx([tanh(1 / 8 + 0.5 / 8 + 1.25)] * 2)


@pytest.mark.parametrize("reset_after", [0, 1])
def test_gru_by_hand(reset_after: int) -> None:
    z, r = (sigmoid(gate / 8 + gate / 8 * 0.5) for gate in (1, 2))
    recurrent_part = r * (3 / 8 * 0.5 + 0.25) if reset_after else 3 / 8 * r * 0.5 + 0.25
    candidate = tanh(3 / 8 + recurrent_part)
    expected = (1 - z) * candidate + z * 0.5
    got = outputs("GRU", 3, {"linear_before_reset": reset_after}, initial_h=[0.5], B=[0, 0, 0, 0, 0, 0.25])
    assert got == pytest.approx([expected] * 2)


@pytest.mark.parametrize("coupled", [0, 1])
def test_lstm_by_hand(coupled: int) -> None:
    h, c, p = 0.5, -0.75, (0.1, 0.2, 0.3)
    i = sigmoid(1 / 8 * (1 + h) + p[0] * c)
    f = 1 - i if coupled else sigmoid(3 / 8 * (1 + h) + p[2] * c)
    cell = f * c + i * tanh(4 / 8 * (1 + h))
    o = sigmoid(2 / 8 * (1 + h) + p[1] * cell)
    got = outputs("LSTM", 4, {"input_forget": coupled}, initial_h=[h], initial_c=[c], P=list(p))
    assert got == pytest.approx([o * tanh(cell), o * tanh(cell), cell], rel=1e-6)


def test_only_functions_that_take_parameters_consume_them() -> None:
    found = consume(("HardSigmoid", "Tanh", "LeakyRelu"), (0.25,), (0.375,))
    assert [activation.parameters for activation in found] == [(0.25, 0.375), (), (float(np.float32(0.01)),)]


def test_steps_beyond_the_end_of_a_sequence_are_open_and_the_last_one_is_not() -> None:
    built = suite.case_by_id("RNN-14/float32/forward_variable_lengths[initializer]").build()
    assert isinstance(built.truth, Outputs)
    y, last = built.truth.outputs
    assert isinstance(y.bound, Ulp)
    # Lengths 1, 4, 3 of 4 steps.
    assert np.isinf(np.asarray(y.bound.floor)[:, 0, :, 0]).tolist() == [
        [False, False, False],
        [True, False, False],
        [True, False, False],
        [True, False, True],
    ]
    assert [y.value[step, 0, row].tolist() for row, step in enumerate((0, 3, 2))] == last.value[0].tolist()


def test_the_running_error_holds_for_sums_that_are_rounded_at_each_term() -> None:
    rng = np.random.default_rng(7)
    rows, weights = (rng.uniform(-1, 1, (5, 200)).astype(np.float32) for _ in range(2))
    bound = total(unit_of(F32), dot(Approximate.exact(rows), weights.astype(np.float64)))
    rounded = np.zeros((5, 5), np.float32)
    for k in range(200):
        rounded += rows[:, k : k + 1] * weights[:, k]
    error = np.abs(rounded - bound.value)
    assert (error <= bound.error).all()
    assert error.max() > 0


def test_lstm_becomes_four_dimensions_and_unsigned_lengths() -> None:
    built = suite.case_by_id("LSTM-14/float32/bidirectional_all_inputs[initializer]").build()
    assert built.lowering is not None
    desc = built.lowering.description
    assert isinstance(desc, Lstm)
    assert desc.direction is RecurrentNetworkDirection.BIDIRECTIONAL
    assert desc.weight_tensor.sizes == (1, 2, 24, 5)
    assert desc.sequence_lengths_tensor is not None
    assert desc.sequence_lengths_tensor.data_type.name == "UINT32"
    assert [activation.NAME.split("_")[2] for activation in desc.activation_descs] == ["SIGMOID", "TANH", "TANH"] * 2
    assert desc.activation_desc_count == 6
