"""The files of a bug report: the text, and the repro as a zip file that an issue takes."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from epcheck.api.bug_reports.fault import Fault
from epcheck.conformance.records import atomic_file
from epcheck.reports.bug_report.issue import Issue, markdown

MOST_BYTES = 1_000_000
"""Of the zip file: less than any limit of an issue's attachments."""

NEEDED = ("model.onnx", "data.npz", "case.json", "run.py")
"""What run.py reads; ONNX's own test data says the same once more, and is left out where the file is too large."""

TEXT, ARCHIVE = "issue.md", "repro.zip"


@dataclass(frozen=True)
class BugReport:
    """A report that was written. folder: of its files. text: `issue.md`, for the form. archive: the zip file to attach;
    None where it would be too large. issue: what it says. cases: the case ids of the fault group."""

    folder: Path
    text: Path
    archive: Path | None
    issue: Issue
    cases: tuple[str, ...]


def write(fault: Fault, out: Path) -> BugReport:
    """Write the text and the zip file beside the fault's repro. Raises OSError."""
    folder = out / fault.name
    content = archive(fault.repro)
    issue = replace(fault.issue, archive=ARCHIVE if content is not None else "", folder=fault.repro.name)
    packed = folder / ARCHIVE
    packed.unlink(missing_ok=True)
    if content is not None:
        packed.write_bytes(content)
    atomic_file.write_text(folder / TEXT, markdown(issue))
    return BugReport(folder, folder / TEXT, packed if content is not None else None, issue, fault.cases)


def archive(folder: Path) -> bytes | None:
    """The folder as a zip file of at most MOST_BYTES, the same bytes for the same files; None where it is larger."""
    every = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    for names in (every, [name for name in every if name in NEEDED]):
        made = io.BytesIO()
        with ZipFile(made, "w", ZIP_DEFLATED, compresslevel=9) as file:
            for name in names:
                file.writestr(ZipInfo(f"repro/{name}"), (folder / name).read_bytes(), ZIP_DEFLATED, 9)
        if len(made.getvalue()) <= MOST_BYTES:
            return made.getvalue()
    return None
