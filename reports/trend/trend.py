"""Many nights together: since when which case is broken, what changed with it, and which cases are flaky.

All of it is in the metadata of the files (`store.py`, `case_states.py`); of the rows only the ids of cases are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from epcheck.reports.family import Family
from epcheck.reports.runs import fingerprint
from epcheck.reports.runs.fingerprint import Changed
from epcheck.reports.store.machines import Machine, MachineRuns, machines_of
from epcheck.reports.store.nights import Night
from epcheck.reports.store.run_file import FileProblem, FileProblemError, StoredRun
from epcheck.reports.store.store import Store
from epcheck.reports.trend.case_history import (
    FAILING,
    NOT_RECORDED,
    PASSING,
    UNSTABLE,
    CaseHistory,
    Transition,
    case_history,
)
from epcheck.reports.trend.case_states import CaseTable, StateMatrix, case_states, failing_statuses, read_cases
from epcheck.reports.trend.event_causes import read_event_causes

TOGETHER = 5
"""Cases that failed in one and the same night alone are one event, from so many on."""


@dataclass(frozen=True)
class AffectedCase:
    """A case of an event. status: that of its failure, on the first night after a break or the last before a repair.
    lasting: whether the case is still as the event left it in the newest night that has the case."""

    case_id: str
    operator: str
    family: str
    status: str
    lasting: bool


@dataclass(frozen=True)
class Event:
    """Cases of a machine that broke, or were fixed, in the same night.

    target: in that night's run. night, before: labels of that night and of the last one with the other state; run_id,
    before_run_id: their runs.
    not_run: number of nights between the two that do not have the cases. changed: how the fingerprints of the two
    nights differ. unknown: of driver, runtime and OS, what one of them does not tell. causes: of the
    failures, as that run has them: titles with the number of their cases, the largest first; empty where it has none.
    """

    machine: str
    target: str
    broke: bool
    night: str
    run_id: str
    before: str
    before_run_id: str
    not_run: int
    changed: tuple[Changed, ...]
    cases: tuple[AffectedCase, ...]
    causes: tuple[tuple[str, int], ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def failing_run_id(self) -> str:
        """The run in which its cases fail."""
        return self.run_id if self.broke else self.before_run_id

    @property
    def lasting(self) -> int:
        """How many of the cases are still as the event left them."""
        return sum(case.lasting for case in self.cases)


@dataclass(frozen=True)
class FlakyCase:
    """A flaky case. wavering: nights in which it changed from one repeat to the next. flips: how often it changed from
    one night to another though the fingerprint did not. failing: nights in which it failed. nights: nights that have
    it. last: label of the last night in which it failed.
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
class SingleNight:
    """Cases of a machine that failed together in one night alone, though nothing is known to have changed: a crash of
    the driver or a lost device, not many flaky cases. night: its label. status, of AffectedCase: in that night."""

    machine: str
    target: str
    night: str
    run_id: str
    cases: tuple[AffectedCase, ...]


@dataclass(frozen=True)
class Trend:
    """A store over time. labels: of all nights, in order. events, single_nights: newest first. flaky_cases: the worst
    first; a case of a single night is not among them."""

    store: Path
    labels: tuple[str, ...]
    families: tuple[str, ...]
    machines: tuple[Machine, ...]
    events: tuple[Event, ...]
    flaky_cases: tuple[FlakyCase, ...]
    single_nights: tuple[SingleNight, ...]
    problems: tuple[FileProblem, ...]


def trend(store: Store, family: Family, since: str = "") -> Trend:
    """The trend of the nights since a day (`2026-11-21`; empty: all). family: operator key -> its family.

    Files that turn out to be damaged become problems. Raises StoreError when the store cannot be queried at all.
    """
    store = replace(store, runs=tuple(run for run in store.runs if run.night >= since))
    while True:
        machine_runs = machines_of(store.runs, family)
        try:
            events, flaky_cases, single_nights = _told(machine_runs, family)
            events = _with_causes(events, store.runs)
        except FileProblemError as error:
            store = store.without(error.problem)
        else:
            break
    machines = tuple(each.machine for each in machine_runs)
    return Trend(
        store=store.folder,
        labels=tuple(sorted({night.label for machine in machines for night in machine.nights})),
        families=tuple(
            sorted({name for machine in machines for night in machine.nights for name in night.families or ()})
        ),
        machines=machines,
        events=events,
        flaky_cases=flaky_cases,
        single_nights=single_nights,
        problems=store.problems,
    )


def _with_causes(events: Sequence[Event], runs: Sequence[StoredRun]) -> tuple[Event, ...]:
    failing = [(event.failing_run_id, event.target, [case.case_id for case in event.cases]) for event in events]
    causes = read_event_causes(runs, failing)
    return tuple(replace(event, causes=found) for event, found in zip(events, causes, strict=True))


def _told(
    machine_runs: Sequence[MachineRuns], family: Family
) -> tuple[tuple[Event, ...], tuple[FlakyCase, ...], tuple[SingleNight, ...]]:
    """The events, newest first, the flaky cases, worst first, and the single nights, newest first."""
    table = read_cases(machine_runs)
    found = [_of_machine(machine, table, family) for machine in machine_runs]
    events = sorted((event for each in found for event in each.events), key=_newest, reverse=True)
    flaky_cases = sorted((case for each in found for case in each.flaky_cases), key=_least_flaky_last)
    nights = sorted((night for each in found for night in each.single_nights), key=lambda n: n.night, reverse=True)
    return tuple(events), tuple(flaky_cases), tuple(nights)


class _OfMachine(NamedTuple):
    events: list[Event]
    flaky_cases: list[FlakyCase]
    single_nights: list[SingleNight]


def _of_machine(machine: MachineRuns, table: CaseTable, family: Family) -> _OfMachine:
    states = case_states(machine, table)
    failing, unstable = states == FAILING, states == UNSTABLE
    varying = np.flatnonzero((failing.any(axis=0) & (states == PASSING).any(axis=0)) | unstable.any(axis=0))
    changed = np.cumsum([bool(_night(machine, run).changed) for run in range(len(machine.runs))]).tolist()
    transitions: dict[Transition, list[tuple[int, bool]]] = defaultdict(list)
    flaky: dict[int, CaseHistory] = {}
    once: dict[int, list[int]] = defaultdict(list)
    for code in varying.tolist():
        history = case_history(states[:, code].tolist(), lambda older, newer: changed[older] != changed[newer])
        for transition in history.transitions:
            transitions[transition].append((code, transition == history.transitions[-1]))
        if history.is_flaky:
            flaky[code] = history
        if history.failed_once and failing[history.isolated[0], code]:
            once[history.isolated[0]].append(code)
    together = {run: codes for run, codes in once.items() if len(codes) >= TOGETHER}
    for code in (code for codes in together.values() for code in codes):
        del flaky[code]
    return _OfMachine(
        [_event(machine, table, family, transition, codes) for transition, codes in transitions.items()],
        [_flaky_case(machine, table, family, code, states[:, code], history) for code, history in flaky.items()],
        [_single_night(machine, table, family, run, codes) for run, codes in together.items()],
    )


def _single_night(
    machine: MachineRuns, table: CaseTable, family: Family, run: int, codes: Sequence[int]
) -> SingleNight:
    night, failed = _night(machine, run), failing_statuses(machine, run, table)
    cases = [
        AffectedCase(table.case_ids[code], table.operators[code], family(table.operators[code]), failed[code], False)
        for code in codes
    ]
    return SingleNight(machine.machine.name, night.target, night.label, night.run_id, tuple(cases))


def _flaky_case(
    machine: MachineRuns, table: CaseTable, family: Family, code: int, states: StateMatrix, history: CaseHistory
) -> FlakyCase:
    failing = np.flatnonzero((states == FAILING) | (states == UNSTABLE))
    return FlakyCase(
        machine=machine.machine.name,
        case_id=table.case_ids[code],
        operator=table.operators[code],
        family=family(table.operators[code]),
        wavering=history.unstable,
        flips=history.flips,
        failing=len(failing),
        nights=int(np.count_nonzero(states != NOT_RECORDED)),
        last=_night(machine, int(failing[-1])).label,
    )


def _least_flaky_last(case: FlakyCase) -> tuple[int, str, str]:
    return -case.wavering - case.flips, case.case_id, case.machine


def _newest(event: Event) -> tuple[str, bool, int]:
    return event.night, event.broke, len(event.cases)


def _event(
    machine: MachineRuns, table: CaseTable, family: Family, transition: Transition, codes: Sequence[tuple[int, bool]]
) -> Event:
    """codes: the code of each case, and whether the case is still as the event left it."""
    after, before = _night(machine, transition.after), _night(machine, transition.before)
    failed = failing_statuses(machine, transition.after if transition.broke else transition.before, table)
    return Event(
        machine=machine.machine.name,
        target=after.target,
        broke=transition.broke,
        night=after.label,
        run_id=after.run_id,
        before=before.label,
        before_run_id=before.run_id,
        not_run=machine.night_indices[transition.after] - machine.night_indices[transition.before] - 1,
        changed=fingerprint.changes(machine.fingerprint(transition.before), machine.fingerprint(transition.after)),
        unknown=fingerprint.unknown_parts(machine.run_target(transition.before), machine.run_target(transition.after)),
        cases=tuple(
            AffectedCase(
                table.case_ids[code], table.operators[code], family(table.operators[code]), failed[code], lasting
            )
            for code, lasting in codes
        ),
    )


def _night(machine: MachineRuns, run: int) -> Night:
    return machine.machine.nights[machine.night_indices[run]]
