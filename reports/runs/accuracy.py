"""The errors of an operator in ULP, summed up over all cases of a dtype."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from epcheck.conformance.records.accuracy import ULP_EDGES, Accuracy


@dataclass(frozen=True)
class ErrorStatistics:
    """Errors of floating-point elements in ULP. p99: the end of the range of ULP_EDGES in which the 99th percentile is.

    mean: of the finite ones.
    """

    elements: int
    max: float
    p99: float
    mean: float

    @classmethod
    def of(cls, accuracy: Accuracy) -> Self:
        """The statistics of counted errors."""
        seen = 0
        p99 = math.inf
        for edge, count in zip(ULP_EDGES, accuracy.counts, strict=False):
            seen += count
            if seen >= 0.99 * accuracy.elements:
                p99 = edge
                break
        return cls(accuracy.elements, accuracy.max_ulp, p99, accuracy.sum_ulp / max(1, accuracy.elements))


@dataclass(frozen=True)
class AccuracyProfile:
    """How accurate an operator is in one dtype, over all its versions. baseline: on the same cases, if it ran them."""

    operator: str
    dtype: str
    candidate: ErrorStatistics | None
    baseline: ErrorStatistics | None


FAR, TIMES = 4.0, 16.0
"""An answer is suspicious that is at least FAR ULP from the truth, and TIMES as far as the baseline's, whose error
counts as half an ULP at least."""

DIGITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
"""Binary digits of a dtype. An error of a sixteenth of the truth or more is no suspicion: so close to zero an absolute
bound decides, and ULP say nothing."""


@dataclass(frozen=True)
class AccuracySuspicion:
    """Answers of an operator in one dtype that are within their bounds, and much further from the truth than those of
    the baseline on the same cases.

    cases: how many of the right ones. worst: the case with the largest ratio; candidate, baseline: its errors in ULP.
    """

    operator: str
    dtype: str
    cases: int
    of: int
    worst: str
    candidate: float
    baseline: float

    @property
    def times(self) -> float:
        """How many times as far as the baseline's, whose error counts as half an ULP at least."""
        return self.candidate / max(self.baseline, 0.5)

    def describe(self, baseline: str) -> str:
        """`MatMul float32: 119 ULP where cpu has 0.48, 238 times as far; 31 of 40 right cases are like this`."""
        return (
            f"{self.operator} {self.dtype}: {self.candidate:.3g} ULP where {baseline} has {self.baseline:.2g}, "
            f"{self.times:,.0f} times as far; {self.cases:,} of {self.of:,} right cases are like this"
        )


@dataclass(slots=True)
class SuspicionBuilder:
    """A suspicion in the making: counts the right cases of an operator and dtype that both targets measured. most: ULP
    from which on an error says nothing."""

    most: float
    cases: int = 0
    of: int = 0
    worst: tuple[float, str, float, float] = (0.0, "", 0.0, 0.0)

    def add(self, case_id: str, candidate: float, baseline: float) -> None:
        """Count a case. candidate, baseline: the largest errors in ULP."""
        self.of += 1
        ratio = candidate / max(baseline, 0.5)
        if FAR <= candidate < self.most and ratio >= TIMES:
            self.cases += 1
            self.worst = max(self.worst, (ratio, case_id, candidate, baseline))

    @classmethod
    def of_dtype(cls, dtype: str) -> Self:
        """Of a dtype, or several joined by '-'."""
        digits = next((DIGITS[name] for name in dtype.split("-") if name in DIGITS), 24)
        return cls(2.0 ** (digits - 4))

    def build(self, operator: str, dtype: str) -> AccuracySuspicion:
        _, case_id, candidate, baseline = self.worst
        return AccuracySuspicion(operator, dtype, self.cases, self.of, case_id, candidate, baseline)


@dataclass(slots=True)
class ProfileBuilder:
    """The accuracy of candidate and baseline in one operator and dtype, as far as it is counted."""

    candidate: Accuracy | None = None
    baseline: Accuracy | None = None

    def build(self, operator: str, dtype: str) -> AccuracyProfile:
        statistics = [
            None if accuracy is None else ErrorStatistics.of(accuracy) for accuracy in (self.candidate, self.baseline)
        ]
        return AccuracyProfile(operator, dtype, *statistics)
