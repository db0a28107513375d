"""A store: a folder with `<run_id>.parquet` of many runs (see `docs/reports/store.md`).

Opening a store reads the metadata of each file, no rows. A file that cannot be read, or is not a file of ours, becomes
a FileProblem with a name and a sentence, and never hides the others. `query.py` answers questions about rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from epcheck.reports.runs.run_folder import StoreError
from epcheck.reports.store.run_file import (
    SUFFIX,
    FileProblem,
    FileProblemError,
    ProblemKind,
    StoredRun,
    format_path,
    parse_metadata,
    read_metadata,
)

VARIABLE = "EPCHECK_STORE"

T = TypeVar("T")


@dataclass(frozen=True)
class Store:
    """A store as it was when it was opened. runs: sorted by their start. problems: sorted by the file's name."""

    folder: Path
    runs: tuple[StoredRun, ...]
    problems: tuple[FileProblem, ...]

    def without(self, problem: FileProblem) -> Self:
        """The store without a file whose rows turned out to be unreadable; the problem is added to `problems`."""
        runs = tuple(run for run in self.runs if run.path != problem.path)
        return replace(self, runs=runs, problems=(*self.problems, problem))


def default_store() -> Path:
    """`EPCHECK_STORE`, or `epcheck-store` in the working directory."""
    return Path(os.environ.get(VARIABLE) or "epcheck-store")


def open_store(folder: Path) -> Store:
    """Read the metadata of every file of the store. Raises StoreError when the folder cannot be read."""
    found: dict[str, StoredRun] = {}
    problems: list[FileProblem] = []
    for stored in _read(files(folder)):
        if isinstance(stored, FileProblem):
            problems.append(stored)
            continue
        other = found.get(stored.run_id)
        kept, extra = (stored, other) if other is None or stored.path.stem == stored.run_id else (other, stored)
        found[stored.run_id] = kept
        if extra:
            problems.append(_duplicate(extra, kept))
    runs = tuple(sorted(found.values(), key=lambda stored: (stored.run.started, stored.run_id)))
    return Store(folder, runs, tuple(sorted(problems, key=lambda problem: problem.path.name)))


def files(folder: Path) -> list[Path]:
    """The Parquet files of a store, hidden ones left out. Raises StoreError when the folder cannot be read."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.name.endswith(SUFFIX) and entry.name[0] != "."]
    except FileNotFoundError:
        raise StoreError(f"{folder}: no store; create one with: epcheck store add RUN --store {folder}") from None
    except OSError as error:
        raise StoreError(f"{folder}: cannot read the store ({error.strerror or error})") from error
    return [folder / name for name in sorted(names)]


def _read(paths: Sequence[Path]) -> Iterator[StoredRun | FileProblem]:
    """Each file. A second thread reads metadata ahead: pyarrow releases the interpreter's lock for that."""
    with ThreadPoolExecutor(1) as ahead:
        for path, metadata in zip(paths, ahead.map(partial(_attempt, read_metadata), paths), strict=True):
            if isinstance(metadata, FileProblem):
                yield metadata
            else:
                yield _attempt(partial(parse_metadata, metadata), path)


def _attempt(read: Callable[[Path], T], path: Path) -> T | FileProblem:
    try:
        return read(path)
    except FileProblemError as error:
        return error.problem


def _duplicate(extra: StoredRun, kept: StoredRun) -> FileProblem:
    sentence = f"{format_path(extra.path)}: holds run {kept.run_id}, as {kept.path.name} does; delete one of them"
    return FileProblem(extra.path, ProblemKind.DUPLICATE, sentence)
