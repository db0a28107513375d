"""The reports of a stored run, made now or again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from epcheck import reports
from epcheck.api.option import Option
from epcheck.api.runs.archive import archive


@dataclass(frozen=True)
class ReportOptions:
    """Which run, and which files. run: None for the latest under `root`. html: None for `report.html` in its folder.
    junit, json: None makes none. parquet: make `outcomes.parquet` again. strict: of JUnit XML alone."""

    run: Annotated[
        Path | None, Option("A run's folder.", argument=True, default="the latest under --root", file=False)
    ] = None
    root: Annotated[Path, Option("Where runs are kept.")] = reports.DEFAULT_ROOT
    html: Annotated[
        Path | None, Option("The page.", metavar="FILE", folder=False, default="report.html in the run's folder")
    ] = None
    junit: Annotated[Path | None, Option("Write JUnit XML too.", metavar="FILE", folder=False)] = None
    json: Annotated[Path | None, Option("Write one JSON document too.", metavar="FILE", folder=False)] = None
    parquet: Annotated[bool, Option("Make outcomes.parquet again, of an unfinished run too.", flags=("--parquet",))] = (
        False
    )
    strict: Annotated[
        bool, Option("In JUnit XML, an expectation that no longer fails is a failure.", flags=("--strict",))
    ] = False


def report(options: ReportOptions | None = None) -> tuple[Path, ...]:
    """Make the page of a stored run, and further reports. Returns the files. Raises StoreError."""
    options = options or ReportOptions()
    folder = options.run or reports.latest(options.root)
    written = [reports.write_html(folder, options.html, archive=archive)]
    if options.junit:
        written.append(reports.write_junit(folder, options.junit, strict=options.strict))
    if options.json:
        written.append(reports.write_json(folder, options.json))
    if options.parquet:
        written.append(reports.write_outcomes(folder))
    return tuple(written)
