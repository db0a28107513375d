"""An `epcheck.toml` of the working directory: it does not change what a target's name means, and every output that
depends on it says so."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnx.parser
import pytest

from epcheck.conformance.judging import coverage
from epcheck.conformance.targets.config import BUILT_IN, is_reserved, load_config
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import TargetError
from tests.command_line import call, refused

MODEL = '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3] x) => (float[2, 3] y) { y = Relu (x) }'
NOTICE = "Configuration: epcheck.toml of the working directory, with [validate] rtol = 0.5, snr = 3, [targets.mine]"
CONFIGURATION = '[validate]\nrtol = 0.5\nsnr = 3\n[targets.mine]\nbase = "cpu"\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "model.onnx")
    (tmp_path / "epcheck.toml").write_text(CONFIGURATION, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "name", [*BUILT_IN, "none", "cpu@1.20.1", "webgpu@0.4.0", "ep:x", "python:m:f", "a/b", "p#q", ""]
)
def test_a_table_may_not_be_another_target_than_its_name_says(here: Path, name: str) -> None:
    (here / "epcheck.toml").write_text(f'[targets."{name}"]\nfunction = "m:f"\n', encoding="utf-8")
    sentence = refused("validate", "model.onnx", "--target", name or "cpu")
    assert sentence.startswith(
        f"epcheck.toml: [targets.{name}]: '{name}' is the name of another target; rename this table"
    )
    assert sentence.endswith(f'rename this table, with base = "{name}"' if name in BUILT_IN else sentence[-10:])


def test_no_call_takes_a_table_in_place_of_a_target() -> None:
    """The machines of a cluster get tables from elsewhere."""
    with pytest.raises(TargetError, match="'cpu' is the name of another target"):
        resolve("cpu", {"targets": {"cpu": {"function": "m:f"}}})


@pytest.mark.parametrize("name", ["mine", "my-webgpu", "cpu-threads", "demo", "gpu@work", "nonesuch"])
def test_any_other_name_is_free(name: str) -> None:
    assert not is_reserved(name)


@pytest.mark.parametrize(
    "command",
    [
        ("validate", "model.onnx", "--target", "mine"), ("harvest", "model.onnx", "--out", "harvested"),
        ("run", "--target", "mine", "--op", "Relu", "--limit", "1", "--root", "runs"), ("status",),
        ("coverage", "--target", "mine"),
        ("probe", "--target", "mine", "--op", "Relu", "--each", "1", "--out", "c.json"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("here")
def test_the_first_line_of_what_a_command_prints_names_it(
    monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(coverage, "of_suite", lambda _claims: ())  # counting takes long, and is tested elsewhere
    done = call(*command)
    assert done.out.splitlines()[0] == NOTICE


@pytest.mark.usefixtures("here")
def test_an_output_for_programs_stays_as_it_is() -> None:
    done = call("list", "targets")
    assert done.err.splitlines()[0] == NOTICE
    assert "Configuration" not in done.out


def test_the_report_of_a_run_names_it(here: Path) -> None:
    assert call("run", "--target", "mine", "--op", "Relu", "--limit", "1", "--root", "runs").code == 0
    (run,) = here.glob("runs/*/run.json")
    assert NOTICE in json.loads(run.read_text(encoding="utf-8"))["notes"]
    assert "rtol = 0.5" in (run.parent / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("models", [("model.onnx",), ("model.onnx", "second.onnx")])
def test_the_page_and_the_document_of_a_validation_name_it(here: Path, models: tuple[str, ...]) -> None:
    (here / "second.onnx").write_bytes((here / "model.onnx").read_bytes())
    files = ("--html", "page.html", "--json", "document.json")
    assert call("validate", *models, "--target", "mine", "--no-culprit", *files).code == 0
    assert json.loads((here / "document.json").read_text(encoding="utf-8"))["configuration"] == NOTICE
    assert NOTICE in (here / "page.html").read_text(encoding="utf-8")


def test_a_configuration_that_was_named_needs_no_notice(here: Path) -> None:
    (here / "epcheck.toml").rename(here / "own.toml")
    files = ("--json", "document.json", "--config", "own.toml")
    done = call("validate", "model.onnx", "--target", "mine", "--no-culprit", *files)
    assert (done.code, "Configuration" in done.out) == (0, False), done.err
    assert json.loads((here / "document.json").read_text(encoding="utf-8"))["configuration"] == ""


def test_names_of_tables_are_printable(here: Path) -> None:
    (here / "epcheck.toml").write_text('[targets."a\\u001b[31m\\n"]\nbase = "cpu"\n', encoding="utf-8")
    assert load_config()
    assert call("status").out.splitlines()[0].endswith("with [targets.'a\\x1b[31m\\n']")
