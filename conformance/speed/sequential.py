"""The ratio of two times with an interval that holds whenever the measurement stops.

A round times both targets and gives one number: the logarithm of B's time over A's. Of each round it is assumed alone
that the number is as probably above the true one as below it, whatever its spread. So among n rounds the count of those
above the true value is binomial with p = 1/2, however heavy the tails of the noise are and however much it changes, and

    E_n(k) = B(k + 1/2, n - k + 1/2) / B(1/2, 1/2) * 2^n,    k of n above,

is a martingale of mean 1 in n: the mixture over p, with the density of the arcsine law, of the likelihood of p over
that of 1/2. By Ville's inequality it reaches 1/alpha in any round with a probability of alpha at most. The values that
are not excluded in this way are a confidence sequence for the median: all intervals, of all n, have the true value with
a probability of 1 - alpha, so a measurement may stop as soon as it has seen enough.

Sources: J. Ville, Étude critique de la notion de collectif, 1939; H. Robbins, Statistical methods related to the law of
the iterated logarithm, Annals of Mathematical Statistics 41(5), 1970 (mixtures); S. R. Howard and A. Ramdas, Sequential
estimation of quantiles with applications to A/B testing and best-arm identification, Bernoulli 28(3), 2022 (quantiles).
Comparisons of one call share alpha: alpha / m each, by Bonferroni's inequality.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from epcheck.conformance.records.speed import EQUIVALENT, FASTER, SLOWER, UNDECIDED

SMALLEST_DIFFERENCE = 1.02
"""The smallest ratio that is reported as a difference. The places that the system gives to code and data of a process
change its speed by as much, which no statistics of two processes sees (T. Mytkowicz et al., Producing wrong data
without doing anything obviously wrong!, ASPLOS 2009)."""

EQUIVALENT_WITHIN = 1.05
"""Two times are equivalent where the interval of their ratio lies within this factor."""


@dataclass(frozen=True)
class Interval:
    """A ratio of times, B's over A's, and between which the true one lies; 0 and infinity where nothing is known."""

    ratio: float
    low: float = 0.0
    high: float = math.inf


def estimate(logarithms: Sequence[float], alpha: float) -> Interval:
    """The median ratio of the rounds and its interval. logarithms: of B's time over A's in each round, finite; at least
    one. alpha: the probability with which the interval of any number of rounds misses the true ratio."""
    ordered = np.sort(np.asarray(logarithms, np.float64))
    count, left_out = len(ordered), count_left_out(len(ordered), alpha)
    middle = math.exp(float(np.median(ordered)))
    if not left_out:
        return Interval(middle)
    return Interval(middle, math.exp(ordered[left_out - 1]), math.exp(ordered[count - left_out]))


@cache
def count_left_out(rounds: int, alpha: float) -> int:
    """Which of the ordered rounds is the end of the interval, counted from each side; 0 where there are too few.

    A value below the k-th smallest round, with fewer than k rounds below it, is excluded where E(k - 1) reaches
    1/alpha.
    """
    excluded = 0
    while excluded < rounds / 2 and evidence(excluded, rounds) >= -math.log(alpha):
        excluded += 1
    return excluded


def evidence(below: int, rounds: int) -> float:
    """The logarithm of E: how much `below` of the rounds on one side of a value speaks against it as the median."""
    beta = math.lgamma(below + 0.5) + math.lgamma(rounds - below + 0.5) - math.lgamma(rounds + 1)
    return beta - math.log(math.pi) + rounds * math.log(2)


def judge(interval: Interval) -> str:
    """SLOWER, FASTER, EQUIVALENT or UNDECIDED: what the interval says of B beside A."""
    if interval.low > SMALLEST_DIFFERENCE:
        return SLOWER
    if interval.high < 1 / SMALLEST_DIFFERENCE:
        return FASTER
    is_narrow = interval.low >= 1 / EQUIVALENT_WITHIN and interval.high <= EQUIVALENT_WITHIN
    return EQUIVALENT if is_narrow else UNDECIDED
