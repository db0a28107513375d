"""What a search over releases comes to, in words."""

from __future__ import annotations

from collections.abc import Sequence

from epcheck.conformance.releases.bisection import CaseHistory
from epcheck.conformance.releases.search import (
    ALWAYS_WRONG,
    CANNOT_RUN,
    FIRST_RIGHT,
    FIRST_WRONG,
    NEVER_RUN,
    NEVER_WRONG,
    NOT_TRIED,
    RIGHT,
)


def sentence(history: CaseHistory, releases: Sequence[str]) -> str:
    """`wrong since 1.19.2 (mismatch), right in 1.18.1`. releases: those of the search, the oldest first."""
    found = history.conclusion
    if found.before is None or found.since is None:
        return NOT_TRIED
    before, since = releases[found.before], releases[found.since]
    ends = _of(history, before) if before == since else f"{_of(history, before)} and {_of(history, since)}"
    match found.kind:
        case kind if kind == ALWAYS_WRONG:
            words = f"{ALWAYS_WRONG}: in {ends}{_name_ends(before, since)}"
        case kind if kind == NEVER_WRONG:
            words = f"{NEVER_WRONG}: right in {ends}{_name_ends(before, since)}"
        case kind if kind == NEVER_RUN:
            words = f"{NEVER_RUN}: neither end can run it, {ends}" if before != since else f"{NEVER_RUN}: {ends}"
        case kind if kind in (FIRST_WRONG, FIRST_RIGHT):
            words = _since(history, "wrong" if kind == FIRST_WRONG else "right", before, since)
        case _:
            words = f"not run since {_of(history, since)}, {history.trials[before].state} in {_of(history, before)}"
    return words + _describe_skipped(found.skipped, releases) + _unsteady(history)


def _since(history: CaseHistory, state: str, before: str, since: str) -> str:
    earlier = history.trials[before].state
    if earlier == CANNOT_RUN:
        return f"{state} since {_of(history, since)}, the first that runs it; {before} does not"
    return f"{state} since {_of(history, since)}, {earlier} in {_of(history, before)}"


def _of(history: CaseHistory, release: str) -> str:
    """`1.19.2 (mismatch)`; without the status where that is just right."""
    trial = history.trials[release]
    return release if trial.state == RIGHT else f"{release} ({trial.status})"


def _name_ends(before: str, since: str) -> str:
    return "" if before == since else ", the ends"


def _describe_skipped(skipped: Sequence[int], releases: Sequence[str]) -> str:
    if not skipped:
        return ""
    names = ", ".join(releases[index] for index in skipped)
    return f"; or since {names} already, which could not be judged"


def _unsteady(history: CaseHistory) -> str:
    names = [release for release, trial in history.trials.items() if trial.unsteady]
    if not names:
        return ""
    return f"; unsteady in {', '.join(names)}: where it is right, that may be chance"
