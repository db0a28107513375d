"""The search for the release in which what a case does changes: which release to try next, and what follows at the end.

Nothing here runs anything. Releases are indices into a list, the oldest first. Both ends are tried; where they differ,
the releases between are halved. So a case needs at most `most_trials(n)` trials for n releases, and one more for each
release between a right and a wrong one that cannot run it. A release that cannot be installed costs no trial.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from epcheck.conformance.records import terms
from epcheck.conformance.records.speed import SLOWER, UNDECIDED

RIGHT, WRONG, CANNOT_RUN = "right", "wrong", "cannot run it"
"""What a release comes to for a case: `cannot run it` is that the provider does not take the node, or that the runtime
knows no such operator or opset yet."""

NOT_TIMED = "not timed"
"""The status of a node whose speed is not known in a release. The others are PASS, SLOWER and UNDECIDED."""

STATE_OF = {
    terms.PASS: RIGHT,
    terms.UNPLACED: CANNOT_RUN,
    terms.SKIPPED: CANNOT_RUN,
    terms.MISMATCH: WRONG,
    terms.REFUSED: WRONG,
    terms.CRASH: WRONG,
    terms.TIMEOUT: WRONG,
    terms.FLAKY: WRONG,
    terms.ORDER_DEPENDENT: WRONG,
    terms.VARIANT_DEPENDENT: WRONG,
    terms.USAGE_DEPENDENT: WRONG,
    SLOWER: WRONG,
    UNDECIDED: CANNOT_RUN,
    NOT_TIMED: CANNOT_RUN,
}
"""Status -> what it says of the release. An unsteady status is wrong: some of its repeats were."""

UNSTEADY = (terms.FLAKY, terms.ORDER_DEPENDENT)


@dataclass(frozen=True)
class Trial:
    """One case on one release, confirmed as the suite confirms. status: of STATE_OF. message: why."""

    status: str
    message: str = ""

    @property
    def state(self) -> str:
        """RIGHT, WRONG or CANNOT_RUN."""
        return STATE_OF[self.status]

    @property
    def unsteady(self) -> bool:
        """Whether repeats differ."""
        return self.status in UNSTEADY


FIRST_WRONG, FIRST_RIGHT, FIRST_UNABLE = "first wrong", "first right", "first that cannot run it"
ALWAYS_WRONG, NEVER_WRONG, NEVER_RUN, NOT_TRIED = "always wrong", "never wrong", "never run", "not tried"

CHANGED = (FIRST_WRONG, FIRST_RIGHT, FIRST_UNABLE)
"""What a search comes to where it names the release in which the case changes."""

KINDS = (*CHANGED, ALWAYS_WRONG, NEVER_WRONG, NEVER_RUN, NOT_TRIED)
"""What a search comes to. ALWAYS_WRONG, NEVER_WRONG, NEVER_RUN: so are both ends of the list; the releases between them
are not tried. NOT_TRIED: no release could be installed."""

_CHANGED = {WRONG: FIRST_WRONG, RIGHT: FIRST_RIGHT, CANNOT_RUN: FIRST_UNABLE}
_UNCHANGED = {WRONG: ALWAYS_WRONG, RIGHT: NEVER_WRONG, CANNOT_RUN: NEVER_RUN}


@dataclass(frozen=True)
class Conclusion:
    """What a search comes to. kind: one of KINDS. before, since: indices of the last release before the change and of
    the first after it; where nothing changed the two ends, which may be the same. skipped: the releases between the two
    that were left out or cannot run the case; the change may be in any of them, or in `since`."""

    kind: str
    before: int | None = None
    since: int | None = None
    skipped: tuple[int, ...] = ()


def most_trials(releases: int) -> int:
    """How many trials a case needs at most: ceil(log2 n) + 2, and no more than there are releases."""
    return min(releases, max(releases - 1, 0).bit_length() + 2)


def next_release(count: int, tried: Mapping[int, Trial], left_out: Collection[int] = ()) -> int | None:
    """Which of `count` releases to try next; None when the search is over. left_out: those that cannot be tried."""
    usable = [index for index in range(count) if index not in left_out]
    for end in reversed(usable[:1] + usable[-1:]):
        if end not in tried:
            return end
    change = _change(tried)
    if change is None:
        return None
    between = [index for index in usable if change[0] < index < change[1] and index not in tried]
    return between[len(between) // 2] if between else None


def conclude(count: int, tried: Mapping[int, Trial], left_out: Collection[int] = ()) -> Conclusion:
    """What a search that is over comes to; the arguments are those of `next_release`."""
    if not tried:
        return Conclusion(NOT_TRIED)
    change = _change(tried)
    if change is None:
        return Conclusion(_UNCHANGED[tried[max(tried)].state], min(tried), max(tried))
    before, since = change
    skipped = tuple(index for index in range(before + 1, since) if index in left_out or index in tried)
    assert len(skipped) == since - before - 1, "the search is not finished"
    assert since < count
    return Conclusion(_CHANGED[tried[since].state], before, since, skipped)


def _change(tried: Mapping[int, Trial]) -> tuple[int, int] | None:
    """The two releases between which the change is looked for: the newest neighbours of which one is right and the
    other wrong; else the newest of which one cannot run the case. None where all that were tried are alike."""
    order = sorted(tried)
    able = [index for index in order if tried[index].state != CANNOT_RUN]
    return _newest_change(able, tried) or _newest_change(order, tried)


def _newest_change(order: Sequence[int], tried: Mapping[int, Trial]) -> tuple[int, int] | None:
    pairs = zip(order[-2::-1], order[:0:-1], strict=True)
    return next(((old, new) for old, new in pairs if tried[old].state != tried[new].state), None)
