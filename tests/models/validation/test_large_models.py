"""A model that is too large for two sessions at once is validated as a small one is: truth, every node, advice."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from epcheck.api import ValidateOptions, validate
from epcheck.conformance.targets.target import Target
from epcheck.conformance.test_data import model_file
from epcheck.models.execution import runner
from epcheck.models.execution.session import ModelSessions
from epcheck.models.validation import node_judging
from epcheck.models.validation import validate as validating
from epcheck.models.validation.validation import RIGHT, WRONG

HERE = Path(__file__).parents[1]
SIDE = 192


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """MatMul, Relu, MatMul with weights in another file, and every model is a large one."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal((SIDE, SIDE)).astype(np.float32) / 14, f"w{at}")
               for at in range(2)]  # fmt: skip
    nodes = [helper.make_node(*each, name=each[0] + each[2][0]) for each in (
        ("MatMul", ["x", "w0"], ["a"]), ("Relu", ["a"], ["b"]), ("MatMul", ["b", "w1"], ["y"]))]  # fmt: skip
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, SIDE]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save_model(model, tmp_path / "model.onnx", save_as_external_data=True, location="weights.bin")
    for module in (runner, validating, node_judging):
        monkeypatch.setattr(module, "LARGE_BYTES", 1 << 10)
    return tmp_path / "model.onnx"


def test_a_large_model_has_a_truth_and_every_node_is_judged(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together: list[int] = []
    alive: set[int] = set()
    run, end = ModelSessions.run, ModelSessions.end_worker

    def runs(self: ModelSessions, *args: object, **more: object) -> object:
        found = run(self, *args, **more)  # type: ignore[arg-type]
        alive.add(id(self))
        together.append(len(alive))
        return found

    def ends(self: ModelSessions) -> None:
        alive.discard(id(self))
        end(self)

    monkeypatch.setattr(ModelSessions, "run", runs)
    monkeypatch.setattr(ModelSessions, "end_worker", ends)
    loaded: list[int] = []
    monkeypatch.setattr(model_file, "load", loaded.append)
    found = validate(ValidateOptions((large,), ("cpu",), own_process=False)).validation
    assert found.status == RIGHT
    assert found.truth.startswith("an oracle in float64 computed the truth of all 2 trials (")
    assert found.nodes_judged == "all 3 nodes were judged alone, on the oracle's values: none beyond the bound"
    assert (max(together), loaded) == (1, [])


def test_the_wrong_node_of_a_large_model_is_named(large: Path) -> None:
    leaky = Target("leaky", (sys.executable,), ("python:whole_model_backends:relu_is_leaky", "--path", str(HERE)))
    found = validate(ValidateOptions((large,), (leaky,), own_process=False)).validation
    assert (found.status, [node.name for node in found.culprits[0].nodes]) == (WRONG, ["Relub"])
    assert [culprit.nodes[0].op_type for culprit in found.wrong_nodes] == ["Relu"]
    alone = validate(ValidateOptions((large,), (leaky,), "none", own_process=False)).validation
    assert (alone.status, [culprit.nodes[0].op_type for culprit in alone.wrong_nodes]) == (WRONG, ["Relu"])


def test_a_large_model_is_compared_with_its_reference(large: Path, tmp_path: Path) -> None:
    other = onnx.load(large)
    other.graph.node[1].op_type = "Sigmoid"
    (tmp_path / "other").mkdir()
    onnx.save_model(other, tmp_path / "other" / "model.onnx", save_as_external_data=True, location="weights.bin")
    options = ValidateOptions((large,), ("cpu",), reference=tmp_path / "other" / "model.onnx", own_process=False)
    found = validate(options).validation.reference
    assert found is not None
    assert [each.value for each in found.departures] == ["b"]
