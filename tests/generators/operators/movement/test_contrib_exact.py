"""ExpandDims, UnfoldTensor, Unique, NGramRepeatBlock and MatMulInteger16: values worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.truth import Outputs, Refusal, Truth


def truth(operator: str, attributes: dict[str, Attribute], outputs: tuple[str, ...] = ("Y",), **inputs: Any) -> Truth:
    operands = tuple(Operand(name, np.asarray(value)) for name, value in inputs.items())
    node = Node(operator, "com.microsoft", 1, operands, outputs, attributes)
    return registry.all_operators()[f"com.microsoft::{operator}"].truth(node)


def values(operator: str, attributes: dict[str, Attribute], **inputs: Any) -> list[Any]:
    answer = truth(operator, attributes, **inputs)
    assert isinstance(answer, Outputs), answer
    return [output.value.tolist() for output in answer.outputs]


def test_a_new_axis_counts_in_the_new_rank() -> None:
    x = [[1, 2], [3, 4]]
    assert values("ExpandDims", {}, X=x, axis=np.int32(1)) == [[[[1, 2]], [[3, 4]]]]
    assert values("ExpandDims", {}, X=x, axis=np.int32(-1)) == [[[[1], [2]], [[3], [4]]]]


def test_slices_are_appended_and_a_rest_is_left_out() -> None:
    attributes: dict[str, Attribute] = {"dim": 0, "size": 3, "step": 2}
    assert values("UnfoldTensor", attributes, input=[1, 2, 3, 4, 5, 6]) == [[[1, 2, 3], [3, 4, 5]]]
    rows = values("UnfoldTensor", {**attributes, "size": 2, "step": 1}, input=[[1, 2], [3, 4], [5, 6]])
    assert rows == [[[[1, 3], [2, 4]], [[3, 5], [4, 6]]]]


def test_the_example_of_the_page_of_unique() -> None:
    answer = truth("Unique", {}, ("y", "idx", "counts"), x=[2, 1, 1, 3, 4, 3])
    assert isinstance(answer, Outputs)
    assert [o.value.tolist() for o in answer.outputs] == [[2, 1, 3, 4], [0, 1, 1, 2, 3, 2], [1, 2, 2, 1]]


def test_what_would_repeat_an_ngram_is_minus_infinity() -> None:
    scores = np.zeros((1, 4), np.float32)
    found = values("NGramRepeatBlock", {"ngram_size": 3}, input_ids=[[0, 1, 2, 0, 1, 3, 0, 1]], scores=scores)
    assert found == [[[0, 0, -np.inf, -np.inf]]]


def test_a_product_of_16_bits_is_exact() -> None:
    a, b = np.array([[-32768, 2]], np.int16), np.array([[32767], [3]], np.int16)
    assert values("MatMulInteger16", {}, A=a, B=b) == [[[-32768 * 32767 + 6]]]


@pytest.mark.parametrize(
    ("operator", "attributes", "inputs", "why"),
    [
        ("ExpandDims", {}, {"X": [1], "axis": np.int32(2)}, "within [-2, 1]"),
        ("UnfoldTensor", {"dim": 1, "size": 1, "step": 1}, {"input": [1]}, "dim 1 must be"),
        ("UnfoldTensor", {"dim": 0, "size": 2, "step": 1}, {"input": [1]}, "size 2 is larger"),
        ("Unique", {}, {"x": [[1]]}, "one dimension"),
        ("MatMulInteger16", {}, {"A": np.ones((1, 2), np.int16), "B": np.ones((3, 1), np.int16)}, "no product"),
    ],
)
def test_the_rules(operator: str, attributes: dict[str, Attribute], inputs: dict[str, Any], why: str) -> None:
    answer = truth(operator, attributes, **inputs)
    assert isinstance(answer, Refusal)
    assert why in answer.reason
