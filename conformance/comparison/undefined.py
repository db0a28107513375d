"""Elements of an output for which the standard defines nothing: what may stand there."""

from __future__ import annotations

import numpy as np

from epcheck.conformance.comparison.exact import same
from epcheck.conformance.comparison.wrong_elements import WrongElements
from epcheck.conformance.records.opinion import Difference
from epcheck.generators.array import Array
from epcheck.generators.truth import Output, Undefined

RULE = "each that is defined must equal the truth exactly, and any other must be an element of an input or 0"
ANYTHING = "each that is defined must equal the truth exactly"


def difference(expected: Output, undefined: Undefined, got: Array) -> Difference | None:
    """What is wrong with an output that has undefined elements; None when nothing is. got: of its shape and dtype.

    Where the operator only moves data, an undefined element that is neither of an input nor 0 is memory that the node
    was not given.
    """
    wrong = np.where(undefined.where, _is_foreign(undefined, got), ~same(expected.value, got))
    if not wrong.any():
        return None
    truth = np.ravel(expected.value)
    found = WrongElements(expected.name, expected.value)
    found.add(0, np.ravel(wrong), truth, np.ravel(got), truth)
    return found.difference(ANYTHING if undefined.among is None else RULE)


def _is_foreign(undefined: Undefined, got: Array) -> Array:
    """Element by element, whether it is none of those that may stand where nothing is defined."""
    if undefined.among is None:
        return np.zeros(got.shape, np.bool_)
    return ~np.isin(got, undefined.among)
