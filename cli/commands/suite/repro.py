"""`epcheck repro`: one case as a folder that anybody can run."""

from __future__ import annotations

import typer

from epcheck.api.suite.repro import ReproOptions, repro, script_command
from epcheck.cli.options import command
from epcheck.cli.terminal.progress import TerminalProgress
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(add_completion=False)


@command(app, ReproOptions)
def write_case(options: ReproOptions) -> None:
    """Write a case as model.onnx, ONNX test data and a script that needs onnxruntime only."""
    terminal = Terminal()
    folder = repro(options, TerminalProgress(Terminal(stderr=True)))
    terminal.print(f"{folder}: run it with: {script_command(folder, options)}")
