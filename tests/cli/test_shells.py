"""Completion as a person has it: installed in a new home, and Tab pressed in the real shells."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("these shells are those of Unix", allow_module_level=True)

import pty

from epcheck.cli import completion, main

PATIENCE_S = 60
"""A busy machine may take so long for an answer."""

RUN_NAME = "20261121-090000-1a2b"

COMPLETED = {
    "run --op Sli": "run --op Slice",
    "run --op com.microsoft::Ge": "run --op com.microsoft::Gelu",
    "run --target ref": "run --target reference",
    "run --resume l": "run --resume latest",
    "run --thi": "run --thin",
    "report ep": f"report epcheck-runs/{RUN_NAME}",
    "repro Compress-11/flo": "repro Compress-11/float",
    "validate mod": "validate model.onnx",
}
"""What is written -> what stands there after Tab. Each has one continuation, or begins it."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home, and a folder with a run and a model to be in."""
    home = tmp_path_factory.mktemp("home")
    (home / "epcheck-runs" / RUN_NAME).mkdir(parents=True)
    (home / "model.onnx").touch()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("EPCHECK_CACHE", str(home / "cache"))
        main.load_outlines()
        completion.load_names()
        completion.load_case_ids()
    return home


def environment(home: Path) -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    kept = {name: text for name, text in os.environ.items() if name not in ("ZDOTDIR", "XDG_CONFIG_HOME")}
    return {**kept, "HOME": str(home), "PATH": path, "EPCHECK_CACHE": str(home / "cache"), "TERM": "xterm"}


def install(shell: str, home: Path) -> None:
    """As a person does: the command sees from which shell it was started."""
    command = [shell, "-c", "epcheck --install-completion; true"]
    done = subprocess.run(
        command, env=environment(home), cwd=home, capture_output=True, encoding="utf-8", timeout=PATIENCE_S
    )
    assert f"{shell} completion installed in {home}" in done.stdout.replace("\n", ""), done


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


class Terminal:
    """A shell at a terminal, and who types at it."""

    def __init__(self, shell: str, home: Path) -> None:
        self._process, self._end = pty.fork()
        if not self._process:
            os.chdir(home)
            os.execvpe(shell, [shell, "-i"], environment(home))
        self.type("stty cols 200 rows 60; PS1='READY''> '\n")
        self.wait_for("READY> ")

    def type(self, text: str) -> None:
        os.write(self._end, text.encode())

    def wait_for(self, text: str) -> str:
        """What is shown until this is, without what moves the cursor."""
        shown, until = "", time.monotonic() + PATIENCE_S
        while text not in shown and time.monotonic() < until:
            if select.select([self._end], [], [], 0.2)[0]:
                shown += os.read(self._end, 65536).decode(errors="replace")
                shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|[\x07\r]", "", shown)
        assert text in shown, shown
        return shown

    def tab(self, line: str, expected: str) -> None:
        """Write a line, press Tab, and wait for what has to stand there then."""
        self.type(f"epcheck {line}\t")
        self.wait_for(expected)
        self.type("\x15\n")  # Ctrl-U: the line is not run
        self.wait_for("READY> ")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.kill(self._process, 9)
            os.close(self._end)
            os.waitpid(self._process, 0)


@contextlib.contextmanager
def at(shell: str, home: Path) -> Iterator[Terminal]:
    terminal = Terminal(shell, home)
    try:
        yield terminal
    finally:
        terminal.close()


@pytest.mark.parametrize("shell", [pytest.param(name, marks=needs(name)) for name in ("bash", "zsh")])
def test_tab_completes_operators_targets_runs_cases_and_files(shell: str, home: Path) -> None:
    """The first Tab of a shell as well as the others."""
    install(shell, home)
    with at(shell, home) as terminal:
        for line, expected in COMPLETED.items():
            terminal.tab(line, expected)


@needs("fish")
def test_fish_completes_the_same(home: Path) -> None:
    install("fish", home)
    for line in ("run --op Sli", "run --resume l", "report ep", "validate mod"):
        asked = ["fish", "-c", f"complete -C 'epcheck {line}'"]
        done = subprocess.run(
            asked, env=environment(home), cwd=home, capture_output=True, encoding="utf-8", timeout=PATIENCE_S
        )
        offered = [each.partition("\t")[0] for each in done.stdout.splitlines()]
        assert any(each == COMPLETED[line].rpartition(" ")[2] for each in offered), (line, done)
