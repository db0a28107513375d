"""What is kept of the values of a tensor, and what is made of it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from epcheck.generators.array import Array
from epcheck.generators.harvested.value_spread import LEVELS, Spread, draw_tensor, is_kept, measure_spread


def remade(value: Array) -> Array:
    return draw_tensor(measure_spread(value), (1000,), value.dtype, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("shape", "dtype", "kept"),
    [
        ((16,), np.float32, True),
        ((17,), np.float32, False),
        ((17,), np.uint8, False),
        ((1 << 16,), np.int64, True),
        ((1 << 8, 1 << 8), np.bool_, True),
        (((1 << 16) + 1,), np.int64, False),
        ((), np.float16, True),
        ((0, 1 << 20), np.float32, True),
    ],
)
def test_small_tensors_and_integers_are_kept(shape: tuple[int, ...], dtype: type, kept: bool) -> None:
    assert is_kept(np.zeros(shape, dtype)) == kept


def test_a_spread_has_the_quantiles_of_what_is_finite_and_not_0() -> None:
    value = np.array([0, 0, 1, 2, 3, 4, 5, np.inf, -np.inf, np.nan], np.float32)
    found = measure_spread(value)
    assert (found.quantiles[0], found.quantiles[4], found.quantiles[-1]) == (1.0, 3.0, 5.0)
    assert (found.zeros, found.nans, found.above, found.below) == (0.2, 0.1, 0.1, 0.1)


def test_what_is_made_lies_where_the_values_lay() -> None:
    rng = np.random.default_rng(1)
    value = np.maximum(rng.standard_normal(5000), 0).astype(np.float32)
    again = remade(value)
    assert again.dtype == np.float32
    assert 0.45 < float((again == 0).mean()) < 0.55
    assert again.min() >= 0
    assert again.max() <= value.max()
    assert abs(np.median(again[again > 0]) - np.median(value[value > 0])) < 0.1


def test_infinities_and_nan_are_made_as_often() -> None:
    value = np.tile(np.array([1, -np.inf, -np.inf, np.nan], np.float16), 50)
    again = remade(value)
    assert 0.4 < float(np.isneginf(again).mean()) < 0.6
    assert 0.2 < float(np.isnan(again).mean()) < 0.3
    assert set(again[np.isfinite(again)].tolist()) == {1.0}


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.bool_])
def test_integers_stay_within_their_range(dtype: type) -> None:
    value = np.random.default_rng(2).integers(0, 2 if dtype is np.bool_ else 100, 4000).astype(dtype)
    again = remade(value)
    assert (again.dtype, again.min() >= value.min(), again.max() <= value.max()) == (value.dtype, True, True)
    assert np.unique(again).size == np.unique(value).size


def test_the_largest_integers_and_narrow_floats_are_no_error() -> None:
    ends = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max] * 10, np.int64)
    assert remade(ends).dtype == np.int64
    narrow = np.linspace(-3, 3, 100).astype(ml_dtypes.bfloat16)
    assert remade(narrow).dtype == narrow.dtype


def test_values_that_are_all_0_stay_0() -> None:
    assert not remade(np.zeros(100, np.float32)).any()


def test_joined_spreads_reach_as_far_as_both() -> None:
    low = Spread(tuple(float(n) for n in range(9)), zeros=0.5)
    high = Spread(tuple(float(n) for n in range(4, 13)), nans=0.1)
    both = low.join(high)
    assert (both.quantiles[0], both.quantiles[-1], both.zeros, both.nans) == (0.0, 12.0, 0.5, 0.1)
    assert list(both.quantiles) == sorted(both.quantiles)
    assert len(both.quantiles) == len(LEVELS)
    assert low.join(Spread(())).quantiles == low.quantiles
