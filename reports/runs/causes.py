"""The causes of a run, found before its reports are made: they say of each record which cause it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from epcheck.conformance.records.record import Record
from epcheck.reports.causes.cause import Causes
from epcheck.reports.causes.find import find_causes
from epcheck.reports.runs.run_folder import JOURNAL, StoreError, read_records

_RIGHT = b'"reading":"ok"'
"""What is in a line of a journal where nothing is to be said of its record: in a text the quotes are escaped."""

_OPERATOR = b'"operator":"'


def find_causes_of_run(folder: Path) -> Causes:
    """The causes of a run in its folder. Raises StoreError, as `read_records`.

    The journal is read twice: of an operator whose cases are all right, no record is needed.
    """
    try:
        with (folder / JOURNAL).open("rb") as journal:
            operators = frozenset(_operator(line) for line in journal if _RIGHT not in line)
    except OSError as error:
        raise StoreError(f"{folder / JOURNAL}: cannot read ({error.strerror or error})") from error
    return find_causes(_records_of(folder, operators)) if operators else Causes()


def _records_of(folder: Path, operators: frozenset[bytes]) -> Iterator[Record]:
    return read_records(folder, lambda line: _operator(line) in operators)


def _operator(line: bytes) -> bytes:
    """The text of the first field `operator` of a line, which is a name without its domain."""
    start = line.find(_OPERATOR) + len(_OPERATOR)
    return line[start : line.find(b'"', start)]
