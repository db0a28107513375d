"""`reduce` and `validate` say the same of a model."""

from __future__ import annotations

from pathlib import Path

import onnx
from typer.testing import CliRunner

from epcheck.cli.main import app
from tests.models import written_models


def test_a_model_that_is_right_has_nothing_to_reduce(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(written_models.model("g (float[2, 4] x) => (float[2, 4] y) { a = Exp(x) y = Relu(a) }"), path)
    done = CliRunner().invoke(app, ["reduce", str(path), "--target", "cpu", "--out", str(tmp_path / "reduced")])
    assert done.exit_code == 2
    assert "nothing to reduce: model.onnx runs on CPUExecutionProvider and is right" in done.output.replace("\n", " ")
    assert not (tmp_path / "reduced").exists()
