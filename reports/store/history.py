"""A store opened: a folder with `<run_id>.parquet` of many runs (see `docs/store.md`), asked with DuckDB.

Opening reads the end of each file, no rows. A file that cannot be read, or is not one of ours, becomes a Trouble with a
name and a sentence, and never hides the others. `query` asks about rows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from epcheck.conformance.records import strict_json
from epcheck.conformance.records.record import Run, from_json
from epcheck.reports.runs import parquet
from epcheck.reports.runs.parquet import Counted
from epcheck.reports.runs.run_folder import StoreError

VARIABLE = "EPCHECK_STORE"
SUFFIX = ".parquet"

T = TypeVar("T")

_MAGIC = b"PAR1"
_PLAIN_COLUMNS = {field.name for field in parquet.SCHEMA if not pa.types.is_list(field.type)}
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Kind(StrEnum):
    """What is the matter with a file of a store."""

    TRUNCATED = "truncated"
    DAMAGED = "damaged"
    FOREIGN = "foreign"
    NEWER = "newer schema"
    OLDER = "older schema"
    DUPLICATE = "duplicate"


@dataclass(frozen=True)
class Trouble:
    """A file that is not counted, and why, in a sentence that names it."""

    path: Path
    kind: Kind
    sentence: str


class TroubleError(StoreError):
    """A file of a store cannot be used."""

    def __init__(self, path: Path, kind: Kind, what: str) -> None:
        super().__init__(f"{path}: {what}")
        self.trouble = Trouble(path, kind, str(self))


@dataclass(frozen=True)
class Stored:
    """A file of a store. counted: what it says of each target that has records, by the target's name."""

    path: Path
    run: Run
    counted: Mapping[str, Counted]

    @property
    def run_id(self) -> str:
        return self.run.run_id

    @property
    def night(self) -> str:
        """The day on which the run started, in UTC: `2026-11-21`."""
        return self.run.started[:10]

    @property
    def moment(self) -> datetime | None:
        """When the run started; None where it does not tell in ISO 8601."""
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


@dataclass(frozen=True)
class History:
    """A store as it was when it was opened. runs: in the order in which they started. troubles: in that of names."""

    folder: Path
    runs: tuple[Stored, ...]
    troubles: tuple[Trouble, ...]


def default_store() -> Path:
    """`EPCHECK_STORE`, or `epcheck-store` in the working directory."""
    return Path(os.environ.get(VARIABLE) or "epcheck-store")


def open_store(folder: Path) -> History:
    """Look at every file of the store. Raises StoreError when the folder cannot be read."""
    found: dict[str, Stored] = {}
    troubles: list[Trouble] = []
    for stored in _read(files(folder)):
        if isinstance(stored, Trouble):
            troubles.append(stored)
            continue
        other = found.get(stored.run_id)
        kept, extra = (stored, other) if other is None or stored.path.stem == stored.run_id else (other, stored)
        found[stored.run_id] = kept
        if extra:
            troubles.append(_duplicate(extra, kept))
    runs = tuple(sorted(found.values(), key=lambda stored: (stored.run.started, stored.run_id)))
    return History(folder, runs, tuple(sorted(troubles, key=lambda trouble: trouble.path.name)))


def _read(paths: Sequence[Path]) -> Iterator[Stored | Trouble]:
    """Each file, while the ends of those after it are read: pyarrow lets go of the interpreter for that."""
    with ThreadPoolExecutor(1) as ahead:
        for path, end in zip(paths, ahead.map(partial(_tried, _end), paths), strict=True):
            yield end if isinstance(end, Trouble) else _tried(partial(_stored, end), path)


def _tried(read: Callable[[Path], T], path: Path) -> T | Trouble:
    try:
        return read(path)
    except TroubleError as error:
        return error.trouble


def files(folder: Path) -> list[Path]:
    """The Parquet files of a store, hidden ones left out. Raises StoreError when the folder cannot be read."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.name.endswith(SUFFIX) and entry.name[0] != "."]
    except FileNotFoundError:
        raise StoreError(
            f"{folder}: there is no store; make one with: epcheck store add RUN --store {folder}"
        ) from None
    except OSError as error:
        raise StoreError(f"{folder}: cannot read the store ({error.strerror or error})") from error
    return [folder / name for name in sorted(names)]


def read_file(path: Path) -> Stored:
    """What a Parquet file of a run says of itself, without its rows. Raises TroubleError."""
    return _stored(_end(path), path)


def _end(path: Path) -> pq.FileMetaData:
    try:
        return _metadata(path)
    except (OSError, pa.ArrowException) as error:  # pyarrow raises a bare OSError for what it cannot make sense of
        why = error.strerror if isinstance(error, OSError) else None
        said = f"cannot be read ({why})" if why else f"is damaged ({first_line(error)})"
        raise TroubleError(path, Kind.DAMAGED, said) from None


def _stored(metadata: pq.FileMetaData, path: Path) -> Stored:
    told: Mapping[bytes, bytes] = metadata.metadata or {}
    _check_version(path, told)
    if missing := _PLAIN_COLUMNS - set(metadata.schema.names):
        raise TroubleError(path, Kind.DAMAGED, f"lacks the column '{min(missing)}'")
    try:
        run = from_json(Run, strict_json.loads(told[parquet.RUN_KEY.encode()]))
        counts = strict_json.loads(told[parquet.COUNTS_KEY.encode()])
        counted = {target: Counted.from_json(of_target) for target, of_target in counts.items()}
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise TroubleError(path, Kind.DAMAGED, f"does not describe a run ({error})") from None
    if not is_run_id(run.run_id):
        raise TroubleError(path, Kind.FOREIGN, f"is of a run named {run.run_id[:99]!r}, which is no name for a file")
    return Stored(path, run, counted)


def is_run_id(name: str) -> bool:
    """Whether a file may have this name on every system: letters, digits, `.`, `_` and `-`."""
    return _RUN_ID.fullmatch(name) is not None


def connect(runs: Iterable[Stored]) -> duckdb.DuckDBPyConnection:
    """DuckDB in memory, with the rows of these runs as the view `outcomes`. It loads no extension and uses no network.

    Raises StoreError when a file is gone. Queries raise duckdb.Error where a file is damaged; `query` names the file.
    """
    paths = ", ".join(_literal(run.path) for run in runs)
    database = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    source = f"read_parquet([{paths}], hive_partitioning = false)" if paths else "nothing"
    try:
        database.execute("SET enable_progress_bar = false")
        if not paths:
            database.register("nothing", parquet.SCHEMA.empty_table())
        database.execute(f"CREATE VIEW outcomes AS SELECT * FROM {source}")
    except duckdb.Error as error:
        database.close()
        raise StoreError(f"the store cannot be asked ({first_line(error)}); see: epcheck store check") from None
    return database


def query(runs: Sequence[Stored], sql: str, **tables: pa.Table) -> pa.Table:
    """The answer to a query about the view `outcomes`, and about further tables by their names.

    Raises TroubleError for a file that is damaged, and StoreError when the query itself is wrong.
    """
    try:
        return _answer(runs, sql, tables)
    except (duckdb.Error, StoreError) as error:
        for run in runs:
            _blame(run, sql, tables)
        raise _wrong(error) from None


def ask(opened: History, sql: str) -> tuple[pa.Table, History]:
    """`query` about all runs, and the history without those that turn out to be damaged, which become troubles."""
    while True:
        try:
            return query(opened.runs, sql), opened
        except TroubleError as error:
            opened = without(opened, error.trouble)


def check_rows(run: Stored) -> None:
    """Read every value of a file. Raises TroubleError when one cannot be read."""
    try:
        _answer([run], "SELECT count(hash(outcomes)) FROM outcomes", {})
    except (duckdb.Error, StoreError) as error:
        raise TroubleError(run.path, Kind.DAMAGED, f"is damaged ({first_line(error)})") from None


def without(opened: History, trouble: Trouble) -> History:
    """The history without a file that turned out to be in trouble."""
    runs = tuple(run for run in opened.runs if run.path != trouble.path)
    return replace(opened, runs=runs, troubles=(*opened.troubles, trouble))


def _answer(runs: Iterable[Stored], sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    with connect(runs) as database:
        for name, table in tables.items():
            database.register(name, table)
        return database.sql(sql).to_arrow_table()


def _blame(run: Stored, sql: str, tables: Mapping[str, pa.Table]) -> None:
    """Ask one file what all together did not answer. Raises TroubleError when it is damaged, StoreError when it is not
    and does not answer either: the query is wrong."""
    try:
        _answer([run], sql, tables)
    except (duckdb.Error, StoreError) as error:
        check_rows(run)
        raise _wrong(error) from None


def _wrong(error: Exception) -> StoreError:
    return StoreError(f"the store cannot be asked ({first_line(error)})")


def _metadata(path: Path) -> pq.FileMetaData:
    """The end of the file. A file that was cut off is told from one that never was Parquet by the magic bytes."""
    if not path.is_file():  # a pipe would never end
        raise TroubleError(path, Kind.FOREIGN, "is not a file")
    with pa.OSFile(str(path)) as file:
        size = file.size()
        begins, ends = file.read_at(min(size, 4), 0), file.read_at(min(size, 4), max(0, size - 4))
        if begins != _MAGIC[: len(begins)]:
            raise TroubleError(path, Kind.FOREIGN, "is not a Parquet file")
        if size < 3 * len(_MAGIC) or ends != _MAGIC:
            raise TroubleError(path, Kind.TRUNCATED, f"is cut off after {size:,} bytes; copy or write it again")
        return pq.read_metadata(file)


def _check_version(path: Path, told: Mapping[bytes, bytes]) -> None:
    text = told.get(parquet.SCHEMA_KEY.encode())
    if text is None and parquet.RUN_KEY.encode() in told:
        raise TroubleError(path, Kind.OLDER, "has schema 1; make it again with: epcheck report RUN --parquet")
    if text is None or not text.isdigit():
        raise TroubleError(path, Kind.FOREIGN, "is a Parquet file, but not of a run")
    if int(text[:9]) > parquet.SCHEMA_VERSION:
        newer = f"has schema {int(text[:9])}, newer than this epcheck reads ({parquet.SCHEMA_VERSION}); upgrade epcheck"
        raise TroubleError(path, Kind.NEWER, newer)


def _duplicate(extra: Stored, kept: Stored) -> Trouble:
    sentence = f"{extra.path}: holds run {kept.run_id}, as {kept.path.name} does; delete one of them"
    return Trouble(extra.path, Kind.DUPLICATE, sentence)


def _literal(path: Path) -> str:
    """The path in SQL. Brackets, stars and question marks would be a pattern of several files."""
    exact = re.sub(r"([\[*?])", r"[\1]", str(path))
    return "'" + exact.replace("'", "''") + "'"


def first_line(error: Exception) -> str:
    """What libraries say over many lines, in one."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
