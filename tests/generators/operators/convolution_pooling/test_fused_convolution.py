"""FusedConv, of which onnx has no node test: values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from epcheck.generators.array import Array
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operators.convolution_pooling import fused_convolution
from epcheck.generators.truth import Outputs


def value(attributes: dict[str, Attribute], z: list[float] | None = None) -> list[float]:
    """Of x = (1, -2, 3), a kernel of 1 that is 2, and a bias of 1: (3, -3, 7)."""
    arrays: list[tuple[str, Array]] = [
        ("X", np.array([[[1, -2, 3]]], np.float32)), ("W", np.array([[[2]]], np.float32)), ("B", np.ones(1, np.float32))
    ]  # fmt: skip
    operands = [Operand(name, array) for name, array in arrays]
    if z is not None:
        operands.append(Operand("Z", np.array([[z]], np.float32)))
    node = Node("FusedConv", "com.microsoft", 1, tuple(operands), ("Y",), attributes)
    (operator,) = fused_convolution.OPERATORS
    truth = operator.truth(node)
    assert isinstance(truth, Outputs)
    return [float(each) for each in truth.outputs[0].value.ravel()]


def test_without_an_activation_it_is_conv_and_a_sum() -> None:
    assert value({}) == [3, -3, 7]
    assert value({}, [10, 20, 30]) == [13, 17, 37]


@pytest.mark.parametrize(
    ("name", "parameters", "expected"),
    [
        ("Relu", (), [3, 0, 7]),
        ("LeakyRelu", (0.5,), [3, -1.5, 7]),
        ("Clip", (-2.0, 6.0), [3, -2, 6]),
        ("HardSigmoid", (0.25, 0.5), [1, 0, 1]),
    ],
)
def test_an_activation_has_its_parameters_in_order(
    name: str, parameters: tuple[float, ...], expected: list[float]
) -> None:
    attributes: dict[str, Attribute] = {"activation": name}
    assert value(attributes | ({"activation_params": parameters} if parameters else {})) == expected


def test_z_is_added_before_the_activation() -> None:
    assert value({"activation": "Relu"}, [-4, 5, -8]) == [0, 2, 0]
