"""The files of a run that a CI step shows, made from one pass over the journal."""

from __future__ import annotations

from pathlib import Path

from epcheck.reports.ci.annotation import write_annotations
from epcheck.reports.ci.badge import badge
from epcheck.reports.ci.from_run import annotate
from epcheck.reports.ci.sarif import sarif
from epcheck.reports.ci.step_summary import step_summary
from epcheck.reports.runs.causes import find_causes_of_run
from epcheck.reports.runs.run_folder import read_records, read_run
from epcheck.reports.runs.summary import summarize


def write_ci_files(
    folder: Path,
    *,
    markdown: Path | None = None,
    badge_file: Path | None = None,
    annotations_file: Path | None = None,
    sarif_file: Path | None = None,
) -> tuple[Path, ...]:
    """Write those of the files that have a path: the step summary, the badge, the workflow commands of annotations,
    SARIF. Raises StoreError where the run cannot be read."""
    if not (markdown or badge_file or annotations_file or sarif_file):
        return ()
    run = read_run(folder)
    summary = summarize(run, read_records(folder), find_causes_of_run(folder))
    if markdown:
        _write(markdown, step_summary(run, summary))
    if badge_file:
        _write(badge_file, badge(run, summary))
    if annotations_file:
        write_annotations(annotations_file, annotate(run, summary))
    if sarif_file:
        _write(sarif_file, sarif(run, summary))
    return tuple(path for path in (markdown, badge_file, annotations_file, sarif_file) if path)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
