"""Wrong readings: what they make of a node, which cases detect them, and that none is without a case or a reason."""

from __future__ import annotations

import numpy as np
import pytest

from epcheck.generators.node import Node, Operand
from epcheck.generators.registry import all_operators, operator_of
from epcheck.generators.suite import case_by_id
from tests.generators import readings
from tests.generators.built_suite import built_case
from tests.generators.readings import find_reason, find_undetected, list_answers, list_cases
from tests.generators.wrong_reading import list_misreadings

X = np.array([[1.5, -2.0, np.nan], [4.0, 5.0, -0.0]], np.float32)


def misread(name: str, node: Node) -> Node:
    reading = next(reading for reading in list_misreadings(node) if reading.name == name)
    other = reading.misread(node)
    assert other is not None
    return other


def test_readings_of_a_reduction() -> None:
    axes = Operand("axes", np.array([1, 0], np.int64), parameter=True)
    node = Node("ReduceSum", "", 13, (Operand("data", X), axes), ("reduced",), {"keepdims": 0})
    assert np.array_equal(misread("data: NaN is 0", node).array("data")[0], [1.5, -2.0, 0.0])
    assert np.array_equal(misread("data: its first row stands for all", node).array("data")[1, :2], [1.5, -2.0])
    assert misread("data: its last element is not read", node).array("data")[1, 1] == 5.0
    assert misread("axes is sorted", node).array("axes").tolist() == [0, 1]
    assert misread("axes is not seen", node).value("axes") is None
    assert misread("keepdims is not seen", node).attributes == {}
    assert np.array_equal(node.array("data"), X, equal_nan=True)


def test_a_case_detects_a_reading_by_its_values_alone() -> None:
    built = case_by_id("Add-14/float32/same_shape[runtime]").build()
    answers = dict(list_answers(operator_of("Add"), built, lambda _: True))
    assert answers["A: its last element is not read"]
    assert answers["output 0: its last element is not written"]
    assert not answers["A and B are exchanged"]


def test_the_bits_of_nan_are_no_answer() -> None:
    first, second = np.array([1.5, np.nan]), np.array([1.5, -np.nan])
    assert first.tobytes() != second.tobytes()
    assert readings._are_same(first, second)
    assert not readings._are_same(first, np.array([-1.5, np.nan]))
    assert not readings._are_same(np.array([0.0]), np.array([-0.0]))


def test_reasons_stand_beside_the_operators() -> None:
    assert find_reason("Add", "A and B are exchanged") == "the operator is commutative"
    assert find_reason("Sub", "A and B are exchanged") == ""
    assert find_reason("Sub", "A: denormals are 0").startswith("a provider may flush denormals")


@pytest.mark.slow
@pytest.mark.parametrize("family", range(8))
def test_every_reading_is_detected_or_has_a_reason(family: int) -> None:
    found = {key: find_undetected(key, built_case) for key in list(all_operators())[family::8]}
    assert {key: wrong for key, wrong in found.items() if wrong != ([], [])} == {}


def test_an_operator_has_cases_that_are_read() -> None:
    assert len(list_cases("Slice")) > 1500
