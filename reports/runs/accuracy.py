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
