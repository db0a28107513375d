"""The command that reproduces a case on a target whose sessions the script of a folder cannot make: it works as it
stands in every report."""

from __future__ import annotations

import html
import json
import re
import shlex
import sys
from pathlib import Path
from xml.etree import ElementTree

import onnx
import pytest

from epcheck import reports
from epcheck.api.suite.repro import repro_command
from epcheck.conformance.records.repro_command import of_variant, quote_command
from tests.command_line import call
from tests.conformance.small_cases import HERE
from tests.models.small_models import layers

CASE = "Slice-13/float32/steps_omitted[runtime]"
TARGET = "python:turning_backend:answer"
WRITES = f'epcheck repro "{CASE}" --out repro'
COMMAND = f'epcheck show "{CASE}" --target "{TARGET}"'
SELECTED = ("--op", "Slice", "-k", CASE, "--baseline", "none", "--no-reference")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "turning_backend.py").write_bytes((HERE / "turning_backend.py").read_bytes())
    Path(tmp_path / "mood").write_text("wrong")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


@pytest.fixture
def folder(here: None) -> Path:  # noqa: ARG001
    assert call("run", "-t", TARGET, *SELECTED).code == 1
    return reports.latest(Path("epcheck-runs"))


def follow(command: str) -> tuple[int, str]:
    """How a command ends, and what it prints."""
    program, *arguments = split(command)
    assert program == "epcheck"
    done = call(*arguments)
    return done.code, done.out


def split(command: str) -> list[str]:
    """The words of a line; on Windows a backslash is one."""
    return [word.strip('"') for word in shlex.split(command, posix=sys.platform != "win32")]


def test_every_report_has_the_command_and_it_shows_the_failure(folder: Path) -> None:
    (record,) = reports.read_records(folder)
    assert record.case.repro == COMMAND
    (stated,) = json.loads((folder / "report.json").read_bytes())["records"]
    assert stated["repro"] == COMMAND
    failure = ElementTree.fromstring((folder / "junit.xml").read_bytes()).find(".//failure")
    assert failure is not None
    assert f"reproduce with: {COMMAND}" in (failure.text or "")
    page = html.unescape((folder / "report.html").read_text(encoding="utf-8"))
    assert f"<code>{COMMAND}</code>" in page
    assert call("report", str(folder), "--markdown", "summary.md", "--annotations", "annotations.txt").code == 0
    assert COMMAND in Path("summary.md").read_text(encoding="utf-8")
    assert f"smallest: {COMMAND}" in Path("annotations.txt").read_text(encoding="utf-8")
    code, words = follow(COMMAND)
    assert (code, f"  {TARGET}: failure (mismatch, blame: candidate)" in words) == (1, True)
    Path("mood").write_text("good")
    assert follow(COMMAND)[0] == 0


def test_a_bug_report_says_how_to_replay_it(folder: Path) -> None:
    assert call("report-bug", str(folder), "--out", "bugs").code == 0
    (report,) = Path("bugs").glob("*/issue.md")
    text = report.read_text(encoding="utf-8")
    assert f"epcheck replay repro --target {TARGET}\n" in text
    assert "run.py" not in text
    assert json.loads((report.parent / "repro" / "case.json").read_bytes())["provider"] == "CPUExecutionProvider"
    found = call("replay", str(report.parent / "repro"), "--target", TARGET)
    assert (found.code, found.out.partition(":")[0]) == (1, "mismatch")


@pytest.mark.parametrize("target", [TARGET, "reference", "mine"])
def test_repro_writes_the_folder_and_names_the_command_that_replays_it(target: str) -> None:
    Path("mood").write_text("good")
    Path("epcheck.toml").write_text('[targets.mine]\nfunction = "turning_backend:answer"\n')
    done = call("repro", CASE, "--target", target)
    command = re.search(r"run it with: (.*)$", done.out, re.M)
    assert command is not None
    folder = Path("repro", "Slice-13_float32_steps_omitted_runtime")
    assert command[1] == quote_command("epcheck", "replay", str(folder), "--target", target)
    code, words = follow(command[1])
    assert (code, words.splitlines()[-1]) == (0, f"pass: test_data_set_0: {target}: gives the expected outputs")


def test_a_reduced_model_says_how_to_replay_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx.save(layers(2), "model.onnx")
    monkeypatch.chdir(HERE.parent / "models")  # where the target is looked for
    target = "python:wrong_backends:doubles_relu"
    arguments = ("--target", target, "--baseline", "cpu", "--dim", "batch=3", "--out", str(tmp_path / "part"))
    done = call("reduce", str(tmp_path / "model.onnx"), *arguments)
    command = quote_command("epcheck", "replay", str(tmp_path / "part"), "--target", target)
    assert done.out.rstrip().endswith(f"run it with: {command}")
    code, words = follow(command)
    assert (code, words.partition(":")[0]) == (1, "mismatch")


def test_a_comparison_names_the_target_of_the_newer_run() -> None:
    assert repro_command(CASE) == repro_command(CASE, "dml") == repro_command(CASE, "cpu@1.20.1") == WRITES
    assert repro_command(CASE, TARGET) == COMMAND
    assert repro_command(CASE, "directml") == f'epcheck show "{CASE}" --target "directml"'
    Path("mood").write_text("good")
    assert call("run", "-t", TARGET, *SELECTED, "--root", "older").code == 0
    Path("mood").write_text("wrong")
    assert call("run", "-t", TARGET, *SELECTED, "--root", "newer").code == 1
    done = call("diff", str(reports.latest(Path("older"))), str(reports.latest(Path("newer"))))
    assert f"  reproduce: {COMMAND}\n" in done.out


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("plain-1.0/x:y", "plain-1.0/x:y"),
        ("C:\\a\\run.py", "C:\\a\\run.py"),
        ("C:\\two words\\run.py", '"C:\\two words\\run.py"'),
        ("C:\\two words\\", '"C:\\two words\\\\"'),
        ("a&b", '"a&b"'),
        ('say "so"', '"say \\"so\\""'),
        ("dml@1.17.3", '"dml@1.17.3"'),
        ("", '""'),
    ],
)
def test_a_command_for_windows_has_double_quotes_alone(monkeypatch: pytest.MonkeyPatch, word: str, quoted: str) -> None:
    """PowerShell begins another thing at `@`, and cmd.exe ends a command at `&`."""
    monkeypatch.setattr(sys, "platform", "win32")
    assert quote_command("epcheck", word) == f"epcheck {quoted}"


def test_every_command_is_one_that_powershell_and_cmd_know() -> None:
    commands = [repro_command(CASE, target, folder) for target in ("", TARGET, "directml") for folder in ("", "a b")]
    commands.append(of_variant(commands[0], TARGET, "level=all"))
    for command in commands:
        assert not re.search(r"&&|;|'|\||^cd ", command)
        assert command.count('"') % 2 == 0
    assert commands[3] == f'epcheck show "{CASE}" --source "a b" --target "{TARGET}"'
