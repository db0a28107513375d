"""Polygraphy in a virtual environment of the benchmark's own, in the user's cache, made by pip on the first use."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path

import platformdirs

from benchmarks.rates import child_process

VERSION = "0.53.6"
GRAPHSURGEON = "0.6.1"
"""What its `debug reduce` needs beside it."""

RUNTIME = "onnxruntime-directml" if sys.platform == "win32" else "onnxruntime"
FOLDER = "EPCHECK_BENCHMARK_ENVIRONMENTS"
"""Environment variable: where the environments are, instead of the user's cache."""


def interpreter() -> Path:
    """Its Python; it has the very releases of onnxruntime, onnx and numpy that epcheck runs on here.

    Raises ChildFailed with pip's words when it cannot be made.
    """
    same = {name: version(name) for name in (RUNTIME, "onnx", "numpy")}
    home = _folder() / "-".join(["polygraphy", VERSION, GRAPHSURGEON, *same.values()])
    programs = home / ("Scripts" if sys.platform == "win32" else "bin")
    python = programs / ("python.exe" if sys.platform == "win32" else "python")
    complete = home / "complete"
    if not complete.is_file():
        child_process.run([sys.executable, "-m", "venv", "--clear", str(home)])
        wanted = [
            f"polygraphy=={VERSION}",
            f"onnx-graphsurgeon=={GRAPHSURGEON}",
            *(f"{name}=={release}" for name, release in same.items()),
        ]
        child_process.run([str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted])
        complete.touch()
    return python


def command() -> list[str]:
    """Its command line, to which arguments are appended."""
    return [str(interpreter().with_name("polygraphy.exe" if sys.platform == "win32" else "polygraphy"))]


def _folder() -> Path:
    return Path(os.environ.get(FOLDER) or platformdirs.user_cache_path("epcheck") / "benchmarks")
