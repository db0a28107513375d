"""Complaints of ONNX about a model, as sentences."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper

from epcheck.models.inspection import checking


@pytest.mark.parametrize(
    ("message", "readable"),
    [
        ("No Op registered for Foo with domain_version of 21\n\n==> Context: Bad node spec for node. Name: n OpType: "
         "Foo", "node 'n' (Foo): opset 21 has no operator Foo"),
        ("Unrecognized attribute: foo for operator Relu\n\n==> Context: Bad node spec for node. Name: n OpType: Relu",
         "node 'n' (Relu): Relu has no attribute 'foo'"),
        ("Nodes in a graph must be topologically sorted, however input 'q' of node: \nname: n OpType: Relu\n is not "
         "output of any previous nodes.", "node 'n' (Relu) reads 'q', which no node before it makes"),
        ("[ShapeInferenceError] Inference error(s): (op_type:Add, node name: n): [ShapeInferenceError] Incompatible "
         "dimensions\n", "node 'n' (Add): the shapes of its inputs do not fit each other"),
        ("Something that nobody has seen", "Something that nobody has seen"),
    ],
)  # fmt: skip
def test_messages_of_onnx_become_sentences_that_begin_with_the_node(message: str, readable: str) -> None:
    assert checking.readable(message) == readable


def test_the_checker_and_inference_are_both_heard() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="n", foo=1), helper.make_node("MatMul", ["x", "x"], ["y"])]
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy"]
    found = checking.messages(helper.make_model(helper.make_graph(nodes, "g", value[:1], value[1:])))
    assert [who for who, _ in found] == ["checker", "inference"]
