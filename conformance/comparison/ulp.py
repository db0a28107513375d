"""Errors in units in the last place (ULP), and distances in steps between neighbouring numbers of a dtype."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from epcheck.conformance.comparison import blocks
from epcheck.generators.array import Array


def ulp_error(exact: Array, got: Array) -> Array:
    """float64: |got - exact| in units in the last place of got's dtype at the exact value; shapes are equal.

    0 for equal infinities and for two NaN, inf where only one is NaN or infinite. `exact` is the truth in float64.
    Raises TypeError for a dtype that is not floating.
    """
    if not is_floating(got.dtype):
        raise TypeError(f"ULP are defined for floating-point outputs, not for {got.dtype}")
    with np.errstate(invalid="ignore", over="ignore"):
        truth, value = exact.astype(np.float64), got.astype(np.float64)
        rounded = truth.astype(got.dtype).astype(np.float64)
        error: Array = np.abs(value - truth) / _unit(rounded, got.dtype)
    if np.isfinite(error).all():
        return error
    equal_infinities = (value == rounded) & np.isinf(value)
    equal = (value == truth) | equal_infinities | (np.isnan(truth) & np.isnan(value))
    result: Array = np.where(equal, 0.0, np.where(np.isnan(error), np.inf, error))
    return result


def ulp_unit(exact: Array, dtype: np.dtype[Any]) -> Array:
    """float64: the unit in the last place of a floating dtype at each exact value; NaN where that is NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        return _unit(exact.astype(np.float64).astype(dtype).astype(np.float64), dtype)


def _unit(values: Array, dtype: np.dtype[Any]) -> Array:
    """The unit in the last place of the dtype at each of these numbers of it, float64."""
    tiny, largest, digits = _extent(dtype)
    magnitude = np.minimum(np.maximum(np.abs(values), tiny), largest)
    unit: Array = np.ldexp(1.0, np.frexp(magnitude)[1] - digits)
    return unit


@cache
def _extent(dtype: np.dtype[Any]) -> tuple[float, float, int]:
    """The smallest normal number of a floating dtype, its largest number, and the bits of its significand."""
    info = _finfo(dtype)
    return float(info.tiny), float(info.max), int(info.nmant) + 1


@dataclass(frozen=True)
class UlpDistance:
    """How far two arrays are apart, over all their elements; see `ulp_distance`.

    elements: of either array. differing: those more than 0 apart. max, mean: in ULP, inf when any distance is infinite.
    at: index of the first element that is `max` apart, in C order; None when nothing differs.
    """

    elements: int
    differing: int
    max: float
    mean: float
    at: tuple[int, ...] | None


def ulp_distance(expected: Array, got: Array) -> UlpDistance:
    """How many steps, from one number of the dtype to the next, lead from each element of `expected` to that of `got`.

    Both have one shape and one dtype: float16, bfloat16, float32 or float64. Each step is 1 ULP, also across zero and
    across a power of two, where `ulp_error` keeps the unit of the exact value. As there, +0 and -0 are 0 apart, and so
    are any two NaN; NaN is infinitely far from all else, and an infinity from all but itself.

    Beside the arrays it takes memory for three blocks, and two more for arrays that are not contiguous.
    Raises TypeError for another dtype or for two, ValueError for two shapes.
    """
    if expected.dtype != got.dtype:
        raise TypeError(f"ULP between {expected.dtype} and {got.dtype} are not defined")
    if expected.shape != got.shape:
        raise ValueError(f"the shape is {list(got.shape)}, must be {list(expected.shape)}")
    lattice = _lattice(expected.dtype)
    work = np.empty((3, min(blocks.BLOCK, expected.size)), lattice.signed)
    differing, largest, total, where = 0, 0, 0.0, 0
    for start, (left, right) in blocks.read(expected, got):
        steps = _steps(lattice, left.view(lattice.signed), right.view(lattice.signed), work[:, : left.size])
        most = int(np.maximum.reduce(steps))
        if most > largest:
            largest, where = most, start + int(steps.argmax())
        differing += int(np.count_nonzero(steps))
        fits = most * steps.size <= lattice.infinite
        total += float(np.add.reduce(steps, dtype=lattice.unsigned if fits else lattice.wide))
    infinite = largest == lattice.infinite
    return UlpDistance(
        elements=expected.size,
        differing=differing,
        max=math.inf if infinite else float(largest),
        mean=math.inf if infinite else total / max(expected.size, 1),
        at=blocks.index(where, expected.shape) if differing else None,
    )


@dataclass(frozen=True)
class _Lattice:
    """The numbers of a floating dtype in their order: bits without the sign count the steps from zero.

    signed, unsigned: integers of its size, for bits and for distances. wide: for sums of distances. magnitude: all bits
    but the sign. infinity: the bits of +inf. infinite: stands for an infinite distance; no finite one is as large.
    """

    signed: np.dtype[Any]
    unsigned: np.dtype[Any]
    wide: np.dtype[Any]
    magnitude: int
    infinity: int
    infinite: int


@cache
def _lattice(dtype: np.dtype[Any]) -> _Lattice:
    if dtype.name not in ("float16", "bfloat16", "float32", "float64"):
        raise TypeError(f"ULP are defined for floating-point numbers of 16, 32 or 64 bits, not for {dtype}")
    signed, unsigned = np.dtype(f"i{dtype.itemsize}"), np.dtype(f"u{dtype.itemsize}")
    return _Lattice(
        signed,
        unsigned,
        wide=np.dtype(np.uint64 if dtype.itemsize < 8 else np.float64),
        magnitude=int(np.iinfo(signed).max),
        infinity=int(np.array(np.inf, dtype.newbyteorder("=")).view(signed)),
        infinite=int(np.iinfo(unsigned).max),
    )


def _steps(lattice: _Lattice, left: Array, right: Array, work: Array) -> Array:
    """Distances [n], unsigned, of two blocks [n] of bits as signed integers; they lie in work [3, n].

    A distance is the larger magnitude less the smaller one, or plus it where the signs differ.
    """
    left_magnitude, right_magnitude, larger = work
    np.bitwise_and(left, lattice.magnitude, out=left_magnitude)
    np.bitwise_and(right, lattice.magnitude, out=right_magnitude)
    np.maximum(left_magnitude, right_magnitude, out=larger)
    smaller = np.minimum(left_magnitude, right_magnitude, out=right_magnitude)
    finite = np.maximum.reduce(larger) < lattice.infinity
    minus = np.bitwise_xor(left, right, out=left_magnitude)
    if np.minimum.reduce(minus) < 0:
        np.right_shift(minus, 8 * minus.itemsize - 1, out=minus)  # -1 where the signs differ, 0 elsewhere
        np.bitwise_xor(smaller, minus, out=smaller)
        np.subtract(smaller, minus, out=smaller)
    steps: Array = np.subtract(larger, smaller, out=larger).view(lattice.unsigned)  # a sum may need the sign's bit
    if not finite:
        _correct_specials(lattice, left, right, steps)
    return steps


def _correct_specials(lattice: _Lattice, left: Array, right: Array, steps: Array) -> None:
    """Correct `steps` in place where an element is NaN or infinite: those distances are 0 or infinite."""
    magnitudes = left & lattice.magnitude, right & lattice.magnitude
    special = np.flatnonzero(np.maximum(*magnitudes) >= lattice.infinity)
    both_nan = np.minimum(*magnitudes)[special] > lattice.infinity
    steps[special] = 0
    steps[special[~both_nan & (left[special] != right[special])]] = lattice.infinite


def steps_within(bound: float, dtype: np.dtype[Any]) -> float:
    """As many steps as are sure to be within `bound` ULP of the number they start from, as `ulp_error` counts them.

    Away from zero the unit doubles, once at most on as many steps as a binade has, and not for the first: d steps are
    2 d - 1 ULP at most.
    """
    return min((bound + 1) / 2, 2.0 ** int(_finfo(dtype).nmant))


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Whether ULP are defined for a dtype: numpy's floating dtypes and bfloat16."""
    return dtype.kind == "f" or dtype == ml_dtypes.bfloat16


def _finfo(dtype: np.dtype[Any]) -> Any:
    """numpy's, which does not know bfloat16, or one like it."""
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
