"""What the numbers of cases that pass in two runs did: accuracy, speed, and where their nodes ran."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from epcheck.reports.diff.row import Row
from epcheck.reports.dtypes import dtype_order
from epcheck.reports.runs.findings import sample_stem

FACTOR = 2.0
"""Smallest ratio of the largest errors in ULP that is reported."""

ROUNDED = 0.5
"""ULP: what the correctly rounded result may be away from the truth. No error below it is better than another."""

SAMPLES = 5
"""How many sessions an operator needs before its speed is spoken of."""

NOTABLE = 1.2
"""How much slower or faster than the others an operator has to be to be told, however narrow its noise band is."""

SIGMAS = 4.0
"""The width of the noise band to each side, in standard deviations: 200 operators are asked, and no false alarm is
wanted. (Of 200 operators that only vary, 3 told one of them in every 20 comparisons, 4 none.)"""

MAD_TO_SIGMA = 1.4826
"""The standard deviation of a normal distribution in median absolute deviations."""

MEDIAN_ERROR = math.sqrt(math.pi / 2)
"""The standard error of a median of n normally distributed values is so many times that of their mean."""

Pairs = Sequence[tuple[Row, Row]]
"""The same cases of the older and of the newer run."""


@dataclass(frozen=True)
class AccuracyDrift:
    """Cases that still pass, with a larger error. older, newer: the largest error in ULP of the case that drifted
    most."""

    operator: str
    dtype: str
    sample: str
    older: float
    newer: float
    case_ids: tuple[str, ...]

    @property
    def factor(self) -> float:
        """How much worse it is."""
        return _worse(self.older, self.newer)


@dataclass(frozen=True)
class SpeedDrift:
    """How long an operator takes in the newer run, as a multiple of the older one.

    operator: empty for all together. phase: `run`, or `create` for making the session. ratio: the median over sessions.
    low, high: the noise band, around what all operators together do: a ratio inside of it means nothing. sessions: how
    many measurements are behind it; cases that shared a session are one.
    """

    operator: str
    phase: str
    ratio: float
    low: float
    high: float
    sessions: int


@dataclass(frozen=True)
class PlacementChange:
    """Cases of one operator whose nodes went elsewhere. older, newer: as `row.placement_of` says it."""

    operator: str
    older: str
    newer: str
    case_ids: tuple[str, ...]


def accuracy(pairs: Pairs, factor: float) -> tuple[AccuracyDrift, ...]:
    """What became worse by `factor` at least, the worst first."""
    found: dict[tuple[str, str, str], list[tuple[Row, Row]]] = {}
    for older, newer in pairs:
        if older.ulp_max is not None and newer.ulp_max is not None and _worse(older.ulp_max, newer.ulp_max) >= factor:
            found.setdefault((newer.operator, newer.dtype, sample_stem(newer.sample)), []).append((older, newer))
    drifts = (_accuracy_drift(*where, cases) for where, cases in found.items())
    return tuple(
        sorted(drifts, key=lambda drift: (-drift.factor, drift.operator, dtype_order(drift.dtype), drift.sample))
    )


def _accuracy_drift(operator: str, dtype: str, sample: str, cases: Pairs) -> AccuracyDrift:
    ordered = sorted(cases, key=lambda both: -_worse(both[0].ulp_max or 0.0, both[1].ulp_max or 0.0))
    older, newer = ordered[0]
    ids = tuple(row.case_id for _, row in ordered)
    return AccuracyDrift(operator, dtype, sample, older.ulp_max or 0.0, newer.ulp_max or 0.0, ids)


def _worse(older: float, newer: float) -> float:
    before, after = max(older, ROUNDED), max(newer, ROUNDED)
    return 1.0 if before == after or math.isinf(before) else after / before


def speed(pairs: Pairs) -> tuple[SpeedDrift, ...]:
    """For each phase all operators together, then those that are out of their noise band, the largest change first.

    The single case is noise; an operator's median over many sessions is less so. It is held against the median of all
    operators, because another hour of the same machine makes all of them slower. The band has two parts: how far the
    operator's own sessions are apart (or those of most operators, as a few may agree by chance), and how far most
    operators are from each other.
    """
    phases: tuple[tuple[str, Callable[[Row], float | None]], ...] = (
        ("run", lambda row: row.run_s),
        ("create", lambda row: row.create_s),
    )
    return tuple(found for phase, seconds in phases for found in _speed(phase, pairs, seconds))


def _speed(phase: str, pairs: Pairs, seconds: Callable[[Row], float | None]) -> Iterator[SpeedDrift]:
    by_operator: dict[str, list[tuple[float, float]]] = {}
    for older, newer in pairs:
        before, after = seconds(older), seconds(newer)
        if before and after and before > 0 and after > 0:
            by_operator.setdefault(newer.operator, []).append((before, after))
    logs = {operator: of_sessions(times) for operator, times in by_operator.items()}
    enough = {operator: values for operator, values in logs.items() if len(values) >= SAMPLES}
    if not enough:
        return
    medians = {operator: median(values) for operator, values in enough.items()}
    common = median(medians.values())
    few = len(medians) < SAMPLES  # too few operators to tell how far operators are from each other: all sessions do
    between = _deviation([v for each in enough.values() for v in each] if few else list(medians.values()), common)
    usual = median(_deviation(values, medians[operator]) for operator, values in enough.items())
    yield _make_speed_drift("", phase, common, common, between, sum(map(len, enough.values())))
    drifting = (operator for operator, middle in medians.items() if abs(middle - common) >= math.log(NOTABLE))
    for operator in sorted(drifting, key=lambda before: -abs(medians[before] - common)):
        values, middle = enough[operator], medians[operator]
        within = max(_deviation(values, middle), usual) * MEDIAN_ERROR / math.sqrt(len(values))
        found = _make_speed_drift(operator, phase, middle, common, math.hypot(within, between), len(values))
        if not found.low <= found.ratio <= found.high:
            yield found


def of_sessions(times: Iterable[tuple[float, float]]) -> list[float]:
    """The logarithm of newer / older for each session. Cases that shared a session have its seconds in equal parts, to
    the last digit: they are one measurement, and not many that agree."""
    by_session: dict[float, list[float]] = {}
    for older, newer in times:
        by_session.setdefault(newer, []).append(math.log(newer / older))
    return [median(values) for values in by_session.values()]


def _make_speed_drift(
    operator: str, phase: str, middle: float, common: float, sigma: float, sessions: int
) -> SpeedDrift:
    low, high = (math.exp(common + sign * SIGMAS * sigma) for sign in (-1, 1))
    return SpeedDrift(operator, phase, math.exp(middle), low, high, sessions)


def _deviation(values: Sequence[float], middle: float) -> float:
    """The standard deviation as outliers cannot make it: from the median absolute deviation."""
    return MAD_TO_SIGMA * median(abs(value - middle) for value in values)


ITSELF = "the provider"


def placement(pairs: Pairs, older_provider: str, newer_provider: str) -> tuple[PlacementChange, ...]:
    """Where nodes went elsewhere. The providers' own names do not count: of two providers each has its own nodes."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for older, newer in pairs:
        if older.placement is None or newer.placement is None:
            continue
        before = older.placement.replace(older_provider, ITSELF)
        after = newer.placement.replace(newer_provider, ITSELF)
        if before != after:
            found.setdefault((newer.operator, before, after), []).append(newer.case_id)
    changes = (PlacementChange(*where, tuple(ids)) for where, ids in found.items())
    return tuple(sorted(changes, key=lambda before: (-len(before.case_ids), before.operator)))
