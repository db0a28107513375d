"""The interval of a ratio, and how often it is wrong, by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from epcheck.conformance.records.speed import EQUIVALENT, FASTER, SLOWER, UNDECIDED
from epcheck.conformance.speed.sequential import Interval, count_left_out, estimate, evidence, judge

ROUNDS = 60
"""After each of which a simulated measurement may stop."""

Noise = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]

NOISES: dict[str, Noise] = {
    "normal": lambda rng, shape: rng.normal(0, 0.05, shape),
    "cauchy": lambda rng, shape: 0.02 * rng.standard_cauchy(shape),
    "skewed": lambda rng, shape: 0.05 * (rng.exponential(1.0, shape) - math.log(2)),  # its median is 0, its mean not
    "busier and busier": lambda rng, shape: rng.normal(0, 0.01, shape) * np.arange(1, shape[1] + 1),
}


def stops(values: np.ndarray, ratio: float, alpha: float) -> np.ndarray:
    """Whether each row of rounds excludes the ratio after any number of its rounds."""
    below = (values < math.log(ratio)).cumsum(axis=1)
    found = np.zeros(len(values), bool)
    for rounds in range(1, values.shape[1] + 1):
        left_out = count_left_out(rounds, alpha)
        below_now = below[:, rounds - 1]
        found |= (below_now < left_out) | (rounds - below_now < left_out)
    return found


def test_rounds_that_all_lie_on_one_side_are_needed_until_the_evidence_suffices() -> None:
    """For 0 of n rounds: B(1/2, n + 1/2) 2^n / pi."""
    assert [round(math.exp(evidence(0, n)), 4) for n in range(4)] == [1.0, 1.0, 1.5, 2.5]
    assert [count_left_out(n, 0.05) for n in (6, 7, 20)] == [0, 1, 4]


def test_evidence_is_a_martingale() -> None:
    """The next round lies on either side with a probability of 1/2, and the evidence does not grow by that."""
    for rounds in range(1, 40):
        for below in range(rounds + 1):
            mean = (math.exp(evidence(below, rounds + 1)) + math.exp(evidence(below + 1, rounds + 1))) / 2
            assert mean == pytest.approx(math.exp(evidence(below, rounds)), rel=1e-9)


def test_the_interval_is_of_ordered_rounds() -> None:
    values = [math.log(1 + 0.01 * place) for place in range(1, 22)]
    left_out = count_left_out(21, 0.05)
    found = estimate(values[::-1], 0.05)
    assert left_out == 4
    assert (round(found.ratio, 6), round(found.low, 6), round(found.high, 6)) == (1.11, 1.04, 1.18)


def test_too_few_rounds_say_nothing() -> None:
    assert estimate([0.1] * 6, 0.05) == Interval(pytest.approx(math.exp(0.1)), 0.0, math.inf)
    assert judge(estimate([0.1] * 6, 0.05)) == UNDECIDED


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.021, 1.2, SLOWER),
        (1.019, 1.2, UNDECIDED),
        (0.96, 1.05, EQUIVALENT),
        (0.7, 0.97, FASTER),
        (0.9, 1.04, UNDECIDED),
    ],
)
def test_what_an_interval_says(low: float, high: float, verdict: str) -> None:
    assert judge(Interval(1.0, low, high)) == verdict


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 20])
def test_10000_comparisons_of_a_target_with_itself_give_false_alarms_as_stated(noise: str, alpha: float) -> None:
    """With a look after every round, whatever the noise; 3 standard deviations of the count are allowed."""
    values = NOISES[noise](np.random.default_rng(38), (10_000, ROUNDS))
    assert stops(values, 1.0, alpha).sum() <= 10_000 * alpha + 3 * math.sqrt(10_000 * alpha)


@pytest.mark.parametrize("ratio", [1.1, 1.5])
def test_slower_by_a_tenth_is_told_within_40_rounds(ratio: float) -> None:
    """Power, 1 - beta: of 10,000 with 20 comparisons in the call, and a noise of 5 % in a round, 99 of 100 are told."""
    values = math.log(ratio) + np.random.default_rng(38).normal(0, 0.05, (10_000, 40))
    assert stops(values, 1.02, 0.05 / 20).mean() >= 0.99
