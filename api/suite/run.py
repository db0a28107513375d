"""Run the suite on targets, judge it, keep every record and write the reports."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from epcheck import reports
from epcheck.api.interruption import CLOSING_S, interruptible
from epcheck.api.progress import SILENT, Progress
from epcheck.api.runs.archive import archive
from epcheck.api.runs.first_verdict import FirstVerdict, thin_first
from epcheck.api.runs.result import COMPLETE, INTERRUPTED, RunResult
from epcheck.api.suite.executor import Executor, open_executor, refuse_early
from epcheck.api.suite.run_options import RunOptions
from epcheck.api.suite.selection import restore_options, selection
from epcheck.conformance.cluster.node import ClusterError, Line
from epcheck.conformance.records import target_facts
from epcheck.conformance.records.record import Record, decode
from epcheck.conformance.records.run import Run, Share, digest_of, utc_now
from epcheck.conformance.records.terms import FAILURE, FLAKY
from epcheck.conformance.scheduling import shard
from epcheck.conformance.scheduling.plan import Facts
from epcheck.conformance.scheduling.shard import ShardError
from epcheck.conformance.targets import expectation
from epcheck.conformance.targets.config import notice_of
from epcheck.conformance.workers.client import TargetDown
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.generators.case import Case
from epcheck.generators.operator_index import family_of
from epcheck.reports import Journal, StoreError
from epcheck.reports.earlier.comparison import compare_with_earlier

LATEST = "latest"
"""In place of a folder that is to be resumed: the newest one."""


def run(options: RunOptions, *, progress: Progress = SILENT, workers: IdleWorkers | None = None) -> RunResult:
    """Run the selected cases and leave a run folder with journal, Parquet, HTML, JUnit and JSON.

    workers: keeps workers for the next run of this process. An interrupted run (KeyboardInterrupt) and a failed one
    (TargetDown, ClusterError) are closed and reported like any other; what ended them is in `RunResult.run.status`.
    Raises TargetError, SelectionError, ShardError, ExpectationError, LabError, RuntimeInstallError, ClusterError before
    anything ran, as TargetDown where a worker does not start, which leaves no folder; and StoreError also when the disk
    is full: what was recorded is kept, and can be resumed.
    """
    if options.trace and not options.trace.absolute().parent.is_dir():
        raise StoreError(f"{options.trace.parent}: no such folder; create it first")
    folder = _folder_to_resume(options)
    interrupted = None if folder is None else reports.read_run(folder)
    if interrupted is not None:
        options = restore_options(interrupted, options)
    refuse_early(options)
    selected = _Selected.of(options)
    cases, thin = _in_order(options, selected) if interrupted is None else (selected.cases, frozenset[str]())
    if options.shard:
        progress.say(
            f"Shard {options.shard} of the selection: {len(selected.cases):,} of {len(selected.whole):,} cases"
        )
    if interrupted is not None:
        _check_same_shard(interrupted, selected.share)
    with open_executor(options, progress, workers, len(thin)) as executor:
        recording = _begin_run(options, selected, executor) if folder is None else _Recording.of(folder, options)
        shown = progress.recording(recording.run.planned, len(recording.done))
        with recording.journal, shown as take_reading, interruptible(CLOSING_S):
            first = FirstVerdict(recording.run, thin, progress)
            recording.fill(executor, cases, take_reading, _Watched(progress.report_failure, first.take))
            recording.close(executor.notes, selected.share, _stale(options, executor, selected.whole))
            comparison = compare_with_earlier(recording.folder, options.store)
            reported = reports.write_all(recording.folder, archive, comparison, family_of)
            return RunResult.of(reported, options.strict, options.max_flaky, strict_accuracy=options.strict_accuracy)


@dataclass(frozen=True)
class _Selected:
    """The cases of the whole selection, those that are to run, and what these are of it."""

    whole: tuple[Case, ...]
    cases: tuple[Case, ...]
    share: Share

    @classmethod
    def of(cls, options: RunOptions) -> _Selected:
        whole = tuple(options.cases())
        share = Share(len(whole), digest_of(case.id for case in whole))
        if options.shard is None:
            if options.balance:
                raise ShardError("--balance needs --shard, for example --shard 1/4")
            return cls(whole, whole, share)
        index, count = options.shard.index, options.shard.count
        shards = shard.cut(whole, count, _seconds(options.balance) if options.balance else {})
        share = replace(share, index=index, count=count, cut=shard.digest_of_cut(shards))
        return cls(whole, shards[index - 1], share)


class _Watched(NamedTuple):
    """Callbacks for the records of a run. failure: takes those that fail or are flaky. line: takes each, as text."""

    failure: Callable[[Record], None]
    line: Callable[[str], None]


def _in_order(options: RunOptions, selected: _Selected) -> tuple[Sequence[Case], frozenset[str]]:
    """The cases in the order in which they run, and the ids of those that a first verdict is made of."""
    if options.whole or options.shard or options.scheduler or not options.whole_suite:
        return selected.cases, frozenset()
    return thin_first(selected.cases)


class _Recording:
    """A run while its records come in: `run.json` as it stands, the journal, and what was recorded before."""

    def __init__(
        self, folder: Path, run: Run, journal: Journal, done: Collection[tuple[str, str]], options: RunOptions
    ) -> None:
        self.folder, self.run, self.journal, self.done = folder, run, journal, done
        self._options = options
        self._status = COMPLETE
        self._has_begun = bool(run.targets)
        self._started = time.monotonic()

    @classmethod
    def of(cls, folder: Path, options: RunOptions) -> _Recording:
        """Of a run that is resumed."""
        found = reports.resume(folder)
        return cls(folder, replace(found.run, status="running", finished=""), found.journal, found.done, options)

    def fill(
        self,
        executor: Executor,
        cases: Sequence[Case],
        take_reading: Callable[[str], None],
        watched: _Watched,
    ) -> None:
        """Run the cases and record them. Raises StoreError, and TargetDown where no target has started."""

        def take(line: Line) -> None:
            text, reading = line
            self.journal.append_line(text.encode("ascii") + b"\n")
            take_reading(reading)
            watched.line(text)
            if reading in (FAILURE, FLAKY):
                watched.failure(decode(text))

        try:
            executor.run(cases, self.done, take, self._take_facts)
        except KeyboardInterrupt:
            self._status = INTERRUPTED
        except (TargetDown, ClusterError) as error:
            if isinstance(error, TargetDown) and not self._has_begun:
                self.journal.release()
                shutil.rmtree(self.folder)
                with contextlib.suppress(OSError):  # it has other runs
                    self.folder.parent.rmdir()
                raise
            self._status = f"failed: {error}"
        except StoreError as error:
            with contextlib.suppress(StoreError):  # there may still be room for the sentence
                ended = replace(self.run, status=f"failed: {error}", finished=utc_now())
                reports.write_run(self.folder, ended)
            raise

    def close(self, notes: Sequence[str], share: Share, stale: tuple[str, ...]) -> None:
        self.run = replace(
            self.run,
            notes=tuple(dict.fromkeys((*self.run.notes, *notes))),
            status=self._status,
            finished=utc_now(),
            duration_s=self.run.duration_s + time.monotonic() - self._started,
            stale=() if self._options.shard else stale,
            share=replace(share, stale=stale),
        )
        self.journal.close(self.run)

    def _take_facts(self, facts: Facts) -> None:
        """Keep what the targets say of themselves. Raises StoreError when they are not those of the records."""
        _check_same_candidates(self.run, facts, self._options.may_differ)
        known = self.run.targets
        joined = {
            name: target_facts.join_facts([known.get(name, of_target), of_target]) for name, of_target in facts.items()
        }
        self.run, self._has_begun = replace(self.run, targets=joined), True
        reports.write_run(self.folder, self.run)


def describe(options: RunOptions, candidates: tuple[str, ...], baseline: str | None, cases: int) -> Run:
    """A run that begins now, without an id. cases: how many there are for each candidate."""
    return Run(
        run_id="",
        started=utc_now(),
        command=("epcheck", *sys.argv[1:]),
        candidates=candidates,
        baseline=baseline,
        targets={},
        planned=cases * len(candidates),
        selection=selection(options, candidates, baseline),
        notes=tuple(filter(None, (notice_of(options.config),))),
        versions={"epcheck": version("epcheck"), "onnx": version("onnx"), "python": sys.version.split()[0]},
    )


def _begin_run(options: RunOptions, selected: _Selected, executor: Executor) -> _Recording:
    """A new run in a new folder."""
    begun = describe(options, executor.candidates, executor.baseline, len(selected.cases))
    folder = reports.new_run_folder(options.root)
    begun = replace(begun, run_id=folder.name, share=selected.share)
    return _Recording(folder, begun, reports.create(folder, begun), frozenset(), options)


def _folder_to_resume(options: RunOptions) -> Path | None:
    if options.resume is None:
        return None
    return reports.latest(options.root) if str(options.resume) == LATEST else Path(options.resume)


def _seconds(balance: Path) -> dict[str, float]:
    reports.read_run(balance)  # a folder without a run is told apart from one without a journal
    return shard.recorded_seconds(reports.read_records(balance))


def _check_same_shard(run: Run, share: Share) -> None:
    """Refuse to go on with a shard that holds other cases now. Raises StoreError."""
    if run.share and run.share.cut != share.cut:
        raise StoreError(
            f"run {run.run_id}: its shard {run.share.index}/{run.share.count} cannot be reproduced: the suite "
            f"or the --balance run has changed; start a new run"
        )


def _check_same_candidates(run: Run, facts: Facts, may_differ: Collection[str]) -> None:
    """Refuse to go on with other candidates than those that the records are of. Raises StoreError."""
    for name in run.candidates:
        different = target_facts.differing_facts(run.targets.get(name, facts[name]), facts[name], may_differ)
        if different:
            raise StoreError(
                f"run {run.run_id}: target '{name}' has changed since the run was started: "
                f"{target_facts.tell_apart(different)}; start a new run, or pass {target_facts.allowing(different)}"
            )


def _stale(options: RunOptions, executor: Executor, whole: Sequence[Case]) -> tuple[str, ...]:
    if not options.whole_suite:
        return ()
    ids = [case.id for case in whole]
    known = [(name, entry) for name, entry in executor.expectations() if not expectation.is_about_node_tests(entry)]
    unmatched = set(expectation.stale([entry for _, entry in known], ids))
    return tuple(dict.fromkeys(f"{name}: {entry}" for name, entry in known if entry in unmatched))
