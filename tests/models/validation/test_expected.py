"""Outputs that the user's files expect: read, compared, and whoever departs from them is named."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from typer.testing import CliRunner

from epcheck.api import ValidateOptions, validate
from epcheck.cli.main import app
from epcheck.conformance.targets.target import Target
from epcheck.models.accuracy.verdict import EXPECTED
from epcheck.models.feeds import feeds
from epcheck.models.feeds.feed_files import FeedError
from epcheck.models.validation.validation import RIGHT, WRONG, Validation
from tests.models.written_models import model

HERE = Path(__file__).parents[1]
DOUBLES = Target("doubles", (sys.executable,), ("python:wrong_backends:doubles_relu", "--path", str(HERE)))
X = np.linspace(-1, 3, 8, dtype=np.float32).reshape(2, 4)
RIGHT_Y = np.maximum(X * np.float32(2), 0)


@pytest.fixture
def relu(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(model("g (float[2, 4] x) => (float[2, 4] y) <float two = {2.0}> { m = Mul(x, two) y = Relu(m) }"), path)
    return path


def write_set(folder: Path, x: np.ndarray, *outputs: np.ndarray) -> Path:
    folder.mkdir(parents=True)
    for name, value in (("input_0", x), *((f"output_{at}", y) for at, y in enumerate(outputs))):
        (folder / f"{name}.pb").write_bytes(numpy_helper.from_array(value).SerializeToString())
    return folder


def checked(path: Path, target: str | Target = "cpu", **options: Path) -> Validation:
    return validate(ValidateOptions((path,), (target,), **options)).validation  # type: ignore[arg-type]


def test_outputs_beside_the_inputs_of_a_data_set_are_compared(relu: Path, tmp_path: Path) -> None:
    found = checked(relu, feeds=write_set(tmp_path / "right", X, RIGHT_Y))
    assert found.status == RIGHT
    assert [verdict.right for verdict in found.verdicts if verdict.against == EXPECTED] == [True]
    wrong = checked(relu, feeds=write_set(tmp_path / "wrong", X, RIGHT_Y * np.float32(777)))
    assert wrong.status == WRONG
    assert wrong.headline == (
        "model.onnx runs on CPUExecutionProvider as the model says, but the model is not what is expected: y"
    )
    (verdict,) = (verdict for verdict in wrong.verdicts if verdict.wrong)
    assert verdict.why.endswith("the model departs from what is expected, not the target")
    assert wrong.culprit is None


def test_a_target_that_departs_is_at_fault_and_its_node_is_named(relu: Path, tmp_path: Path) -> None:
    found = checked(relu, DOUBLES, feeds=write_set(tmp_path / "right", X, RIGHT_Y))
    assert found.status == WRONG
    assert "its outputs are wrong: node 1" in found.headline
    assert [v.blames_model for v in found.verdicts if v.against == EXPECTED] == [False]


def test_an_npz_has_expected_outputs_with_or_without_feeds(relu: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "both.npz", x=X, y=RIGHT_Y * np.float32(1.01))
    assert checked(relu, expect=tmp_path / "both.npz").is_model_at_fault
    np.savez(tmp_path / "x.npz", x=X)
    np.savez(tmp_path / "y.npz", y=RIGHT_Y)
    assert checked(relu, feeds=tmp_path / "x.npz", expect=tmp_path / "y.npz").status == RIGHT
    done = CliRunner().invoke(app, ["validate", str(relu), "-t", "cpu", "--expect", str(tmp_path / "y.npz")])
    assert done.exit_code == 2
    assert "has expected outputs alone; give the feeds that they belong to" in done.output.replace("\n", " ")


def test_expected_outputs_belong_to_the_data_set_of_their_name(relu: Path, tmp_path: Path) -> None:
    proto = onnx.load(relu)
    for at in (0, 1):
        write_set(tmp_path / "feeds" / f"test_data_set_{at}", X + np.float32(at))
        write_set(tmp_path / "truth" / f"test_data_set_{at}", X, RIGHT_Y + np.float32(at))
    found = feeds.read(tmp_path / "feeds", proto, tmp_path / "truth")
    assert [float(np.asarray(each.expected["y"])[1, 3]) for each in found] == [6.0, 7.0]
    write_set(tmp_path / "feeds" / "test_data_set_2", X)
    with pytest.raises(FeedError, match="no outputs that are expected of the feeds 'test_data_set_2'"):
        feeds.read(tmp_path / "feeds", proto, tmp_path / "truth")
    np.savez(tmp_path / "other.npz", z=X)
    with pytest.raises(FeedError, match="no array named as an output \\('y'\\)"):
        feeds.read(tmp_path / "feeds", proto, tmp_path / "other.npz")
    write_set(tmp_path / "many", X, RIGHT_Y, RIGHT_Y)
    with pytest.raises(FeedError, match="more outputs than the model, which has 1"):
        feeds.read(tmp_path / "many", proto)


def test_a_half_precision_model_may_be_as_far_from_float32_as_its_noise(tmp_path: Path) -> None:
    path = tmp_path / "half.onnx"
    onnx.save(model("g (float16[2, 4] x) => (float16[2, 4] y) { e = Exp(x) y = Sqrt(e) }"), path)
    x = X.astype(np.float16)
    true = np.exp(x.astype(np.float32) / 2)
    assert checked(path, feeds=write_set(tmp_path / "near", x, true)).status == RIGHT
    far = checked(path, feeds=write_set(tmp_path / "far", x, true * np.float32(1.1)))
    assert far.is_model_at_fault
