"""Input data: values that make a wrong element visible."""

from __future__ import annotations

from typing import Any

import numpy as np

from epcheck.generators.array import Array


def distinct(shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Values of any size and sign, as different from each other as the dtype allows; floats are finite.

    64-bit integers use all 64 bits, so that a detour through float64 or int32 shows.
    """
    count = int(np.prod(shape, dtype=np.int64))
    if dtype.kind == "b":
        values = rng.integers(0, 2, count).astype(bool)
    elif dtype.kind == "f":
        magnitude = rng.permutation(count) + 0.25 + 0.5 * rng.random(count)
        values = np.where(rng.random(count) < 0.5, -magnitude, magnitude).astype(dtype)
    else:
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
    return values.reshape(shape)


def special_floats(dtype: np.dtype[Any]) -> Array:
    """Every kind of value a float dtype has: NaN, denormals and the boundary values."""
    info = np.finfo(dtype)
    further = np.array([np.nan, info.smallest_subnormal, -info.smallest_subnormal], dtype)
    return np.concatenate([further, boundary_floats(dtype)])


def boundary_floats(dtype: np.dtype[Any]) -> Array:
    """±inf, ±0, the ends of the normal range, values beside 1: what every implementation has to order and keep."""
    info = np.finfo(dtype)
    values = [np.inf, -np.inf, 0.0, -0.0, info.tiny, -info.tiny, info.max, info.min]
    values += [1.0, 1.0 + info.eps, 1.0 - info.epsneg, -1.0]
    return np.array(values, dtype)


def denormals(dtype: np.dtype[Any]) -> Array:
    """Denormals of both signs and sizes around ±0 and the smallest normal numbers. Hardware may flush them to zero."""
    step, tiny = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).tiny
    positive = np.array([0, step, 2 * step, 3 * step, tiny / 2, tiny - step, tiny], dtype)
    return np.concatenate([positive, -positive])


def boundary_integers(dtype: np.dtype[Any]) -> Array:
    """Both ends of an integer dtype, zero and its neighbours, and where float32 and float64 stop being exact."""
    info = np.iinfo(dtype)
    values = [info.min, info.min + 1, -1, 0, 1, 2**24 - 1, 2**24 + 1, 2**53 - 1, 2**53 + 1, info.max - 1, info.max]
    return np.array([v for v in values if info.min <= v <= info.max], dtype)


def boundary(dtype: np.dtype[Any]) -> Array:
    """The boundary values of any dtype, 1-D."""
    if dtype.kind == "b":
        return np.array([False, True, True, False])
    return boundary_floats(dtype) if dtype.kind == "f" else boundary_integers(dtype)


def every_value(dtype: np.dtype[Any]) -> Array:
    """The boundary values of any dtype, NaN and denormals included, 1-D: for operators that only move data."""
    return special_floats(dtype) if dtype.kind == "f" else boundary(dtype)
