"""Signs of zeros, which a distance in ULP does not see, where somebody defines them."""

from __future__ import annotations

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.truth import Output

_NOWHERE = np.zeros((), np.bool_)


def find_defined_signs(output: Output) -> Array:
    """bool: where the sign of a zero is defined, of the output's shape; a scalar holds for all elements."""
    return _NOWHERE if output.zeros is None else np.asarray(output.zeros.where, np.bool_)


def of(output: Output) -> Array | None:
    """bool of the output's shape: where the sign of a zero is defined; None where that is nowhere."""
    return None if output.zeros is None else np.broadcast_to(find_defined_signs(output), output.value.shape)


def are_right(output: Output, got: Array) -> bool:
    """Whether no zero has a sign that is defined and another. got: of the output's shape and dtype."""
    return output.zeros is None or got is output.value or not wrong(output.value, got, find_defined_signs(output)).any()


def wrong(expected: Array, got: Array, where: Array) -> Array:
    """Element by element, whether both are zeros and their signs differ where they are defined."""
    found: Array = (expected == 0) & (got == 0) & (np.signbit(expected) != np.signbit(got)) & where
    return found


def rule(output: Output) -> str:
    """What an output demands of the signs of its zeros, in words."""
    assert output.zeros is not None
    return f"a zero must have the expected sign ({output.zeros.source})"
