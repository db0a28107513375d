import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from epcheck.api.suite.executor import _install_lab
from epcheck.cli.commands.machine.lab import app
from epcheck.cli.terminal.progress import LabProgress, TerminalProgress
from epcheck.cli.terminal.terminal import Terminal
from epcheck.conformance import lab

runner = CliRunner()


def test_status_of_nothing_exits_with_1_and_says_what_to_run(tmp_path: Path) -> None:
    result = runner.invoke(app, ["status", "--folder", str(tmp_path / "absent")])
    assert result.exit_code == 1
    assert "not installed, 0 MB" in result.output.replace("\n", "")


def test_remove_of_another_folder_exits_with_2_and_one_sentence(tmp_path: Path) -> None:
    result = runner.invoke(app, ["remove", "--folder", str(tmp_path)])
    assert result.exit_code == 2
    assert result.stderr == f"epcheck: {tmp_path} is not a lab; nothing was removed\n"


def test_install_passes_every_option_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: dict[str, Any] = {}

    def install(folder: Path, *, progress: Callable[[lab.Progress], None], **options: Any) -> lab.LabStatus:
        asked.update(options, folder=folder)
        progress(lab.Progress("wine", 1, 2, "downloading", 5, 10))
        progress(lab.Progress("python", 2, 2, "downloading"))
        return lab.LabStatus(folder, True, (), 12_000_000, ("1.20.1",), "10.0", "lavapipe", True)

    monkeypatch.setattr(lab, "install", install)
    options = ["--runtime", "1.20.1", "--runtime", "windowsml-1.30.0", "--system-wine", "--private-compiler"]
    more = ["--folder", str(tmp_path), "--vulkan", "icd.json", "--mirror", "http://m.example/archive"]
    result = runner.invoke(app, ["install", *options, *more])
    assert result.exit_code == 0, result.output
    assert asked == {
        "folder": tmp_path,
        "runtimes": ("1.20.1", "windowsml-1.30.0"),
        "system_wine": True,
        "private_compiler": True,
        "vulkan": Path("icd.json"),
        "mirror": "http://m.example/archive",
    }
    assert "12 MB" in result.output
    assert "shader model 6: yes" in result.output


@pytest.mark.parametrize("terminal", [False, True])
def test_a_run_that_installs_the_lab_shows_the_same_progress(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    def install(*, progress: Callable[[lab.Progress], None]) -> None:
        progress(lab.Progress("wine", 1, 2, "downloading", 5_000_000, 10_000_000))

    monkeypatch.setattr(lab, "install", install)
    shown = io.StringIO()
    _install_lab(TerminalProgress(Terminal(shown, width=100, colours=terminal)))
    assert "[1/2] wine: downloading" in shown.getvalue()
    assert "5.0 / 10.0 MB" in shown.getvalue()


def test_a_log_has_a_line_for_each_message_of_steps_that_are_done_at_the_same_time() -> None:
    shown = io.StringIO()
    with TerminalProgress(Terminal(shown, width=100)).installing() as report:
        for done in (1_000_000, 2_000_000):
            report(lab.Progress("wine", 1, 3, "downloading", done, 10_000_000))
            report(lab.Progress("dxil", 2, 3, "compiling", done, 4_000_000))
        report(lab.Progress("wine", 1, 3, "there (2.0 s)", ended=True))
        report(lab.Progress("python", 3, 3, ""))
    assert shown.getvalue().splitlines() == [
        "[1/3] wine: downloading 1.0 / 10.0 MB",
        "[2/3] dxil: compiling 1.0 / 4.0 MB",
        "[1/3] wine: there (2.0 s)",
    ]


def test_a_terminal_has_a_row_for_each_step_in_order_and_the_clock_of_one_that_ended_stands() -> None:
    file = io.StringIO()
    terminal = Terminal(file, width=100, colours=True)
    with LabProgress(terminal) as report:
        report(lab.Progress("dxil", 2, 3, "compiling"))
        report(lab.Progress("wine", 1, 3, "downloading"))
        report(lab.Progress("wine", 1, 3, "there (2.0 s)", ended=True))
        rows = [row for row in report._bars.tasks if row.visible]
        assert [row.fields["step"] for row in rows] == [("[1/3] wine: there (2.0 s)",), ("[2/3] dxil: compiling",)]
        assert [row.stop_time is None for row in rows] == [False, True]


def test_an_install_that_cannot_be_done_exits_with_2(monkeypatch: pytest.MonkeyPatch) -> None:
    def install(*_arguments: object, **_options: object) -> None:
        raise lab.LabError("this machine has no Wine; install it")

    monkeypatch.setattr(lab, "install", install)
    result = runner.invoke(app, ["install"])
    assert result.exit_code == 2
    assert result.stderr == "epcheck: this machine has no Wine; install it\n"


def test_a_lab_of_another_version_is_a_sentence_and_not_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "lab.json").write_text(json.dumps({"epcheck_lab": 0}))
    result = runner.invoke(app, ["status", "--folder", str(tmp_path)])
    assert result.exit_code == 1
    assert "of another version of epcheck" in result.output.replace("\n", " ").replace("  ", " ")
