"""The runs that are kept for `trend` and `nightly`, one Parquet file each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from epcheck.api.option import Option
from epcheck.api.option_types import StoreFolder
from epcheck.reports import StoreError
from epcheck.reports.store import maintenance
from epcheck.reports.store.maintenance import Added, Pruned
from epcheck.reports.store.run_file import FileProblem
from epcheck.reports.store.store import Store, default_store, open_store

DryRun = Annotated[bool, Option("Dry run: only print what would be done.", flags=("--dry-run",))]


@dataclass(frozen=True)
class StoreOptions:
    """Which store; None for EPCHECK_STORE or `epcheck-store`."""

    store: StoreFolder = None


@dataclass(frozen=True)
class AddToStoreOptions:
    """Which runs are added. paths: folders of runs, Parquet files, stores."""

    paths: Annotated[
        tuple[Path, ...], Option("Run folders, Parquet files or stores.", argument=True, metavar="PATH...")
    ]
    store: StoreFolder = None
    dry_run: DryRun = False


@dataclass(frozen=True)
class PruneStoreOptions:
    """Which runs are removed. older_than: days since they started. keep: how many of each provider and adapter stay."""

    store: StoreFolder = None
    older_than: Annotated[int | None, Option("Remove runs older than N days.", metavar="DAYS", minimum=0)] = None
    keep: Annotated[
        int | None, Option("Keep only the newest N runs per provider and adapter.", metavar="N", minimum=1)
    ] = None
    dry_run: DryRun = False


@dataclass(frozen=True)
class NotAdded:
    """A run that could not be added; `why` is a sentence."""

    source: Path
    why: str


@dataclass(frozen=True)
class CheckedStore:
    """A store whose files were read to their end, and what is wrong with those that are not counted."""

    opened: Store
    problems: tuple[FileProblem, ...]


@dataclass(frozen=True)
class PrunedStore:
    """A store as it was before it was pruned, and what pruning did."""

    opened: Store
    pruned: Pruned


def stored_runs(options: StoreOptions | None = None) -> Store:
    """The runs of a store, and the files that are not counted. Raises StoreError."""
    return open_store(_folder((options or StoreOptions()).store))


def add_to_store(options: AddToStoreOptions) -> Iterator[Added | NotAdded]:
    """Add runs to a store, one after the other. Of a run that is there already, the one with more records stays.

    Raises StoreError where a path holds no run.
    """
    for path in options.paths:
        for source in maintenance.sources(path):
            try:
                yield maintenance.add(_folder(options.store), source, dry_run=options.dry_run)
            except StoreError as error:
                yield NotAdded(source, str(error))


def check_store(options: StoreOptions | None = None) -> CheckedStore:
    """Read every file of a store to its end: which are truncated, damaged, foreign, of a newer schema or duplicated.
    Raises StoreError."""
    return CheckedStore(*maintenance.check(_folder((options or StoreOptions()).store)))


def prune_store(options: PruneStoreOptions) -> PrunedStore:
    """Remove old runs from a store. The last good run of each provider, adapter and selection always stays.

    Raises StoreError, also when the options do not say what to remove.
    """
    if options.older_than is None and options.keep is None:
        raise StoreError("nothing to remove; pass --older-than DAYS, --keep N, or both")
    opened = open_store(_folder(options.store))
    now = datetime.now(UTC)
    pruned = maintenance.prune(opened, now, options.older_than, options.keep, dry_run=options.dry_run)
    return PrunedStore(opened, pruned)


def _folder(store: Path | None) -> Path:
    return store or default_store()
