"""Nodes in topological order: found where there is one, and nothing is moved that need not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from onnx import helper

from epcheck.models.graph.order import order_nodes
from tests.models.small_models import floats, layers, model

EDGES = {"a": "x", "b": "a", "c": "b", "y": "c"}


def chain(names: Sequence[str], edges: dict[str, str]) -> list[str]:
    nodes = [helper.make_node("Relu", [edges[name]], [name], name=name) for name in names]
    return [node.name for node in order_nodes(model(nodes, [floats("x", 2)], ["y"])).graph.node]


def test_a_model_in_order_is_itself() -> None:
    built = layers(3)
    assert order_nodes(built) is built


@pytest.mark.parametrize("names", ["aycb", "ycba", "cayb"])
def test_a_node_comes_behind_what_it_reads(names: str) -> None:
    assert chain(names, EDGES) == ["a", "b", "c", "y"]


def test_a_node_that_only_a_body_reads_from_comes_first_as_well() -> None:
    inner = helper.make_graph([helper.make_node("Relu", ["a"], ["t"], name="t")], "b", [], [floats("t", 2)])
    nodes = [helper.make_node("If", ["c"], ["y"], name="if", then_branch=inner, else_branch=inner),
             helper.make_node("Relu", ["x"], ["a"], name="a")]  # fmt: skip
    built = model(nodes, [floats("x", 2), helper.make_tensor_value_info("c", 9, [])], ["y"])
    assert [node.name for node in order_nodes(built).graph.node] == ["a", "if"]


def test_a_circle_stays_as_it_is() -> None:
    assert chain("ay", {"a": "y", "y": "a"}) == ["a", "y"]
