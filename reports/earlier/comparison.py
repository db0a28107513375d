"""A run beside earlier ones: the last word of each case before, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from epcheck.conformance.records.record import Record
from epcheck.conformance.records.run import Run
from epcheck.conformance.records.terms import FAILING, FAILURE, FLAKY, PASS
from epcheck.reports.cause_changes import compare_causes
from epcheck.reports.causes.cause import Cause
from epcheck.reports.earlier.earlier_runs import EarlierRuns, beside, in_store, is_alike, what_changed
from epcheck.reports.report_links import ReportLinks
from epcheck.reports.runs.run_folder import StoreError, read_run
from epcheck.reports.since import BROKE, FIRST_SEEN, REPAIRED, STILL, Earlier, Since
from epcheck.reports.store.query import query
from epcheck.reports.store.run_file import FileProblemError

SHARED = "SELECT DISTINCT run_id, target FROM outcomes SEMI JOIN cases USING (target, case_id)"
"""Which run has a case of which target."""

STATES = """
WITH told AS (SELECT target, case_id FROM outcomes WHERE failing UNION SELECT target, case_id FROM cases WHERE wrong)
SELECT run_id, target, case_id, status, failing, reading, coalesce(cause, '')
FROM outcomes SEMI JOIN told USING (target, case_id)
"""
"""What runs say of the cases that are or were wrong."""


class _State(NamedTuple):
    status: str
    failing: bool
    reading: str
    cause: str


class EarlierComparison:
    """Takes each record of the run, and then compares: `result`."""

    def __init__(self, run: Run, earlier: EarlierRuns) -> None:
        self._run, self.earlier = run, earlier
        self._readings: dict[str, dict[str, str]] = {}
        self._causes: dict[str, dict[str, str]] = {}  # of failures: target -> case id -> title
        self._result: tuple[Since, ...] | None = None

    def add(self, record: Record, cause: Cause | None) -> None:
        """Take a record of the run, and its cause."""
        if self.earlier.runs:
            has_result = record.status == PASS or record.reading in FAILING
            self._readings.setdefault(record.candidate.target, {})[record.case_id] = (
                record.reading if has_result else ""
            )
            if record.reading in (FAILURE, FLAKY):
                title = cause.full_title if cause else ""
                self._causes.setdefault(record.candidate.target, {})[record.case_id] = title

    def result(self) -> tuple[Since, ...]:
        """One for each target of which an earlier run has cases of this run."""
        if self._result is None:
            self._result = tuple(self._compare_runs())
        return self._result

    def links(self, page: Path) -> ReportLinks:
        """The addresses of the earlier reports from a page."""
        return self.earlier.links(page)

    def _compare_runs(self) -> Iterator[Since]:
        cases = self._cases()
        shared = {(run_id, target) for run_id, target in self._rows(SHARED, cases)}
        states: dict[tuple[str, str], dict[str, _State]] = {}
        for run_id, target, case_id, *state in self._rows(STATES, cases):
            states.setdefault((target, case_id), {})[run_id] = _State(*state)
        for target, readings in self._readings.items():
            runs = [
                each.run
                for each in self.earlier.runs
                if (each.run_id, target) in shared and is_alike(each.run, self._run, target)
            ]
            if runs:
                yield self._since(target, runs, {case_id: states.get((target, case_id), {}) for case_id in readings})

    def _cases(self) -> pa.Table:
        """The cases of the run: target, case_id, and whether it is wrong."""
        listed = [
            (target, case_id, reading in FAILING)
            for target, readings in self._readings.items()
            for case_id, reading in readings.items()
        ]
        targets, ids, wrong = zip(*listed, strict=True) if listed else ((), (), ())
        return pa.table(
            {"target": pa.array(targets, pa.string()), "case_id": pa.array(ids, pa.string()),
             "wrong": pa.array(wrong, pa.bool_())}
        )  # fmt: skip

    def _rows(self, sql: str, cases: pa.Table) -> Iterator[tuple[Any, ...]]:
        """The answer, of all runs whose files can be read."""
        while self.earlier.runs:
            try:
                table = query(self.earlier.runs, sql, cases=cases)
            except FileProblemError as error:
                left = tuple(each for each in self.earlier.runs if each.path != error.problem.path)
                self.earlier = replace(self.earlier, runs=left)
            except StoreError:  # a file is gone meanwhile
                self.earlier = replace(self.earlier, runs=())
            else:
                yield from zip(*(column.to_pylist() for column in table.itercolumns()), strict=True)
                return

    def _since(self, target: str, runs: Sequence[Run], states: Mapping[str, Mapping[str, _State]]) -> Since:
        order = [run.run_id for run in runs]
        changed = what_changed([self._run, *runs], target)
        earlier = tuple(Earlier(run.run_id, run.started, text) for run, text in zip(runs, changed[1:], strict=True))
        became: dict[str, str] = {}
        history: dict[str, tuple[str, ...]] = {}
        causes: dict[str, str] = {}
        for case_id, before in states.items():
            past = [before[run_id] for run_id in order if run_id in before]
            if what := _became(self._readings[target][case_id], past):
                became[case_id] = what
            if past and past[0].reading in (FAILURE, FLAKY):
                causes[case_id] = past[0].cause
            if past:
                history[case_id] = tuple(before[run_id].status if run_id in before else "" for run_id in order)
        ran = {case_id for case_id, reading in self._readings[target].items() if reading}
        compared = compare_causes(causes, self._causes.get(target, {}), ran)
        return Since(target, earlier, changed[0], became, history, compared)


def compare_with_earlier(folder: Path, store: Path | None = None) -> EarlierComparison:
    """What compares the run of a folder with those of a store; without one, with the runs beside it. Raises
    StoreError where there is no run, or no such store."""
    run = read_run(folder)
    return EarlierComparison(run, in_store(store, folder, run) if store else beside(folder, run))


def _became(reading: str, past: Sequence[_State]) -> str:
    """reading: empty where the case gave no result. past: what earlier runs say, the newest first."""
    if reading in (FAILURE, FLAKY):
        return FIRST_SEEN if not past else STILL if past[0].failing else BROKE
    return REPAIRED if past and past[0].failing and reading and reading not in FAILING else ""
