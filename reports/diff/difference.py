"""Two runs compared: what broke, what was fixed, what changed on the machine, and how accuracy and speed drifted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from epcheck.conformance.records.run import Run
from epcheck.conformance.records.terms import FAILING, FAILURE, FLAKY, PASS
from epcheck.reports.cause_changes import CauseChange, compare_causes
from epcheck.reports.checksum import group_key
from epcheck.reports.diff import drift
from epcheck.reports.diff.classification import APPEARED, KINDS, VANISHED, classify
from epcheck.reports.diff.drift import AccuracyDrift, PlacementChange, SpeedDrift
from epcheck.reports.diff.row import Row
from epcheck.reports.diff.wording import Sides, sides_of
from epcheck.reports.dtypes import dtype_order
from epcheck.reports.runs.findings import reason_stem, sample_stem
from epcheck.reports.runs.fingerprint import (
    COMPARED,
    Changed,
    FingerprintClass,
    changes,
    describe_same,
    describe_unknown,
    fingerprint,
    fingerprint_class,
    unknown_parts,
)
from epcheck.reports.text import as_sentence


@dataclass(frozen=True)
class ComparedRun:
    """One target of one run, to be compared. rows: one for each record of that target."""

    run: Run
    target: str
    rows: Sequence[Row]


@dataclass(frozen=True)
class ComparedSummary:
    """What a comparison keeps of a compared run. planned: records that a complete run has of this target."""

    run_id: str
    started: str
    target: str
    status: str
    recorded: int
    planned: int
    passes: int
    failures: int
    fingerprint_class: FingerprintClass

    @property
    def is_whole(self) -> bool:
        """Whether it ran to its end and has every record."""
        return self.status == "complete" and self.recorded >= self.planned and self.recorded > 0


@dataclass(frozen=True)
class Group:
    """Cases that changed in the same way: failing ones for one cause, others of one operator. Cases that only one run
    has, and that do not fail, are one group for each operator.

    kind: one of KINDS. operators: with the number of their cases, those with the most first. sample: their common name,
    `*` for the numbers in it. older, newer: statuses, empty where a run does not have the cases, as is older_reading.
    reading, blame, reason: of the newer run's first case, of the older's where the newer does not have it. cause: its
    title; of fixed cases, of what they had. key: the same in every comparison.
    """

    key: str
    kind: str
    operators: Mapping[str, int]
    sample: str
    older: str
    newer: str
    older_reading: str
    reading: str
    blame: str
    reason: str
    versions: tuple[int, ...]
    dtypes: tuple[str, ...]
    case_ids: tuple[str, ...]
    cause: str = ""

    @property
    def operator(self) -> str:
        """The operators, the first three by name."""
        names = list(self.operators)
        return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")

    @property
    def why(self) -> str:
        """The cause, or the reason of the first case where there is none."""
        return self.cause or self.reason


@dataclass(frozen=True)
class Difference:
    """Two compared runs. changed: parts of the fingerprint. unknown: of driver, runtime and OS, what one of the runs
    does not tell. compared: cases that both have. groups: in the order of KINDS, the largest first. accuracy, speed,
    placement: of cases that pass in both. sides: None where the older is the newer at an earlier time. causes: of
    failures, in the newer run beside the older."""

    older: ComparedSummary
    newer: ComparedSummary
    changed: tuple[Changed, ...]
    compared: int
    groups: tuple[Group, ...]
    accuracy: tuple[AccuracyDrift, ...]
    speed: tuple[SpeedDrift, ...]
    placement: tuple[PlacementChange, ...]
    sides: Sides | None = None
    causes: tuple[CauseChange, ...] = ()
    unknown: tuple[str, ...] = ()

    def of(self, *kinds: str) -> tuple[Group, ...]:
        """The groups of some kinds."""
        return tuple(group for group in self.groups if group.kind in kinds)

    def cases(self, *kinds: str) -> int:
        """How many cases the groups of some kinds have."""
        return sum(len(group.case_ids) for group in self.of(*kinds))

    @property
    def same_class(self) -> bool:
        """Whether provider, adapter and selection are the same."""
        return self.older.fingerprint_class == self.newer.fingerprint_class

    @property
    def same(self) -> str:
        """What is the same where nothing is known to have changed, in one sentence; two sides may have two runtimes."""
        return describe_same(self.unknown, ("driver", "OS") if self.sides else tuple(COMPARED))

    @property
    def untold(self) -> str:
        """What nobody knows besides what changed, in one sentence; empty where there is nothing."""
        return as_sentence(describe_unknown(self.changed, self.unknown))


def compare_nights(
    older: ComparedRun, newer: ComparedRun, flaky: Collection[str] = (), factor: float = drift.FACTOR
) -> Difference:
    """`compare` for a target that is held against an earlier night, whatever its release was then."""
    return replace(compare(older, newer, flaky, factor), sides=None)


def compare(
    older: ComparedRun, newer: ComparedRun, flaky: Collection[str] = (), factor: float = drift.FACTOR
) -> Difference:
    """Compare one target of one run with one target of another, case by case.

    flaky: ids of cases that are known to change without a cause, from the history of many nights. factor: how much
    worse the largest error in ULP has to be.
    """
    before, after = ({row.case_id: row for row in run.rows} for run in (older, newer))
    summaries = summarize_compared(older), summarize_compared(newer)
    groups: dict[str, GroupBuilder] = {}
    for case_id in sorted({**before, **after}):
        old, new = before.get(case_id), after.get(case_id)
        if kind := classify(old, new, cut_short=not summaries[1].is_whole, flaky=case_id in flaky):
            builder = GroupBuilder.of(kind, old, new)
            groups.setdefault(builder.key, builder).add(new or old)  # type: ignore[arg-type]  # one of them is there
    both = [(before[case_id], row) for case_id, row in sorted(after.items()) if case_id in before]
    passing = [(old, new) for old, new in both if old.status == new.status == PASS]
    providers = tuple(summary.fingerprint_class.provider for summary in summaries)
    return Difference(
        older=summaries[0],
        newer=summaries[1],
        changed=changes(fingerprint(older.run, older.target), fingerprint(newer.run, newer.target)),
        compared=len(both),
        groups=tuple(sorted((group.build() for group in groups.values()), key=_reading_order)),
        accuracy=drift.accuracy(passing, factor),
        speed=drift.speed(passing),
        placement=drift.placement(passing, providers[0], providers[1]),
        sides=sides_of((older.run, older.target), (newer.run, newer.target)),
        causes=compare_causes(_causes(before), _causes(after), {row.case_id for row in newer.rows if _ran(row)}),
        unknown=unknown_parts((older.run, older.target), (newer.run, newer.target)),
    )


def _causes(rows: Mapping[str, Row]) -> dict[str, str]:
    """Of each case that fails its cause."""
    return {case_id: row.cause or "" for case_id, row in rows.items() if row.reading in (FAILURE, FLAKY)}


def _ran(row: Row) -> bool:
    return row.status == PASS or row.reading in FAILING


@dataclass(slots=True)
class GroupBuilder:
    """A group in the making: the rows of its first case, and what every case adds."""

    key: str
    kind: str
    older: Row | None
    newer: Row | None
    cause: str
    operators: Counter[str] = field(default_factory=Counter)
    samples: set[str] = field(default_factory=set)
    versions: set[int] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)
    case_ids: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, kind: str, older: Row | None, newer: Row | None) -> GroupBuilder:
        shown = newer or older
        assert shown is not None
        steps = [f"{row.status} {row.reading}" if row else "" for row in (older, newer)]
        what = [shown.operator, *steps, shown.blame]
        whole_operator = kind in (APPEARED, VANISHED) and shown.reading != FAILURE
        how = [] if whole_operator else [sample_stem(shown.sample), reason_stem(shown.reason)]
        cause = next((row.cause for row in (newer, older) if row and row.cause and row.reading in FAILING), "")
        if cause and not whole_operator:
            return cls(group_key(kind, cause), kind, older, newer, cause)
        return cls(group_key(kind, *what, *how), kind, older, newer, "")

    def add(self, row: Row) -> None:
        self.operators[row.operator] += 1
        self.samples.add(sample_stem(row.sample))
        self.versions.add(row.since_version)
        self.dtypes.add(row.dtype)
        self.case_ids.append(row.case_id)

    def build(self) -> Group:
        shown = self.newer or self.older
        assert shown is not None
        return Group(
            key=self.key,
            kind=self.kind,
            operators=dict(self.operators.most_common()),
            sample=sample_stem(shown.sample) if len(self.samples) == 1 else "*",
            older=self.older.status if self.older else "",
            newer=self.newer.status if self.newer else "",
            older_reading=self.older.reading if self.older else "",
            reading=shown.reading,
            blame=shown.blame,
            reason=shown.reason,
            versions=tuple(sorted(self.versions)),
            dtypes=tuple(sorted(self.dtypes, key=dtype_order)),
            case_ids=tuple(self.case_ids),
            cause=self.cause,
        )


def summarize_compared(compared: ComparedRun) -> ComparedSummary:
    """Count the rows of a compared run."""
    run, rows = compared.run, compared.rows
    return ComparedSummary(
        run_id=run.run_id,
        started=run.started,
        target=compared.target,
        status=run.status,
        recorded=len(rows),
        planned=run.planned // max(1, len(run.candidates)),
        passes=sum(row.status == PASS for row in rows),
        failures=sum(row.reading == FAILURE for row in rows),
        fingerprint_class=fingerprint_class(run, compared.target),
    )


def _reading_order(group: Group) -> tuple[object, ...]:
    is_good = group.reading != FAILURE
    return list(KINDS).index(group.kind), is_good, -len(group.case_ids), group.operator, group.sample, group.key
