"""Elements of an output for which the standard defines nothing: what may stand there."""

from __future__ import annotations

import numpy as np

from epcheck.conformance.comparison.bounds import allowance, breaks, rule
from epcheck.conformance.comparison.wrong_elements import WrongElements
from epcheck.conformance.records.opinion import Difference
from epcheck.generators.array import Array
from epcheck.generators.truth import Bound, Output, Ulp, Undefined

MOVED = "every undefined element must be 0 or an element of an input"


def difference(expected: Output, undefined: Undefined, got: Array) -> Difference | None:
    """What is wrong with an output that has undefined elements; None when nothing is. got: of its shape and dtype.

    Where the operator only moves data, an undefined element that is neither of an input nor 0 is memory that the node
    was not given. Where a target computes float32 in less, both may be rounded: the bound is in ULP then.
    """
    far = breaks(expected.bound, expected.value, got, expected.value, allowance(expected.bound))
    wrong = np.where(undefined.where, _is_foreign(undefined, expected.bound, got), far)
    if not wrong.any():
        return None
    truth = np.ravel(expected.value)
    found = WrongElements(expected.name, expected.value)
    found.add(0, np.ravel(wrong), truth, np.ravel(got), truth)
    defined = f"each defined element {rule(expected.bound, found.max_abs)}"
    return found.difference(defined if undefined.among is None else f"{defined}, and {MOVED}")


def _is_foreign(undefined: Undefined, bound: Bound, got: Array) -> Array:
    """Element by element, whether it is none of those that may stand where nothing is defined."""
    if undefined.among is None:
        return np.zeros(got.shape, np.bool_)
    if not isinstance(bound, Ulp):
        return ~np.isin(got, undefined.among)
    each = (np.full(got.shape, element, got.dtype) for element in undefined.among)
    foreign: Array = np.logical_and.reduce([breaks(bound, value, got, value, allowance(bound)) for value in each])
    return foreign
