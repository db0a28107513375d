"""How far outputs are from the truth, counted in ranges of ULP."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

ULP_EDGES = (0.5, *(2.0**power for power in range(24)))
"""The upper ends of the ranges in which an Accuracy counts; one more counts what is beyond."""


@dataclass(frozen=True)
class Accuracy:
    """How far floating-point outputs that have a bound in ULP are from the truth, over all their elements.

    max_ulp: of the worst one, inf where it is NaN or infinite and the truth is not. sum_ulp: of the finite errors.
    counts: elements within each of ULP_EDGES and above the one before; trailing zeros are left out.
    """

    elements: int
    max_ulp: float
    sum_ulp: float
    counts: tuple[int, ...]


def add_accuracy(first: Accuracy | None, second: Accuracy) -> Accuracy:
    """The accuracy of the elements of both; of the second alone where there is no first yet."""
    if first is None:
        return second
    return Accuracy(
        first.elements + second.elements,
        max(first.max_ulp, second.max_ulp),
        first.sum_ulp + second.sum_ulp,
        tuple(a + b for a, b in zip_longest(first.counts, second.counts, fillvalue=0)),
    )
