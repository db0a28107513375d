"""What a run says, counted: readings and statuses, the operator x dtype matrix, and its findings in groups.

A share is never taken of cases that were not recorded: a run that ended early says so instead of scoring low.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from epcheck.conformance.records.accuracy import add_accuracy
from epcheck.conformance.records.record import Record, accuracy_of
from epcheck.conformance.records.run import Run
from epcheck.conformance.records.terms import EXPECTED, FAILURE, FIXED, FLAKY, NOTED, OK, PASS
from epcheck.reports.causes.cause import Cause, Causes
from epcheck.reports.causes.find import find_causes
from epcheck.reports.dtypes import dtype_order
from epcheck.reports.runs.accuracy import AccuracyProfile, AccuracySuspicion, ProfileBuilder, SuspicionBuilder
from epcheck.reports.runs.findings import Finding, FindingBuilder, finding_key

NOT_RUN = "not-run"
"""Shown in place of `ok` where the case gave no result and none is owed: it was not placed, was refused where nothing
is claimed, or was skipped. It is also the worst reading of a matrix cell that has no other cases."""

WORST_FIRST = (FAILURE, FLAKY, FIXED, EXPECTED, NOTED, OK, NOT_RUN)
"""The readings as they are shown."""


def shown_reading(record: Record) -> str:
    """The reading of a record, NOT_RUN in place of `ok` where the case gave no result."""
    return NOT_RUN if record.reading == OK and record.status != PASS else record.reading


class Grouped(NamedTuple):
    """Where a record belongs: the key of its finding, empty where nothing is to be said of it, and its cause.
    is_example: it is the case that a cause names because it passes."""

    finding: str
    cause: Cause | None
    is_example: bool = False


@dataclass(frozen=True)
class Cell:
    """The cases of one operator, version and dtype. not_run: those that gave no result. worst: of
    WORST_FIRST."""

    operator: str
    domain: str
    since_version: int
    dtype: str
    passes: int
    total: int
    worst: str
    not_run: int = 0


@dataclass(frozen=True)
class TargetSummary:
    """One candidate: counts by reading (as it is shown, see WORST_FIRST) and by status, the matrix in reading order,
    the findings and their causes, worst first, and how accurate it is, by operator and dtype. excused: passes that only
    a published floor makes so. suspicions: of accuracy, those furthest from the baseline first."""

    target: str
    recorded: int
    by_reading: Mapping[str, int]
    by_status: Mapping[str, int]
    matrix: tuple[Cell, ...]
    findings: tuple[Finding, ...]
    accuracy: tuple[AccuracyProfile, ...] = ()
    causes: tuple[Cause, ...] = ()
    excused: int = 0
    suspicions: tuple[AccuracySuspicion, ...] = ()

    @property
    def rate(self) -> float | None:
        """The share of passing cases among those that gave a result; None where none did."""
        ran = self.recorded - self.by_reading.get(NOT_RUN, 0)
        return self.by_status.get(PASS, 0) / ran if ran else None

    @property
    def shared(self) -> int:
        """How many causes of failures the baseline shows too."""
        return sum(cause.shared for cause in self.causes_of(FAILURE))

    def causes_of(self, reading: str) -> tuple[Cause, ...]:
        return tuple(cause for cause in self.causes if cause.reading == reading)


@dataclass(frozen=True)
class Summary:
    """The whole run. recorded, planned: records. targets: one for each candidate of the run, recorded or not."""

    planned: int
    recorded: int
    by_reading: Mapping[str, int]
    by_status: Mapping[str, int]
    targets: tuple[TargetSummary, ...]

    @property
    def missing(self) -> int:
        """How many planned records the run does not have."""
        return max(0, self.planned - self.recorded)


class Tally:
    """Counts records one by one and keeps none: only the ids of those that belong to a finding."""

    def __init__(self, causes: Causes | None = None) -> None:
        """causes: of the run that is counted; none where its numbers alone are asked for."""
        self._findings_of: dict[str, Counter[str]] = {}
        self._readings: dict[str, Counter[str]] = {}
        self._statuses: dict[str, Counter[str]] = {}
        self._cells: dict[str, dict[tuple[str, str, int, str], Counter[tuple[str, str]]]] = {}
        self._findings: dict[str, FindingBuilder] = {}
        self._causes = causes or Causes()
        self._examples = {(cause.target, cause.right) for cause in self._causes.all}
        self._excused: Counter[str] = Counter()
        self._suspicions: dict[tuple[str, str, str], SuspicionBuilder] = {}
        self._accuracy: dict[str, dict[tuple[str, str], ProfileBuilder]] = {}

    def add(self, record: Record) -> Grouped:
        """Count a record; where it belongs."""
        target, reading = record.candidate.target, shown_reading(record)
        self._readings.setdefault(target, Counter())[reading] += 1
        self._statuses.setdefault(target, Counter())[record.status] += 1
        cell = (record.case.domain, record.case.operator, record.case.since_version, record.case.dtype)
        self._cells.setdefault(target, {}).setdefault(cell, Counter())[reading, record.status] += 1
        self._measure(record)
        self._excused[target] += bool(record.candidate.excused)
        is_example = (target, record.case_id) in self._examples
        if record.reading == OK:
            return Grouped("", None, is_example)
        key = finding_key(record)
        if key not in self._findings:
            self._findings[key] = FindingBuilder.of_first(record)
        self._findings[key].add(record)
        cause = self._causes.of_case.get((target, record.case_id))
        if cause is not None:
            self._findings_of.setdefault(cause.key, Counter())[key] += 1
        return Grouped(key, cause, is_example)

    def _measure(self, record: Record) -> None:
        measured = self._accuracy.setdefault(record.candidate.target, {})
        where = record.case.operator_key, record.case.dtype
        for opinion in (record.candidate, record.baseline):
            accuracy = None if opinion is None else accuracy_of(record.case, opinion)
            if accuracy is not None:
                both = measured.setdefault(where, ProfileBuilder())
                if opinion is record.candidate:
                    both.candidate = add_accuracy(both.candidate, accuracy)
                else:
                    both.baseline = add_accuracy(both.baseline, accuracy)
        if record.baseline is not None and record.status == record.baseline.status == PASS:
            errors = [accuracy_of(record.case, opinion) for opinion in (record.candidate, record.baseline)]
            if errors[0] is not None and errors[1] is not None:
                key = record.candidate.target, *where
                if key not in self._suspicions:
                    self._suspicions[key] = SuspicionBuilder.of_dtype(record.case.dtype)
                self._suspicions[key].add(record.case_id, errors[0].max_ulp, errors[1].max_ulp)

    def summary(self, run: Run) -> Summary:
        """What was counted so far, as a part of the run."""
        names = list(dict.fromkeys([*run.candidates, *self._readings]))
        return Summary(
            planned=run.planned,
            recorded=sum(counts.total() for counts in self._readings.values()),
            by_reading=_merge_counts(self._readings.values()),
            by_status=_merge_counts(self._statuses.values()),
            targets=tuple(self._target(name) for name in names),
        )

    def _suspicions_of(self, name: str) -> tuple[AccuracySuspicion, ...]:
        found = [
            builder.build(operator, dtype)
            for (target, operator, dtype), builder in self._suspicions.items()
            if target == name and builder.cases
        ]
        return tuple(sorted(found, key=lambda each: (-each.times, each.operator, each.dtype)))

    def _target(self, name: str) -> TargetSummary:
        readings = self._readings.get(name, Counter())
        findings = [builder.build(key) for key, builder in self._findings.items() if builder.target == name]
        cells = self._cells.get(name, {})
        return TargetSummary(
            target=name,
            recorded=readings.total(),
            by_reading=dict(readings),
            by_status=dict(self._statuses.get(name, Counter())),
            matrix=tuple(
                _cell(*where, cells[where]) for where in sorted(cells, key=lambda w: (*w[:3], dtype_order(w[3])))
            ),
            findings=tuple(sorted(findings, key=_place)),
            accuracy=tuple(
                builder.build(*where)
                for where, builder in sorted(
                    self._accuracy.get(name, {}).items(), key=lambda item: (item[0][0], dtype_order(item[0][1]))
                )
            ),
            causes=tuple(
                replace(cause, findings=tuple(self._findings_of.get(cause.key, ()))) for cause in self._causes.of(name)
            ),
            excused=self._excused[name],
            suspicions=self._suspicions_of(name),
        )


def summarize(run: Run, records: Iterable[Record], causes: Causes | None = None) -> Summary:
    """Count all records of a run. causes: those of the run, where they are known; else all records are held at a time,
    to find them."""
    if causes is None:
        records = tuple(records)
        causes = find_causes(records)
    tally = Tally(causes)
    for record in records:
        tally.add(record)
    return tally.summary(run)


def _place(finding: Finding) -> tuple[int, int, str, str, str]:
    """The worst and largest first, whatever the order of the records."""
    return WORST_FIRST.index(finding.reading), -len(finding.case_ids), finding.operator, finding.sample, finding.key


def _merge_counts(counters: Iterable[Counter[str]]) -> dict[str, int]:
    return dict(sum(counters, Counter()))


def _cell(domain: str, operator: str, since_version: int, dtype: str, counts: Counter[tuple[str, str]]) -> Cell:
    readings = {reading for reading, _ in counts}
    passes = sum(n for (_, status), n in counts.items() if status == PASS)
    not_run = sum(n for (reading, _), n in counts.items() if reading == NOT_RUN)
    worst = next(reading for reading in WORST_FIRST if reading in readings)
    return Cell(operator, domain, since_version, dtype, passes, counts.total(), worst, not_run)
