"""MoEGroupRouter: values worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from epcheck.generators import registry
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.truth import Outputs, Refusal, Truth

ONE: dict[str, Attribute] = {"n_group": 2, "topk_group": 1, "group_topk": 1, "top_k": 1, "router_sentinel": -7.0}


def truth(
    attributes: dict[str, Attribute], logits: Any, bias: Any, outputs: tuple[str, ...] = ("router_probs",)
) -> Truth:
    operands = (Operand("logits", np.float32(logits)), Operand("expert_bias", np.float32(bias)))
    node = Node("MoEGroupRouter", "com.microsoft", 1, operands, outputs, {**ONE, **attributes})
    return registry.operator_of("com.microsoft::MoEGroupRouter").truth(node)


def values(*arguments: Any) -> list[Any]:
    answer = truth(*arguments)
    assert isinstance(answer, Outputs), answer
    return [output.value for output in answer.outputs]


def sigmoid(x: float) -> float:
    return float(1 / (1 + np.exp(-x)))


def test_the_bias_chooses_and_does_not_count() -> None:
    (found,) = values({}, [[0, 2, 1, 3]], [0, 0, 0.5, 0])
    np.testing.assert_allclose(found, [[-7, -7, np.log(sigmoid(1)), -7]], rtol=1e-6)
    (found,) = values({}, [[0, 2, 1, 3]], [0, 0, 0, 0])
    np.testing.assert_allclose(found, [[-7, -7, -7, np.log(sigmoid(3))]], rtol=1e-6)


def test_a_group_is_as_good_as_the_sum_of_its_best() -> None:
    logits, bias = [[3, -3, 1, 1]], [0, 0, 0, 0]
    (found,) = values({"group_topk": 2, "top_k": 2}, logits, bias)
    assert (found[0] != -7).tolist() == [False, False, True, True]
    (found,) = values({"group_topk": 1, "top_k": 2}, logits, bias)
    assert (found[0] != -7).tolist() == [True, True, False, False]


def test_full_scores_are_of_all_experts() -> None:
    names = ("", "selection_scores", "router_weights")
    scores, weights = values({"n_group": 1}, [[0, 2]], [0.25, 0], names)
    np.testing.assert_allclose(weights, [[0.5, sigmoid(2)]], rtol=1e-6)
    np.testing.assert_allclose(scores, [[0.75, sigmoid(2)]], rtol=1e-6)


def test_the_rules() -> None:
    assert isinstance(truth({"n_group": 3}, [[0, 1, 2, 3]], [0] * 4), Refusal)
    assert isinstance(truth({}, [[0, 1, 2, 3]], [0] * 3), Refusal)
