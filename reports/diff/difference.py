"""Two runs compared: what broke, what was fixed, what is as it was, and what the numbers did meanwhile.

A *regression* is a reading that became `failure`, or a pass that became anything else. It is none when the case was
skipped or not reached (it is *not run*), when it is flaky (that is listed), and when somebody wrote down since then,
with a reason, that the deviation is expected (*tolerated*). An expectation that was there before does not hide
anything: a case that passed in spite of it reads `fixed`, and breaking again is a regression.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from epcheck.conformance.records.record import EXPECTED, FAILURE, FIXED, FLAKY, NOTED, OK, PASS, SKIPPED, Run
from epcheck.reports.diff import drift
from epcheck.reports.diff.drift import AccuracyDrift, PlacementChange, Speed
from epcheck.reports.diff.row import Row
from epcheck.reports.runs.fingerprint import Changed, FingerprintClass, changes, fingerprint, fingerprint_class
from epcheck.reports.runs.summary import dtype_order, group_key, reason_stem, sample_stem

REGRESSION, NOT_RUN, FLAPPING, TOLERATED, REPAIRED, OTHERWISE, APPEARED, VANISHED, STILL = (
    "new failure", "not run", "flaky", "tolerated", "fixed", "changed", "appeared", "vanished", "still failing",
)  # fmt: skip
KINDS: Mapping[str, str] = {
    REGRESSION: "as good before, worse now",
    NOT_RUN: "skipped, or not reached by a run that ended early",
    FLAPPING: "gives different results when it is repeated",
    TOLERATED: "an expectation was written, or allows both",
    REPAIRED: "wrong before, right now",
    OTHERWISE: "another status, but neither good before nor a failure now",
    APPEARED: "the older run does not have it",
    VANISHED: "the newer run does not have it, though it ran to its end",
    STILL: "a failure in both",
}
"""What may be said of a case in two runs, in reading order; of all other cases nothing is said."""


@dataclass(frozen=True)
class Side:
    """One target of one run, to be compared. rows: each record of that target once."""

    run: Run
    target: str
    rows: Sequence[Row]


@dataclass(frozen=True)
class Half:
    """What a comparison keeps of a side. planned: records that a complete run has of this target."""

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
    """Cases of one operator that changed in the same way. What only one run has is of little interest where it does not
    fail: an operator is one group then.

    kind: one of KINDS. sample: their common name, `*` for the numbers in it. older, newer: statuses, empty where a run
    does not have the cases, as is older_reading. reading, blame, reason: of the newer run's first case, of the older's
    where the newer does not have it. key: the same in every comparison.
    """

    key: str
    kind: str
    operator: str
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


@dataclass(frozen=True)
class Difference:
    """Two sides compared. changed: parts of the fingerprint. compared: cases that both have. groups: in the order of
    KINDS, the largest first. accuracy, speed, placement: of cases that pass in both."""

    older: Half
    newer: Half
    changed: tuple[Changed, ...]
    compared: int
    groups: tuple[Group, ...]
    accuracy: tuple[AccuracyDrift, ...]
    speed: tuple[Speed, ...]
    placement: tuple[PlacementChange, ...]

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


def compare(older: Side, newer: Side, flaky: Collection[str] = (), factor: float = drift.FACTOR) -> Difference:
    """Compare two sides.

    flaky: ids of cases that are known to change without a cause, from the history of many nights. factor: how much
    worse the largest error in ULP has to be.
    """
    before, after = ({row.case_id: row for row in side.rows} for side in (older, newer))
    halves = half(older), half(newer)
    groups: dict[str, _Group] = {}
    for case_id in sorted({**before, **after}):
        one, other = before.get(case_id), after.get(case_id)
        if kind := classify(one, other, cut_short=not halves[1].is_whole, flaky=case_id in flaky):
            begun = _Group.of(kind, one, other)
            groups.setdefault(begun.key, begun).add(other or one)  # type: ignore[arg-type]  # one of them is there
    both = [(before[case_id], row) for case_id, row in sorted(after.items()) if case_id in before]
    passing = [(one, other) for one, other in both if one.status == other.status == PASS]
    own = tuple(half.fingerprint_class.provider for half in halves)
    return Difference(
        older=halves[0],
        newer=halves[1],
        changed=changes(fingerprint(older.run, older.target), fingerprint(newer.run, newer.target)),
        compared=len(both),
        groups=tuple(sorted((group.frozen() for group in groups.values()), key=_reading_order)),
        accuracy=drift.accuracy(passing, factor),
        speed=drift.speed(passing),
        placement=drift.placement(passing, own[0], own[1]),
    )


def classify(older: Row | None, newer: Row | None, cut_short: bool = False, flaky: bool = False) -> str:
    """What is to be said of a case: one of KINDS, or nothing.

    cut_short: the newer run did not come to its end. flaky: the case is known to change without a cause.
    """
    if older is None:
        return APPEARED
    if newer is None:
        return NOT_RUN if cut_short else VANISHED
    if FLAKY in (older.status, newer.status) or (flaky and older.status != newer.status):
        return FLAPPING
    if newer.reading == FAILURE:
        return STILL if older.reading == FAILURE else REGRESSION
    if older.status == newer.status and (
        older.reading == newer.reading or {older.reading, newer.reading} == {OK, NOTED}
    ):
        return ""
    if newer.status == SKIPPED:
        return NOT_RUN
    if older.status == PASS or newer.status == PASS:
        return _passing_once(older, newer)
    return TOLERATED if newer.reading == EXPECTED and older.reading == FAILURE else OTHERWISE


def _passing_once(older: Row, newer: Row) -> str:
    """Of a case that passes in at least one of the runs, and is no failure in the newer one."""
    if newer.status == older.status:
        return ""  # only what is expected of it, or of the baseline, has changed
    if older.status == PASS:
        return TOLERATED if newer.reading == EXPECTED and older.reading != FIXED else REGRESSION
    if older.status == SKIPPED:
        return OTHERWISE
    return TOLERATED if older.reading == EXPECTED and newer.reading != FIXED else REPAIRED


@dataclass(slots=True)
class _Group:
    """A group that still grows: what its first case says, and what every case adds."""

    key: str
    kind: str
    older: Row | None
    newer: Row | None
    samples: set[str] = field(default_factory=set)
    versions: set[int] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)
    case_ids: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, kind: str, older: Row | None, newer: Row | None) -> _Group:
        shown = newer or older
        assert shown is not None
        steps = [f"{row.status} {row.reading}" if row else "" for row in (older, newer)]
        what = [shown.operator, *steps, shown.blame]
        whole_operator = kind in (APPEARED, VANISHED) and shown.reading != FAILURE
        how = [] if whole_operator else [sample_stem(shown.sample), reason_stem(shown.reason)]
        return cls(group_key(kind, *what, *how), kind, older, newer)

    def add(self, row: Row) -> None:
        self.samples.add(sample_stem(row.sample))
        self.versions.add(row.since_version)
        self.dtypes.add(row.dtype)
        self.case_ids.append(row.case_id)

    def frozen(self) -> Group:
        shown = self.newer or self.older
        assert shown is not None
        return Group(
            key=self.key,
            kind=self.kind,
            operator=shown.operator,
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
        )


def half(side: Side) -> Half:
    """What a comparison keeps of a side."""
    run, rows = side.run, side.rows
    return Half(
        run_id=run.run_id,
        started=run.started,
        target=side.target,
        status=run.status,
        recorded=len(rows),
        planned=run.planned // max(1, len(run.candidates)),
        passes=sum(row.status == PASS for row in rows),
        failures=sum(row.reading == FAILURE for row in rows),
        fingerprint_class=fingerprint_class(run, side.target),
    )


def _reading_order(group: Group) -> tuple[object, ...]:
    is_good = group.reading != FAILURE
    return list(KINDS).index(group.kind), is_good, -len(group.case_ids), group.operator, group.sample, group.key
