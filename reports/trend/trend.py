"""Many nights together: since when which case is broken, what changed with it, and which cases are flaky.

All of it is in the metadata of the files (`store.py`, `case_states.py`); of the rows only the ids of cases are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from epcheck.reports.runs import fingerprint
from epcheck.reports.runs.fingerprint import Changed
from epcheck.reports.store.machines import Machine, MachineRuns, machines_of
from epcheck.reports.store.nights import Family, Night
from epcheck.reports.store.run_file import FileProblem, FileProblemError
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

    night, before: labels of that night and of the last one with the other state; run_id, before_run_id: their runs.
    not_run: number of nights between the two that do not have the cases. changed: how the fingerprints of the two
    nights differ.
    """

    machine: str
    broke: bool
    night: str
    run_id: str
    before: str
    before_run_id: str
    not_run: int
    changed: tuple[Changed, ...]
    cases: tuple[AffectedCase, ...]

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
class Trend:
    """A store over time. labels: of all nights, in order. events: newest first. flaky_cases: the worst first."""

    store: Path
    labels: tuple[str, ...]
    families: tuple[str, ...]
    machines: tuple[Machine, ...]
    events: tuple[Event, ...]
    flaky_cases: tuple[FlakyCase, ...]
    problems: tuple[FileProblem, ...]


def trend(store: Store, family: Family, since: str = "") -> Trend:
    """The trend of the nights since a day (`2026-11-21`; empty: all). family: operator key -> its family.

    Files that turn out to be damaged become problems. Raises StoreError when the store cannot be queried at all.
    """
    store = replace(store, runs=tuple(run for run in store.runs if run.night >= since))
    while True:
        machine_runs = machines_of(store.runs, family)
        try:
            events, flaky_cases = _events_and_flaky_cases(machine_runs, family)
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
        problems=store.problems,
    )


def _events_and_flaky_cases(
    machine_runs: Sequence[MachineRuns], family: Family
) -> tuple[tuple[Event, ...], tuple[FlakyCase, ...]]:
    """The events, newest first, and the flaky cases, worst first."""
    table = read_cases(machine_runs)
    found = [_of_machine(machine, table, family) for machine in machine_runs]
    events = sorted((event for events, _ in found for event in events), key=_newest, reverse=True)
    flaky_cases = sorted((case for _, cases in found for case in cases), key=_least_flaky_last)
    return tuple(events), tuple(flaky_cases)


def _of_machine(machine: MachineRuns, table: CaseTable, family: Family) -> tuple[list[Event], list[FlakyCase]]:
    states = case_states(machine, table)
    failing, unstable = states == FAILING, states == UNSTABLE
    varying = np.flatnonzero((failing.any(axis=0) & (states == PASSING).any(axis=0)) | unstable.any(axis=0))
    changed = np.cumsum([bool(_night(machine, run).changed) for run in range(len(machine.runs))]).tolist()
    transitions: dict[Transition, list[tuple[int, bool]]] = defaultdict(list)
    flaky_cases = []
    for code in varying.tolist():
        history = case_history(states[:, code].tolist(), lambda older, newer: changed[older] != changed[newer])
        for transition in history.transitions:
            transitions[transition].append((code, transition == history.transitions[-1]))
        if history.is_flaky:
            flaky_cases.append(_flaky_case(machine, table, family, code, states[:, code], history))
    return [_event(machine, table, family, transition, codes) for transition, codes in transitions.items()], flaky_cases


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
        broke=transition.broke,
        night=after.label,
        run_id=after.run_id,
        before=before.label,
        before_run_id=before.run_id,
        not_run=machine.night_indices[transition.after] - machine.night_indices[transition.before] - 1,
        changed=fingerprint.changes(machine.fingerprint(transition.before), machine.fingerprint(transition.after)),
        cases=tuple(
            AffectedCase(
                table.case_ids[code], table.operators[code], family(table.operators[code]), failed[code], lasting
            )
            for code, lasting in codes
        ),
    )


def _night(machine: MachineRuns, run: int) -> Night:
    return machine.machine.nights[machine.night_indices[run]]
