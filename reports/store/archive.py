"""Keeping a store: runs are added, looked through and forgotten. Files come and go in one step each."""

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

from epcheck.reports.runs.fingerprint import FingerprintClass, fingerprint_class
from epcheck.reports.runs.run_folder import RUN, StoreError, read_run, replacing
from epcheck.reports.store import history
from epcheck.reports.store.history import SUFFIX, History, Kind, Stored, Trouble, TroubleError
from epcheck.reports.write import OUTCOMES, write_outcomes


class Addition(StrEnum):
    """What became of a run that was to be added."""

    ADDED = "added"
    REPLACED = "replaced, there is more of it now"
    THERE = "already there"
    FULLER = "left out, the store has more of it"


@dataclass(frozen=True)
class Added:
    """A run that was to be added. source: its folder or file."""

    source: Path
    run_id: str
    addition: Addition


@dataclass(frozen=True)
class Pruned:
    """What pruning left of a store. protected: runs that were due but are the last good one of their class."""

    removed: tuple[Stored, ...]
    protected: tuple[Stored, ...]
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
        raise StoreError(f"{path}: there is no run in this folder; name a run's folder or a file of a store")
    return found


def add(store: Path, source: Path, *, dry_run: bool = False) -> Added:
    """Add one of the `sources` to a store, which is made if need be. Of a run that is there already, the one with more
    records stays; a file that is cut off or damaged is replaced. Raises StoreError; then the store is as it was."""
    run = read_run(source) if source.is_dir() else history.read_file(source).run
    if not history.is_run_id(run.run_id):
        raise StoreError(f"{source}: its run is named {run.run_id[:99]!r}, which is no name for a file")
    place = store / f"{run.run_id}{SUFFIX}"
    kept = _kept(place)
    if kept and kept.run.started != run.started:
        raise StoreError(
            f"{source}: another run named '{run.run_id}' is in the store, begun {kept.run.started}; "
            f"merge into a folder with a name of its own"
        )
    if dry_run and source.is_dir():
        there = Addition.THERE if kept and kept.run == run else Addition.REPLACED
        return Added(source, run.run_id, there if kept else Addition.ADDED)
    new = history.read_file(_outcomes(source) if source.is_dir() else source)
    check_file(new)
    addition = _addition(kept, new)
    if addition in (Addition.ADDED, Addition.REPLACED) and not dry_run:
        _make(store)
        with replacing(place) as copy, new.path.open("rb") as original:
            shutil.copyfileobj(original, copy)
    return Added(source, run.run_id, addition)


def check(folder: Path) -> tuple[History, tuple[Trouble, ...]]:
    """Read every file of a store to its end. The troubles, those of opening it among them. Raises StoreError."""
    opened = history.open_store(folder)
    troubles = [*opened.troubles, *_strangers(folder)]
    with ThreadPoolExecutor() as pool:
        troubles += filter(None, pool.map(_trouble, opened.runs))
    return opened, tuple(sorted(troubles, key=lambda trouble: trouble.path.name))


def check_file(stored: Stored) -> None:
    """Read every page of a file against its checksum, and its rows against what the file says of itself.

    Raises TroubleError.
    """
    try:
        with pq.ParquetFile(stored.path, page_checksum_verification=True) as file:
            rows = sum(_check_rows(stored, group) for group in _row_groups(file))
    except (OSError, pa.ArrowException, ValueError) as error:
        if isinstance(error, TroubleError):
            raise
        raise TroubleError(stored.path, Kind.DAMAGED, f"is damaged ({history.first_line(error)})") from None
    if rows != stored.recorded:
        raise TroubleError(stored.path, Kind.DAMAGED, f"has {rows:,} rows, and says {stored.recorded:,} of itself")


def prune(
    opened: History,
    now: datetime,
    older_than_days: int | None = None,
    keep: int | None = None,
    *,
    dry_run: bool = False,
) -> Pruned:
    """Forget runs that started so many days before `now`, and all but the newest `keep` of each class of fingerprints.

    The last good run of each class stays: whole, or the newest where none is. Files in trouble are left alone.
    Raises StoreError when one cannot be removed.
    """
    classes = _classes(opened.runs)
    due: set[str] = set()
    if older_than_days is not None:
        before = now - timedelta(days=older_than_days)
        due |= {run.run_id for run in opened.runs if run.moment and run.moment < before}
    if keep is not None:
        newest = {run.run_id for runs in classes.values() for run in runs[len(runs) - min(keep, len(runs)) :]}
        due |= {run.run_id for run in opened.runs} - newest
    good = {_last_good(runs).run_id for runs in classes.values()}
    removed = tuple(run for run in opened.runs if run.run_id in due - good)
    size = sum(run.path.stat().st_size for run in removed)
    for run in () if dry_run else removed:
        try:
            run.path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{run.path}: cannot remove it ({error.strerror or error})") from error
    return Pruned(removed, tuple(run for run in opened.runs if run.run_id in due & good), size)


def _outcomes(folder: Path) -> Path:
    """The run's Parquet file, made again where it is not of this run as it is now."""
    try:
        if history.read_file(folder / OUTCOMES).run == read_run(folder):
            return folder / OUTCOMES
    except TroubleError:
        pass
    return write_outcomes(folder)


def _kept(place: Path) -> Stored | None:
    """What the store has of a run; nothing where that cannot be read, but what a newer epcheck wrote stays."""
    try:
        return history.read_file(place) if place.exists() else None
    except TroubleError as error:
        if error.trouble.kind in (Kind.TRUNCATED, Kind.DAMAGED, Kind.OLDER):
            return None
        raise


def _addition(kept: Stored | None, new: Stored) -> Addition:
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


def _strangers(folder: Path) -> Iterator[Trouble]:
    """What is in the folder and is no file of a store."""
    for path in folder.iterdir():
        if path.suffix != SUFFIX or path.name[0] == ".":
            yield Trouble(path, Kind.FOREIGN, f"{path}: is no file of a store")


def _trouble(stored: Stored) -> Trouble | None:
    try:
        check_file(stored)
    except TroubleError as error:
        return error.trouble
    return None


def _row_groups(file: pq.ParquetFile) -> Iterator[pa.Table]:
    return (file.read_row_group(number) for number in range(file.num_row_groups))


def _check_rows(stored: Stored, rows: pa.Table) -> int:
    """The number of rows, all of which are of the run and no two of the same target and case."""
    if pc.any(pc.not_equal(rows["run_id"], stored.run_id)).as_py():
        raise TroubleError(stored.path, Kind.DAMAGED, "has rows of another run")
    if rows.group_by(["target", "case_id"]).aggregate([]).num_rows != rows.num_rows:
        raise TroubleError(stored.path, Kind.DUPLICATE, "has two rows of the same target and case")
    return int(rows.num_rows)


def _classes(runs: Sequence[Stored]) -> dict[FingerprintClass, list[Stored]]:
    """The runs of each class, oldest first."""
    classes: dict[FingerprintClass, list[Stored]] = defaultdict(list)
    for run in runs:
        for cls in {fingerprint_class(run.run, target) for target in run.targets}:
            classes[cls].append(run)
    return classes


def _last_good(runs: Sequence[Stored]) -> Stored:
    """The one that the next night is held against (see `predecessor`); the newest whole one, or any, where none is."""
    whole = [run for run in reversed(runs) if run.whole] or [runs[-1]]
    return next((run for run in whole if not run.run.worse), whole[0])
