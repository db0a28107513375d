"""`epcheck report`: make the reports of a stored run, now or again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epcheck import reports
from epcheck.cli.commands.suite.repro import archive
from epcheck.cli.terminal import failure

app = typer.Typer(add_completion=False)


@app.command()
def report(
    run: Annotated[
        Path | None, typer.Argument(help="A run's folder.", show_default="the latest under --root", file_okay=False)
    ] = None,
    root: Annotated[Path, typer.Option(help="Where runs are kept.")] = reports.DEFAULT_ROOT,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="The page.", show_default="report.html in the run's folder"),
    ] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Write JUnit XML too.")] = None,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Write one JSON document too.")
    ] = None,
    parquet: Annotated[
        bool, typer.Option("--parquet", help="Make outcomes.parquet again, of an unfinished run too.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="In JUnit XML, an expectation that no longer fails is a failure.")
    ] = False,
) -> None:
    """Make the HTML page of a stored run, and JUnit XML, JSON and Parquet if asked. Exit status 2 if it cannot."""
    with failure.one_sentence():
        folder = run or reports.latest(root)
        written = [reports.write_html(folder, html, archive=archive)]
        if junit:
            written.append(reports.write_junit(folder, junit, strict=strict))
        if json:
            written.append(reports.write_json(folder, json))
        if parquet:
            written.append(reports.write_outcomes(folder))
        for path in written:
            typer.echo(path)
