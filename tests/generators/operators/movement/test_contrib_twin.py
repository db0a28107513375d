"""Operators of com.microsoft that mean what ONNX's do: their inputs have other names, and their pages have examples."""

from __future__ import annotations

from typing import Any

import numpy as np

from epcheck.generators import registry, suite
from epcheck.generators.array import Array
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.truth import Outputs, Refusal


def value(operator: str, attributes: dict[str, Attribute], **inputs: Any) -> Array:
    operands = tuple(Operand(name, np.asarray(given_value)) for name, given_value in inputs.items())
    node = Node(operator, "com.microsoft", 1, operands, ("output",), attributes)
    truth = registry.all_operators()[f"com.microsoft::{operator}"].truth(node)
    assert isinstance(truth, Outputs), truth
    return truth.outputs[0].value


def test_the_example_of_the_page_of_pad() -> None:
    data = np.array([[1, 1.2], [2.3, 3.4], [4.5, 5.7]], np.float32)
    made = value("Pad", {"mode": "constant"}, data=data, pads=[0, 2, 0, 0], value=np.float32(0))
    assert np.array_equal(made, np.pad(data, ((0, 0), (2, 0))))


def test_the_examples_of_the_page_of_gather_nd() -> None:
    data = [[0, 1], [2, 3]]
    assert value("GatherND", {}, data=data, indices=[[0, 0], [1, 1]]).tolist() == [0, 3]
    assert value("GatherND", {}, data=data, indices=[[1], [0]]).tolist() == [[2, 3], [0, 1]]


def test_a_positive_k_excludes_diagonals_above_the_main_one() -> None:
    x = np.arange(1, 10).reshape(3, 3)
    assert value("Trilu", {"upper": 1}, X=x, k=np.int64(1)).tolist() == [[0, 2, 3], [0, 0, 6], [0, 0, 0]]
    assert value("Trilu", {"upper": 0}, X=x, k=np.int64(-1)).tolist() == [[0, 0, 0], [4, 0, 0], [7, 8, 0]]


def test_range_leaves_out_the_limit() -> None:
    numbers = {"start": np.int32(10), "limit": np.int32(4), "delta": np.int32(-2)}
    assert value("Range", {}, **numbers).tolist() == [10, 8, 6]


def test_fewer_heads_of_query_are_no_error_in_com_microsoft() -> None:
    samples = {case.sample for case in suite.cases(("com.microsoft::LinearAttention",))}
    assert "refused_fewer_query_heads" not in samples
    assert "refused_heads_no_multiple" in samples


def test_wrap_is_no_mode_of_pad_in_com_microsoft() -> None:
    operands = (Operand("data", np.ones(3, np.float32)), Operand("pads", np.array([1, 1])))
    node = Node("Pad", "com.microsoft", 1, operands, ("output",), {"mode": "wrap"})
    assert isinstance(registry.all_operators()["com.microsoft::Pad"].truth(node), Refusal)
