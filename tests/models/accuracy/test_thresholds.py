"""Thresholds of the outputs of a whole model."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from epcheck.models.accuracy import thresholds
from epcheck.models.accuracy.thresholds import BENNETT, HIGHAM_MARY, Override, Threshold


def chain(operators: list[str], dtype: int) -> onnx.ModelProto:
    nodes = [helper.make_node(op, [f"v{i}"], [f"v{i + 1}"]) for i, op in enumerate(operators)]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("v0", dtype, [2])],
        [helper.make_tensor_value_info(f"v{len(nodes)}", dtype, [2])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_the_threshold_grows_with_the_square_root_of_the_depth_and_with_the_dtype() -> None:
    deep = thresholds.of_outputs(chain(["Relu"] * 24, TensorProto.FLOAT))["v24"]
    half = thresholds.of_outputs(chain(["Relu"] * 24, TensorProto.FLOAT16))["v24"]
    assert (deep.depth, deep.source) == (24, HIGHAM_MARY)
    assert deep.relative == pytest.approx(thresholds.HEADROOM * 2.0**-24 * 5)
    assert half.relative == pytest.approx(thresholds.HEADROOM * 2.0**-11 * 5)


def test_integers_that_only_integers_enter_are_exact() -> None:
    assert thresholds.of_outputs(chain(["Abs"], TensorProto.INT64))["v1"].agreement == 1.0


def test_a_quantised_model_is_judged_by_its_noise() -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    values = [helper.make_tensor_value_info(n, t, s) for n, t, s in (("x", 1, [2]), ("s", 1, []), ("z", 3, []))]
    graph = helper.make_graph(nodes, "g", values, [helper.make_tensor_value_info("y", 1, [2])])
    found = thresholds.of_outputs(onnx.shape_inference.infer_shapes(helper.make_model(graph)))["y"]
    assert found.source == BENNETT
    assert found.snr_db == pytest.approx(6.02 * 8 + 1.76 - 12)


def test_an_override_never_loosens_what_is_exact_but_by_agreement() -> None:
    exact = Threshold(agreement=1.0)
    assert Override(relative=1.0).apply(exact) == exact
    assert Override(agreement=0.5).apply(exact).agreement == 0.5
