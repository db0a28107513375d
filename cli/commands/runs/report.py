"""`epcheck report`: make the reports of a stored run, now or again."""

from __future__ import annotations

import typer

from epcheck.api.runs.report import ReportOptions, report
from epcheck.cli.options import command

app = typer.Typer(add_completion=False)


@command(app, ReportOptions)
def make_reports(options: ReportOptions) -> None:
    """Make the HTML page of a stored run, or the files that are asked for. Exit status 2 if it cannot."""
    for path in report(options):
        typer.echo(path)
