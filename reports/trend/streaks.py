"""What became of a case from night to night: when it broke, when it was mended, and whether it merely flickers.

A case that fails one night alone, with the same driver and runtime as before, has not broken and been mended: it
flickered. One that flickers often is flaky, and then only a change that lasted is told as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

FLAKY_FLIPS = 4
"""A case that changed so often, with nothing else changing, is flaky: breaking and being mended once are two."""

SETTLED_NIGHTS, SETTLED_SHARE = 10, 0.9
"""A flaky case has really broken when so many nights before and after it agree, and so large a share of them."""


UNKNOWN, GOOD, BAD, WAVERING = -1, 0, 1, 2
"""What a night says of a case: not recorded, as it should be, failing, or one thing and another within the run."""


@dataclass(frozen=True)
class Switch:
    """A change that is told. before, after: the last night of the old state and the first of the new, as indices."""

    before: int
    after: int
    broke: bool


@dataclass(frozen=True)
class Story:
    """A case over many nights. flips: how often it changed with nothing else changing. wavering: nights in which it
    changed from one repeat to the next. lone: nights that were unlike those before and after."""

    switches: tuple[Switch, ...]
    flips: int
    wavering: int
    lone: int = 0

    @property
    def flickers(self) -> bool:
        """Whether it ever changed for no reason: from repeat to repeat, or for one night."""
        return self.wavering > 0 or self.lone > 0 or self.flips >= FLAKY_FLIPS


@dataclass
class _Streak:
    """Nights of one state on end. agreeing: how many of `nights` have it; the others are one-night exceptions."""

    state: int
    first: int
    last: int
    nights: int
    agreeing: int

    @property
    def settled(self) -> bool:
        return self.agreeing >= max(SETTLED_NIGHTS, SETTLED_SHARE * self.nights)


def story(states: Sequence[int], explained: Callable[[int, int], bool]) -> Story:
    """Read the states of a case, one for each night.

    explained: whether driver, runtime or system of two nights (as indices, older first) differ.
    """
    wavering = list(states).count(WAVERING)
    streaks, exceptions = _without_exceptions(_streaks(states), explained)
    steps = list(pairwise(streaks))
    flips = 2 * exceptions + sum(not explained(older.last, newer.first) for older, newer in steps)
    flaky = flips >= FLAKY_FLIPS
    return Story(
        tuple(
            Switch(older.last, newer.first, newer.state == BAD)
            for older, newer in steps
            if not flaky or (older.settled and newer.settled)
        ),
        flips,
        wavering,
        exceptions,
    )


def _streaks(states: Sequence[int]) -> list[_Streak]:
    told = [night for night, state in enumerate(states) if state in (GOOD, BAD)]
    streaks = []
    for state, group in groupby(told, key=states.__getitem__):
        nights = list(group)
        streaks.append(_Streak(state, nights[0], nights[-1], len(nights), len(nights)))
    return streaks


def _without_exceptions(streaks: Sequence[_Streak], explained: Callable[[int, int], bool]) -> tuple[list[_Streak], int]:
    """The streaks with single nights, at whose beginning nothing changed, joined to what is around them; how many they
    were. The first and the last night are no exceptions: nobody knows what was before and what comes."""
    kept: list[_Streak] = []
    exceptions = 0
    for index, streak in enumerate(streaks):
        if kept and kept[-1].state == streak.state:  # the one between was an exception
            before = kept[-1]
            before.last = streak.last
            before.nights += streak.nights
            before.agreeing += streak.agreeing
        elif kept and streak.nights == 1 and index < len(streaks) - 1 and not explained(kept[-1].last, streak.first):
            exceptions += 1
            kept[-1].nights += 1
        else:
            kept.append(streak)
    return kept, exceptions
