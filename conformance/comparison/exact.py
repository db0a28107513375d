"""Arrays that must be equal: in value and in the sign of zero, or to the last bit."""

from __future__ import annotations

import numpy as np

from epcheck.conformance.comparison import blocks
from epcheck.conformance.comparison.ulp import is_floating
from epcheck.generators.array import Array


def same(expected: Array, got: Array) -> Array:
    """Element by element: same value and same sign of zero; any NaN equals any NaN."""
    if not is_floating(expected.dtype):
        equal: Array = expected == got
        return equal
    signs_equal = np.signbit(expected) == np.signbit(got)
    matched: Array = ((expected == got) & signs_equal) | (np.isnan(expected) & np.isnan(got))
    return matched


def identical(expected: Array, got: Array) -> bool:
    """Whether two arrays of one shape and dtype are equal byte for byte."""
    if expected is got:
        return True
    if expected.size <= blocks.BLOCK:
        return expected.tobytes() == got.tobytes()
    return all(right.tobytes() == actual.tobytes() for _, (right, actual) in blocks.read(expected, got))
