"""What would place nodes on the real DirectML provider: each change was tried there."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from epcheck.api import ValidateOptions, validate
from epcheck.conformance.targets.target import Target
from epcheck.models.placement.change import Advice
from epcheck.models.validation.validation import REFUSED

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the lab is for Linux")

OPSET_21 = "export the model with opset 21, in which this is Elu-6"


def saved(path: Path, nodes: list[onnx.NodeProto], constants: dict[str, Any], shape: list[int | str]) -> Path:
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [onnx.ValueInfoProto(name=nodes[-1].output[0])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10), path)
    return path


def node(operator: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(operator, inputs.split(), [output], name=output, **attributes)


def test_nodes_get_the_change_that_places_them_or_the_reason_why_nothing_does(dml: Target, tmp_path: Path) -> None:
    model = saved(
        tmp_path / "model.onnx",
        [
            node("Elu", "x", "elu"),
            node("Gelu", "elu", "gelu"),
            node("Shape", "gelu", "shape"),
            node("Gather", "shape zero", "batch"),
            node("Concat", "batch minus", "sizes", axis=0),
            node("Reshape", "gelu sizes", "flat"),
            node("Compress", "flat kept", "some", axis=1),
        ],
        {"zero": np.array([0]), "minus": np.array([-1]), "kept": np.array([True, False, True])},
        ["batch", 3, 2],
    )
    data = tmp_path / "all.json"
    found = validate(ValidateOptions((model,), (dml,), seeds=(0,), json=data, own_process=False)).validation
    assert found.placement is not None
    advice = {each.name: each.advice for each in found.placement.elsewhere}
    assert advice["elu"] == Advice(OPSET_21, advice["elu"].result, False, advice["elu"].error, 2)  # type: ignore[union-attr]
    changes = {name: each.change if each else None for name, each in advice.items()}
    assert changes["gelu"] == "export it as the operators that ONNX defines it by (CastLike, Div, Erf, Mul, Sqrt, Sum)"
    for name in ("batch", "sizes"):
        assert changes[name] == "fix the sizes of the inputs (x: 1 × 3 × 2)"
    assert changes["some"] == ""
    assert "has no kernel of the operator in any version" in advice["some"].words  # type: ignore[union-attr]
    written = json.loads(data.read_text(encoding="utf-8"))["placement"]
    assert {each["name"] for each in written["nodes"] if each["advice"]} == set(advice)
    assert sum(len(each["nodes"]) for each in written["segments"]) == sum(
        bool(each.provider) for each in found.placement.nodes
    )


def test_a_node_that_is_refused_gets_advice_as_well(dml: Target, tmp_path: Path) -> None:
    weights = {"w": np.full((1, 16, 3), 0.1, np.float32), "r": np.full((1, 16, 4), 0.1, np.float32)}
    lstm = helper.make_node("LSTM", ["x", "w", "r"], ["y"], name="lstm", layout=1, hidden_size=4)
    model = saved(tmp_path / "model.onnx", [lstm], weights, [2, 5, 3])
    found = validate(ValidateOptions((model,), (dml,), seeds=(0,), own_process=False)).validation
    assert found.status == REFUSED
    assert found.culprit is not None
    assert found.culprit.advice is not None
    assert "set layout to 0 and put a Transpose around it" in found.culprit.advice.change
