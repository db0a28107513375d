"""What every quantised operator does last: round to the nearest step, ties to even, add the zero point, saturate.

Source: the page QuantizeLinear. One step beside the truth is accepted only where the arithmetic that the standard
leaves to the implementation cannot tell the side of a rounding boundary, and not at all where it is exact.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.truth import OneStep, Output

Ends = str | int
"""A level of a quantised dtype: a number, or `low`, `high` for its ends, `middle` for what stands for 0 in practice."""

SINGLE = 2.0**-24
"""Half a unit in the last place of float32, relative: what one rounding costs."""

ROUNDINGS = 4
"""Of requantisation in float32: the value, its factor, the reciprocal of the scale, the product."""


def unit(dtype: np.dtype[Any]) -> float:
    """Half a unit in the last place of a floating-point dtype, relative."""
    return float(np.finfo(dtype).eps) / 2


NARROW = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}
"""The integers of 4 and 2 bits, which numpy has from ml_dtypes and cannot describe, with their ends."""


def ends(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The lowest and the highest level of an integer dtype."""
    if dtype.name in NARROW:
        return NARROW[dtype.name]
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def random_levels(shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Levels from the whole of an integer dtype."""
    low, high = ends(dtype)
    if dtype.name in NARROW:
        return rng.integers(low, high, shape, np.int8, endpoint=True).astype(dtype)
    return rng.integers(low, high, shape, dtype, endpoint=True)


def level(value: Ends, dtype: np.dtype[Any]) -> int:
    """The number that an end stands for."""
    low, high = ends(dtype)
    named = {"low": low, "high": high, "middle": (low + high + 1) // 2}
    return named[value] if isinstance(value, str) else value


def is_power_of_two(scale: Array) -> Array:
    """Element by element, whether dividing by the scale or multiplying with it is exact (but for the range)."""
    mantissa, _ = np.frexp(abs(scale.astype(np.float64)))
    exact: Array = mantissa == 0.5
    return exact


def quantise(name: str, real: Array, zero_point: Array | int, dtype: np.dtype[Any], error: Array | float) -> Output:
    """saturate(round_half_even(real) + zero_point).

    real: float64, what is to be rounded; infinities saturate. error: how far the arithmetic may be from it, in steps;
    a negative one says that it is exact, and a tie then is a tie.
    """
    info = np.iinfo(dtype)
    bounded = np.clip(np.asarray(real, np.float64), -(2.0**60), 2.0**60)
    levels = np.rint(bounded).astype(np.int64) + np.asarray(zero_point, np.int64)
    distance = abs(bounded - (np.floor(bounded) + 0.5))
    allowed = (distance <= error) & (levels >= int(info.min) - 1) & (levels <= int(info.max) + 1)
    exact = np.clip(bounded + np.asarray(zero_point, np.float64), float(info.min), float(info.max))
    value = np.asarray(np.clip(levels, int(info.min), int(info.max))).astype(dtype)
    every = (np.ascontiguousarray(np.broadcast_to(part, value.shape)).reshape(value.shape) for part in (allowed, exact))
    return Output(name, value, OneStep(next(every)), next(every))


def exact_ratio(sums: Array, numerator: Fraction, denominator: Fraction) -> Array:
    """sums (int64) * numerator / denominator, float64; exactly a tie only where it is one."""
    ratio = numerator / denominator
    real = np.array(sums.astype(np.float64) * float(ratio))  # of no dimension, too
    doubtful = abs(real - (np.floor(real) + 0.5)) <= abs(real) * 2.0**-50
    for at in zip(*np.nonzero(np.atleast_1d(doubtful)), strict=True):
        place = at if real.ndim else ()
        exact = int(sums[place]) * ratio
        nearest = Fraction(int(np.floor(float(exact) * 2)) | 1, 2)
        real[place] = float(nearest) if exact == nearest else _step_beside(nearest, exact > nearest)
    return real


def _step_beside(tie: Fraction, above: bool) -> float:
    return float(np.nextafter(float(tie), np.inf if above else -np.inf))
