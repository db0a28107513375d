"""One Parquet file of a store: the run and the counts in its metadata, read without its rows.

A file that cannot be read, or is not a file of ours, is a `FileProblem` with a kind and a sentence.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from epcheck.conformance.records import strict_json
from epcheck.conformance.records.run import Run, run_from_json
from epcheck.reports.checksum import CHANGED, PARQUET_KEY, check_footer, footer_start
from epcheck.reports.runs import parquet
from epcheck.reports.runs.parquet import TargetCounts
from epcheck.reports.runs.run_folder import StoreError
from epcheck.reports.store.columns import fault_of_columns

SUFFIX = ".parquet"

_MAGIC = b"PAR1"
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class ProblemKind(StrEnum):
    """What is wrong with a file of a store."""

    TRUNCATED = "truncated"
    DAMAGED = "damaged"
    FOREIGN = "foreign"
    NEWER = "newer schema"
    OLDER = "older schema"
    DUPLICATE = "duplicate"


@dataclass(frozen=True)
class FileProblem:
    """A file that is not counted, and why, in a sentence that names it."""

    path: Path
    kind: ProblemKind
    sentence: str


class FileProblemError(StoreError):
    """A file of a store cannot be used."""

    def __init__(self, path: Path, kind: ProblemKind, what: str) -> None:
        super().__init__(f"{format_path(path)}: {what}")
        self.problem = FileProblem(path, kind, str(self))


@dataclass(frozen=True)
class StoredRun:
    """A run in a store, as the metadata of its file describes it. counted: the counts of each target that has records,
    by the target's name. schema: the version of its columns. rows_checksum: CRC-32 of the bytes of its rows, in
    hexadecimal digits; empty in files of an earlier epcheck."""

    path: Path
    run: Run
    counted: Mapping[str, TargetCounts]
    schema: int = parquet.SCHEMA_VERSION
    rows_checksum: str = ""

    @property
    def run_id(self) -> str:
        return self.run.run_id

    @property
    def night(self) -> str:
        """The day on which the run started, in UTC: `2026-11-21`."""
        return self.run.started[:10]

    @property
    def moment(self) -> datetime | None:
        """When the run started; None where that is not written in ISO 8601."""
        try:
            moment = datetime.fromisoformat(self.run.started)
        except ValueError:
            return None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    @property
    def targets(self) -> tuple[str, ...]:
        """The candidates, recorded or not."""
        return tuple(dict.fromkeys((*self.run.candidates, *self.counted)))

    @cached_property
    def recorded(self) -> int:
        """How many records the file has."""
        return sum(sum(counted.counts) for counted in self.counted.values())

    @property
    def whole(self) -> bool:
        """Whether every planned record is there: a run that others may be compared with."""
        return self.run.status == "complete" and self.recorded >= self.run.planned > 0


def read_file(path: Path) -> StoredRun:
    """The run in a Parquet file, without its rows. Raises FileProblemError."""
    return parse_metadata(read_metadata(path), path)


def check_data(stored: StoredRun) -> None:
    """Compare the bytes of the rows with their checksum, if the file has one. Raises FileProblemError."""
    if not stored.rows_checksum:
        return
    try:
        data = memoryview(stored.path.read_bytes())
        found = zlib.crc32(data[: footer_start(len(data), bytes(data[-8:]))])
        if found != int(stored.rows_checksum, 16):
            raise FileProblemError(stored.path, ProblemKind.DAMAGED, f"is damaged ({CHANGED})")
    except OSError as error:
        raise FileProblemError(stored.path, ProblemKind.DAMAGED, f"cannot be read ({error.strerror})") from None
    except (ValueError, struct.error) as error:
        raise FileProblemError(stored.path, ProblemKind.DAMAGED, f"is damaged ({error})") from None


def read_metadata(path: Path) -> pq.FileMetaData:
    """The metadata of a Parquet file. Raises FileProblemError."""
    try:
        return _metadata(path)
    except (OSError, pa.ArrowException) as error:  # pyarrow raises a bare OSError for what it cannot make sense of
        why = error.strerror if isinstance(error, OSError) else None
        problem = f"cannot be read ({why})" if why else f"is damaged ({first_line(error)})"
        raise FileProblemError(path, ProblemKind.DAMAGED, problem) from None


def parse_metadata(metadata: pq.FileMetaData, path: Path) -> StoredRun:
    """The run that the metadata of a file describes. Raises FileProblemError."""
    fields: Mapping[bytes, bytes] = metadata.metadata or {}
    schema = _check_version(path, fields)
    if fault := fault_of_columns(metadata, schema):
        raise FileProblemError(path, ProblemKind.DAMAGED, f"{fault}; write it again with: epcheck report RUN --parquet")
    try:
        run = run_from_json(strict_json.loads(fields[parquet.RUN_KEY.encode()]))
        counts = strict_json.loads(fields[parquet.COUNTS_KEY.encode()])
        counted = {target: TargetCounts.from_json(document) for target, document in counts.items()}
        "".join(name for target, found in counted.items() for name in (target, found.digest, *found.keys)).encode()
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise FileProblemError(path, ProblemKind.DAMAGED, f"does not describe a run ({error})") from None
    if not is_run_id(run.run_id):
        raise FileProblemError(path, ProblemKind.FOREIGN, f"its run id {run.run_id[:99]!r} is not a valid file name")
    rows_checksum = fields.get(PARQUET_KEY.encode(), b"").decode("ascii", "replace")[:8]
    return StoredRun(path, run, counted, schema, rows_checksum)


def is_run_id(name: str) -> bool:
    """Whether a file may have this name on every system: letters, digits, `.`, `_` and `-`."""
    return _RUN_ID.fullmatch(name) is not None


def _metadata(path: Path) -> pq.FileMetaData:
    """The footer of the file. The magic bytes tell a file that was cut off from one that never was Parquet."""
    if format_path(path) != str(path):  # neither pyarrow nor DuckDB opens it
        raise FileProblemError(path, ProblemKind.FOREIGN, "its path is not UTF-8; rename it")
    if not path.is_file():  # a pipe would never end
        raise FileProblemError(path, ProblemKind.FOREIGN, "is not a file")
    with pa.OSFile(str(path)) as file:
        size = file.size()
        begins, ends = file.read_at(min(size, 4), 0), file.read_at(min(size, 4), max(0, size - 4))
        if begins != _MAGIC[: len(begins)]:
            raise FileProblemError(path, ProblemKind.FOREIGN, "is not a Parquet file")
        if size < 3 * len(_MAGIC) or ends != _MAGIC:
            raise FileProblemError(
                path, ProblemKind.TRUNCATED, f"is cut off after {size:,} bytes; copy or write it again"
            )
        _check_footer(path, file, size)
        return pq.read_metadata(file)


def _check_footer(path: Path, file: pa.NativeFile, size: int) -> None:
    """Raises FileProblemError when the footer is not what was written."""
    try:
        start = footer_start(size, file.read_at(8, size - 8))
        check_footer(file.read_at(size - start, start))
    except ValueError as error:
        raise FileProblemError(path, ProblemKind.DAMAGED, f"is damaged ({error})") from None


def _check_version(path: Path, fields: Mapping[bytes, bytes]) -> int:
    """The version of the file's schema. Raises FileProblemError for one that is not read."""
    text = fields.get(parquet.SCHEMA_KEY.encode())
    if text is None and parquet.RUN_KEY.encode() in fields:
        raise FileProblemError(
            path, ProblemKind.OLDER, "has schema 1; make it again with: epcheck report RUN --parquet"
        )
    if text is None or not text.isdigit():
        raise FileProblemError(path, ProblemKind.FOREIGN, "is a Parquet file, but not a run")
    if int(text[:9]) > parquet.SCHEMA_VERSION:
        newer = f"has schema {int(text[:9])}, newer than this epcheck reads ({parquet.SCHEMA_VERSION}); upgrade epcheck"
        raise FileProblemError(path, ProblemKind.NEWER, newer)
    return int(text[:9])


def format_path(path: Path) -> str:
    """A path as text that every file and terminal takes: bytes that are no UTF-8 as escapes."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def first_line(error: Exception) -> str:
    """The first line of a library's message of many lines."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
