"""An output whose error is that of nodes within their published bounds is right, and no other one is."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from epcheck import api
from epcheck.api import ValidateOptions
from tests.models.small_models import floats, model

TARGET = """
import numpy as np, onnx, onnxruntime
from onnx import helper, numpy_helper

FACTORS = {{{factors}}}

def run(content, feeds):
    model = onnx.load_model_from_string(content)
    nodes = []
    for node in model.graph.node:
        nodes.append(node)
        if node.op_type in FACTORS:
            right = "right_" + node.output[0]
            factor = numpy_helper.from_array(np.array(FACTORS[node.op_type], np.float32))
            nodes.append(helper.make_node("Constant", [], ["factor_" + right], value=factor))
            nodes.append(helper.make_node("Mul", [right, "factor_" + right], [node.output[0]]))
            node.output[0] = right
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)
"""
"""ONNX Runtime on CPU, some operators of which give so many times the right value."""

LICENSED = "'Atan': 1 + 2000 * 2.0**-23"
"""By how much Atan may be off: Vulkan allows 4096 ULP."""

OPTIONS = ValidateOptions((), ("python:licensed:run",), advice=False)


def angles() -> onnx.ModelProto:
    """Atan of a quotient, and another Atan of half of that."""
    nodes = [
        helper.make_node("Div", ["y", "x"], ["quotient"], name="div"),
        helper.make_node("Atan", ["quotient"], ["angle"], name="atan"),
        helper.make_node("Mul", ["angle", "half"], ["middle"], name="mul"),
        helper.make_node("Atan", ["middle"], ["twice"], name="again"),
        helper.make_node("Add", ["twice", "pi"], ["z"], name="add"),
    ]
    weights = {"half": np.array(0.5, np.float32), "pi": np.array(np.pi, np.float32)}
    return model(nodes, [floats("y", 4, 16), floats("x", 4, 16)], ["z"], weights)


@pytest.mark.parametrize(
    ("factors", "status", "words"),
    [
        (LICENSED, "right", r"; right within the bounds of its nodes: node 1 `atan` \(Atan\) is up to [23]\d{3} ULP"),
        ("'Atan': 1 + 6000 * 2.0**-23", "wrong", r"outputs are wrong: 2 nodes alike: Atan \(`atan`, `again`\)"),
        (f"{LICENSED}, 'Add': 1 + 40 * 2.0**-23", "wrong", r"outputs are wrong: node 4 `add` \(Add\)$"),
    ],
)  # fmt: skip
def test_bounds_of_nodes_explain_what_they_allow_and_no_more(
    factors: str, status: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "licensed.py").write_text(TARGET.format(factors=factors))
    monkeypatch.chdir(tmp_path)
    onnx.save(angles(), tmp_path / "angles.onnx")
    found = api.validate(replace(OPTIONS, models=(tmp_path / "angles.onnx",))).validation
    assert found.status == status
    assert re.search(words, found.headline)
    assert all(verdict.metrics.relative > verdict.threshold.relative for verdict in found.verdicts if verdict.metrics)


def test_a_threshold_that_the_user_chose_is_not_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "licensed.py").write_text(TARGET.format(factors=LICENSED))
    monkeypatch.chdir(tmp_path)
    onnx.save(angles(), tmp_path / "angles.onnx")
    found = api.validate(replace(OPTIONS, models=(tmp_path / "angles.onnx",), rtol=1e-6, culprit=False)).validation
    assert found.status == "wrong"
