"""One node, checked on the values that it received."""

from __future__ import annotations

import numpy as np
from onnx import helper
from small_models import floats, model

from epcheck.models.graph.wiring import wire
from epcheck.models.wrong_nodes.node_check import ORACLE, check_node


def test_the_sign_of_a_zero_makes_no_model_wrong_and_its_value_does() -> None:
    wiring = wire(model([helper.make_node("Tanh", ["x"], ["y"], name="n")], [floats("x", 2)], ["y"]))
    values, right = {"x": np.float32([-0.0, 0.5])}, np.tanh(np.float32([-0.0, 0.5]))
    for moved, kind in ((0.0, "right"), (0.5, "value")):
        check = check_node(wiring, 0, values, {"y": np.abs(right) + np.float32([moved, 0])}, {"y": right})
        assert (check.kind, check.judge) == (kind, ORACLE)
