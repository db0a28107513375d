"""Accuracy, speed and placement of cases that pass in both runs: what is told, and what is noise."""

from __future__ import annotations

import math
import random

import pytest

from epcheck.reports.diff import drift
from epcheck.reports.diff.row import Row, placement_of
from tests.reports.compared_rows import a_row

OPERATORS = tuple(f"Operator{number}" for number in range(20))


def worse(older: float, newer: float, factor: float = 2.0) -> list[float]:
    pair = (a_row(ulp_max=older), a_row(ulp_max=newer))
    return [drifted.factor for drifted in drift.accuracy([pair], factor)]


def test_an_error_that_grew_by_the_factor_is_told() -> None:
    assert worse(1.0, 2.0) == [2.0]
    assert worse(1.0, 1.9) == []
    assert worse(1.0, 1.9, factor=1.5) == [1.9]
    assert worse(4.0, 1.0) == []


def test_below_half_an_ulp_nothing_is_better_than_anything() -> None:
    assert worse(0.0, 0.5) == []
    assert worse(0.01, 1.0) == [2.0]


def test_infinite_errors_are_compared_without_a_surprise() -> None:
    assert worse(math.inf, math.inf) == []
    assert worse(1.0, math.inf) == [math.inf]
    assert worse(math.inf, 1.0) == []


def test_cases_that_drifted_alike_are_one_line_with_the_worst_first() -> None:
    pairs = [(a_row(f"rank_{n}", ulp_max=1.0), a_row(f"rank_{n}", ulp_max=float(n))) for n in (1, 3, 7, 5)]
    (drifted,) = drift.accuracy(pairs, 2.0)
    assert (drifted.operator, drifted.dtype, drifted.sample, drifted.older, drifted.newer) == (
        "Slice",
        "float32",
        "rank_*",
        1.0,
        7.0,
    )
    assert [case_id.split("/")[2] for case_id in drifted.case_ids] == [
        "rank_7[runtime]",
        "rank_5[runtime]",
        "rank_3[runtime]",
    ]


def timed(ratios: dict[str, float], noise: float, sessions: int = 12, cases: int = 1) -> list[tuple[Row, Row]]:
    """Each operator with so many sessions of so many cases; the newer run takes `ratio` times as long, more or less."""
    draw = random.Random(5)
    pairs = []
    for operator in OPERATORS:
        for session in range(sessions):
            older = draw.uniform(1e-4, 1e-2)
            newer = older * ratios.get(operator, 1.0) * math.exp(draw.gauss(0.0, noise))
            for case in range(cases):
                name = f"s{session}_{case}"
                pairs.append((a_row(name, operator=operator, run_s=older), a_row(name, operator=operator, run_s=newer)))
    return pairs


def test_an_operator_that_became_twice_as_slow_is_told_with_its_band() -> None:
    everything, slower = drift.speed(timed({"Operator3": 2.0}, noise=0.05))
    assert (everything.operator, everything.phase, everything.sessions) == ("", "run", 240)
    assert everything.ratio == pytest.approx(1.0, abs=0.05)
    assert (slower.operator, slower.sessions) == ("Operator3", 12)
    assert slower.ratio == pytest.approx(2.0, rel=0.1)
    assert 0.75 < slower.low < 1.0 < slower.high < 1.35


def test_noise_is_not_told() -> None:
    for noise in (0.05, 0.3, 1.0):
        assert [speed_change.operator for speed_change in drift.speed(timed({}, noise))] == [""]


def test_a_few_sessions_that_agree_by_chance_are_still_noise() -> None:
    agreeing = [
        (a_row(f"Few{n}", operator="Few", run_s=1.0), a_row(f"Few{n}", operator="Few", run_s=1.7 + 0.01 * n))
        for n in range(drift.SAMPLES)
    ]
    assert [speed_change.operator for speed_change in drift.speed(timed({}, noise=0.3) + agreeing)] == [""]
    assert [speed_change.operator for speed_change in drift.speed(timed({}, noise=0.05) + agreeing)] == ["", "Few"]


def test_what_is_lost_in_noise_is_not_told() -> None:
    assert len(drift.speed(timed({"Operator3": 2.0}, noise=2.0))) == 1


def test_a_night_on_which_all_is_slower_is_told_once() -> None:
    (everything,) = drift.speed(timed(dict.fromkeys(OPERATORS, 3.0), noise=0.05))
    assert everything.ratio == pytest.approx(3.0, rel=0.05)


def test_cases_of_one_session_are_one_measurement() -> None:
    assert drift.speed(timed({"Operator3": 2.0}, noise=0.05, sessions=12, cases=30))[1].sessions == 12
    assert drift.speed(timed({"Operator3": 2.0}, noise=0.05, sessions=drift.SAMPLES - 1, cases=30)) == ()


def test_a_slight_change_is_not_told_however_certain_it_is() -> None:
    assert len(drift.speed(timed({"Operator3": 1.1}, noise=0.001, sessions=50))) == 1


def test_cases_without_a_time_are_left_out() -> None:
    row = a_row(run_s=None, create_s=0.0)
    assert drift.speed([(row, row)] * 10) == ()


def placed(older: str | None, newer: str | None) -> list[tuple[str, str]]:
    found = drift.placement(
        [(a_row(placement=older), a_row(placement=newer))], "DmlExecutionProvider", "CPUExecutionProvider"
    )
    return [(change.older, change.newer) for change in found]


def test_nodes_that_went_elsewhere_are_told() -> None:
    assert placed("DmlExecutionProvider: Cast, Conv", "CPUExecutionProvider: Conv") == [
        ("the provider: Cast, Conv", "the provider: Conv")
    ]


def test_each_of_two_providers_has_its_own_nodes_and_a_runtime_without_records_tells_nothing() -> None:
    assert placed("DmlExecutionProvider: Conv", "CPUExecutionProvider: Conv") == []
    assert placed(None, "CPUExecutionProvider: Conv") == []


def test_the_order_of_nodes_does_not_matter() -> None:
    nodes = [("A", "Conv"), ("B", "Cast"), ("A", "Cast"), ("A", "Conv")]
    assert placement_of(nodes) == placement_of(nodes[::-1]) == "A: Cast, Conv x2; B: Cast"
    assert placement_of(None) is None
