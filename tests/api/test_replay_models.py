"""A model of several nodes, replayed: nodes that the provider does not take run on the CPU provider, and are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from epcheck.api import ReplayOptions, replay
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.targets.target import Target
from tests.command_line import call

SAMPLE = np.array([[-1.0, 2.0, 3.0], [0.5, -0.25, 8.0]], np.float32)


def write(folder: Path, nodes: list[onnx.NodeProto], outputs: dict[str, np.ndarray]) -> None:
    """The model of the nodes with the input `x`, and a set of test data."""
    results = [helper.make_tensor_value_info(name, numpy_type(value), value.shape) for name, value in outputs.items()]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, SAMPLE.shape)], results
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (data / "input_0.pb").write_bytes(numpy_helper.from_array(SAMPLE, "x").SerializeToString())
    for at, (name, value) in enumerate(outputs.items()):
        (data / f"output_{at}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())


def numpy_type(value: np.ndarray) -> int:
    return helper.np_dtype_to_tensor_dtype(value.dtype)


@pytest.mark.lab
def test_a_model_passes_where_some_nodes_are_on_the_cpu_provider(dml: Target, tmp_path: Path) -> None:  # noqa: ARG001
    nodes = [helper.make_node("Relu", ["x"], ["y"], "r"), helper.make_node("Unique", ["y"], ["values"], "u")]
    relu = np.maximum(SAMPLE, 0)
    write(tmp_path / "two", nodes, {"y": relu, "values": np.unique(relu)})
    done = call("replay", str(tmp_path / "two"), "--target", "dml", "--baseline", "none")
    assert done.out.splitlines()[0] == "pass: test_data_set_0: dml: gives the expected outputs"
    assert "dml: on the CPU provider ran Unique; epcheck validate says why" in done.out
    assert done.code == 0


@pytest.mark.lab
def test_a_model_none_of_whose_nodes_is_on_the_provider_is_unplaced(dml: Target, tmp_path: Path) -> None:  # noqa: ARG001
    nodes = [helper.make_node("Unique", ["x"], ["values"], "u"), helper.make_node("Unique", ["values"], ["again"], "v")]
    write(tmp_path / "none", nodes, {"values": np.unique(SAMPLE), "again": np.unique(SAMPLE)})
    done = call("replay", str(tmp_path / "none"), "--target", "dml", "--baseline", "none")
    assert done.out.splitlines()[0].startswith("unplaced: test_data_set_0: dml: no proof of placement")
    assert done.code == 1


def test_a_node_that_repro_did_not_write_still_has_to_be_on_the_provider(tmp_path: Path) -> None:
    write(tmp_path / "single", [helper.make_node("Relu", ["x"], ["y"])], {"y": np.maximum(SAMPLE, 0)})
    done = call("replay", str(tmp_path / "single"), "--target", "cpu", "--baseline", "none")
    assert (done.code, done.out) == (0, "pass: test_data_set_0: cpu: gives the expected outputs\n")


@pytest.mark.parametrize(("level", "run"), [("ORT_ENABLE_EXTENDED", "extended"), ("ORT_DISABLE_ALL", "disabled")])
def test_a_folder_is_run_at_its_own_level_of_optimisation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str, run: str
) -> None:
    sessions: list[object] = []

    def plan(cases: tuple[()], candidates: tuple[Target, ...], baseline: None, **more: Any) -> Plan:
        sessions.extend(candidate.request_defaults["level"] for candidate in candidates)
        return Plan(cases, candidates, baseline, **more)

    monkeypatch.setattr("epcheck.api.suite.replay.Plan", plan)
    write(tmp_path / "two", [helper.make_node("Relu", ["x"], ["y"])], {"y": np.maximum(SAMPLE, 0)})
    (tmp_path / "two" / "case.json").write_text(json.dumps({"level": level}), encoding="utf-8")
    (record,) = replay(ReplayOptions(tmp_path / "two", targets=("cpu",), baseline="none", own_process=False))
    assert (record.status, sessions) == ("pass", [run])
