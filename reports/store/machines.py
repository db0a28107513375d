"""The runs of a store, by the machine that they ran on.

A machine is a class of fingerprints (see `fingerprint.py`): a provider on an adapter with one selection of cases. Where
one run had several targets of a class, as two releases of a runtime, each is a machine of its own, named by the target.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter

from epcheck.conformance.records.run import Run
from epcheck.reports.family import Family
from epcheck.reports.runs import fingerprint
from epcheck.reports.runs.fingerprint import FingerprintClass
from epcheck.reports.runs.parquet import TargetCounts
from epcheck.reports.store.nights import DAY, Night, missing_nights, night_label, night_of, usual_interval
from epcheck.reports.store.run_file import StoredRun

UNKNOWN = "unknown"
"""The adapter of a run that never reached its target."""


@dataclass(frozen=True)
class Machine:
    """A machine and its nights, oldest first. name: short, and no other machine's of the same store."""

    name: str
    fingerprint_class: FingerprintClass
    nights: tuple[Night, ...]


@dataclass(frozen=True)
class MachineRuns:
    """A machine with its runs, each with the name of its target; runs and nights are in the order of time.

    night_indices: for each run, which of the machine's nights it is.
    """

    machine: Machine
    runs: tuple[tuple[StoredRun, str], ...]
    night_indices: tuple[int, ...]

    def find_counts(self, index: int) -> TargetCounts | None:
        """The counts of a run's target; None where nothing is recorded."""
        stored, target = self.runs[index]
        return stored.counted.get(target)

    def run_target(self, index: int) -> tuple[Run, str]:
        """A run and the name of its target."""
        stored, target = self.runs[index]
        return stored.run, target

    def fingerprint(self, index: int) -> dict[str, str]:
        """The fingerprint of a run's target."""
        return fingerprint.fingerprint(*self.run_target(index))


def machines_of(runs: Sequence[StoredRun], family: Family) -> tuple[MachineRuns, ...]:
    """Every machine that runs were made on, sorted by name. runs: in the order of their start."""
    last = max((moment for stored in runs if (moment := stored.moment)), default=None)
    return tuple(_machine_runs(*named, family, last) for named in sorted(_by_machine(runs), key=itemgetter(0)))


Runs = Sequence[tuple[StoredRun, str]]
"""Runs, each with the name of a target of it."""


def _by_machine(runs: Sequence[StoredRun]) -> list[tuple[str, FingerprintClass, Runs]]:
    """Each machine by its name."""
    classes = [[(fingerprint.fingerprint_class(run.run, target), target) for target in run.targets] for run in runs]
    shared = {cls for pairs in classes for cls, count in Counter(cls for cls, _ in pairs).items() if count > 1}
    known: dict[FingerprintClass, list[datetime | None]] = defaultdict(list)
    for run, classes_of_run in zip(runs, classes, strict=True):
        for cls, _ in classes_of_run:
            if cls.adapter != UNKNOWN:
                known[cls].append(run.moment)
    found: dict[tuple[FingerprintClass, str], list[tuple[StoredRun, str]]] = defaultdict(list)
    for run, classes_of_run in zip(runs, classes, strict=True):
        for cls, target in classes_of_run:
            found[_resolve_class(cls, run.moment, known), target if cls in shared else ""].append((run, target))
    return [
        (name, cls, found[cls, target]) for name, (cls, target) in zip(_machine_names(list(found)), found, strict=True)
    ]


def _machine_names(machines: Sequence[tuple[FingerprintClass, str]]) -> list[str]:
    """The adapters, with as much before and after as tells the machines apart."""
    providers, selections = ({getattr(cls, part) for cls, _ in machines} for part in ("provider", "selection"))
    return [
        f"{cls.provider} on {cls.adapter}" * (len(providers) > 1)
        + cls.adapter * (len(providers) == 1)
        + f", {cls.selection}" * (len(selections) > 1)
        + f", as {target}" * bool(target)
        for cls, target in machines
    ]


def _resolve_class(
    cls: FingerprintClass, moment: datetime | None, known: Mapping[FingerprintClass, Sequence[datetime | None]]
) -> FingerprintClass:
    """The class of a run that may not have reached its target, and then does not know its adapter.

    Its adapter is clear where it is the only one of that provider and selection, or the only one of them without
    another run that night.

    known: when the runs of each class started.
    """
    if cls.adapter != UNKNOWN:
        return cls
    like = [other for other in known if (other.provider, other.selection) == (cls.provider, cls.selection)]
    if len(like) > 1 and moment:
        like = [other for other in like if not any(start and abs(start - moment) < DAY / 2 for start in known[other])]
    return like[0] if len(like) == 1 else cls


def _machine_runs(name: str, cls: FingerprintClass, runs: Runs, family: Family, last: datetime | None) -> MachineRuns:
    interval = usual_interval([moment for run, _ in runs if (moment := run.moment)])
    labels: Counter[str] = Counter()
    nights: list[Night] = []
    night_indices: list[int] = []
    reached: dict[str, str] | None = None
    before: datetime | None = None
    for run, target in runs:
        nights += missing_nights(before, run.moment, interval, labels)
        night_indices.append(len(nights))
        current = fingerprint.fingerprint(run.run, target) if target in run.run.targets else None
        changed = () if reached is None or current is None else fingerprint.changes(reached, current)
        nights.append(night_of(night_label(run.night, labels), run, target, changed, family))
        reached = reached if current is None else current
        if cls.adapter != UNKNOWN:  # where it is unknown, nobody knows when a night is due
            before = run.moment or before
    nights += missing_nights(before, last and last + interval, interval, labels)
    return MachineRuns(Machine(name, cls, tuple(nights)), tuple(runs), tuple(night_indices))
