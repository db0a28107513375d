"""What a run says, counted: readings and statuses, the operator x dtype matrix, and its findings in groups.

A share is never taken of cases that were not recorded: a run that ended early says so instead of scoring low.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from epcheck.conformance.records.record import (
    EXPECTED,
    FAILURE,
    FIXED,
    NOTED,
    OK,
    PASS,
    SKIPPED,
    ULP_EDGES,
    UNPLACED,
    Accuracy,
    Record,
    Run,
    accuracy_of,
    added,
)

WORST_FIRST = (FAILURE, FIXED, EXPECTED, NOTED, OK)
NOTHING_RAN = "nothing"
"""The worst reading of a matrix cell in which no case passed, though nothing is wrong: all unplaced or skipped."""

_BOUND = r"int(?:32|64)_(?:max|min)(?:_(?:plus|minus)_\d+)?"
_NUMBER_IN_SAMPLE = re.compile(rf"(?<![^_])(?:minus_)?(?:{_BOUND}|length|\d+)(?![^_])")
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_DTYPE = re.compile(r"\b(?:bfloat16|float(?:16|32|64)?|double|u?int(?:2|4|8|16|32|64)|bool)\b")


@dataclass(frozen=True)
class Cell:
    """The cases of one operator, version and dtype. worst: a reading, or NOTHING_RAN."""

    operator: str
    domain: str
    since_version: int
    dtype: str
    passes: int
    total: int
    worst: str


@dataclass(frozen=True)
class Finding:
    """Cases of one operator that are wrong in the same way.

    sample: the samples' common name, `*` for the numbers in it. reason: of the first case. key: the same in every run.
    """

    key: str
    target: str
    reading: str
    operator: str
    sample: str
    status: str
    blame: str
    reason: str
    versions: tuple[int, ...]
    dtypes: tuple[str, ...]
    case_ids: tuple[str, ...]


@dataclass(frozen=True)
class Spread:
    """Errors of floating-point elements in ULP. p99: the end of the range of ULP_EDGES in which the 99th percentile is.

    mean: of the finite ones.
    """

    elements: int
    max: float
    p99: float
    mean: float

    @classmethod
    def of(cls, accuracy: Accuracy) -> Self:
        """The figures of what was counted."""
        seen = 0
        p99 = math.inf
        for edge, count in zip(ULP_EDGES, accuracy.counts, strict=False):
            seen += count
            if seen >= 0.99 * accuracy.elements:
                p99 = edge
                break
        return cls(accuracy.elements, accuracy.max_ulp, p99, accuracy.sum_ulp / max(1, accuracy.elements))


@dataclass(frozen=True)
class Profile:
    """How accurate an operator is in one dtype, over all its versions. baseline: on the same cases, if it ran them."""

    operator: str
    dtype: str
    candidate: Spread | None
    baseline: Spread | None


@dataclass(frozen=True)
class TargetSummary:
    """One candidate: counts by reading and by status, the matrix in reading order, the findings, worst first, and how
    accurate it is, by operator and dtype."""

    target: str
    recorded: int
    by_reading: Mapping[str, int]
    by_status: Mapping[str, int]
    matrix: tuple[Cell, ...]
    findings: tuple[Finding, ...]
    accuracy: tuple[Profile, ...] = ()

    def findings_of(self, reading: str) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.reading == reading)


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

    def __init__(self) -> None:
        self._readings: dict[str, Counter[str]] = {}
        self._statuses: dict[str, Counter[str]] = {}
        self._cells: dict[str, dict[tuple[str, str, int, str], Counter[tuple[str, str]]]] = {}
        self._findings: dict[str, _Group] = {}
        self._accuracy: dict[str, dict[tuple[str, str], _Measured]] = {}

    def add(self, record: Record) -> str:
        """Count a record; the key of the finding it belongs to, empty when nothing is to be said of it."""
        target = record.candidate.target
        self._readings.setdefault(target, Counter())[record.reading] += 1
        self._statuses.setdefault(target, Counter())[record.status] += 1
        cell = (record.case.domain, record.case.operator, record.case.since_version, record.case.dtype)
        self._cells.setdefault(target, {}).setdefault(cell, Counter())[record.reading, record.status] += 1
        self._measure(record)
        if record.reading == OK:
            return ""
        key = finding_key(record)
        if key not in self._findings:
            self._findings[key] = _Group.begun_by(record)
        self._findings[key].add(record)
        return key

    def _measure(self, record: Record) -> None:
        measured = self._accuracy.setdefault(record.candidate.target, {})
        where = record.case.operator_key, record.case.dtype
        for opinion in (record.candidate, record.baseline):
            accuracy = None if opinion is None else accuracy_of(record.case, opinion)
            if accuracy is not None:
                both = measured.setdefault(where, _Measured())
                if opinion is record.candidate:
                    both.candidate = added(both.candidate, accuracy)
                else:
                    both.baseline = added(both.baseline, accuracy)

    def summary(self, run: Run) -> Summary:
        """What was counted so far, as a part of the run."""
        names = list(dict.fromkeys([*run.candidates, *self._readings]))
        return Summary(
            planned=run.planned,
            recorded=sum(counts.total() for counts in self._readings.values()),
            by_reading=_merged(self._readings.values()),
            by_status=_merged(self._statuses.values()),
            targets=tuple(self._target(name) for name in names),
        )

    def _target(self, name: str) -> TargetSummary:
        readings = self._readings.get(name, Counter())
        findings = [group.finding(key) for key, group in self._findings.items() if group.target == name]
        cells = self._cells.get(name, {})
        return TargetSummary(
            target=name,
            recorded=readings.total(),
            by_reading=dict(readings),
            by_status=dict(self._statuses.get(name, Counter())),
            matrix=tuple(
                _cell(*where, cells[where]) for where in sorted(cells, key=lambda w: (*w[:3], dtype_order(w[3])))
            ),
            findings=tuple(sorted(findings, key=lambda f: (WORST_FIRST.index(f.reading), -len(f.case_ids)))),
            accuracy=tuple(
                measured.profile(*where)
                for where, measured in sorted(
                    self._accuracy.get(name, {}).items(), key=lambda item: (item[0][0], dtype_order(item[0][1]))
                )
            ),
        )


@dataclass(slots=True)
class _Measured:
    """The accuracy of candidate and baseline in one operator and dtype, as far as it is counted."""

    candidate: Accuracy | None = None
    baseline: Accuracy | None = None

    def profile(self, operator: str, dtype: str) -> Profile:
        spreads = [None if one is None else Spread.of(one) for one in (self.candidate, self.baseline)]
        return Profile(operator, dtype, *spreads)


@dataclass(slots=True)
class _Group:
    """A finding that still grows: what its first case says, and what every case adds."""

    target: str
    reading: str
    operator: str
    sample: str
    status: str
    blame: str
    reason: str
    versions: set[int] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)
    case_ids: list[str] = field(default_factory=list)

    @classmethod
    def begun_by(cls, record: Record) -> Self:
        case = record.case
        return cls(
            target=record.candidate.target,
            reading=record.reading,
            operator=case.operator_key,
            sample=sample_stem(case.sample),
            status=record.status,
            blame=record.blame,
            reason=record.reason,
        )

    def add(self, record: Record) -> None:
        self.versions.add(record.case.since_version)
        self.dtypes.add(record.case.dtype)
        self.case_ids.append(record.case_id)

    def finding(self, key: str) -> Finding:
        return Finding(
            key=key,
            target=self.target,
            reading=self.reading,
            operator=self.operator,
            sample=self.sample,
            status=self.status,
            blame=self.blame,
            reason=self.reason,
            versions=tuple(sorted(self.versions)),
            dtypes=tuple(sorted(self.dtypes, key=dtype_order)),
            case_ids=tuple(self.case_ids),
        )


def summarize(run: Run, records: Iterable[Record]) -> Summary:
    """Count all records of a run."""
    tally = Tally()
    for record in records:
        tally.add(record)
    return tally.summary(run)


def sample_stem(sample: str) -> str:
    """The sample's name with `*` for its numbers: `start_minus_1_step_2` is `start_*_step_*`."""
    return _NUMBER_IN_SAMPLE.sub("*", sample)


def finding_key(record: Record) -> str:
    """Equal for records that are wrong in the same way: the numbers and dtypes in the reason do not count."""
    parts = (record.candidate.target, record.case.domain, record.case.operator, sample_stem(record.case.sample))
    return group_key(*parts, record.reading, record.status, record.blame, reason_stem(record.reason))


def reason_stem(reason: str) -> str:
    """The reason with `#` for its numbers and `dtype` for its dtypes: alike where cases are wrong in the same way."""
    return _NUMBER.sub("#", _DTYPE.sub("dtype", reason))


def group_key(*parts: str) -> str:
    """A short name for what these words tell apart, the same in every run."""
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:10]


def dtype_order(dtype: str) -> tuple[object, ...]:
    """Sorts floating-point dtypes first, then signed, unsigned and the rest, each by width."""
    kinds = ("float", "bfloat", "int", "uint")
    return tuple(
        (kinds.index(m[1]), int(m[2]), part) if (m := re.fullmatch(r"(b?float|u?int)(\d+)", part)) else (9, 0, part)
        for part in dtype.split("-")
    )


def headline(run: Run, summary: Summary) -> str:
    """The run in one sentence for each candidate, and before it what keeps it from being a whole run."""
    if summary.recorded == 0:
        why = {"complete": "it planned none", "running": "it has not finished"}.get(run.status, f"it {_ended(run)}")
        return f"This run says nothing: no case of {summary.planned:,} planned is recorded; {why}."
    words = []
    if summary.missing or run.status != "complete":
        words.append(f"Incomplete: {summary.recorded:,} of {summary.planned:,} planned cases are recorded, {_so(run)}.")
    words += [target_headline(target) for target in summary.targets]
    return " ".join(words)


def target_headline(target: TargetSummary) -> str:
    """One candidate in one sentence."""
    if target.recorded == 0:
        return f"{target.target}: no case is recorded."
    passes, idle = target.by_status.get(PASS, 0), target.by_status.get(SKIPPED, 0) + target.by_status.get(UNPLACED, 0)
    said = []
    for reading, one, more in (
        (FAILURE, "conformance failure", "conformance failures"),
        (FIXED, "expectation that no longer fails", "expectations that no longer fail"),
        (EXPECTED, "expected deviation", "expected deviations"),
        (NOTED, "remark", "remarks"),
    ):
        if count := target.by_reading.get(reading, 0):
            groups = len(target.findings_of(reading))
            grouped = f" in {groups} group{'s' if groups > 1 else ''}" if reading == FAILURE else ""
            said.append(f"{count:,} {one if count == 1 else more}{grouped}")
    if not target.by_reading.get(FAILURE):
        said.insert(0, "no conformance failure" if passes else "nothing is proven")
    said.append(f"{passes:,} of {target.recorded:,} cases pass")
    if idle:
        said.append(f"{idle:,} did not run on it")
    return f"{target.target}: {', '.join(said)}."


def _so(run: Run) -> str:
    return {"complete": "though it says it is complete", "running": "it is still running or was killed"}.get(
        run.status, f"it {_ended(run)}"
    )


def _ended(run: Run) -> str:
    return "was interrupted" if run.status == "interrupted" else run.status


def _merged(counters: Iterable[Counter[str]]) -> dict[str, int]:
    return dict(sum(counters, Counter()))


def _cell(domain: str, operator: str, since_version: int, dtype: str, counts: Counter[tuple[str, str]]) -> Cell:
    readings = {reading for reading, _ in counts}
    passes = sum(n for (_, status), n in counts.items() if status == PASS)
    worst = next(reading for reading in WORST_FIRST if reading in readings)
    return Cell(
        operator,
        domain,
        since_version,
        dtype,
        passes,
        counts.total(),
        NOTHING_RAN if worst == OK and not passes else worst,
    )
