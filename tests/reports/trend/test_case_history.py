"""When a case broke, when it was mended, and when it merely flickers."""

from __future__ import annotations

import random

import pytest

from epcheck.reports.trend.case_history import (
    FAILING,
    NOT_RECORDED,
    PASSING,
    UNSTABLE,
    CaseHistory,
    Transition,
    case_history,
)

STATES = {".": PASSING, "x": FAILING, "~": UNSTABLE, " ": NOT_RECORDED}


def history_of(nights: str, changed: tuple[int, ...] = ()) -> CaseHistory:
    """The story of a case. changed: nights that had another driver than the night before."""
    return case_history(
        [STATES[night] for night in nights], lambda older, newer: any(older < n <= newer for n in changed)
    )


def test_a_case_that_never_changes_has_no_story() -> None:
    assert history_of("........") == history_of("xxxxxxxx") == history_of("") == CaseHistory((), 0, 0)


def test_a_break_is_told_with_the_nights_around_it() -> None:
    assert history_of("...xxx").transitions == (Transition(before=2, after=3, broke=True),)
    assert history_of("xx....").transitions == (Transition(before=1, after=2, broke=False),)
    assert not history_of("...xxx").is_flaky


def test_last_night_counts_though_nobody_knows_what_comes() -> None:
    assert history_of(".....x").transitions == (Transition(4, 5, True),)


def test_nights_without_the_case_lie_between() -> None:
    assert history_of("...   xxx").transitions == (Transition(2, 6, True),)


def test_one_bad_night_with_nothing_changed_is_a_flicker() -> None:
    found = history_of("...x....")
    assert (found.transitions, found.flips, found.is_flaky) == ((), 2, True)


def test_one_good_night_among_bad_ones_is_a_flicker() -> None:
    assert history_of("..xxx.xxx").transitions == (Transition(1, 2, True),)


def test_one_bad_night_with_a_driver_of_its_own_is_a_break() -> None:
    found = history_of("...x....", changed=(3, 4))
    assert found.transitions == (Transition(2, 3, True), Transition(3, 4, False))
    assert (found.flips, found.is_flaky) == (0, False)


def test_two_bad_nights_are_a_break_that_was_mended() -> None:
    assert history_of("...xx...").transitions == (Transition(2, 3, True), Transition(4, 5, False))


def test_a_case_that_changes_again_and_again_is_flaky_and_never_broke() -> None:
    found = history_of("..xx..xx..xx..")
    assert (found.transitions, found.flips) == ((), 6)


def test_a_flaky_case_that_breaks_for_good_is_told() -> None:
    nights = "." * 20 + "x" + "." * 20 + "x" + "." * 20 + "x" * 20
    assert history_of(nights, changed=(62,)).transitions == (Transition(61, 62, True),)


def test_wavering_within_a_run_is_no_break() -> None:
    found = history_of("..~..~~.")
    assert (found.transitions, found.unstable, found.is_flaky) == ((), 3, True)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_random_flakes_over_a_year_with_driver_changes_are_hardly_ever_told_as_breaks(share: float) -> None:
    draw = random.Random(7)
    stories = [
        history_of("".join("x" if draw.random() < share else "." for _ in range(365)), changed=(50, 100, 200, 300))
        for _ in range(100)
    ]
    assert sum(bool(each.transitions) for each in stories) <= 1
    assert all(each.is_flaky for each in stories)
