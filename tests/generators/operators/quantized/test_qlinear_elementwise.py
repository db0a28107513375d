"""QLinearMul, QLinearLeakyRelu, QLinearSoftmax and QLinearWhere, of which onnx has no node test."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.truth import Outputs, Refusal, Truth

FLOATS = ("A_scale", "B_scale", "C_scale", "X_scale", "Y_scale", "x_scale", "y_scale", "z_scale")


def truth(operator: str, attributes: dict[str, Attribute], dtype: Any = np.uint8, **inputs: Any) -> Truth:
    types = dict.fromkeys(FLOATS, np.float32) | {"condition": np.bool_}
    operands = tuple(
        None if value is None else Operand(name, np.asarray(value, types.get(name, dtype)))
        for name, value in inputs.items()
    )
    node = Node(operator, "com.microsoft", 1, operands, ("Y",), attributes)
    return registry.all_operators()[f"com.microsoft::{operator}"].truth(node)


def levels(operator: str, attributes: dict[str, Attribute], dtype: Any = np.uint8, **inputs: Any) -> list[int]:
    answer = truth(operator, attributes, dtype, **inputs)
    assert isinstance(answer, Outputs), answer
    return [int(each) for each in answer.outputs[0].value.ravel()]


def test_a_product_of_real_values_is_quantised() -> None:
    scales = {"A_scale": 0.5, "B_scale": 2.0, "C_scale": 4.0}
    inputs = {"A": [10, 0, 255], "A_zero_point": 2, "B": [3, 9, 255], "B_zero_point": None, "C_zero_point": 7}
    ordered = {name: {**scales, **inputs}[name] for name in (
        "A", "A_scale", "A_zero_point", "B", "B_scale", "B_zero_point", "C_scale", "C_zero_point")}  # fmt: skip
    # (8 * 0.5) * (3 * 2) / 4 = 6; (-2 * 0.5) * (9 * 2) / 4 = -4.5, a tie; 126.5 * 510 / 4 is beyond the end
    assert levels("QLinearMul", {}, **ordered) == [13, 3, 255]


def test_alpha_multiplies_what_is_below_the_zero_point() -> None:
    inputs = {"X": [-8, 0, 4, 10], "X_scale": 0.5, "X_zero_point": 4, "Y_scale": 0.25, "Y_zero_point": 1}
    assert levels("QLinearLeakyRelu", {"alpha": 0.5}, np.int8, **inputs) == [1 - 12, 1 - 4, 1, 1 + 12]


@pytest.mark.parametrize(("opset", "expected"), [(13, [128, 128, 128, 128]), (11, [64, 64, 64, 64])])
def test_before_opset_13_all_dimensions_from_the_axis_on_are_one(opset: int, expected: list[int]) -> None:
    attributes: dict[str, Attribute] = {"axis": 1, "opset": opset}
    inputs = {"X": [[[9, 9], [9, 9]]], "X_scale": 0.1, "x_zero_point": 3, "y_scale": 1 / 256, "y_zero_point": 0}
    assert levels("QLinearSoftmax", attributes, **inputs) == expected


def test_where_requantises_either_side() -> None:
    inputs = {
        "condition": [True, False], "X": [10, 10], "x_scale": 1.0, "x_zero_point": 4, "Y": [10, 10], "y_scale": 0.5,
        "y_zero_point": 2, "z_scale": 2.0, "z_zero_point": 100,
    }  # fmt: skip
    assert levels("QLinearWhere", {}, **inputs) == [103, 102]
    answer = truth("QLinearWhere", {}, **{**inputs, "X": [1, 2, 3]})
    assert isinstance(answer, Refusal)
    assert "do not broadcast" in answer.reason
