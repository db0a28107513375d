"""DynamicTimeWarping: paths worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.node import Node, Operand
from epcheck.generators.truth import Outputs, Refusal, Truth


def truth(costs: Any) -> Truth:
    node = Node("DynamicTimeWarping", "com.microsoft", 1, (Operand("input", np.float32(costs)),), ("output",))
    return registry.operator_of("com.microsoft::DynamicTimeWarping").truth(node)


@pytest.mark.parametrize(
    ("costs", "path"),
    [
        ([[1, 9], [1, 1]], [[0, 1], [0, 1]]),
        ([[1, 1, 9], [9, 5, 1]], [[0, 0, 1], [0, 1, 2]]),
        ([[[2], [3], [4]]], [[0, 1, 2], [0, 0, 0]]),
        ([[0, -3], [-4, 0]], [[0, 1, 1], [0, 0, 1]]),
    ],
)
def test_the_cheapest_path(costs: Any, path: list[list[int]]) -> None:
    answer = truth(costs)
    assert isinstance(answer, Outputs)
    assert answer.outputs[0].value.tolist() == path


def test_one_matrix_at_a_time() -> None:
    assert isinstance(truth(np.ones((2, 3, 3))), Refusal)
    assert isinstance(truth(np.ones(3)), Refusal)
