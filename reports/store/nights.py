"""A night of a machine: whether it ran whole, in part or not at all, how many cases passed, and what had changed."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise

import numpy as np

from epcheck.reports.family import Family
from epcheck.reports.runs.fingerprint import Changed
from epcheck.reports.runs.parquet import Counts, Numbers, TargetCounts
from epcheck.reports.store.run_file import StoredRun

MISSING_AT_MOST = 366
"""Most nights that are reported as missing between two runs: a clock that was wrong once must not make thousands."""

DAY = timedelta(days=1)


class Completeness(StrEnum):
    """How far a night got."""

    WHOLE = "whole"
    PARTIAL = "partial"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Night:
    """One night of a machine.

    label: its date, with a number from the second run of that date on. run_id, target: empty where nothing ran. why:
    what kept it from being whole, in words. families: cases by how they stand. changed: what was not as in the run
    before.
    """

    label: str
    completeness: Completeness
    why: str = ""
    run_id: str = ""
    target: str = ""
    families: Mapping[str, Counts] | None = None
    changed: tuple[Changed, ...] = ()

    @property
    def counts(self) -> Counts:
        """Over all families."""
        return total((self.families or {}).values())

    def rate(self, family: str | None = None) -> float | None:
        """The share that passes of the cases that pass or fail, in a family or in all; None unless the night is whole
        and has such cases: what did not run has no share."""
        if self.completeness is not Completeness.WHOLE or self.families is None:
            return None
        counts = self.counts if family is None else self.families.get(family, Counts(0, 0, 0))
        judged = counts.passes + counts.failing
        return counts.passes / judged if judged else None


def total(every: Iterable[Counts]) -> Counts:
    """The counts added up."""
    passes = failing = other = 0
    for counts in every:
        passes, failing, other = passes + counts[0], failing + counts[1], other + counts[2]
    return Counts(passes, failing, other)


def night_of(label: str, run: StoredRun, target: str, changed: tuple[Changed, ...], family: Family) -> Night:
    """The night in which a run was made, as far as one of its targets is concerned."""
    counted = run.counted.get(target)
    if counted is None:
        return Night(
            label, Completeness.NOT_RUN, f"nothing was recorded: the run {_describe_end(run)}", run.run_id, target
        )
    names, summed = _by_family(counted, family)
    why = "" if run.whole else f"{run.recorded:,} of {run.run.planned:,} planned records: the run {_describe_end(run)}"
    completeness = Completeness.WHOLE if run.whole else Completeness.PARTIAL
    return Night(label, completeness, why, run.run_id, target, dict(zip(names, summed, strict=True)), changed)


def _by_family(counted: TargetCounts, family: Family) -> tuple[tuple[str, ...], list[Counts]]:
    names, indices = _families(counted.keys, family)
    summed = np.zeros((len(names), 3), np.int64)
    np.add.at(summed, indices, counted.table)
    return names, list(map(Counts._make, summed.tolist()))


@lru_cache(maxsize=64)
def _families(keys: tuple[str, ...], family: Family) -> tuple[tuple[str, ...], Numbers]:
    """The families of operators, and which of them each operator belongs to; files of one suite share theirs."""
    each = [family(key) for key in keys]
    names = tuple(dict.fromkeys(each))
    return names, np.array([names.index(name) for name in each], np.int64)


def _describe_end(run: StoredRun) -> str:
    status = run.run.status
    known = {"running": "is still running or was killed", "interrupted": "was interrupted", "complete": "is incomplete"}
    return known.get(status, status)


def missing_nights(
    older: datetime | None, newer: datetime | None, interval: timedelta, labels: Counter[str]
) -> Iterator[Night]:
    """The nights between two runs in which one was due."""
    if older is None or newer is None:
        return
    for number in range(1, min(round((newer - older) / interval), MISSING_AT_MOST + 1)):
        day = (older + number * interval).date().isoformat()
        yield Night(night_label(day, labels), Completeness.NOT_RUN, "there is no run of it")


def usual_interval(moments: Sequence[datetime]) -> timedelta:
    """How far apart the runs are as a rule; a day at least."""
    apart = [(newer - older).total_seconds() for older, newer in pairwise(moments)]
    return max(DAY, timedelta(seconds=statistics.median(apart))) if apart else DAY


def night_label(day: str, labels: Counter[str]) -> str:
    """The day, with a number from the second night of that day on. labels: how many each day had; counts this one."""
    labels[day] += 1
    return day if labels[day] == 1 else f"{day} ({labels[day]})"
