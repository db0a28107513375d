"""AttnLSTM: two steps worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from epcheck.generators import registry
from epcheck.generators.node import Node, Operand
from epcheck.generators.truth import Outputs, Refusal, Truth


def truth(**inputs: Any) -> Truth:
    """One neuron; only the cell gate reads, its bias 1 and a tenth of the attention. All of the memory counts alike."""
    values = {
        "X": np.zeros((2, 1, 1)), "W": [[[0, 0], [0, 0], [0, 0], [0, 0.1]]], "R": np.zeros((1, 4, 1)),
        "B": [[0, 0, 0, 1, 0, 0, 0, 0]], "QW": [[[1]]], "MW": [[[1]]], "V": [[0]], "M": [[[2], [4]]], **inputs,
    }  # fmt: skip
    operands = [Operand(name, np.float32(value)) for name, value in values.items() if name != "memory_seq_lens"]
    if "memory_seq_lens" in inputs:
        operands.append(Operand("memory_seq_lens", np.int32(inputs["memory_seq_lens"])))
    node = Node("AttnLSTM", "com.microsoft", 1, tuple(operands), ("Y", "Y_h", "Y_c"), {"hidden_size": 1})
    return registry.operator_of("com.microsoft::AttnLSTM").truth(node)


def cell(attention: float) -> float:
    """The second cell state, where the first step had no attention."""
    return float(0.25 * np.tanh(1) + 0.5 * np.tanh(1 + 0.1 * attention))


def find_cell(**inputs: Any) -> float:
    answer = truth(**inputs)
    assert isinstance(answer, Outputs), answer
    return float(answer.outputs[2].value.item())


def test_the_second_step_reads_what_the_attention_gave() -> None:
    assert abs(find_cell() - cell(3.0)) < 1e-6
    assert abs(find_cell(memory_seq_lens=[1]) - cell(2.0)) < 1e-6


def test_a_layer_reads_the_hidden_state_and_the_context() -> None:
    hidden = 0.5 * np.tanh(0.5 * np.tanh(1))
    assert abs(find_cell(AW=[[[10], [1]]]) - cell(10 * hidden + 3.0)) < 1e-6


def test_the_rules() -> None:
    for name, value in (("W", np.zeros((1, 4, 3))), ("QW", np.zeros((1, 1, 2))), ("V", np.zeros((1, 3)))):
        assert isinstance(truth(**{name: value}), Refusal)
