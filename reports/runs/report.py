"""The interface of a report: it is made in one pass over the journal, and keeps little of it in memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple, Protocol

from epcheck.conformance.records.record import Record
from epcheck.conformance.records.run import Run
from epcheck.reports.causes.cause import Cause
from epcheck.reports.runs.summary import Summary


class Entry(NamedTuple):
    """A line of the journal without its newline, the record it is of, and where this belongs (see Grouped)."""

    line: bytes
    record: Record
    finding: str
    cause: Cause | None
    is_example: bool = False


class Report(Protocol):
    """A report in the making. Its methods raise OSError when its file cannot be written."""

    def add(self, entry: Entry) -> None:
        """Take one record, in the order of the journal."""

    def finish(self, summary: Summary) -> None:
        """Complete the file with what all records say together."""


ReportFactory = Callable[[Run, IO[bytes], ExitStack], Report]
"""Begins a report of a run in an open file. The stack closes what else the report opens."""


def spool(file: IO[bytes], stack: ExitStack) -> IO[bytes]:
    """A temporary file on the same disk as `file`, for what is known before its place in that is."""
    return stack.enter_context(TemporaryFile(dir=Path(file.name).parent))
