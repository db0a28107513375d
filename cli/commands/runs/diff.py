"""`epcheck diff`: two runs compared, or two targets of one run."""

from __future__ import annotations

import typer

from epcheck.api.runs.diff import DiffOptions, diff
from epcheck.cli.options import command
from epcheck.cli.terminal import comparison
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(add_completion=False)


@command(app, DiffOptions)
def compare(options: DiffOptions) -> int:
    """Compare two runs: what broke, what was fixed, what drifted, and what changed on the machine. Two providers,
    releases or targets of one run stand side by side: what differs between them is no regression.

    Exit code: 0 no new failure or no difference, 1 new failures or a difference, 2 bad input, or RUN_B did not run to
    its end.
    """
    found = diff(options)
    comparison.show(Terminal(), found)
    return comparison.choose_exit_code((found,))
