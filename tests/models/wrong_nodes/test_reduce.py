"""`epcheck reduce`: how little is left, and that it fails for anybody."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from epcheck.models.wrong_nodes import bundle
from epcheck.models.wrong_nodes.reduce import ReduceError, reduce_model
from tests.models.in_process_targets import Cpu, Failing, Fusing, Wrong
from tests.models.small_models import feeds, floats, layers, model

WHOLE = layers(4)


def percent(_node: Any, value: Any) -> Any:
    return value * np.float32(1.01)


def test_a_wrong_node_is_left_alone_with_what_it_received_and_what_was_expected() -> None:
    reduced = reduce_model(WHOLE, feeds(), Wrong(wrong={"n9": percent}), Cpu())
    assert ([node.name for node in reduced.nodes], reduced.status, reduced.difference) == (["n9"], "mismatch", "value")
    assert list(reduced.feeds) == ["product2"]
    np.testing.assert_allclose(reduced.got["sum2"], reduced.expected["sum2"] * 1.01, rtol=1e-6)


def test_a_fusion_is_left_with_the_nodes_that_it_fuses() -> None:
    reduced = reduce_model(WHOLE, feeds(), Fusing(sums=("sum2",)), Cpu())
    assert [node.name for node in reduced.nodes] == ["n9", "n10"]


def test_a_crash_is_left_with_its_node() -> None:
    reduced = reduce_model(WHOLE, feeds(), Failing(name="n6", stage="crash"), Cpu())
    assert ([node.name for node in reduced.nodes], reduced.status) == (["n6"], "crash")


def test_an_error_that_only_adds_up_keeps_what_it_takes() -> None:
    kinds = ("Exp", "Log")
    nodes = [helper.make_node(kinds[i % 2], [f"v{i}"], [f"v{i + 1}"], name=f"n{i}") for i in range(24)]
    chain = model(nodes, [floats("v0", 64)], ["v24"])
    candidate = Wrong(wrong={f"n{i}": lambda _n, v: np.nextafter(v, np.float32(9)) for i in range(24)})
    reduced = reduce_model(chain, {"v0": np.linspace(1, 3, 64).astype(np.float32)}, candidate, Cpu())
    assert reduced.status == "mismatch"
    assert 1 < len(reduced.nodes) <= 24


def test_there_is_nothing_to_reduce_where_nothing_is_wrong() -> None:
    with pytest.raises(ReduceError, match="nothing to reduce"):
        reduce_model(WHOLE, feeds(), Cpu(), Cpu())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reduced = reduce_model(WHOLE, feeds(), Wrong(wrong={"n9": percent}), Cpu())
    return bundle.write(reduced, tmp_path_factory.mktemp("reduced") / "part")


def test_the_folder_has_onnx_s_test_data_layout(folder: Path) -> None:
    written = onnx.load(folder / "model.onnx")
    onnx.checker.check_model(written)
    received = onnx.load_tensor(folder / "test_data_set_0" / "input_0.pb")
    expected = onnx.load_tensor(folder / "test_data_set_0" / "output_0.pb")
    assert (received.name, expected.name) == ("product2", "sum2")
    bias = next(numpy_helper.to_array(t) for t in written.graph.initializer if t.name == "b2")
    np.testing.assert_array_equal(numpy_helper.to_array(expected), numpy_helper.to_array(received) + bias)


@pytest.mark.slow
def test_its_script_needs_onnxruntime_alone_and_says_whether_a_provider_is_right(folder: Path) -> None:
    command = [sys.executable, "-I", "-W", "ignore", "run.py", "CPUExecutionProvider"]
    right = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    assert (right.returncode, right.stdout.splitlines()[0]) == (0, "sum2 as expected")
    with np.load(folder / "data.npz") as data:
        further = {name: data[name] * data[name].dtype.type(1.01) for name in ("output.sum2", "exact.sum2")}
        np.savez(folder / "data.npz", **{**data, **further})
    wrong = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    assert wrong.returncode == 1
    assert wrong.stdout.startswith("sum2 WRONG\n")
