"""Cases that change without a cause, from the last runs of a store."""

from __future__ import annotations

from dataclasses import replace

from epcheck.conformance.records.run import Run
from epcheck.reports.runs.fingerprint import fingerprint_class
from epcheck.reports.store.store import Store
from epcheck.reports.trend.case_history import FLAKY_FLIPS
from epcheck.reports.trend.trend import trend

REMEMBERED = 30
"""How many of the last runs are searched."""


def flaky_cases(store: Store, run: Run, target: str) -> frozenset[str]:
    """Ids of the cases that were flaky in the last REMEMBERED runs with a target of the same class.

    A flaky case changed at least FLAKY_FLIPS times, from night to night or from one repeat to the next, though the
    fingerprint did not change. A night in which it changed between repeats counts as two.
    """
    wanted = fingerprint_class(run, target)
    alike = [
        stored
        for stored in store.runs
        if any(fingerprint_class(stored.run, t) == wanted for t in stored.run.candidates)
    ]
    recent = trend(replace(store, runs=tuple(alike[-REMEMBERED:])), lambda operator: operator)
    same = [machine for machine in recent.machines if machine.fingerprint_class == wanted]
    own = [machine for machine in same if any(night.target == target for night in machine.nights)]
    names = {machine.name for machine in own or same}  # targets of one class in one run are machines of their own
    return frozenset(
        case.case_id
        for case in recent.flaky_cases
        if case.machine in names and case.flips + 2 * case.wavering >= FLAKY_FLIPS
    )
