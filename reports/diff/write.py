"""The files that are made of assessments: a page, Markdown, JSON, JUnit XML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from epcheck.reports.diff.assessment import Assessment
from epcheck.reports.diff.json_document import document
from epcheck.reports.diff.junit import junit
from epcheck.reports.diff.markdown import markdown
from epcheck.reports.diff.page import write_page
from epcheck.reports.faults import formats
from epcheck.reports.faults.fault_search import FaultSearch
from epcheck.reports.report_links import ReportLinks
from epcheck.reports.runs.run_folder import replacing


def write_html(
    path: Path,
    title: str,
    assessments: Sequence[Assessment],
    runs: Mapping[str, Path] | None = None,
    searches: Sequence[FaultSearch] = (),
) -> None:
    """Write the assessments as one self-contained page. Raises StoreError, as all of these do.

    runs: run id -> folder; each case is linked to the reports there. searches: for faults, in the same night.
    """
    with replacing(path) as file:
        write_page(file, title, assessments, ReportLinks(path, runs or {}), searches)


def write_markdown(
    path: Path, title: str, assessments: Sequence[Assessment], searches: Sequence[FaultSearch] = ()
) -> None:
    """Write the assessments as Markdown."""
    _write(path, markdown(title, assessments, formats.markdown_lines(searches)).encode("utf-8"))


def write_json(
    path: Path, _title: str, assessments: Sequence[Assessment], searches: Sequence[FaultSearch] = ()
) -> None:
    """Write the assessments as one JSON document."""
    _write(path, document(assessments, searches))


def write_junit(
    path: Path, _title: str, assessments: Sequence[Assessment], searches: Sequence[FaultSearch] = ()
) -> None:
    """Write the assessments as JUnit XML."""
    _write(path, junit(assessments, searches))


def _write(path: Path, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)
