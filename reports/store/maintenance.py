"""Maintenance of a store: add runs, check all files, prune old runs. Every file is written or removed in one step."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from epcheck.conformance.records.run import Run
from epcheck.reports.runs import parquet
from epcheck.reports.runs.fingerprint import FingerprintClass, fingerprint_class
from epcheck.reports.runs.run_folder import OUTCOMES, RUN, StoreError, read_run, replacing
from epcheck.reports.store.run_file import (
    SUFFIX,
    FileProblem,
    FileProblemError,
    ProblemKind,
    StoredRun,
    check_data,
    first_line,
    format_path,
    is_run_id,
    read_file,
)
from epcheck.reports.store.store import Store, open_store
from epcheck.reports.store.writer_lock import only_writer
from epcheck.reports.write import write_outcomes

_KEY = ["run_id", "target", "case_id"]


class Addition(StrEnum):
    """What became of a run that was to be added."""

    ADDED = "added"
    REPLACED = "replaced with a more complete copy"
    THERE = "already there"
    FULLER = "skipped: the store has a more complete copy"


@dataclass(frozen=True)
class Added:
    """A run that was to be added. source: its folder or file."""

    source: Path
    run_id: str
    addition: Addition


@dataclass(frozen=True)
class Pruned:
    """What was pruned of a store. protected: runs that were due, but are the last good one of their class."""

    removed: tuple[StoredRun, ...]
    protected: tuple[StoredRun, ...]
    size_bytes: int


def sources(path: Path) -> tuple[Path, ...]:
    """What can be added: a run's folder or a file as it is; of any other folder the runs and files in it.

    Raises StoreError when there are none.
    """
    if path.is_file() or (path / RUN).is_file():
        return (path,)
    try:
        entries = sorted(path.iterdir())
    except OSError as error:
        raise StoreError(f"{path}: cannot look for runs ({error.strerror or error})") from error
    found = tuple(
        e for e in entries if (e / RUN).is_file() or (e.suffix == SUFFIX and e.name[0] != "." and e.is_file())
    )
    if not found:
        raise StoreError(f"{path}: no run in this folder; name a run folder or a file of a store")
    return found


def add(store: Path, source: Path, *, dry_run: bool = False) -> Added:
    """Add one of the `sources` to a store, which is made if need be. Of a run that is there already, the one with more
    records stays; a file that is cut off or damaged is replaced. Raises StoreError; then the store is as it was."""
    run = read_run(source) if source.is_dir() else read_file(source).run
    if not is_run_id(run.run_id):
        raise StoreError(f"{source}: its run id {run.run_id[:99]!r} is not a valid file name")
    place = store / f"{run.run_id}{SUFFIX}"
    kept = _read_kept(place, run, source)
    if dry_run and source.is_dir():
        there = Addition.THERE if kept and kept.run == run else Addition.REPLACED
        return Added(source, run.run_id, there if kept else Addition.ADDED)
    new = read_file(_outcomes(source) if source.is_dir() else source)
    check_file(new)
    if dry_run:
        return Added(source, run.run_id, _addition(kept, new))
    _make(store)
    with only_writer(store):
        addition = _addition(_read_kept(place, run, source), new)
        if addition in (Addition.ADDED, Addition.REPLACED):
            with replacing(place) as copy, new.path.open("rb") as original:
                shutil.copyfileobj(original, copy)
    return Added(source, run.run_id, addition)


def check(folder: Path) -> tuple[Store, tuple[FileProblem, ...]]:
    """Read every file of a store to its end. The problems include those of opening it. Raises StoreError."""
    store = open_store(folder)
    problems = [*store.problems, *_foreign_files(folder)]
    with ThreadPoolExecutor() as pool:
        problems += filter(None, pool.map(_problem, store.runs))
    return store, tuple(sorted(problems, key=lambda problem: problem.path.name))


def check_file(stored: StoredRun) -> None:
    """Read every page of a file against its checksum, and compare its rows with its metadata.

    Raises FileProblemError.
    """
    check_data(stored)
    try:
        with pq.ParquetFile(stored.path, page_checksum_verification=True) as file:
            rows = sum(_check_rows(stored, group) for group in _row_groups(file))
    except (OSError, pa.ArrowException, ValueError) as error:
        if isinstance(error, FileProblemError):
            raise
        raise FileProblemError(stored.path, ProblemKind.DAMAGED, f"is damaged ({first_line(error)})") from None
    if rows != stored.recorded:
        raise FileProblemError(stored.path, ProblemKind.DAMAGED, f"has {rows:,} rows, but declares {stored.recorded:,}")


def prune(
    store: Store,
    now: datetime,
    older_than_days: int | None = None,
    keep: int | None = None,
    *,
    dry_run: bool = False,
) -> Pruned:
    """Remove runs that started so many days before `now`, and all but the newest `keep` of each class of fingerprints.

    The last good run of each class stays: whole, or the newest where none is. Files with a problem are left alone.
    Raises StoreError when one cannot be removed.
    """
    classes = _classes(store.runs)
    due: set[str] = set()
    if older_than_days is not None:
        before = now - timedelta(days=older_than_days)
        due |= {run.run_id for run in store.runs if run.moment and run.moment < before}
    if keep is not None:
        newest = {run.run_id for runs in classes.values() for run in runs[len(runs) - min(keep, len(runs)) :]}
        due |= {run.run_id for run in store.runs} - newest
    good = {_last_good(runs).run_id for runs in classes.values()}
    removed = tuple(run for run in store.runs if run.run_id in due - good)
    size = sum(run.path.stat().st_size for run in removed)
    for run in () if dry_run else removed:
        try:
            run.path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{run.path}: cannot remove it ({error.strerror or error})") from error
    return Pruned(removed, tuple(run for run in store.runs if run.run_id in due & good), size)


def _outcomes(folder: Path) -> Path:
    """The run's Parquet file, made again where it is not of this run as it is now."""
    try:
        if read_file(folder / OUTCOMES).run == read_run(folder):
            return folder / OUTCOMES
    except FileProblemError:
        pass
    return write_outcomes(folder)


def _read_kept(place: Path, run: Run, source: Path) -> StoredRun | None:
    """What the store has of a run. Raises StoreError where that is another run of its name."""
    kept = _read_stored(place)
    if kept and kept.run.started != run.started:
        raise StoreError(
            f"{source}: another run named '{run.run_id}' is in the store, begun {kept.run.started}; "
            f"merge into a folder with a name of its own"
        )
    return kept


def _read_stored(place: Path) -> StoredRun | None:
    """The run that the store has at this place; None where the file cannot be read.

    Raises FileProblemError where a newer epcheck wrote it: such a file stays.
    """
    try:
        return read_file(place) if place.exists() else None
    except FileProblemError as error:
        if error.problem.kind in (ProblemKind.TRUNCATED, ProblemKind.DAMAGED, ProblemKind.OLDER):
            return None
        raise


def _addition(kept: StoredRun | None, new: StoredRun) -> Addition:
    if kept is None:
        return Addition.ADDED
    if (new.recorded, new.whole) == (kept.recorded, kept.whole):
        return Addition.THERE
    return Addition.REPLACED if (new.recorded, new.whole) > (kept.recorded, kept.whole) else Addition.FULLER


def _make(store: Path) -> None:
    try:
        store.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{store}: cannot make the store ({error.strerror or error})") from error


def _foreign_files(folder: Path) -> Iterator[FileProblem]:
    """What is in the folder and is not a file of a store."""
    for path in folder.iterdir():
        if path.suffix != SUFFIX or path.name[0] == ".":
            yield FileProblem(path, ProblemKind.FOREIGN, f"{format_path(path)}: is not a file of a store")


def _problem(stored: StoredRun) -> FileProblem | None:
    try:
        check_file(stored)
    except FileProblemError as error:
        return error.problem
    return None


def _row_groups(file: pq.ParquetFile) -> Iterator[pa.Table]:
    return (file.read_row_group(number) for number in range(file.num_row_groups))


def _check_rows(stored: StoredRun, rows: pa.Table) -> int:
    """The number of rows, all of which are of the run and no two of the same target and case."""
    rows = rows.select(_KEY).cast(parquet.SCHEMA.empty_table().select(_KEY).schema)
    if pc.any(pc.not_equal(rows["run_id"], stored.run_id)).as_py():
        raise FileProblemError(stored.path, ProblemKind.DAMAGED, "has rows of another run")
    if rows.group_by(list(_KEY[1:])).aggregate([]).num_rows != rows.num_rows:
        raise FileProblemError(stored.path, ProblemKind.DUPLICATE, "has two rows of the same target and case")
    return int(rows.num_rows)


def _classes(runs: Sequence[StoredRun]) -> dict[FingerprintClass, list[StoredRun]]:
    """The runs of each class, oldest first."""
    classes: dict[FingerprintClass, list[StoredRun]] = defaultdict(list)
    for run in runs:
        for cls in {fingerprint_class(run.run, target) for target in run.targets}:
            classes[cls].append(run)
    return classes


def _last_good(runs: Sequence[StoredRun]) -> StoredRun:
    """The run that the next night is compared with (see `trend/last_good.py`); where there is none, the newest whole
    one, or the newest."""
    whole = [run for run in reversed(runs) if run.whole] or [runs[-1]]
    return next((run for run in whole if not run.run.worse), whole[0])
