"""Metrics of two tensors."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from epcheck.models.accuracy.metrics import measure

ROW = np.array([[1.0, -2.0, 4.0]], np.float32)


def test_metrics_of_a_known_error() -> None:
    found = measure(ROW + np.float32([0, 0, 0.5]), ROW)
    rms = math.sqrt(7)
    assert (found.elements, found.differing, found.nonfinite) == (3, 1, 0)
    assert (found.max_abs, found.max_rel, found.relative) == (0.5, 0.125, 0.125)
    assert found.max_ulp == 0.5 / 2.0**-21
    assert found.snr_db == pytest.approx(10 * math.log10(21 / 0.25))
    assert found.cosine == pytest.approx(23 / math.sqrt(21 * 25.25))
    assert found.top1 == 1.0
    assert measure(ROW + np.float32([0.5, 0, 0]), ROW).relative == pytest.approx(0.5 / rms)


@pytest.mark.parametrize(
    ("dtype", "spacing"), [(np.float16, 2.0**-10), (ml_dtypes.bfloat16, 2.0**-7), (np.float64, 2.0**-52)]
)
def test_ulp_are_those_of_the_dtype(dtype: type[np.generic], spacing: float) -> None:
    reference = np.array([1.0, 3.0])
    found = measure(np.array([1 + 2 * spacing, 3.0], dtype), reference)
    assert (found.max_ulp, found.max_abs) == (2.0, 2 * spacing)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_what_is_below_every_normal_number_is_no_relative_error(dtype: type[np.generic]) -> None:
    tiny = float(ml_dtypes.finfo(dtype).tiny)  # type: ignore[no-untyped-call]
    assert measure(np.zeros(2, dtype), np.array([tiny * 1e-9, 0.0])).relative == pytest.approx(1e-9)
    assert measure(np.zeros(2, dtype), np.array([tiny, 0.0])).relative == 1


def test_integers_have_no_ulp() -> None:
    assert measure(np.int32([1]), np.int32([2])).max_ulp is None


def test_nan_and_infinity_count_as_nonfinite_and_not_in_ulp() -> None:
    found = measure(np.float32([np.nan, np.inf, 1]), np.float32([1, 2, 1]))
    assert (found.nonfinite, found.max_ulp) == (2, 0.0)


def test_nan_equals_nan_and_nothing_else() -> None:
    half_nan, all_nan = np.float32([np.nan, 1]), np.float32([np.nan, np.nan])
    assert (measure(half_nan, half_nan).differing, measure(half_nan, all_nan).nonfinite) == (0, 1)


def test_a_mask_does_not_hide_an_error_in_its_scale() -> None:
    masked = np.float32([-3.4e38, 1, 1])
    assert measure(masked + np.float32([0, 0, 0.1]), masked).relative == pytest.approx(0.1, rel=1e-6)


def test_integers_beyond_float64_are_compared_exactly() -> None:
    assert measure(np.array([2**60 + 1]), np.array([2**60])).differing == 1


def test_top_1_counts_rows_whose_largest_element_moves() -> None:
    reference = np.float32([[1, 2], [3, 0]])
    assert measure(reference[:, ::-1], np.float32([[2, 1], [3, 0]])).top1 == 0.5
