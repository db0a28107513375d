"""The windows: values worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from epcheck.generators import registry
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.truth import OneStep, Outputs, Refusal, Truth, Ulp


def truth(name: str, size: Any, **attributes: Attribute) -> Truth:
    node = Node(name, "", 17, (Operand("size", np.asarray(size)),), ("output",), attributes)
    return registry.operator_of(name).truth(node)


def output(name: str, size: Any, **attributes: Attribute) -> Any:
    answer = truth(name, size, **attributes)
    assert isinstance(answer, Outputs), answer
    return answer.outputs[0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("HannWindow", [0, 0.5, 1, 0.5]),
        ("HammingWindow", [4 / 46, 25 / 46, 1, 25 / 46]),
        ("BlackmanWindow", [0, 0.34, 1, 0.34]),
    ],
)
def test_quarters_of_a_turn(name: str, expected: list[float]) -> None:
    np.testing.assert_allclose(output(name, 4).value, expected, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(output(name, 5, periodic=0).value, [*expected, expected[0]], rtol=1e-6, atol=1e-12)


def test_hamming_with_0_54_is_right_as_well_and_0_53_is_not() -> None:
    window = output("HammingWindow", 16)
    assert isinstance(window.bound, Ulp)
    angle = 2 * np.pi * np.arange(16) / 16
    for a0, right in ((0.54, True), (0.53, False)):
        other = a0 - (1 - a0) * np.cos(angle)
        assert bool((np.abs(other - window.exact) <= window.bound.floor).all()) == right


def test_an_integer_window_is_what_the_cast_leaves() -> None:
    window = output("HannWindow", 4, output_datatype=TensorProto.INT8)
    assert window.value.tolist() == [0, 0, 1, 0]
    assert isinstance(window.bound, OneStep)
    assert window.bound.allowed.tolist() == [False, False, True, False]


def test_the_rules() -> None:
    assert isinstance(truth("HannWindow", [4]), Refusal)
    assert isinstance(truth("HannWindow", 4, output_datatype=TensorProto.BOOL), Refusal)
