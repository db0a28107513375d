"""Running other programs in tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HEAVY = ("duckdb", "numpy", "onnx")
"""Modules that take long to import."""
EPCHECK = "from epcheck.cli.start import main; main()"
SHARE = 2.0
"""How many times the CPU seconds of importing onnx a command may take that imports none of HEAVY: it takes 1.4 times as
many."""


def checked_run(command: list[str], folder: Path) -> str:
    """What the command prints; the test fails when it does. This process's virtual environment is not handed on."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", env=environment, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def is_quick(arguments: list[str], says: str, **variables: str) -> bool:
    """Whether epcheck prints some text, imports none of HEAVY, and takes less than SHARE times the CPU seconds of
    importing onnx. CPU time is compared with a known amount of work because the machine may be slow; the least of up to
    10 times each counts because it may be busy. variables: of the environment."""
    importing = answering = float("inf")
    for _ in range(10):
        importing = min(importing, _cpu_seconds("import onnx", [], "", variables)[0])
        seconds, heavy = _cpu_seconds(EPCHECK, arguments, says, variables)
        assert heavy == []
        answering = min(answering, seconds)
        if answering < SHARE * importing:
            return True
    return False


def _cpu_seconds(program: str, arguments: list[str], says: str, variables: dict[str, str]) -> tuple[float, list[str]]:
    """Those of a process that runs the program and prints the text, and which of HEAVY it imported."""
    measure = (
        "import atexit, sys, time; sys.argv = ['epcheck', *sys.argv[1:]];"
        f"atexit.register(lambda: print(time.process_time(), *sorted({{*{HEAVY}}} & set(sys.modules))));"
    )
    command = [sys.executable, "-c", measure + program, *arguments]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, encoding="utf-8", check=True)
    assert says in done.stdout
    seconds, *heavy = done.stdout.splitlines()[-1].split()
    return float(seconds), heavy
