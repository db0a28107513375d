"""The last good run of a store: the one that a new run of the same machine is compared with."""

from __future__ import annotations

from dataclasses import dataclass

from epcheck.conformance.records.run import Run
from epcheck.reports.diff.compared_runs import read_compared_run
from epcheck.reports.diff.difference import ComparedRun
from epcheck.reports.runs.fingerprint import fingerprint_class
from epcheck.reports.store.run_file import FileProblemError, StoredRun
from epcheck.reports.store.store import Store


@dataclass(frozen=True)
class StoredTarget:
    """A target of a stored run."""

    stored: StoredRun
    target: str


def last_good(store: Store, run: Run, target: str) -> StoredTarget | None:
    """The newest run before `run` with a target of the same class that ran to its end and was not worse than the night
    before it; None when there is none.

    A night that was worse is passed over: what broke in it stays a new failure until it is fixed, or expected with a
    reason. Of several targets of one class in a run, the one of the same name is taken, and none whose name is that of
    another target of this run.
    """
    for stored in reversed(store.runs):
        is_before = stored.run_id != run.run_id and stored.run.started <= run.started
        if is_before and stored.whole and (found := _alike(stored, run, target)):
            return StoredTarget(stored, found)
    return None


def read_last_good(store: Store, run: Run, target: str) -> tuple[ComparedRun | None, Store]:
    """`last_good` with its rows, and the store without files whose rows turn out to be damaged.

    A damaged file becomes a problem of the store, and the run before it is taken.
    """
    while found := last_good(store, run, target):
        try:
            return read_compared_run(found.stored.path, found.target, found.stored.run), store
        except FileProblemError as error:
            store = store.without(error.problem)
    return None, store


def _alike(stored: StoredRun, run: Run, target: str) -> str | None:
    wanted = fingerprint_class(run, target)
    every = [name for name in stored.run.candidates if fingerprint_class(stored.run, name) == wanted]
    good = [name for name in every if name not in stored.run.worse]
    if target in every:
        return target if target in good else None
    return next((name for name in good if name not in run.candidates), None)
