"""How the values of a tensor are distributed, and other values that are distributed alike.

A model's weights and activations are large, and they are its owner's. What is kept of them is where their values lie.
Values that say *how* to compute (shapes, axes, indices, masks, limits, scales) mean something exactly: small tensors,
and integers up to a size, are kept as they are (`is_kept`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from epcheck.generators.array import Array

KEPT_NUMBERS = 16
"""Elements up to which a tensor of any dtype is kept as it is."""

KEPT_INTEGERS = 1 << 16
"""Elements up to which int32, int64 and bool are kept: indices, shapes, masks. Narrower integers are data."""

KEPT_DTYPES = frozenset({"bool", "int32", "int64"})

LEVELS = (0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
"""The shares of elements at or below each quantile."""


@dataclass(frozen=True)
class Spread:
    """quantiles: of the finite elements other than 0, at LEVELS; empty where there are none. zeros, nans, above, below:
    the shares of zeros, NaN, +inf and -inf among all elements."""

    quantiles: tuple[float, ...]
    zeros: float = 0.0
    nans: float = 0.0
    above: float = 0.0
    below: float = 0.0

    def join(self, other: Spread) -> Spread:
        """A spread that reaches as far as both."""
        if not self.quantiles or not other.quantiles:
            quantiles = self.quantiles or other.quantiles
        else:
            pairs = tuple(zip(LEVELS, self.quantiles, other.quantiles, strict=True))
            quantiles = tuple(min(a, b) if level < 0.5 else max(a, b) if level > 0.5 else a for level, a, b in pairs)
        return Spread(
            quantiles,
            max(self.zeros, other.zeros),
            max(self.nans, other.nans),
            max(self.above, other.above),
            max(self.below, other.below),
        )


def is_kept(value: Array) -> bool:
    """Whether a tensor is kept as it is."""
    return value.size <= (KEPT_INTEGERS if value.dtype.name in KEPT_DTYPES else KEPT_NUMBERS)


def measure_spread(value: Array) -> Spread:
    """The spread of a tensor of numbers or truth values."""
    wide = value.astype(np.float64).reshape(-1)
    count = max(wide.size, 1)
    finite = wide[np.isfinite(wide) & (wide != 0)]
    quantiles = tuple(map(float, np.quantile(finite, LEVELS))) if finite.size else ()
    return Spread(
        quantiles,
        float((wide == 0).sum()) / count,
        float(np.isnan(wide).sum()) / count,
        float(np.isposinf(wide).sum()) / count,
        float(np.isneginf(wide).sum()) / count,
    )


def draw_tensor(spread: Spread, shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """A tensor with this spread; integers are rounded, and kept within the dtype."""
    count = prod(shape)
    values = np.interp(rng.random(count), LEVELS, spread.quantiles) if spread.quantiles else np.zeros(count)
    place, end = rng.random(count), 0.0
    for share, special in (
        (spread.zeros, 0.0), (spread.nans, np.nan), (spread.above, np.inf), (spread.below, -np.inf),
    ):  # fmt: skip
        values[(place >= end) & (place < end + share)] = special
        end += share
    if "int" in dtype.name:
        values = np.rint(values)
        if spread.quantiles:  # the largest 64-bit integers are no float64
            values = np.clip(values, min(spread.quantiles[0], 0.0), max(spread.quantiles[-1], 0.0))
    with np.errstate(all="ignore"):
        return values.astype(dtype).reshape(shape)
