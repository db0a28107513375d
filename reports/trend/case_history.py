"""The history of a case from night to night: when it broke, when it was fixed, and whether it is flaky.

A case that fails for one night, with the same driver and runtime as before, did not break: the night is an exception.
A case that changes often is flaky, and only a change that lasted is then reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

FLAKY_FLIPS = 4
"""A case that changed so often, though the fingerprint did not, is flaky. To break and to be fixed once are two."""

SETTLED_NIGHTS, SETTLED_SHARE = 10, 0.9
"""A flaky case has really broken when so many nights before and after it agree, and so large a share of them."""

NOT_RECORDED, PASSING, FAILING, UNSTABLE = -1, 0, 1, 2
"""The state of a case in a night. UNSTABLE: it failed in some repeats of the run only."""


@dataclass(frozen=True)
class Transition:
    """A reported change. before, after: indices of the last night of the old state and the first of the new."""

    before: int
    after: int
    broke: bool


@dataclass(frozen=True)
class CaseHistory:
    """A case over many nights.

    flips: how often it changed though the fingerprint did not. unstable: number of nights in which it changed from one
    repeat to the next. isolated: indices of the nights unlike those before and after.
    """

    transitions: tuple[Transition, ...]
    flips: int
    unstable: int
    isolated: tuple[int, ...] = ()

    @property
    def failed_once(self) -> bool:
        """Whether a single night is all that was ever wrong with it, but for changes that lasted."""
        return not self.unstable and len(self.isolated) == 1 and self.flips == 2

    @property
    def is_flaky(self) -> bool:
        """Whether it ever changed without a cause: from repeat to repeat, or for one night."""
        return self.unstable > 0 or bool(self.isolated) or self.flips >= FLAKY_FLIPS


@dataclass
class _Streak:
    """Consecutive nights of one state. agreeing: how many of `nights` have it; the others are one-night exceptions."""

    state: int
    first: int
    last: int
    nights: int
    agreeing: int

    @property
    def settled(self) -> bool:
        return self.agreeing >= max(SETTLED_NIGHTS, SETTLED_SHARE * self.nights)


def case_history(states: Sequence[int], explained: Callable[[int, int], bool]) -> CaseHistory:
    """Read the states of a case, one for each night.

    explained: whether driver, runtime or system of two nights (as indices, older first) differ.
    """
    unstable = list(states).count(UNSTABLE)
    streaks, exceptions = _without_exceptions(_streaks(states), explained)
    steps = list(pairwise(streaks))
    flips = 2 * len(exceptions) + sum(not explained(older.last, newer.first) for older, newer in steps)
    flaky = flips >= FLAKY_FLIPS
    return CaseHistory(
        tuple(
            Transition(older.last, newer.first, newer.state == FAILING)
            for older, newer in steps
            if not flaky or (older.settled and newer.settled)
        ),
        flips,
        unstable,
        tuple(exceptions),
    )


def _streaks(states: Sequence[int]) -> list[_Streak]:
    recorded = [night for night, state in enumerate(states) if state in (PASSING, FAILING)]
    streaks = []
    for state, group in groupby(recorded, key=states.__getitem__):
        nights = list(group)
        streaks.append(_Streak(state, nights[0], nights[-1], len(nights), len(nights)))
    return streaks


def _without_exceptions(
    streaks: Sequence[_Streak], explained: Callable[[int, int], bool]
) -> tuple[list[_Streak], list[int]]:
    """The streaks with single nights, at whose beginning nothing changed, joined to what is around them; these
    nights. The first and the last night are no exceptions: nobody knows what was before and what comes."""
    kept: list[_Streak] = []
    exceptions: list[int] = []
    for index, streak in enumerate(streaks):
        if kept and kept[-1].state == streak.state:  # the one between was an exception
            before = kept[-1]
            before.last = streak.last
            before.nights += streak.nights
            before.agreeing += streak.agreeing
        elif kept and streak.nights == 1 and index < len(streaks) - 1 and not explained(kept[-1].last, streak.first):
            exceptions.append(streak.first)
            kept[-1].nights += 1
        else:
            kept.append(streak)
    return kept, exceptions
