"""MatMulBnb4, of which onnx has no node test: values worked out by hand, and the rules of the page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operators.matmul import matmul_bnb4
from epcheck.generators.operators.matmul.matmul_bnb4 import FP4, NF4
from epcheck.generators.truth import Outputs, Refusal, Truth

SIZES: dict[str, Attribute] = {"K": 2, "N": 2, "block_size": 16}


def truth(attributes: dict[str, Attribute], **inputs: Any) -> Truth:
    operands = tuple(Operand(name, np.asarray(value)) for name, value in inputs.items())
    return matmul_bnb4.truth(Node("MatMulBnb4", "com.microsoft", 1, operands, ("Y",), {**SIZES, **attributes}))


def value(attributes: dict[str, Attribute], **inputs: Any) -> list[Any]:
    answer = truth(attributes, **inputs)
    assert isinstance(answer, Outputs), answer
    return list(answer.outputs[0].value.tolist())


A, SCALE = np.array([[1, 10]], np.float32), np.array([6], np.float32)


@pytest.mark.parametrize(("transposed", "expected"), [(1, [[24, 31]]), (0, [[4, 33]])])
def test_the_first_element_lies_in_the_high_bits(transposed: int, expected: list[list[float]]) -> None:
    """Of FP4 3 is 1, 5 is 1/2, 6 is 1/6 and 0xB is -1: B is (-6, 3), (1, 3)."""
    b = np.array([0xB5, 0x65], np.uint8)
    assert value({"quant_type": FP4, "transB": transposed}, A=A, B=b, absmax=SCALE) == expected


def test_the_ends_and_the_zero_of_nf4() -> None:
    b = np.array([0x0F, 0x70], np.uint8)  # (-1, 1), (0, -1)
    assert value({"quant_type": NF4}, A=A, B=b, absmax=SCALE) == [[6 * (-1 + 10), 6 * -10]]


def test_blocks_go_on_over_the_ends_of_rows() -> None:
    a, b = np.ones((1, 12), np.float32), np.full(12, 0x33, np.uint8)
    scales = np.array([1, 100], np.float32)
    assert value({"K": 12, "quant_type": FP4}, A=a, B=b, absmax=scales) == [[12, 4 + 8 * 100]]


@pytest.mark.parametrize(
    ("attributes", "why"), [({"quant_type": 2}, "quant_type must be 0"), ({"K": 3}, "A has 2 columns; K is 3")]
)
def test_the_rules(attributes: dict[str, Attribute], why: str) -> None:
    answer = truth(attributes, A=A, B=np.zeros(2, np.uint8), absmax=SCALE)
    assert isinstance(answer, Refusal)
    assert why in answer.reason
