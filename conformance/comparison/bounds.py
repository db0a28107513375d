"""What an output's bound allows, element by element: equality, ULP of the truth, or one quantisation step."""

from __future__ import annotations

import numpy as np

from epcheck.conformance.comparison.exact import identical, same
from epcheck.conformance.comparison.ulp import is_floating, steps_within, ulp_distance, ulp_error, ulp_unit
from epcheck.generators.array import Array
from epcheck.generators.citation import source_text
from epcheck.generators.truth import Bound, Exact, OneStep, Output, Ulp

_NO_ALLOWANCE = np.zeros((), np.bool_)


def is_surely_right(expected: Output, got: Array) -> bool:
    """Whether the bits alone show that nothing is wrong; most outputs are the truth byte for byte."""
    bound = expected.bound
    if not isinstance(bound, Ulp):
        return identical(expected.value, got)
    if expected.exact is not None:
        return bound.bound >= 0.5 and identical(expected.value, got)  # the truth itself was rounded by half a ULP
    return identical(expected.value, got) or (
        is_floating(got.dtype) and ulp_distance(expected.value, got).max <= steps_within(bound.bound, got.dtype)
    )


def allowance(bound: Bound) -> Array:
    """What a bound allows by element: steps of OneStep, the floor of ULP; a scalar holds for all."""
    match bound:
        case OneStep(allowed):
            return allowed
        case Ulp(floor=floor):
            return np.asarray(floor, np.float64)
    return _NO_ALLOWANCE


def absolute(output: Output) -> Array | None:
    """float64: how far from the exact result each element of an output may be; None where it must equal the truth."""
    exact = output.value if output.exact is None else output.exact
    match output.bound:
        case OneStep(allowed):
            return np.broadcast_to(allowed, output.value.shape).astype(np.float64)
        case Ulp(bound=bound, floor=floor):
            unit = ulp_unit(exact, output.value.dtype)
            return np.broadcast_to(np.maximum(bound * unit, floor), output.value.shape).astype(np.float64)
    return None


def breaks(bound: Bound, expected: Array, got: Array, exact: Array, allowed: Array) -> Array:
    """Element by element, whether the bound is broken. allowed: the `allowance`, for these elements."""
    if isinstance(bound, OneStep):
        step: Array = np.abs(got.astype(np.int64) - expected.astype(np.int64))
        return step > allowed
    if isinstance(bound, Exact):
        return ~same(expected, got)
    with np.errstate(invalid="ignore", over="ignore"):
        far = ~(np.abs(got.astype(np.float64) - exact.astype(np.float64)) <= allowed)
    return far & (ulp_error(exact, got) > bound.bound) if far.any() else far


def rule(bound: Bound, max_abs: float) -> str:
    """What the bound demands of each element, in words. max_abs: the largest absolute error in an output."""
    if isinstance(bound, Exact):
        return "must match exactly"
    if isinstance(bound, Ulp):
        return f"must be within {bound.bound:g} ULP ({source_text(bound.citations)})"
    near = "; it is off by one quantisation step, and not a rounding tie" if max_abs == 1 else ""
    return f"must be the exactly rounded value{near}"
