"""Every example runs as it stands, with the CPU provider and few cases."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.command_line import ENVIRONMENT, Done

EXAMPLES = Path(__file__).parents[2] / "examples"


NEGATED = """
from onnx.reference import ReferenceEvaluator

def run(model, feeds):
    return [-value for value in ReferenceEvaluator(model).run(None, feeds)]
"""
"""A target on which every output has the wrong sign."""


def run(name: str, *arguments: str, cwd: Path) -> Done:
    """In a process of its own, which no store of the machine reaches."""
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "EPCHECK_STORE"}
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, encoding="utf-8", check=False)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which two nights were run."""
    folder = tmp_path_factory.mktemp("nights")
    for night in ("first night", "as good as before"):
        done = run("nightly.py", "--target", "cpu", "--op", "Relu", "--thin", "--fuzz-minutes", "0", cwd=folder)
        assert (done.code, done.err) == (0, "")
        assert f"cpu {night}" in done.out
    return folder


def test_the_nightly_keeps_each_night_and_makes_a_trend(nights: Path) -> None:
    store = nights / "epcheck-store"
    assert len(list(store.glob("*.parquet"))) == 2
    assert (store / "trend.html").stat().st_size > 10_000


def test_a_night_whose_target_cannot_start_says_so_and_ends_with_2(tmp_path: Path) -> None:
    done = run("nightly.py", "--target", "no-such-target", "--op", "Relu", cwd=tmp_path)
    assert (done.code, done.err) == (2, "")
    first, why, *_ = done.out.splitlines()
    assert "no-such-target not run" in first
    assert "'no-such-target' is no target" in why or "unknown target" in why, why


def test_the_notebook_queries_the_store(
    nights: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(nights)
    monkeypatch.delenv("EPCHECK_STORE", raising=False)
    notebook = json.loads((EXAMPLES / "store.ipynb").read_text(encoding="utf-8"))
    assert [cell for cell in notebook["cells"] if cell.get("outputs")] == []  # none is committed
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    printed = capsys.readouterr().out
    assert printed.startswith("2 runs\n")
    assert printed.count("sessions_s") == 1
    assert re.search(r"cpu\s+│\s+\d+ │\s+0 │\s+0 │", printed)


def test_a_model_that_is_right_is_exported(tmp_path: Path) -> None:
    done = run("export_with_gate.py", "out/model.onnx", "--target", "cpu", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "model.draft.onnx runs on CPUExecutionProvider and is right"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"model.onnx", "model.html"}


def test_a_model_that_is_wrong_on_the_target_is_not_exported(tmp_path: Path) -> None:
    (tmp_path / "negated.py").write_text(NEGATED, encoding="utf-8")
    done = run("export_with_gate.py", "model.onnx", "--target", "python:negated:run", cwd=tmp_path)
    assert done.code == 1
    assert "not exported, see model.html" in done.err
    assert not (tmp_path / "model.onnx").exists()


def test_the_custom_operator_is_judged(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "custom_operator.py", tmp_path)  # its targets are modules of the working directory
    done = run(str(tmp_path / "custom_operator.py"), cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[:2] == [
        "right: 10 of 10 cases are as they should be",
        "forgetful: 1 of 10 cases are as they should be",
    ]
    assert "com.example::WindowSum-1/float32/width_1[runtime]" in lines[2]


def test_the_page_names_every_example() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\]\(([^)]+)\)", text))
    files = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.*") if "__pycache__" not in path.parts}
    assert named == files - {"README.md"}


@pytest.mark.parametrize("path", sorted((EXAMPLES / "workflows").glob("*.yml")), ids=lambda path: path.stem)
def test_a_workflow_asks_for_what_the_action_has(path: Path) -> None:
    action = yaml.safe_load((EXAMPLES.parent / "action.yml").read_text(encoding="utf-8"))
    text = path.read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    used = [step for job in jobs.values() for step in job["steps"] if "epcheck@" in step.get("uses", "")]
    assert used
    for step in used:
        assert step["with"].keys() <= action["inputs"].keys()
    for name, output in re.findall(r"steps\.(\w+)\.outputs\.([\w-]+)", text):
        assert name in {step.get("id") for step in used}
        assert output in action["outputs"]
