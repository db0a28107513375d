"""NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: the examples of the pages, and values worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.truth import Outputs, Refusal, Truth

SCORES = [[[1.0, 2.0], [2.0, 2.0], [3.0, 2.0]], [[0.0, 1.0], [2.0, 2.0], [1.0, 2.0]]]
LABELS = [[2, 1], [0, 2]]
WEIGHTS = [0.2, 0.3, 0.1]
NAMES = {
    "NegativeLogLikelihoodLoss": (("input", "target", "weight"), ("loss",)),
    "SoftmaxCrossEntropyLoss": (("scores", "labels", "weights"), ("output", "log_prob")),
}


def truth(operator: str, attributes: dict[str, Attribute], scores: Any, labels: Any, weights: Any = None) -> Truth:
    names, outputs = NAMES[operator]
    values = [np.asarray(scores, np.float32), np.asarray(labels, np.int64)]
    values += [] if weights is None else [np.asarray(weights, np.float32)]
    operands = tuple(Operand(name, value) for name, value in zip(names, values, strict=False))
    return registry.operator_of(operator).truth(Node(operator, "", 13, operands, outputs, attributes))


def loss(operator: str, attributes: dict[str, Attribute], *inputs: Any) -> Any:
    found = truth(operator, attributes, *inputs)
    assert isinstance(found, Outputs), found
    return found.outputs[0].value


def test_the_examples_of_the_page() -> None:
    name = "NegativeLogLikelihoodLoss"
    np.testing.assert_allclose(loss(name, {"reduction": "none"}, SCORES, LABELS), [[-3, -2], [0, -2]])
    np.testing.assert_allclose(loss(name, {"reduction": "sum"}, SCORES, LABELS, WEIGHTS), -1.1, rtol=1e-6)
    np.testing.assert_allclose(loss(name, {}, SCORES, LABELS, WEIGHTS), -1.1 / 0.7, rtol=1e-6)


def test_a_mean_leaves_out_what_is_ignored() -> None:
    name = "NegativeLogLikelihoodLoss"
    labels = [[2, -1], [0, 2]]
    assert loss(name, {"ignore_index": -1}, SCORES, labels) == np.float32(-5 / 3)
    np.testing.assert_allclose(loss(name, {"ignore_index": -1}, SCORES, labels, WEIGHTS), -0.5 / 0.4, rtol=1e-6)
    assert loss(name, {"ignore_index": -1, "reduction": "none"}, SCORES, labels).tolist() == [[-3, 0], [0, -2]]


def test_cross_entropy_of_two_classes() -> None:
    found = truth("SoftmaxCrossEntropyLoss", {"reduction": "none"}, [[0, np.log(3)], [0, 0]], [0, 1])
    assert isinstance(found, Outputs)
    np.testing.assert_allclose(found.outputs[0].value, np.log([4, 2]), rtol=1e-6)
    np.testing.assert_allclose(found.outputs[1].value, -np.log([[4, 4 / 3], [2, 2]]), rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("attributes", "labels", "why"),
    [
        ({}, [[2, 3], [0, 0]], "a label must be in [0, 2]"),
        ({"ignore_index": 3}, [[2, 3], [-1, 0]], "a label must be in [0, 2]"),
        ({"reduction": "max"}, LABELS, "reduction must be none, sum or mean"),
    ],
)
def test_the_rules(name: str, attributes: dict[str, Attribute], labels: Any, why: str) -> None:
    found = truth(name, attributes, SCORES, labels)
    assert isinstance(found, Refusal)
    assert why in found.reason
