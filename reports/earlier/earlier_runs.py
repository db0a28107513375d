"""Which earlier runs a run is compared with: those beside it in its folder's folder, or those of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import TypeVar

from epcheck.conformance.records.run import Run
from epcheck.reports.report_links import NO_LINKS, ReportLinks
from epcheck.reports.runs.fingerprint import (
    changes,
    describe_changes,
    describe_unknown,
    fingerprint,
    fingerprint_class,
    unknown_parts,
)
from epcheck.reports.runs.run_folder import OUTCOMES, StoreError
from epcheck.reports.store.run_file import StoredRun, read_file
from epcheck.reports.store.store import open_store
from epcheck.reports.text import as_sentence

MOST_RUNS = 12
"""Earlier runs that a run is compared with: the newest."""

T = TypeVar("T")

LOOKED_AT = 40
"""Folders beside the run's own in which they are looked for, the newest first."""


@dataclass(frozen=True)
class EarlierRuns:
    """runs: the newest first, each with at least one target of the run, of the same name on the same adapter. root:
    the folder that may have their own folders, with their reports."""

    runs: tuple[StoredRun, ...] = ()
    root: Path | None = None

    def links(self, page: Path) -> ReportLinks:
        """The addresses of their reports from a page."""
        return (
            ReportLinks(page, {each.run_id: self.root / each.run_id for each in self.runs}) if self.root else NO_LINKS
        )


NONE = EarlierRuns()


def beside(folder: Path, run: Run) -> EarlierRuns:
    """The earlier runs whose folders lie beside that of the run."""
    try:
        names = sorted((each.name for each in folder.absolute().parent.iterdir()), reverse=True)
    except OSError:
        return NONE
    files = (folder.absolute().parent / name / OUTCOMES for name in names if name != folder.absolute().name)
    return _choose_runs(islice((path for path in files if path.is_file()), LOOKED_AT), read_file, run, folder)


def in_store(store: Path, folder: Path, run: Run) -> EarlierRuns:
    """The earlier runs of a store. Raises StoreError where there is no store."""
    return _choose_runs(reversed(open_store(store).runs), lambda stored: stored, run, folder)


def _choose_runs(candidates: Iterable[T], read: Callable[[T], StoredRun], run: Run, folder: Path) -> EarlierRuns:
    found: list[StoredRun] = []
    for each in candidates:
        try:
            stored = read(each)
        except StoreError:  # what cannot be read is no earlier run; `store check` names it
            continue
        if (
            stored.run_id != run.run_id
            and stored.run.started <= run.started
            and any(_find_shared_candidates(stored.run, run))
        ):
            found.append(stored)
            if len(found) == MOST_RUNS:
                break
    found.sort(key=lambda stored: (stored.run.started, stored.run_id), reverse=True)
    return EarlierRuns(tuple(found), folder.absolute().parent)


def _find_shared_candidates(earlier: Run, run: Run) -> Iterable[str]:
    return (target for target in run.candidates if is_alike(earlier, run, target))


def is_alike(earlier: Run, run: Run, target: str) -> bool:
    """Whether an earlier run has the target, with the same provider on the same adapter."""
    if target not in earlier.candidates:
        return False
    older, newer = fingerprint_class(earlier, target), fingerprint_class(run, target)
    return (older.provider, older.adapter) == (newer.provider, newer.adapter)


def what_changed(runs: Sequence[Run], target: str) -> list[str]:
    """What each run changed in driver, runtime or system against the one that follows it, which is older, and what of
    that one of the two does not tell; empty where nothing did and all is told, and of the last."""
    sentences = []
    for newer, older in pairwise(runs):
        found = changes(fingerprint(older, target), fingerprint(newer, target))
        unknown = unknown_parts((older, target), (newer, target))
        sentences.append(describe_changes(found, unknown) if found else as_sentence(describe_unknown((), unknown)))
    return [*sentences, ""]
