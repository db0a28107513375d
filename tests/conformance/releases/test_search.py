"""The search over releases: planted changes in lists of made-up releases, and how many trials they take."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from epcheck.conformance.records import terms
from epcheck.conformance.records.speed import SLOWER, UNDECIDED
from epcheck.conformance.releases import search
from epcheck.conformance.releases.search import (
    ALWAYS_WRONG,
    CANNOT_RUN,
    FIRST_RIGHT,
    FIRST_UNABLE,
    FIRST_WRONG,
    NEVER_RUN,
    NEVER_WRONG,
    NOT_TIMED,
    NOT_TRIED,
    STATE_OF,
    Conclusion,
    Trial,
    conclude,
    most_trials,
    next_release,
)

MISSING = "missing"
"""In place of a status: the release cannot be installed."""


@dataclass(frozen=True)
class Searched:
    """What a search came to, the releases it tried, and those it could not install."""

    conclusion: Conclusion
    tried: dict[int, Trial]
    left_out: set[int]


def searched(statuses: Sequence[str]) -> Searched:
    """Search a list of releases, each of which gives one status."""
    tried: dict[int, Trial] = {}
    left_out: set[int] = set()
    while (index := next_release(len(statuses), tried, left_out)) is not None:
        assert index not in tried
        assert index not in left_out
        if statuses[index] == MISSING:
            left_out.add(index)
        else:
            tried[index] = Trial(statuses[index])
    return Searched(conclude(len(statuses), tried, left_out), tried, left_out)


def promised(releases: int) -> int:
    """ceil(log2 n) + 2."""
    return math.ceil(math.log2(releases)) + 2


def planted(count: int, first_wrong: int, seed: int) -> list[str]:
    """`count` releases, wrong from one on; a fifth cannot be installed, a fifth of the wrong ones are unsteady."""
    draw = random.Random(seed)
    wrong = [terms.MISMATCH, terms.REFUSED, terms.CRASH, terms.TIMEOUT, terms.FLAKY]
    statuses = [terms.PASS if index < first_wrong else draw.choice(wrong) for index in range(count)]
    return [MISSING if draw.random() < 0.2 else status for status in statuses]


LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 23, 31, 32, 33, 47, 59, 60)


@pytest.mark.parametrize("seed", range(20))
def test_a_planted_regression_is_found_in_the_promised_number_of_trials(seed: int) -> None:
    count = LENGTHS[seed]
    statuses = planted(count, random.Random(1000 + seed).randrange(count + 1), seed)
    found = searched(statuses)
    assert len(found.tried) <= min(promised(count), count)
    assert len(found.tried) <= most_trials(count)
    usable = [index for index in range(count) if statuses[index] != MISSING]
    wrong = [index for index in usable if statuses[index] != terms.PASS]
    right = [index for index in usable if statuses[index] == terms.PASS]
    if not usable:
        assert found.conclusion == Conclusion(NOT_TRIED)
    elif not wrong:
        assert found.conclusion == Conclusion(NEVER_WRONG, usable[0], usable[-1])
    elif not right:
        assert found.conclusion == Conclusion(ALWAYS_WRONG, usable[0], usable[-1])
    else:
        between = tuple(range(right[-1] + 1, wrong[0]))
        assert found.conclusion == Conclusion(FIRST_WRONG, right[-1], wrong[0], between)
        assert all(statuses[index] == MISSING for index in between)


def test_every_place_of_a_change_in_every_list_up_to_60_is_found_as_promised() -> None:
    for count in range(1, 61):
        for first in range(1, count):
            for before, after, kind in (
                (terms.PASS, terms.MISMATCH, FIRST_WRONG),
                (terms.MISMATCH, terms.PASS, FIRST_RIGHT),
                (terms.UNPLACED, terms.ORDER_DEPENDENT, FIRST_WRONG),
                (terms.UNPLACED, terms.PASS, FIRST_RIGHT),
                (terms.PASS, terms.UNPLACED, FIRST_UNABLE),
            ):
                found = searched([before] * first + [after] * (count - first))
                assert found.conclusion == Conclusion(kind, first - 1, first)
                assert len(found.tried) <= promised(count)


@pytest.mark.parametrize(
    ("statuses", "conclusion"),
    [
        ("W", Conclusion(ALWAYS_WRONG, 0, 0)),
        ("R", Conclusion(NEVER_WRONG, 0, 0)),
        ("-", Conclusion(NEVER_RUN, 0, 0)),
        ("x", Conclusion(NOT_TRIED)),
        ("xxx", Conclusion(NOT_TRIED)),
        ("xWx", Conclusion(ALWAYS_WRONG, 1, 1)),
        ("WRRW", Conclusion(ALWAYS_WRONG, 0, 3)),
        ("--", Conclusion(NEVER_RUN, 0, 1)),
        ("xR-W", Conclusion(FIRST_WRONG, 1, 3, (2,))),  # the one between cannot say
        ("R---W", Conclusion(FIRST_WRONG, 0, 4, (1, 2, 3))),
        ("RxxW", Conclusion(FIRST_WRONG, 0, 3, (1, 2))),
        ("--RRWW", Conclusion(FIRST_WRONG, 3, 4)),  # what changed last, not what could not be run at first
        ("--WWRR", Conclusion(FIRST_RIGHT, 3, 4)),
        ("RRWW--", Conclusion(FIRST_WRONG, 1, 2)),
    ],
)
def test_the_ends_decide_what_is_looked_for(statuses: str, conclusion: Conclusion) -> None:
    meaning = {"R": terms.PASS, "W": terms.MISMATCH, "-": terms.UNPLACED, "x": MISSING}
    assert searched([meaning[letter] for letter in statuses]).conclusion == conclusion


def test_a_release_that_cannot_be_installed_costs_no_trial() -> None:
    found = searched([terms.PASS, *[MISSING] * 58, terms.MISMATCH])
    assert found.conclusion == Conclusion(FIRST_WRONG, 0, 59, tuple(range(1, 59)))
    assert sorted(found.tried) == [0, 59]
    assert len(found.left_out) == 58


def test_both_ends_come_first_and_the_newest_before_the_oldest() -> None:
    assert next_release(9, {}) == 8
    assert next_release(9, {8: Trial(terms.PASS)}) == 0
    assert next_release(9, {8: Trial(terms.PASS), 0: Trial(terms.CRASH)}) == 4
    assert next_release(9, {8: Trial(terms.PASS), 0: Trial(terms.CRASH), 4: Trial(terms.PASS)}, {2}) == 3
    assert next_release(0, {}) is None


def test_every_status_says_something_of_a_release() -> None:
    assert set(STATE_OF) == {*terms.STATUSES, SLOWER, UNDECIDED, NOT_TIMED}
    unsteady = [status for status in terms.STATUSES if Trial(status).unsteady]
    assert unsteady == [terms.FLAKY, terms.ORDER_DEPENDENT]
    assert {Trial(status).state for status in unsteady} == {search.WRONG}
    assert Trial(terms.UNPLACED).state == CANNOT_RUN


@pytest.mark.parametrize(("releases", "trials"), [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (17, 7), (60, 8)])
def test_the_promise(releases: int, trials: int) -> None:
    assert most_trials(releases) == trials
