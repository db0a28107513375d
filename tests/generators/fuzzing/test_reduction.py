"""Smaller nodes: each step is smaller, and steps lead to the smallest node that still shows a fault."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.fuzzing import drawing, reduction
from epcheck.generators.fuzzing.drawing import Drawn, Source
from epcheck.generators.node import Node
from epcheck.generators.truth import Refusal


def shrunk(drawn: Drawn, fails: Callable[[Node], bool]) -> Node:
    """The smallest node that a greedy walk reaches."""
    while True:
        steps = (drawing.replace_node(drawn, node) for node in reduction.smaller(drawn.node))
        better = next((step for step in steps if step is not None and fails(step.node)), None)
        if better is None:
            return drawn.node
        drawn = better


def a_node(key: str, seed: int, fails: Callable[[Node], bool]) -> Drawn:
    drawn = Source([registry.operator_of(key)], seed).draw(200)
    return next(d for d in drawn if not isinstance(d.truth, Refusal) and fails(d.node))


@pytest.mark.parametrize("key", ["Slice", "Conv", "Gemm", "LSTM", "Resize", "QLinearConv", "TopK", "Pad"])
def test_each_step_is_smaller(key: str) -> None:
    for drawn in Source([registry.operator_of(key)], 1).draw(5):
        size = reduction.measure(drawn.node)
        assert all(reduction.measure(node) < size for node in reduction.smaller(drawn.node))


def test_a_negative_step_is_what_is_left_of_a_slice() -> None:
    def fails(node: Node) -> bool:
        steps = node.value("steps")
        return steps is not None and bool((steps < 0).any())

    node = shrunk(a_node("Slice", 1, fails), fails)
    assert node.array("data").size == 1
    assert node.array("data").ndim == 1
    assert node.array("steps").shape == (1,)


def test_a_dilation_is_what_is_left_of_a_convolution() -> None:
    def fails(node: Node) -> bool:
        return max(node.integers("dilations", (1,))) > 1

    node = shrunk(a_node("Conv", 1, fails), fails)
    assert set(node.attributes) == {"dilations"}
    assert [operand.value.size for operand in node.inputs if operand is not None] == [1, 1]
    assert node.array("X").ndim == 3


def test_a_value_is_what_is_left_of_the_data() -> None:
    def fails(node: Node) -> bool:
        return bool((np.abs(node.array("X")) > 2).any())

    node = shrunk(a_node("Relu", 1, fails), fails)
    assert node.array("X").size == 1


def test_gates_become_smaller_with_the_states() -> None:
    def fails(node: Node) -> bool:
        return len(node.inputs) > 4 and node.value("sequence_lens") is not None

    node = shrunk(a_node("LSTM", 1, fails), fails)
    assert (node.array("W").shape[1:], node.array("R").shape[1:]) == ((4, 1), (4, 1))


def test_shares_become_one_element_each() -> None:
    def fails(node: Node) -> bool:
        return len(node.outputs) > 2 and node.value("split") is not None and node.array("split").size > 2

    node = shrunk(a_node("Split", 3, fails), fails)
    assert set(node.array("split").tolist()) <= {0, 1}
    assert node.array("input").size <= node.array("split").size


def test_a_size_is_kept_where_the_fault_is_in_it() -> None:
    def fails(node: Node) -> bool:
        return node.array("X").size > 16

    node = shrunk(a_node("Relu", 1, fails), fails)
    assert node.array("X").shape == (17,)
    assert not node.array("X").any()
