"""Parts of a model as models of their own, and what a cut severs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from epcheck.models.graph.subgraph import RECEIVED, SubgraphError, disconnect_nodes, extract, select_feeds, with_outputs
from epcheck.models.graph.wiring import wire
from tests.models.in_process_targets import session
from tests.models.small_models import feeds, floats, layers, model


def everything(whole: onnx.ModelProto) -> dict[str, np.ndarray]:
    wiring = wire(whole, feeds())
    return {**feeds(), **session(with_outputs(wiring, wiring.producer), feeds())}


def test_a_part_computes_what_it_computes_in_the_model() -> None:
    whole = layers(3)
    values, wiring = everything(whole), wire(whole, feeds())
    part = extract(wiring, [4, 5, 7], values)
    onnx.checker.check_model(part)
    assert [node.name for node in part.graph.node] == ["n4", "n5", "n7"]
    assert [value.name for value in part.graph.input] == ["out0", "relu1"]
    assert {tensor.name for tensor in part.graph.initializer} == {"w1", "b1"}
    got = session(part, select_feeds(wiring, [4, 5, 7], values))
    assert set(got) == {"sum1", "out1"}
    for name, value in got.items():
        np.testing.assert_array_equal(value, values[name])


def test_a_cut_severs_what_is_read_behind_it_and_no_constants() -> None:
    wiring = wire(layers(2), feeds())
    assert wiring.frontier(1) == ("product0",)
    assert wiring.frontier(6) == ("out0", "sum1")
    assert wiring.frontier(wiring.nodes) == ("out1",)
    assert wiring.cuts == tuple(range(9))


def test_what_depends_on_constants_alone_becomes_an_initializer() -> None:
    nodes = [
        helper.make_node("Neg", ["c"], ["minus"], name="n0"),
        helper.make_node("Add", ["x", "minus"], ["y"], name="n1"),
    ]
    whole = model(nodes, [floats("x", 4, 8)], ["y"], {"c": np.float32([2])})
    part = extract(wire(whole, feeds()), [1], {**feeds(), "minus": np.float32([-2])})
    assert [value.name for value in part.graph.input] == ["x"]
    assert numpy_helper.to_array(part.graph.initializer[0]) == [-2]


def test_a_body_takes_along_what_it_captures() -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["outer", "w"], ["sum"])],
        "then",
        [],
        [helper.make_tensor_value_info("sum", TensorProto.FLOAT, None)],
    )
    nodes = [
        helper.make_node("Neg", ["x"], ["outer"], name="n0"),
        helper.make_node("If", ["condition"], ["y"], name="n1", then_branch=body, else_branch=body),
    ]
    condition = helper.make_tensor_value_info("condition", TensorProto.BOOL, [])
    whole = model(nodes, [floats("x", 4, 8), condition], ["y"], {"w": np.float32([1])})
    values = {"outer": -feeds()["x"], "condition": np.array(True)}
    wiring = wire(whole)
    assert wiring.list_received_values(1) == ("condition", "outer")
    part = extract(wiring, [1], values)
    assert {value.name for value in part.graph.input} == {"condition", "outer"}
    np.testing.assert_array_equal(session(part, select_feeds(wiring, [1], values))["y"], 1 - feeds()["x"])


def test_only_functions_that_are_called_come_along() -> None:
    imports = [helper.make_opsetid("", 20)]
    functions = [
        helper.make_function("own", name, ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], imports)
        for name in ("Used", "Unused")
    ]
    nodes = [
        helper.make_node("Used", ["x"], ["v"], domain="own"),
        helper.make_node("Unused", ["v"], ["y"], domain="own"),
    ]
    part = extract(wire(model(nodes, [floats("x", 4, 8)], ["y"], functions=functions)), [0], feeds(), ["v"])
    assert [function.name for function in part.functions] == ["Used"]
    np.testing.assert_array_equal(session(part, feeds())["v"], -feeds()["x"])


def test_external_data_stays_where_it_is() -> None:
    whole = layers(1)
    weight = whole.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="weights.bin")
    (kept,) = extract(wire(whole), [0], feeds(), ["product0"]).graph.initializer
    assert kept.external_data[0].value == "weights.bin"


def test_nodes_of_a_disconnected_model_receive_what_is_given_and_nothing_else() -> None:
    whole = layers(2)
    values = everything(whole) | {"sum0": np.full((4, 8), -1, np.float32)}
    alone, received_values = disconnect_nodes(wire(whole), [0, 2, 3], values)
    assert set(received_values) == {f"{RECEIVED}{name}" for name in ("x", "sum0", "relu0")}
    got = session(alone, received_values)
    assert not got["relu0"].any()  # of the received sum, not of what n1 makes
    np.testing.assert_array_equal(got["out0"], values["relu0"] - values["x"])


def test_an_input_of_which_nothing_is_known_is_an_error() -> None:
    nodes = [
        helper.make_node("Mystery", ["x"], ["v"], domain="elsewhere"),
        helper.make_node("Neg", ["v"], ["y"]),
    ]
    wiring = wire(model(nodes, [floats("x", 4, 8)], ["y"]))
    with pytest.raises(SubgraphError, match="'v' is not known"):
        extract(wiring, [1], {})
    with pytest.raises(SubgraphError, match="'v' is not known"):
        select_feeds(wiring, [1], {})
