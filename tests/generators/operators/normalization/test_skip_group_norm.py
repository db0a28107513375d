"""SkipGroupNorm: values worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from epcheck.generators import registry
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.truth import Outputs, Refusal, Truth

X = np.float32([[[[1, 5, 0, 0]], [[3, 7, 0, 2]]]])  # one image of two places and four channels
ONES, ZEROS = np.ones(4, np.float32), np.zeros(4, np.float32)


def truth(attributes: dict[str, Attribute], skip: Any, bias: Any = None, x: Any = X) -> Truth:
    inputs = [Operand("X", x), Operand("gamma", ONES), Operand("beta", ZEROS), Operand("skip", np.float32(skip))]
    inputs += [] if bias is None else [Operand("bias", np.float32(bias))]
    node = Node("SkipGroupNorm", "com.microsoft", 1, tuple(inputs), ("Y", "S"), {"activation": 0, **attributes})
    return registry.operator_of("com.microsoft::SkipGroupNorm").truth(node)


def values(*arguments: Any, **more: Any) -> list[Any]:
    answer = truth(*arguments, **more)
    assert isinstance(answer, Outputs), answer
    return [output.value for output in answer.outputs]


def test_groups_of_channels_are_normalized_together() -> None:
    y, total = values({"groups": 2, "epsilon": 0.0}, np.zeros((1, 4)))
    assert total.tolist() == X.tolist()
    root = np.sqrt(5)
    np.testing.assert_allclose(y[0, :, 0, :2], [[-3 / root, 1 / root], [-1 / root, 3 / root]], rtol=1e-6)
    np.testing.assert_allclose(y[0, :, 0, 3], [-1 / np.sqrt(3), np.sqrt(3)], rtol=1e-6)


def test_skip_and_bias_are_added_to_every_place() -> None:
    for skip in ([[1, 2, 3, 4]], [[[[1, 2, 3, 4]]]]):
        _, total = values({"groups": 1}, skip, [10, 0, 0, 0])
        assert total.tolist() == (X + np.float32([11, 2, 3, 4])).tolist()


def test_channels_may_come_first() -> None:
    plain = values({"groups": 2}, X)
    turned = values({"groups": 2, "channels_last": 0}, np.moveaxis(X, -1, 1), x=np.moveaxis(X, -1, 1))
    for last, first in zip(plain, turned, strict=True):
        assert np.moveaxis(first, 1, -1).tolist() == last.tolist()


def test_the_rules() -> None:
    answer = truth({"groups": 3}, X)
    assert isinstance(answer, Refusal)
    assert "3 groups do not divide 4" in answer.reason
    assert isinstance(truth({"groups": 2}, np.zeros((2, 4))), Refusal)
