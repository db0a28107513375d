"""QGemm: values worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.truth import OneStep, Outputs, Refusal, Truth

A = np.array([[130, 128], [127, 126]], np.uint8)  # with a zero point of 128: 2 0, -1 -2
B = np.array([[3, -1], [5, 4]], np.int8)
FLOATS = {name: np.float32(1) for name in ("a_scale", "b_scale")} | {"a_zero_point": np.uint8(128)}


def truth(attributes: dict[str, Attribute], **inputs: Any) -> Truth:
    names = ("A", "a_scale", "a_zero_point", "B", "b_scale", "b_zero_point", "C", "y_scale", "y_zero_point")
    present: dict[str, Any] = {"A": A, "B": B, "b_zero_point": np.int8(0), **FLOATS, **inputs}
    operands = tuple(Operand(name, np.asarray(present[name])) if name in present else None for name in names)
    return registry.operator_of("com.microsoft::QGemm").truth(
        Node("QGemm", "com.microsoft", 1, operands, ("Y",), attributes)
    )


def values(attributes: dict[str, Attribute], **inputs: Any) -> list[Any]:
    answer = truth(attributes, **inputs)
    assert isinstance(answer, Outputs), answer
    return list(answer.outputs[0].value.tolist())


def test_a_product_of_what_the_levels_stand_for() -> None:
    assert values({}) == [[6, -2], [-13, -7]]
    assert values({}, b_zero_point=np.array([1, -1], np.int8)) == [[4, 0], [-10, -10]]
    assert values({"alpha": 0.5}, b_scale=np.array([2, 4], np.float32)) == [[6, -4], [-13, -14]]


def test_c_has_the_scale_of_the_product() -> None:
    assert values({"alpha": 2.0}, C=np.array([10, 20], np.int32)) == [[32, 36], [-6, 26]]
    assert values({}, C=np.array([[1], [2]], np.int32)) == [[7, -1], [-11, -5]]


def test_either_may_be_transposed() -> None:
    assert values({"transA": 1}) == [[1, -6], [-10, -8]]
    assert values({"transB": 1}) == [[6, 10], [-1, -13]]


def test_a_level_is_rounded_to_even_and_saturates() -> None:
    quantised = {"y_scale": np.float32(4), "y_zero_point": np.uint8(2)}
    assert values({}, **quantised) == [[4, 2], [0, 0]]
    answer = truth({}, **quantised)
    assert isinstance(answer, Outputs)
    assert isinstance(answer.outputs[0].bound, OneStep)
    assert not answer.outputs[0].bound.allowed.any()


@pytest.mark.parametrize(
    ("inputs", "why"),
    [
        ({"B": np.ones((3, 2), np.int8)}, "A has 2 columns and B 3 rows"),
        ({"C": np.ones(3, np.int32)}, "must be broadcastable to (2, 2)"),
        ({"C": np.ones((1, 2, 2), np.int32)}, "must be broadcastable to (2, 2)"),
        ({"B": np.ones((1, 2, 2), np.int8)}, "must be matrices"),
    ],
)
def test_the_rules(inputs: dict[str, Any], why: str) -> None:
    answer = truth({}, **inputs)
    assert isinstance(answer, Refusal)
    assert why in answer.reason
