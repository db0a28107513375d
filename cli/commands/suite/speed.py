"""`epcheck speed`: how fast two targets run the operators, compared."""

from __future__ import annotations

import typer

from epcheck.api.suite.speed import SpeedOptions, compare_speed
from epcheck.cli.options import command
from epcheck.cli.terminal import exit_codes, speed_table
from epcheck.cli.terminal.progress import TerminalProgress
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(add_completion=False)


@command(app, SpeedOptions)
def compare(options: SpeedOptions) -> int:
    """Compare how fast two targets run the operators, each ratio with its interval.

    A and B take turns, A B B A, in warm workers, until a ratio is known or the time is over. Creation of the session,
    first run and later runs are timed apart.

    Exit code: 0 nothing is slower than --max-slowdown allows, 1 something is, 2 bad input or it could not run.
    """
    terminal = Terminal()
    result = compare_speed(options, progress=TerminalProgress(terminal))
    speed_table.show(terminal, result)
    return exit_codes.GOOD if result.conforms else exit_codes.FAILURES
