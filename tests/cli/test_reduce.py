"""`epcheck reduce` as its user calls it."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests.command_line import call
from tests.models.small_models import layers

HERE = Path(__file__).parents[1] / "models"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(HERE)  # where a `python:` target is looked for
    onnx.save(layers(2), tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_the_wrong_node_is_written_and_named(model: Path) -> None:
    out = model.parent / "part"
    target = ("--target", "python:wrong_backends:doubles_relu", "--baseline", "cpu")
    done = call("reduce", str(model), *target, "--dim", "batch=3", "--out", str(out))
    assert done.code == 0, done.err
    assert "mismatch (value) at optimisation level 'all': node 2 `n2` (Relu) is wrong" in done.out
    assert [node.name for node in onnx.load(out / "model.onnx").graph.node] == ["n2"]
    assert onnx.load_tensor(out / "test_data_set_0" / "input_0.pb").dims == [3, 8]


def test_a_node_that_hangs_is_found_within_the_deadline_of_its_steps(model: Path) -> None:
    out = model.parent / "part"
    target = ("--target", "python:wrong_backends:hangs_at_relu", "--baseline", "cpu", "--timeout", "1")
    done = call("reduce", str(model), *target, "--dim", "batch=3", "--out", str(out))
    assert done.code == 0, done.err
    assert "timeout at optimisation level 'all': node 2 `n2` (Relu)" in done.out
    assert [node.name for node in onnx.load(out / "model.onnx").graph.node] == ["n2"]


def test_a_part_whose_second_run_differs_differs_when_it_is_replayed(model: Path) -> None:
    out = model.parent / "part"
    target = ("--target", "python:wrong_backends:doubles_every_other_relu")
    done = call("reduce", str(model), *target, "--baseline", "cpu", "--dim", "batch=3", "--out", str(out))
    assert done.code == 0, done.err
    assert "a second run of node 2 `n2` (Relu) differs, alone as well" in done.out
    wrong = call("replay", str(out), *target, "--baseline", "none")
    assert wrong.code == 1
    assert wrong.out.startswith(f"flaky: test_data_set_0: {target[1]}: a second run of the same session changes")
    assert call("replay", str(out), "--target", "cpu", "--baseline", "none").code == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--level", "most"), "unknown level 'most'"),
        (("--dim", "batch"), "--dim batch: write NAME=SIZE"),
        (("--dim", "length=3"), "no free dynamic dimension 'length'"),
        (("--baseline", "none"), "a baseline is required; name one with --baseline"),
        (("--feeds", "nowhere.npz"), "nowhere.npz"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(model: Path, options: tuple[str, ...], sentence: str) -> None:
    done = call("reduce", str(model), "--target", "cpu", *options)
    assert done.code == 2
    assert sentence in done.err
