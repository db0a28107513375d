"""Nodes of a model's own functions are named as the model calls them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from epcheck import api
from epcheck.conformance.targets.target import Target
from epcheck.models.graph.inlining import inline_functions
from epcheck.models.validation.faults import list_faults
from epcheck.models.wrong_nodes.culprit import graph_node
from tests.models.small_models import floats, model

HERE = Path(__file__).parents[1]
DOUBLES = Target("doubles", (sys.executable,), ("python:wrong_backends:doubles_relu", "--path", str(HERE)))


def with_functions() -> onnx.ModelProto:
    """x -> block0 (mm, act, call_in (an unnamed Sigmoid, mul)) -> neg -> block1, the same -> Inner without a name."""
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("my", 1)]
    block = [helper.make_node("MatMul", ["a", "w"], ["t"], name="mm"),
             helper.make_node("Relu", ["t"], ["r"], name="act"),
             helper.make_node("Inner", ["r"], ["b"], name="call_in", domain="my")]  # fmt: skip
    inner = [helper.make_node("Sigmoid", ["a"], ["s"]), helper.make_node("Mul", ["s", "a"], ["b"], name="mul")]
    functions = [helper.make_function("my", "Block", ["a", "w"], ["b"], block, opsets),
                 helper.make_function("my", "Inner", ["a"], ["b"], inner, opsets)]  # fmt: skip
    nodes = [helper.make_node("Block", ["x", "w0"], ["a"], name="block0", domain="my"),
             helper.make_node("Neg", ["a"], ["n"], name="neg"),
             helper.make_node("Block", ["n", "w1"], ["b"], name="block1", domain="my"),
             helper.make_node("Inner", ["b"], ["y"], domain="my")]  # fmt: skip
    random = np.random.default_rng(0)
    weights = {name: random.standard_normal((4, 4)).astype(np.float32) for name in ("w0", "w1")}
    made = model(nodes, [floats("x", 2, 4)], ["y"], weights, functions[:1])
    made.functions.append(functions[1])
    return made


def test_a_node_is_named_by_its_calls_and_its_function() -> None:
    flat = inline_functions(with_functions())
    block = ("mm", "act", "call_in/Sigmoid", "call_in/mul")
    names = [*(f"block0/{name}" for name in block), "neg", *(f"block1/{name}" for name in block)]
    assert [node.name for node in flat.graph.node] == [*names, "Inner/Sigmoid", "Inner/mul"]
    assert [str(graph_node(flat, at)) for at in (1, 2, 4, 8, 9)] == [
        "node `act` (Relu) of function my::Block, called by node 0 `block0`",
        "node that makes `s` (Sigmoid) of function my::Inner, called by node 0 `block0/call_in`",
        "node 1 `neg` (Neg)",
        "node `mul` (Mul) of function my::Inner, called by node 2 `block1/call_in`",
        "node that makes `s` (Sigmoid) of function my::Inner, called by node 3 `Inner`",
    ]


def test_a_model_without_functions_is_left_as_it_is() -> None:
    plain = model([helper.make_node("Neg", ["x"], ["y"], name="n")], [floats("x", 2)], ["y"])
    assert inline_functions(plain) is plain
    assert graph_node(plain, 0).words == ""


def test_validation_names_function_and_node(tmp_path: Path) -> None:
    onnx.save(with_functions(), tmp_path / "model.onnx")
    data = tmp_path / "found.json"
    found = api.validate(api.ValidateOptions((tmp_path / "model.onnx",), (DOUBLES,), "cpu", seeds=(0,), json=data))
    assert found.validation.headline.endswith("outputs are wrong: 2 nodes alike: Relu (`block0/act`, `block1/act`)")
    (fault,) = list_faults(found.validation)
    assert fault.nodes == ("block0/act", "block1/act")
    assert ". The first: node `act` (Relu) of function my::Block, called by node 0 `block0` is wrong" in fault.what
    nodes = json.loads(data.read_text("utf-8"))["culprit"]["nodes"]
    assert [node["words"] for node in nodes] == [
        f"node `act` (Relu) of function my::Block, called by node {at} `block{at // 2}`" for at in (0, 2)
    ]
