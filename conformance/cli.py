"""The command line: it parses and delegates; a command is one module of `commands/` around one documented call.

Exit codes of every command: 0 as it should be, 1 conformance failures, 2 bad input or it could not run,
130 interrupted.
"""

from __future__ import annotations

import io
import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from epcheck.conformance.commands import (
    cache,
    claims,
    coverage,
    diff,
    directml,
    expect,
    lab,
    listing,
    merge,
    nightly,
    reduce,
    replay,
    report,
    repro,
    run,
    store,
    trend,
    validate,
    zoo,
)

app = typer.Typer(
    name="epcheck",
    help="Test and compatibility suite for ONNX Runtime execution providers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"epcheck {version('epcheck')}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Test and compatibility suite for ONNX Runtime execution providers."""


for _command in (
    run,
    merge,
    listing,
    coverage,
    repro,
    replay,
    report,
    directml,
    trend,
    nightly,
    diff,
    expect,
    validate,
    reduce,
):
    _command.register(app)
app.add_typer(lab.app, name="lab")
app.add_typer(cache.app, name="cache")
app.add_typer(claims.app, name="claims")
app.add_typer(store.app, name="store")
app.add_typer(zoo.app, name="zoo")


def main() -> None:
    """The console script."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # On Windows a redirected stdout has the code page's encoding: a character that it lacks is no reason to end.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    finally:
        _drop_what_cannot_be_written()


def _drop_what_cannot_be_written() -> None:
    """What a full disk did not take has been said; Python would try once more at its end, and change the exit code."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
