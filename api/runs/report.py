"""The reports of a stored run, made now or again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from epcheck import reports
from epcheck.api.option import Option
from epcheck.api.option_types import AnnotationsFile, JUnitFile
from epcheck.api.runs.archive import archive
from epcheck.generators.operator_index import family_of
from epcheck.reports.ci.write import write_ci_files
from epcheck.reports.earlier.comparison import compare_with_earlier


@dataclass(frozen=True)
class ReportOptions:
    """Which run, and which files. run: None for the latest under `root`. html: None for `report.html` in its folder,
    where no other file is asked for. junit, json, ort_conformance, markdown, badge, annotations, sarif: None makes
    none; `ort_conformance` is in the vocabulary of ONNX Runtime's plan for conformance, the last four are for CI.
    parquet: make `outcomes.parquet` again. store: the page compares with the runs of this store; None for those beside
    the run. strict: of JUnit XML alone."""

    run: Annotated[
        Path | None, Option("A run's folder.", argument=True, default="the latest under --root", file=False)
    ] = None
    root: Annotated[Path, Option("Parent folder of run folders.")] = reports.DEFAULT_ROOT
    html: Annotated[
        Path | None,
        Option(
            "Write the page to this file.",
            metavar="FILE",
            folder=False,
            default="report.html in the run folder, if no other output is named",
        ),
    ] = None
    junit: JUnitFile = None
    json: Annotated[Path | None, Option("Write one JSON document.", metavar="FILE", folder=False)] = None
    parquet: Annotated[bool, Option("Rewrite outcomes.parquet, also for an unfinished run.", flags=("--parquet",))] = (
        False
    )
    ort_conformance: Annotated[
        Path | None,
        Option(
            "Write PASS, UNSUPPORTED, FAIL, EXCLUDED or NOT_RUN for every record.", metavar="FILE", folder=False
        ),
    ] = None  # fmt: skip
    markdown: Annotated[
        Path | None, Option("Write Markdown for the summary of a CI step.", metavar="FILE", folder=False)
    ] = None
    badge: Annotated[Path | None, Option("Write a badge, an SVG image.", metavar="FILE", folder=False)] = None
    annotations: AnnotationsFile = None
    sarif: Annotated[
        Path | None, Option("Write SARIF 2.1.0, a result for each cause.", metavar="FILE", folder=False)
    ] = None
    store: Annotated[
        Path | None, Option("Compare with the runs of this store, not with those in the same folder.", file=False)
    ] = None
    strict: Annotated[
        bool, Option("In JUnit XML, count expectations that no longer fail as failures.", flags=("--strict",))
    ] = False


def report(options: ReportOptions | None = None) -> tuple[Path, ...]:
    """Make the page of a stored run, or the reports that are asked for. Returns the files. Raises StoreError."""
    options = options or ReportOptions()
    folder = options.run or reports.latest(options.root)
    written: list[Path] = []
    if options.html or not _others(options):
        comparison = compare_with_earlier(folder, options.store)
        written.append(
            reports.write_html(folder, options.html, archive=archive, comparison=comparison, family=family_of)
        )
    if options.junit:
        written.append(reports.write_junit(folder, options.junit, strict=options.strict))
    if options.json:
        written.append(reports.write_json(folder, options.json))
    if options.ort_conformance:
        from epcheck.api.runs.profile import profile_digest  # profiles need targets and claims

        profiles = {
            target: hashed for target in reports.read_run(folder).candidates if (hashed := profile_digest(target))
        }
        written.append(reports.write_ort_conformance(folder, options.ort_conformance, profiles))
    if options.parquet:
        written.append(reports.write_outcomes(folder))
    written += write_ci_files(
        folder,
        markdown=options.markdown,
        badge_file=options.badge,
        annotations_file=options.annotations,
        sarif_file=options.sarif,
    )
    return tuple(written)


def _others(options: ReportOptions) -> bool:
    """Whether a file is asked for that is not the page."""
    for_people = (options.markdown, options.badge, options.annotations)
    files = (options.junit, options.json, options.ort_conformance, options.sarif, *for_people)
    return options.parquet or any(files)
