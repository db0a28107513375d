"""Values with a bound of their error: the running error analysis of operators that repeat or nest their arithmetic.

A recurrent cell feeds its results back, a resampling filter multiplies by weights that are themselves computed. There
no single formula bounds the error; the bound is carried along with the value instead (Higham, 3.3 running error
analysis): every rounding adds its own error, every product, sum and function passes on the error of what it reads.
Values and errors are float64; `unit` is half an epsilon of the dtype in which a provider may compute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds.bounds import ACCURACY_AND_STABILITY, finfo, round_output, ulp
from epcheck.generators.citation import Citation, CitationKind, Publisher
from epcheck.generators.truth import Output

SOURCE = Citation(
    CitationKind.DERIVED,
    f"{ACCURACY_AND_STABILITY}, 3.1 and 3.3: running error analysis, any order of summation",
    Publisher.HIGHAM,
    "3.3",
)


@dataclass(frozen=True)
class Approximate:
    """What a provider computes lies within `error` of `value`; both float64 of one shape."""

    value: Array
    error: Array

    @classmethod
    def exact(cls, value: Array) -> Approximate:
        """A value that is read, not computed."""
        wide = np.asarray(value, np.float64)
        return cls(wide, np.zeros_like(wide))

    def where(self, condition: Array, other: Approximate) -> Approximate:
        """Element by element this one, or the other where the condition does not hold."""
        return Approximate(
            np.where(condition, self.value, other.value),
            np.where(condition, self.error, other.error),
        )

    def apply(self, function: Callable[[Array], Array], lipschitz: float, relative: float) -> Approximate:
        """A function of it that grows no faster than `lipschitz` and is computed to `relative` of its result."""
        result = function(self.value)
        return Approximate(result, lipschitz * self.error + relative * np.abs(result))


@dataclass(frozen=True)
class Terms:
    """Terms of a sum that nobody has rounded yet.

    error: what the terms inherit. magnitude: the sum of their absolute values. count: how many they are.
    """

    value: Array
    error: Array
    magnitude: Array
    count: int


def term(value: Approximate, sign: int = 1) -> Terms:
    """One term, added or subtracted."""
    return Terms(sign * value.value, value.error, np.abs(value.value) + value.error, 1)


def product(left: Approximate, right: Approximate, sign: int = 1) -> Terms:
    """The element-wise product of two approximate values, one term."""
    value = left.value * right.value
    error = np.abs(left.value) * right.error + np.abs(right.value) * left.error + left.error * right.error
    return Terms(sign * value, error, np.abs(value) + error, 1)


def dot(rows: Approximate, weights: Array) -> Terms:
    """rows [m, k] times weights [n, k], transposed: k terms for each of the m * n sums."""
    transposed = np.abs(weights).T
    return Terms(
        rows.value @ weights.T,
        rows.error @ transposed,
        (np.abs(rows.value) + rows.error) @ transposed,
        weights.shape[1],
    )


def total(unit: float, *terms: Terms) -> Approximate:
    """The sum of all terms in any order, fused or not: gamma(n + 1) of their magnitudes, one of them for a product."""
    steps = (sum(part.count for part in terms) + 1) * unit
    gamma = steps / (1 - steps) if steps < 0.5 else 2 * steps
    value = sum(part.value for part in terms)
    error = sum(part.error for part in terms) + gamma * sum(part.magnitude for part in terms)
    return Approximate(np.asarray(value), np.asarray(error))


def output(name: str, truth: Approximate, dtype: np.dtype[np.float64]) -> Output:
    """An output whose bound is the error that came along; float64's truth has been rounded on its way, too."""
    share = 2.0 if dtype == np.float64 else 1.0
    floor = np.nan_to_num(share * truth.error, nan=0.0, posinf=np.inf)
    return round_output(name, truth.value, dtype, ulp(1.0, (SOURCE,), dtype, floor))


def unit_of(dtype: np.dtype[np.float64]) -> float:
    """The largest relative error of one rounding to `dtype`."""
    return float(finfo(dtype).eps) / 2
