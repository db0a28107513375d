"""A run on disk: a folder with `run.json` and `journal.jsonl`, from which its reports are made.

The journal gets one line of JSON for each record, handed to the operating system before `append` returns, so a run
that is killed loses at most the case it was in. A line counts when its newline is there: what a killed process or a
full disk left of a line is cut off on resume, and that case is run again. `run.json` and the reports are written beside
their place and moved there, so a reader sees the old one or the new one. Lines and `run.json` have a checksum; journals
of an earlier epcheck, which have none, are read with a warning.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from epcheck.conformance.records import atomic_file, file_lock, strict_json
from epcheck.conformance.records.error import EpcheckError
from epcheck.conformance.records.record import Record, decode, encode, with_present_names
from epcheck.conformance.records.run import Run, run_from_json
from epcheck.conformance.records.terms import BLAMES, READINGS, STATUSES
from epcheck.conformance.records.typed_json import to_json
from epcheck.reports.checksum import check_document, check_line, document_with_checksum, line_with_checksum
from epcheck.reports.text import visible

RUN, JOURNAL, LOCK, OUTCOMES = "run.json", "journal.jsonl", ".lock", "outcomes.parquet"
BLOCK = 1 << 16
"""Bytes of a journal that are looked at together for the end of its last line."""

DEFAULT_ROOT = Path("epcheck-runs")
"""Where runs are kept unless the user says otherwise."""

_FOLDER = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")


class StoreError(EpcheckError):
    """A run cannot be written or read. Its text is one sentence: which file, what is wrong, and what to do about it."""


class UncheckedWarning(UserWarning):
    """A journal without checksums was read: a damaged digit in it would not be noticed."""


class Journal:
    """An open run: append its records, then close it with what the run has become.

    Made by `create` and `resume`. It holds the folder's lock until it is closed; as a context manager it only lets go
    of the files, so that a run that dies in between stays resumable. Safe to use from several threads.
    """

    def __init__(self, folder: Path, journal: IO[bytes], lock: IO[bytes]) -> None:
        self.folder = folder
        self._journal = journal
        self._lock = lock
        self._mutex = threading.Lock()

    def append(self, record: Record) -> None:
        """Write one record; when this returns it survives the death of the process.

        Raises StoreError when the disk is full or gone; the records before it are kept and the run can be resumed.
        """
        self.append_line(encode(record).encode("ascii") + b"\n")

    def append_line(self, line: bytes) -> None:
        """`append` with the record as a line of JSON, which ends with its newline and is not looked at.

        It is written with a checksum.
        """
        with self._mutex:
            if self._journal.closed:
                raise StoreError(f"{self.folder / JOURNAL}: closed after an earlier failure; continue with --resume")
            start = self._journal.tell()
            try:
                _write(self._journal, line_with_checksum(line))
            except OSError as error:
                self._give_up(start)
                raise StoreError(
                    f"{self.folder / JOURNAL}: cannot write ({error.strerror or error}); every record before it is "
                    f"kept: free the disk and continue with --resume"
                ) from error

    def close(self, run: Run) -> None:
        """End the run: write the final `run.json` and let go of the folder. Raises StoreError."""
        try:
            write_run(self.folder, run)
        finally:
            self.release()

    def release(self) -> None:
        """Let go of the files without ending the run."""
        self._journal.close()
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _give_up(self, start: int) -> None:
        """Cut a half-written line off, if the disk still lets us, and refuse further lines: they would follow it."""
        try:
            self._journal.truncate(start)
        except OSError:
            pass  # the next `resume` cuts it
        finally:
            self._journal.close()


@dataclass(frozen=True)
class Resumed:
    """A run taken up again. done: (candidate target, case id) of every record that is in the journal."""

    run: Run
    done: frozenset[tuple[str, str]]
    journal: Journal


def new_run_folder(root: Path = DEFAULT_ROOT) -> Path:
    """Make an empty folder `YYYYMMDD-HHMMSS-xxxx` (UTC) that no other process has, and remove the half-written reports
    of killed runs beside it: nobody writes those again. Raises StoreError."""
    for before in root.glob("[0-9]*-[0-9]*-*"):
        atomic_file.remove_abandoned(before)
    while True:
        folder = root / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            if root.is_dir():
                continue
            raise StoreError(f"{root}: is not a folder") from None
        except OSError as error:
            raise StoreError(f"{folder}: cannot make the folder ({error.strerror or error})") from error
        return folder


def latest(root: Path = DEFAULT_ROOT) -> Path:
    """The newest run folder under `root`, by its name. Raises StoreError when there is none."""
    try:
        runs = [p for p in root.iterdir() if _FOLDER.fullmatch(p.name) and (p / RUN).is_file()]
    except OSError as error:
        raise StoreError(f"{root}: cannot look for runs ({error.strerror or error}); name a run folder") from error
    if not runs:
        raise StoreError(f"{root}: no run in this folder; name a run folder, or another --root")
    return max(runs, key=lambda path: path.name)


def create(folder: Path, run: Run) -> Journal:
    """Begin a run in `folder`, which is made if need be. Raises StoreError when it holds a run already."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _lock(folder)
        try:
            journal = (folder / JOURNAL).open("xb", buffering=0)
        except BaseException:
            lock.close()
            raise
    except FileExistsError:
        raise StoreError(f"{folder}: already holds a run; name another folder, or continue it with --resume") from None
    except OSError as error:
        raise StoreError(f"{folder}: cannot start a run there ({error.strerror or error})") from error
    opened = Journal(folder, journal, lock)
    try:
        write_run(folder, run)
    except StoreError:
        opened.release()
        raise
    return opened


def resume(folder: Path) -> Resumed:
    """Take a run up again. A line that was cut short is removed, and its case is not in `done`.

    Raises StoreError when there is no run, another process has it, or a line in the middle cannot be read.
    """
    run = read_run(folder)
    path = folder / JOURNAL
    try:
        lock = _lock(folder)
    except OSError as error:
        raise StoreError(f"{folder}: cannot lock the run ({error.strerror or error})") from error
    try:
        done = {(record.candidate.target, record.case_id) for record in read_records(folder)}
        journal = path.open("r+b", buffering=0)
        journal.truncate(_end_of_lines(journal))
        journal.seek(0, os.SEEK_END)
    except OSError as error:
        lock.close()
        raise StoreError(f"{path}: cannot continue the journal ({error.strerror or error})") from error
    except BaseException:
        lock.close()
        raise
    return Resumed(run, frozenset(done), Journal(folder, journal, lock))


def read_run(folder: Path) -> Run:
    """The run's description. Raises StoreError when the folder holds no run that this version can read."""
    path = folder / RUN
    try:
        document = path.read_bytes()
        run = run_from_json(strict_json.loads(document))
        check_document(document)
        return run
    except FileNotFoundError:
        raise StoreError(
            f"{folder}: is not a run folder (no {RUN}); name the folder that `epcheck run` printed"
        ) from None
    except OSError as error:
        raise StoreError(f"{path}: cannot read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path}: does not describe a run ({error})") from error


def read_records(folder: Path, is_wanted: Callable[[bytes], bool] | None = None) -> Iterator[Record]:
    """Every record of the run in the order it was written, one at a time; an unfinished last line is passed over.

    is_wanted: says of a line whether it is read; all are where it is None.

    Raises StoreError naming file and line when a line in the middle is not a record, is not what was written, or is
    of a case that an earlier line has.
    """
    return (record for _, record in read_lines(folder, is_wanted))


def read_lines(folder: Path, is_wanted: Callable[[bytes], bool] | None = None) -> Iterator[tuple[bytes, Record]]:
    """`read_records` with the line of JSON that each record came from, without its checksum and with the present names
    of its fields."""
    path = folder / JOURNAL
    lines = _Lines(path)
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    break
                if is_wanted is None or is_wanted(line):
                    yield lines.read(number, line)
    except OSError as error:
        raise StoreError(f"{path}: cannot read ({error.strerror or error})") from error
    if lines.unchecked:
        warnings.warn(
            f"{path}: {lines.unchecked:,} records have no checksum (written by an earlier epcheck), "
            "so damage cannot be detected",
            UncheckedWarning,
            stacklevel=2,
        )


class _Lines:
    """The lines of a journal while they are read. unchecked: those without a checksum, which only an earlier epcheck
    wrote, and thus before all that have one."""

    def __init__(self, path: Path) -> None:
        self.unchecked = 0
        self._path = path
        self._checked = 0
        self._known: set[int] = set()  # hashes: ids of 65,000 cases would take three times the memory

    def read(self, number: int, line: bytes) -> tuple[bytes, Record]:
        """The line as `read_lines` has it, and its record. Raises StoreError."""
        try:
            record = _record(with_present_names(line))
            bare = check_line(line)
            if bare is None and self._checked:
                raise ValueError("it has no checksum, as the lines before it have")
        except (ValueError, RecursionError) as error:
            raise StoreError(
                f"{self._path}, line {number}: is not a record ({error}); delete that line and continue the run with "
                f"--resume, which runs its case again"
            ) from error
        who = hash((record.candidate.target, record.case_id))
        if who in self._known:
            raise StoreError(
                visible(
                    f"{self._path}, line {number}: '{record.case_id}' on '{record.candidate.target}' has a record "
                    "before; delete one of the two lines"
                )
            )
        self._known.add(who)
        if bare is None:
            self.unchecked += 1
            return with_present_names(line), record
        self._checked += 1
        return with_present_names(bare), record


def write_run(folder: Path, run: Run) -> None:
    """Put `run.json` in place. Raises StoreError."""
    with replacing(folder / RUN) as file:
        document = json.dumps(strict_json.plain(to_json(run)), indent=2).encode("ascii") + b"\n"
        file.write(document_with_checksum(document))


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """`atomic_file.replacing` for a file of a report. Raises StoreError for every OSError."""
    try:
        with atomic_file.replacing(path) as file:
            yield file
    except OSError as error:
        raise StoreError(f"{path}: cannot write ({error.strerror or error})") from error


def _record(line: bytes) -> Record:
    record = decode(line.decode("ascii"))
    for name, value, known in (
        ("status", record.status, STATUSES),
        ("blame", record.blame, BLAMES),
        ("reading", record.reading, READINGS),
    ):
        if value not in known:
            raise ValueError(f"{name} {value!r} is none of {', '.join(map(repr, known))}")
    return record


def _end_of_lines(file: IO[bytes]) -> int:
    """Where the last whole line of a file ends, in bytes from its start."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - BLOCK)
        file.seek(start)
        if (at := file.read(end - start).rfind(b"\n")) >= 0:
            return start + at + 1
        end = start
    return 0


def _write(file: IO[bytes], data: bytes) -> None:
    """All of `data`, in as many writes as the system takes: a disk that fills up takes a part first."""
    rest: Any = memoryview(data)
    while rest:
        rest = rest[file.write(rest) or 0 :]


def _lock(folder: Path) -> IO[bytes]:
    """The folder's lock, which the system takes back from a process that dies. Raises StoreError, OSError."""
    file = (folder / LOCK).open("ab")
    try:
        if not file_lock.try_exclusive(file.fileno()):
            raise StoreError(f"{folder}: another process is writing this run; wait for it, or use another folder")
    except BaseException:
        file.close()
        raise
    return file
