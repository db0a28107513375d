"""One node, checked on the values that it received."""

from __future__ import annotations

import numpy as np
from onnx import helper
from small_models import floats, model

from epcheck.generators.truth import Output, Outputs, Ulp
from epcheck.models.graph.wiring import wire
from epcheck.models.wrong_nodes.node_check import ORACLE, check_node, permits_anything


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
