"""One node, checked on the values that it received."""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import helper

from epcheck.generators.truth import Output, Outputs, Ulp
from epcheck.models.graph.wiring import wire
from epcheck.models.wrong_nodes.node_check import ORACLE, check_node, permits_anything
from tests.models.small_models import floats, model


def test_the_sign_of_a_zero_makes_no_model_wrong_and_its_value_does() -> None:
    wiring = wire(model([helper.make_node("Tanh", ["x"], ["y"], name="n")], [floats("x", 2)], ["y"]))
    values, right = {"x": np.float32([-0.0, 0.5])}, np.tanh(np.float32([-0.0, 0.5]))
    for moved, kind in ((0.0, "right"), (0.5, "value")):
        check = check_node(wiring, 0, values, {"y": np.abs(right) + np.float32([moved, 0])}, {"y": right})
        assert (check.kind, check.judge) == (kind, ORACLE)


def test_a_bound_beyond_all_values_does_not_decide() -> None:
    value = np.linspace(-1, 1, 8, dtype=np.float32)
    for floor, anything in ((1e-3, False), (0.5, True), (np.inf, True), (np.full(8, np.inf), True)):
        truth = Outputs((Output("Y", value, Ulp(2.0, (), floor)),))
        assert permits_anything(truth) is anything
    assert not permits_anything(Outputs((Output("Y", value),)))


def test_a_published_bound_allows_a_float16_node_what_a_derived_one_does_not() -> None:
    """WebNN's table allows 18 ULP of Gelu, and no table any of a sum."""
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT16, [64])
    values = {"x": np.linspace(0.5, 4, 64, dtype=np.float16)}
    exact = values["x"].astype(np.float64)
    for operator, right, kinds in (
        ("Gelu", exact * 0.5 * (1 + np.array([math.erf(e / math.sqrt(2)) for e in exact])), ("right", "value")),
        ("Softmax", np.exp(exact) / np.exp(exact).sum(), ("value", "value")),
    ):
        wiring = wire(model([helper.make_node(operator, ["x"], ["y"], name="n")], [x], ["y"]))
        baseline = right.astype(np.float16)
        for ulps, kind in zip((8, 40), kinds, strict=True):
            got = baseline + ulps * np.spacing(baseline)
            assert check_node(wiring, 0, values, {"y": got}, {"y": baseline}).kind == kind
