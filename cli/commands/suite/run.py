"""`epcheck run`: the suite on a provider, judged, stored and reported."""

from __future__ import annotations

import typer

from epcheck.api.suite.run import run
from epcheck.api.suite.run_options import RunOptions
from epcheck.cli.options import command
from epcheck.cli.terminal import exit_codes, failure, summary, time_table
from epcheck.cli.terminal.progress import TerminalProgress
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(add_completion=False)


@command(app, RunOptions)
def run_suite(options: RunOptions) -> int:
    """Run the suite on a provider and write a report.

    Exit code: 0 no failure, 1 conformance failures, 2 bad input or it could not run, 130 interrupted.
    """
    terminal = Terminal()
    result = run(options, progress=TerminalProgress(terminal))
    summary.show(terminal, result)
    if options.trace:
        time_table.show(terminal, options.trace)
    code = summary.choose_exit_code(result)
    if code == exit_codes.CANNOT:
        failure.say(f"the run {result.run.status}")
    return code
