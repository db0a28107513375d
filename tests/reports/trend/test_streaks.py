"""When a case broke, when it was mended, and when it merely flickers."""

from __future__ import annotations

import random

import pytest

from epcheck.reports.trend.streaks import BAD, GOOD, UNKNOWN, WAVERING, Story, Switch, story

STATES = {".": GOOD, "x": BAD, "~": WAVERING, " ": UNKNOWN}


def told(nights: str, changed: tuple[int, ...] = ()) -> Story:
    """The story of a case. changed: nights that had another driver than the night before."""
    return story([STATES[night] for night in nights], lambda older, newer: any(older < n <= newer for n in changed))


def test_a_case_that_never_changes_has_no_story() -> None:
    assert told("........") == told("xxxxxxxx") == told("") == Story((), 0, 0)


def test_a_break_is_told_with_the_nights_around_it() -> None:
    assert told("...xxx").switches == (Switch(before=2, after=3, broke=True),)
    assert told("xx....").switches == (Switch(before=1, after=2, broke=False),)
    assert not told("...xxx").flickers


def test_last_night_counts_though_nobody_knows_what_comes() -> None:
    assert told(".....x").switches == (Switch(4, 5, True),)


def test_nights_without_the_case_lie_between() -> None:
    assert told("...   xxx").switches == (Switch(2, 6, True),)


def test_one_bad_night_with_nothing_changed_is_a_flicker() -> None:
    found = told("...x....")
    assert (found.switches, found.flips, found.flickers) == ((), 2, True)


def test_one_good_night_among_bad_ones_is_a_flicker() -> None:
    assert told("..xxx.xxx").switches == (Switch(1, 2, True),)


def test_one_bad_night_with_a_driver_of_its_own_is_a_break() -> None:
    found = told("...x....", changed=(3, 4))
    assert found.switches == (Switch(2, 3, True), Switch(3, 4, False))
    assert (found.flips, found.flickers) == (0, False)


def test_two_bad_nights_are_a_break_that_was_mended() -> None:
    assert told("...xx...").switches == (Switch(2, 3, True), Switch(4, 5, False))


def test_a_case_that_changes_again_and_again_is_flaky_and_never_broke() -> None:
    found = told("..xx..xx..xx..")
    assert (found.switches, found.flips) == ((), 6)


def test_a_flaky_case_that_breaks_for_good_is_told() -> None:
    nights = "." * 20 + "x" + "." * 20 + "x" + "." * 20 + "x" * 20
    assert told(nights, changed=(62,)).switches == (Switch(61, 62, True),)


def test_wavering_within_a_run_is_no_break() -> None:
    found = told("..~..~~.")
    assert (found.switches, found.wavering, found.flickers) == ((), 3, True)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_random_flakes_over_a_year_with_driver_changes_are_hardly_ever_told_as_breaks(share: float) -> None:
    draw = random.Random(7)
    stories = [
        told("".join("x" if draw.random() < share else "." for _ in range(365)), changed=(50, 100, 200, 300))
        for _ in range(100)
    ]
    assert sum(bool(each.switches) for each in stories) <= 1
    assert all(each.flickers for each in stories)
