"""The files that are made of verdicts: a page, Markdown, JSON, JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from epcheck.reports.diff.document import document
from epcheck.reports.diff.junit import junit
from epcheck.reports.diff.markdown import markdown
from epcheck.reports.diff.page import write_page
from epcheck.reports.diff.verdict import Verdict
from epcheck.reports.runs.run_folder import replacing


def write_html(path: Path, title: str, verdicts: Sequence[Verdict]) -> None:
    """Write the verdicts as one self-contained page. Raises StoreError, as all of these do."""
    with replacing(path) as file:
        write_page(file, title, verdicts)


def write_markdown(path: Path, title: str, verdicts: Sequence[Verdict]) -> None:
    """Write the verdicts as Markdown."""
    _write(path, markdown(title, verdicts).encode("utf-8"))


def write_json(path: Path, _title: str, verdicts: Sequence[Verdict]) -> None:
    """Write the verdicts as one JSON document."""
    _write(path, document(verdicts))


def write_junit(path: Path, _title: str, verdicts: Sequence[Verdict]) -> None:
    """Write the verdicts as JUnit XML."""
    _write(path, junit(verdicts))


def _write(path: Path, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)
