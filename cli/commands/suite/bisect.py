"""`epcheck bisect`: the release of a provider in which a case became wrong, or right."""

from __future__ import annotations

import typer

from epcheck.api.releases.bisect import BisectOptions, bisect
from epcheck.cli.options import command
from epcheck.cli.terminal import exit_codes, release_table
from epcheck.cli.terminal.progress import TerminalProgress
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(add_completion=False)


@command(app, BisectOptions)
def bisect_releases(options: BisectOptions) -> int:
    """Find the first provider release in which a case, or the failures of a run, fail or pass.

    Exit code: 0 no case is wrong in the newest release that was tried, 1 one is, 2 bad input or it could not run.
    """
    terminal = Terminal()
    bisected = bisect(options, progress=TerminalProgress(terminal))
    release_table.show(terminal, bisected)
    return exit_codes.FAILURES if bisected.wrong_now else exit_codes.GOOD
