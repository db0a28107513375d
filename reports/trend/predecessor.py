"""What a store says for a night: which run it is held against, and which cases change without a cause."""

from __future__ import annotations

from dataclasses import dataclass, replace

from epcheck.conformance.records.record import Run
from epcheck.reports.diff import sides
from epcheck.reports.diff.difference import Side
from epcheck.reports.runs.fingerprint import fingerprint_class
from epcheck.reports.store import history
from epcheck.reports.store.history import History, Stored, TroubleError
from epcheck.reports.trend import trend
from epcheck.reports.trend.streaks import FLAKY_FLIPS

REMEMBERED = 30
"""Runs that are looked at for cases that change without a cause."""


@dataclass(frozen=True)
class Predecessor:
    """A target of a stored run."""

    stored: Stored
    target: str


def last_good(opened: History, run: Run, target: str) -> Predecessor | None:
    """The newest run before `run` with a target of the same class that ran to its end and was not worse than the night
    before it; None when there is none.

    A night that was worse is passed over: what broke in it stays a new failure until it is mended, or expected with a
    reason. Of several targets of one class in a run, the one of the same name is taken; one whose name another target
    of this run has belongs to that.
    """
    for stored in reversed(opened.runs):
        is_before = stored.run_id != run.run_id and stored.run.started <= run.started
        if is_before and stored.whole and (found := _alike(stored, run, target)):
            return Predecessor(stored, found)
    return None


def last_good_side(opened: History, run: Run, target: str) -> tuple[Side | None, History]:
    """`last_good` with its rows, and the history without files whose rows turn out to be damaged: they are troubles
    then, and the night before them is taken."""
    while found := last_good(opened, run, target):
        try:
            return sides.side_at(found.stored.path, found.target, found.stored.run), opened
        except TroubleError as error:
            opened = history.without(opened, error.trouble)
    return None, opened


def _alike(stored: Stored, run: Run, target: str) -> str | None:
    wanted = fingerprint_class(run, target)
    every = [name for name in stored.run.candidates if fingerprint_class(stored.run, name) == wanted]
    good = [name for name in every if name not in stored.run.worse]
    if target in every:
        return target if target in good else None
    return next((name for name in good if name not in run.candidates), None)


def flaky_cases(opened: History, run: Run, target: str) -> frozenset[str]:
    """Ids of the cases that, in the last REMEMBERED runs with a target of the same class, changed with nothing else
    changing, from night to night or from one repeat to the next, as often as a flaky case does (see `streaks`)."""
    wanted = fingerprint_class(run, target)
    alike = [one for one in opened.runs if any(fingerprint_class(one.run, t) == wanted for t in one.run.candidates)]
    recent = trend.trend(replace(opened, runs=tuple(alike[-REMEMBERED:])), lambda operator: operator)
    same = [machine for machine in recent.machines if machine.fingerprint_class == wanted]
    own = [machine for machine in same if any(night.target == target for night in machine.nights)]
    names = {machine.name for machine in own or same}  # targets of one class in one run are machines of their own
    return frozenset(
        flake.case_id
        for flake in recent.flakes
        if flake.machine in names and flake.flips + 2 * flake.wavering >= FLAKY_FLIPS
    )
