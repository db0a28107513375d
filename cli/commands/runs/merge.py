"""`epcheck merge`: several runs become one, with its reports."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from epcheck import reports
from epcheck.cli.commands.suite.repro import archive
from epcheck.cli.commands.suite.run import exit_code
from epcheck.cli.terminal import display, failure

app = typer.Typer(add_completion=False)


@app.command()
def merge(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders, or folders that hold them.")],
    out: Annotated[
        Path | None, typer.Option(help="The merged run's folder.", show_default="a new one under --root")
    ] = None,
    root: Annotated[Path, typer.Option(help="Where run folders are made.")] = reports.DEFAULT_ROOT,
    may_differ: Annotated[
        list[str] | None, typer.Option(metavar="FACT", help="A fact in which one target's machines may differ; repeat.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fixed and stale expectations fail the run, too.")] = False,
) -> None:
    """Merge finished runs, the shards of one selection or its runs on several machines, into a new one.

    Exit code: that of `epcheck run` for the merged run; 2 also when runs do not fit together or shards are missing.
    """
    console = Console(emoji=False)
    with failure.one_sentence():
        reported = reports.merge_runs(runs, out, root, ("epcheck", *sys.argv[1:]), may_differ or (), archive)
        display.summary(console, reported)
        code = exit_code(reported, strict)
        if code == failure.CANNOT:
            failure.say(f"the merged run {reported.run.status}")
    raise typer.Exit(code)
