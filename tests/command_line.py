"""`epcheck` as its user starts it, and as a function."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from epcheck.cli.main import app

START = [sys.executable, "-c", "from epcheck.cli.start import main; main()"]
ENVIRONMENT = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


def epcheck(*arguments: str, cwd: Path, start: Sequence[str] = START, **changes: Any) -> Done:
    """In a process of its own. start: what starts it."""
    how = {"env": ENVIRONMENT, "capture_output": True, "encoding": "utf-8", **changes}
    done = subprocess.run([*start, *arguments], cwd=cwd, check=False, **how)
    return Done(done.returncode, done.stdout, done.stderr)


def call(*arguments: str, columns: int = 200) -> Done:
    """In this process; a traceback would be raised. columns: characters of a line of the terminal."""
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": str(columns), "NO_COLOR": "1"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


def refused(*arguments: str) -> str:
    """The one sentence with which a command ends with exit code 2."""
    done = call(*arguments)
    assert done.code == 2, (done.out, done.err)
    (line,) = done.err.splitlines()
    assert line.startswith("epcheck: ")
    return line.removeprefix("epcheck: ")
