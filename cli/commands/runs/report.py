"""`epcheck report`: make the reports of a stored run, now or again."""

from __future__ import annotations

import typer

from epcheck.api.runs.report import ReportOptions, report
from epcheck.cli.options import command
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(add_completion=False)


@command(app, ReportOptions)
def make_reports(options: ReportOptions) -> None:
    """Make the HTML page of a stored run, or the files that are asked for. Exit status 2 if it cannot."""
    Terminal().print_lines(map(str, report(options)))
