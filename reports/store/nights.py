"""The runs of a store as nights of machines: which night ran whole, in part or not at all, and what was new in it.

A machine is a class of fingerprints (see `fingerprint.py`): a provider on an adapter with one selection of cases. Where
one run had several targets of a class, as two releases of a runtime, each is a machine of its own, named by the target.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter

import numpy as np

from epcheck.reports.runs import fingerprint
from epcheck.reports.runs.fingerprint import Changed, FingerprintClass
from epcheck.reports.runs.parquet import Counted, Counts, Numbers
from epcheck.reports.store.history import Stored

MISSING_AT_MOST = 366
"""Nights told as missing between two runs; a clock that was wrong once must not make thousands."""

DAY = timedelta(days=1)

UNKNOWN = "unknown"
"""The adapter of a run that never reached its target."""

Family = Callable[[str], str]
"""Operator key -> the family it belongs to."""


class Ran(StrEnum):
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
    ran: Ran
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
        if self.ran is not Ran.WHOLE or self.families is None:
            return None
        counts = self.counts if family is None else self.families.get(family, Counts(0, 0, 0))
        judged = counts.passes + counts.failing
        return counts.passes / judged if judged else None


@dataclass(frozen=True)
class Machine:
    """A machine and its nights, oldest first. name: short, and no other machine's of the same store."""

    name: str
    fingerprint_class: FingerprintClass
    nights: tuple[Night, ...]


@dataclass(frozen=True)
class Observed:
    """A machine as it is worked on: its runs with their targets beside its nights; both in the order of time.

    at: index of the night of each run.
    """

    machine: Machine
    runs: tuple[tuple[Stored, str], ...]
    at: tuple[int, ...]

    def counted(self, index: int) -> Counted | None:
        """What the file of a run says of the target; None where nothing is recorded."""
        stored, target = self.runs[index]
        return stored.counted.get(target)

    def fingerprint(self, index: int) -> dict[str, str]:
        stored, target = self.runs[index]
        return fingerprint.fingerprint(stored.run, target)


def machines(runs: Sequence[Stored], family: Family) -> tuple[Observed, ...]:
    """Every machine that the runs, in the order of their start, know; by name."""
    last = max((moment for stored in runs if (moment := stored.moment)), default=None)
    return tuple(_observed(*named, family, last) for named in sorted(_by_machine(runs), key=itemgetter(0)))


def total(every: Iterable[Counts]) -> Counts:
    """The counts added up."""
    passes = failing = other = 0
    for counts in every:
        passes, failing, other = passes + counts[0], failing + counts[1], other + counts[2]
    return Counts(passes, failing, other)


Runs = Sequence[tuple[Stored, str]]
"""Runs, each with the name of a target of it."""


def _by_machine(runs: Sequence[Stored]) -> list[tuple[str, FingerprintClass, Runs]]:
    """Each machine by its name."""
    told = [[(fingerprint.fingerprint_class(run.run, target), target) for target in run.targets] for run in runs]
    shared = {cls for of_run in told for cls, count in Counter(cls for cls, _ in of_run).items() if count > 1}
    known: dict[FingerprintClass, list[datetime | None]] = defaultdict(list)
    for run, of_run in zip(runs, told, strict=True):
        for cls, _ in of_run:
            if cls.adapter != UNKNOWN:
                known[cls].append(run.moment)
    found: dict[tuple[FingerprintClass, str], list[tuple[Stored, str]]] = defaultdict(list)
    for run, of_run in zip(runs, told, strict=True):
        for cls, target in of_run:
            found[_meant(cls, run.moment, known), target if cls in shared else ""].append((run, target))
    return [(name, cls, found[cls, target]) for name, (cls, target) in zip(_names(list(found)), found, strict=True)]


def _names(machines: Sequence[tuple[FingerprintClass, str]]) -> list[str]:
    """The adapters, with as much before and after as tells the machines apart."""
    providers, selections = ({getattr(cls, part) for cls, _ in machines} for part in ("provider", "selection"))
    return [
        f"{cls.provider} on {cls.adapter}" * (len(providers) > 1)
        + cls.adapter * (len(providers) == 1)
        + f", {cls.selection}" * (len(selections) > 1)
        + f", as {target}" * bool(target)
        for cls, target in machines
    ]


def _meant(
    cls: FingerprintClass, moment: datetime | None, known: Mapping[FingerprintClass, Sequence[datetime | None]]
) -> FingerprintClass:
    """A run that never reached its target does not tell on which adapter. It is clear where only one can be meant: it
    is the only one of that provider and selection, or the only one of them without another run that night.

    known: when the runs of each class began.
    """
    if cls.adapter != UNKNOWN:
        return cls
    like = [one for one in known if (one.provider, one.selection) == (cls.provider, cls.selection)]
    if len(like) > 1 and moment:
        like = [one for one in like if not any(other and abs(other - moment) < DAY / 2 for other in known[one])]
    return like[0] if len(like) == 1 else cls


def _observed(name: str, cls: FingerprintClass, runs: Runs, family: Family, last: datetime | None) -> Observed:
    step = _step([moment for run, _ in runs if (moment := run.moment)])
    labels: Counter[str] = Counter()
    nights: list[Night] = []
    at: list[int] = []
    reached: dict[str, str] | None = None
    before: datetime | None = None
    for run, target in runs:
        nights += _missing(before, run.moment, step, labels)
        at.append(len(nights))
        told = fingerprint.fingerprint(run.run, target) if target in run.run.targets else None
        changed = () if reached is None or told is None else fingerprint.changes(reached, told)
        nights.append(_night(_label(run.night, labels), run, target, changed, family))
        reached = reached if told is None else told
        if cls.adapter != UNKNOWN:  # of whose nights nobody knows when one is due
            before = run.moment or before
    nights += _missing(before, last and last + step, step, labels)
    return Observed(Machine(name, cls, tuple(nights)), tuple(runs), tuple(at))


def _night(label: str, run: Stored, target: str, changed: tuple[Changed, ...], family: Family) -> Night:
    counted = run.counted.get(target)
    if counted is None:
        return Night(label, Ran.NOT_RUN, f"nothing was recorded: the run {_ended(run)}", run.run_id, target)
    names, summed = _by_family(counted, family)
    why = "" if run.whole else f"{run.recorded:,} of {run.run.planned:,} planned records: the run {_ended(run)}"
    ran = Ran.WHOLE if run.whole else Ran.PARTIAL
    return Night(label, ran, why, run.run_id, target, dict(zip(names, summed, strict=True)), changed)


def _by_family(counted: Counted, family: Family) -> tuple[tuple[str, ...], list[Counts]]:
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


def _ended(run: Stored) -> str:
    status = run.run.status
    known = {"running": "is still running or was killed", "interrupted": "was interrupted", "complete": "is incomplete"}
    return known.get(status, status)


def _missing(older: datetime | None, newer: datetime | None, step: timedelta, labels: Counter[str]) -> Iterator[Night]:
    """The nights between two runs in which one was due."""
    if older is None or newer is None:
        return
    for number in range(1, min(round((newer - older) / step), MISSING_AT_MOST + 1)):
        day = (older + number * step).date().isoformat()
        yield Night(_label(day, labels), Ran.NOT_RUN, "there is no run of it")


def _step(moments: Sequence[datetime]) -> timedelta:
    """How far apart the runs are as a rule; a day at least."""
    apart = [(newer - older).total_seconds() for older, newer in pairwise(moments)]
    return max(DAY, timedelta(seconds=statistics.median(apart))) if apart else DAY


def _label(day: str, labels: Counter[str]) -> str:
    labels[day] += 1
    return day if labels[day] == 1 else f"{day} ({labels[day]})"
