"""How far the output of one node is from its true value, and how far it may be: a multiple of what the baseline shows.

A bound of an operator holds for any order of its terms: a sum of 576 products in float16 may be 28 % off. What a
baseline shows on the same values is far less. So an output is right up to MULTIPLE times the baseline's distance from
the truth, or MULTIPLE times what rounding it once to its format does, whichever is more. The largest error of an
element, the root mean square of all, and that of the worst channel are each compared: a channel with a wrong scale, or
a wrong bias, shows in the third where it is noise in the first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from epcheck.conformance.comparison.ulp import is_floating
from epcheck.generators.array import Array
from epcheck.models.accuracy.closeness import SMALL
from epcheck.models.accuracy.metrics import MASKED
from epcheck.models.oracle.rounding import UNITS

MULTIPLE = 8.0
"""A node may be so many times as far from the truth as the baseline, or as one rounding of its format."""

ROUNDED = 0.4
"""The root mean square of one rounding, in units of the format: 0.29 of a unit in the last place, which is between one
and two units."""

SPREAD = 16.0
"""The root mean square of a tensor counts as at most so many times a small one of its elements."""

FEW = 8
"""Elements from which on the root mean square of a channel is compared."""


@dataclass(frozen=True)
class Deviation:
    """Errors relative to the element, or to the root mean square of all where that is larger. largest: of an element.
    typical: the root mean square of all. channel: that of the worst channel, of the second or the last axis, relative
    to the channel. Infinite for a NaN or an infinity on one side only."""

    largest: float = 0.0
    typical: float = 0.0
    channel: float = 0.0

    def exceeds(self, other: Deviation) -> bool:
        """Whether any of the three is larger."""
        return self.largest > other.largest or self.typical > other.typical or self.channel > other.channel

    def times(self, other: Deviation) -> float:
        """The largest of the three ratios."""
        pairs = ((self.largest, other.largest), (self.typical, other.typical), (self.channel, other.channel))
        return max(mine / its if its else math.inf if mine else 0.0 for mine, its in pairs)


def measure_deviation(got: Array, exact: Array) -> Deviation:
    """The deviation of a floating-point output from values of its shape."""
    with np.errstate(all="ignore"):
        true, value = exact.astype(np.float64), got.astype(np.float64)
        limit = float(ml_dtypes.finfo(got.dtype).max)  # type: ignore[no-untyped-call]
        tiny = float(ml_dtypes.finfo(got.dtype).tiny)  # type: ignore[no-untyped-call]
        overflows = np.abs(true) >= limit * (1 - UNITS.get(got.dtype.name, 0.0))
        special = ~np.isfinite(true) | ~np.isfinite(value)
        differs = special & ~overflows & ~((true == value) | (np.isnan(true) & np.isnan(value)))
        if differs.any():
            return Deviation(math.inf, math.inf, math.inf)
        flushed = (value == 0) & (np.abs(true) < tiny)
        counted = ~special & ~overflows & ~flushed & (np.abs(true) < MASKED)
        size = np.where(counted, np.abs(true), 0.0)
        error = np.where(counted, np.abs(value - true), 0.0)
        whole = max(_usual_size(size), tiny)
        relative = error / np.maximum(size, whole)
        channels = [_worst_channel(error, size, axis, whole) for axis in _axes(size)]
        return Deviation(float(relative.max(initial=0.0)), _root_mean_square(relative), max(channels, default=0.0))


def _usual_size(size: Array) -> float:
    """The root mean square of the magnitudes, at most SPREAD times a small one: a mask of -10000 among scores of 1 is
    not the scale of an error."""
    usual = size[size > 0]
    return min(_root_mean_square(size), SPREAD * float(np.quantile(usual, SMALL))) if usual.size else 0.0


def _root_mean_square(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else 0.0


def _axes(size: Array) -> Sequence[int]:
    """The axes along which channels are looked at: those with FEW elements for each place."""
    axes = {1, size.ndim - 1} if size.ndim > 1 else set()
    return [axis for axis in sorted(axes) if size.shape[axis] > 1 and size.size // size.shape[axis] >= FEW]


def _worst_channel(error: Array, size: Array, axis: int, whole: float) -> float:
    """The root mean square of the relative errors of a channel. An element counts as at least as large as its channel,
    which is between a quarter of the whole and the whole."""
    others = tuple(other for other in range(size.ndim) if other != axis)
    scale = np.clip(np.sqrt(np.mean(size**2, axis=others, keepdims=True)), whole / 4, whole)
    relative = error / np.maximum(size, scale)
    return float(np.sqrt(np.mean(relative**2, axis=others)).max(initial=0.0))


def one_rounding(dtype: np.dtype[np.generic]) -> Deviation:
    """What one rounding to a floating-point format does."""
    unit = UNITS[dtype.name]
    return Deviation(unit, ROUNDED * unit, unit)


def allow_deviation(baseline: Array | None, exact: Array, dtype: np.dtype[np.generic], steps: int = 1) -> Deviation:
    """The bound of an output: MULTIPLE times the larger of the baseline's deviation and of one rounding. steps: in each
    of which a state is rounded: such errors grow with the root of their number (see `thresholds`), and a baseline that
    computes in a wider format does not show them."""
    once = one_rounding(dtype)
    own = Deviation()
    if baseline is not None and is_floating(baseline.dtype) and baseline.shape == exact.shape:
        own = measure_deviation(baseline, exact)
    growth = math.sqrt(steps)
    return Deviation(
        MULTIPLE * max(own.largest, growth * once.largest),
        MULTIPLE * max(own.typical, growth * once.typical),
        MULTIPLE * max(own.channel, growth * once.channel),
    )


def is_one_rounding_away(value: Array, other: Array) -> bool:
    """Whether two outputs are so near that both are within their bounds where one of them is as near to the truth as a
    rounding: MULTIPLE - 1 roundings apart."""
    once, found = one_rounding(value.dtype), measure_deviation(value, other)
    most = MULTIPLE - 1
    return not found.exceeds(Deviation(most * once.largest, most * once.typical, most * once.channel))


def words_of(found: Deviation, allowed: Deviation) -> str:
    """How far an output is from the truth, beside its bound, in the measure that is farthest beyond it."""
    named = (
        (found.largest, allowed.largest, "in one element"),
        (found.typical, allowed.typical, "in all elements together"),
        (found.channel, allowed.channel, "in one channel"),
    )
    error, bound, where = max(named, key=lambda each: each[0] / each[1] if each[1] else 0.0)
    if math.isinf(error):
        return "NaN or infinite where the truth is not, or the other way round"
    return (
        f"{error:.2g} of its size away from the truth {where}, {MULTIPLE * error / bound:.3g} times as far as the "
        f"baseline and one rounding of its format; allowed are {MULTIPLE:g} times"
    )
