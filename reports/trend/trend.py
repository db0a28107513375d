"""What many nights say together: since when which case is broken, what came with it, and which cases merely flicker.

All that is asked stands in the ends of the files (`history.py`, `states.py`); of rows only the ids of cases are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from epcheck.reports.runs import fingerprint
from epcheck.reports.runs.fingerprint import Changed
from epcheck.reports.store import history, nights
from epcheck.reports.store.history import History, Trouble, TroubleError
from epcheck.reports.store.nights import Family, Machine, Night, Observed
from epcheck.reports.trend.states import Cases, States, cases, states, statuses
from epcheck.reports.trend.streaks import BAD, GOOD, UNKNOWN, WAVERING, Story, Switch, story


@dataclass(frozen=True)
class Affected:
    """A case of an event. status: on the first night after a break, on the last before a mending. lasting: whether it
    is still so in the newest night that has the case."""

    case_id: str
    operator: str
    family: str
    status: str
    lasting: bool


@dataclass(frozen=True)
class Event:
    """Cases of a machine that broke, or were mended, in the same night.

    night, before: labels of that night and of the last one in which they were otherwise; run_id, before_run_id: of
    their runs. not_run: nights between the two that say nothing of them. changed: what came with it, as far as the
    fingerprints tell.
    """

    machine: str
    broke: bool
    night: str
    run_id: str
    before: str
    before_run_id: str
    not_run: int
    changed: tuple[Changed, ...]
    cases: tuple[Affected, ...]

    @property
    def lasting(self) -> int:
        """How many of the cases are still so."""
        return sum(case.lasting for case in self.cases)


@dataclass(frozen=True)
class Flake:
    """A case that flickers. wavering: nights in which it changed from one repeat to the next. flips: how often it
    changed from one night to another with nothing else changing. failing, nights: in which it failed, and was recorded.
    """

    machine: str
    case_id: str
    operator: str
    family: str
    wavering: int
    flips: int
    failing: int
    nights: int
    last: str


@dataclass(frozen=True)
class Trend:
    """A store over time. labels: of all nights, in order. events: newest first. flakes: the worst first."""

    store: Path
    labels: tuple[str, ...]
    families: tuple[str, ...]
    machines: tuple[Machine, ...]
    events: tuple[Event, ...]
    flakes: tuple[Flake, ...]
    troubles: tuple[Trouble, ...]


def trend(opened: History, family: Family, since: str = "") -> Trend:
    """What the nights since a day (`2026-11-21`; empty: all) say. family: operator key -> its family.

    Files that turn out to be damaged become troubles. Raises StoreError when the store cannot be asked at all.
    """
    opened = replace(opened, runs=tuple(run for run in opened.runs if run.night >= since))
    while True:
        observed = nights.machines(opened.runs, family)
        try:
            events, flakes = _cases(observed, family)
        except TroubleError as error:
            opened = history.without(opened, error.trouble)
        else:
            break
    machines = tuple(each.machine for each in observed)
    return Trend(
        store=opened.folder,
        labels=tuple(sorted({night.label for machine in machines for night in machine.nights})),
        families=tuple(
            sorted({name for machine in machines for night in machine.nights for name in night.families or ()})
        ),
        machines=machines,
        events=events,
        flakes=flakes,
        troubles=opened.troubles,
    )


def _cases(observed: Sequence[Observed], family: Family) -> tuple[tuple[Event, ...], tuple[Flake, ...]]:
    """The events, newest first, and the flakes, worst first."""
    known = cases(observed)
    found = [_of_machine(machine, known, family) for machine in observed]
    events = sorted((event for events, _ in found for event in events), key=_newest, reverse=True)
    flakes = sorted((flake for _, flakes in found for flake in flakes), key=_steadiest)
    return tuple(events), tuple(flakes)


def _of_machine(machine: Observed, known: Cases, family: Family) -> tuple[list[Event], list[Flake]]:
    every = states(machine, known)
    bad, wavers = every == BAD, every == WAVERING
    unsteady = np.flatnonzero((bad.any(axis=0) & (every == GOOD).any(axis=0)) | wavers.any(axis=0))
    changed = np.cumsum([bool(_night(machine, run).changed) for run in range(len(machine.runs))]).tolist()
    switches: dict[Switch, list[tuple[int, bool]]] = defaultdict(list)
    flakes = []
    for code in unsteady.tolist():
        told = story(every[:, code].tolist(), lambda older, newer: changed[older] != changed[newer])
        for switch in told.switches:
            switches[switch].append((code, switch == told.switches[-1]))
        if told.flickers:
            flakes.append(_flake(machine, known, family, code, every[:, code], told))
    return [_event(machine, known, family, switch, codes) for switch, codes in switches.items()], flakes


def _flake(machine: Observed, known: Cases, family: Family, code: int, of_case: States, told: Story) -> Flake:
    failing = np.flatnonzero((of_case == BAD) | (of_case == WAVERING))
    return Flake(
        machine=machine.machine.name,
        case_id=known.case_ids[code],
        operator=known.operators[code],
        family=family(known.operators[code]),
        wavering=told.wavering,
        flips=told.flips,
        failing=len(failing),
        nights=int(np.count_nonzero(of_case != UNKNOWN)),
        last=_night(machine, int(failing[-1])).label,
    )


def _steadiest(flake: Flake) -> tuple[int, str, str]:
    return -flake.wavering - flake.flips, flake.case_id, flake.machine


def _newest(event: Event) -> tuple[str, bool, int]:
    return event.night, event.broke, len(event.cases)


def _event(machine: Observed, known: Cases, family: Family, switch: Switch, codes: Sequence[tuple[int, bool]]) -> Event:
    """codes: of each case, and whether it is still so."""
    after, before = _night(machine, switch.after), _night(machine, switch.before)
    failed = statuses(machine, switch.after if switch.broke else switch.before, known)
    return Event(
        machine=machine.machine.name,
        broke=switch.broke,
        night=after.label,
        run_id=after.run_id,
        before=before.label,
        before_run_id=before.run_id,
        not_run=machine.at[switch.after] - machine.at[switch.before] - 1,
        changed=fingerprint.changes(machine.fingerprint(switch.before), machine.fingerprint(switch.after)),
        cases=tuple(
            Affected(known.case_ids[code], known.operators[code], family(known.operators[code]), failed[code], lasting)
            for code, lasting in codes
        ),
    )


def _night(machine: Observed, run: int) -> Night:
    return machine.machine.nights[machine.at[run]]
