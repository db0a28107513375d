"""How far the output of one node may be from the truth: a multiple of the baseline's distance, or of one rounding."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epcheck.models.accuracy.deviation import (
    MULTIPLE,
    Deviation,
    allow_deviation,
    is_one_rounding_away,
    measure_deviation,
    words_of,
)

EXACT = np.random.default_rng(0).standard_normal((2, 16, 8, 8))
HALF = np.dtype(np.float16)
UNIT = 2.0**-11


def test_what_is_rounded_once_is_within_the_bound_by_far() -> None:
    found, allowed = measure_deviation(EXACT.astype(np.float16), EXACT), allow_deviation(None, EXACT, HALF)
    assert allowed == Deviation(MULTIPLE * UNIT, MULTIPLE * 0.4 * UNIT, MULTIPLE * UNIT)
    assert 0.9 * UNIT < found.largest <= UNIT
    assert 0.2 * UNIT < found.typical < 0.45 * UNIT
    assert found.times(allowed) == pytest.approx(1 / MULTIPLE, rel=0.2)


@pytest.mark.parametrize("gain", [1.005, 0.98, 1.05])
def test_a_gain_of_half_a_percent_in_float16_is_beyond_it(gain: float) -> None:
    found, allowed = measure_deviation((EXACT * gain).astype(np.float16), EXACT), allow_deviation(None, EXACT, HALF)
    assert found.exceeds(allowed)
    assert found.typical == pytest.approx(0.72 * abs(gain - 1), rel=0.05)  # of elements below the root mean square less


def test_one_channel_that_is_wrong_shows_where_all_together_hide_it() -> None:
    wrong = EXACT.copy()
    wrong[:, 5] *= 1.004
    found, allowed = measure_deviation(wrong.astype(np.float16), EXACT), allow_deviation(None, EXACT, HALF)
    assert found.typical < allowed.typical
    assert found.channel == pytest.approx(0.004, rel=0.3)


def test_the_baseline_extends_the_bound_and_a_mask_is_no_scale() -> None:
    baseline = (EXACT * 1.01).astype(np.float16)
    assert allow_deviation(baseline, EXACT, HALF).typical == pytest.approx(MULTIPLE * 0.72 * 0.01, rel=0.05)
    masked = np.where(np.arange(8) < 2, -10000.0, EXACT)
    found = measure_deviation(np.where(np.arange(8) < 2, -10000.0, EXACT * 1.02).astype(np.float16), masked)
    assert found.exceeds(allow_deviation(None, masked, HALF))


def test_steps_of_a_recurrence_extend_the_bound() -> None:
    for baseline in (None, EXACT.astype(np.float16)):
        once, steps = allow_deviation(baseline, EXACT, HALF), allow_deviation(baseline, EXACT, HALF, 16)
        assert (steps.largest, steps.typical, steps.channel) == (4 * once.largest, 4 * once.typical, 4 * once.channel)


def test_special_values_on_one_side_are_infinitely_far_and_overflow_is_not() -> None:
    exact = np.array([1.0, 70000.0, -1e-7])
    assert measure_deviation(np.float16([1, np.inf, 0]), exact) == Deviation(0.0, 0.0, 0.0)
    assert measure_deviation(np.float16([np.nan, np.inf, 0]), exact).largest == math.inf
    assert words_of(Deviation(math.inf, 0, 0), Deviation(1, 1, 1)).startswith("NaN or infinite")


def test_words_name_the_measure_that_is_farthest_beyond_its_bound() -> None:
    assert words_of(Deviation(0.02, 0.02, 0.02), Deviation(0.01, 0.001, 0.01)) == (
        "0.02 of its size away from the truth in all elements together, 160 times as far as the baseline and one "
        "rounding of its format; allowed are 8 times"
    )


def test_outputs_a_few_roundings_apart_are_alike() -> None:
    value = EXACT.astype(np.float16)
    assert is_one_rounding_away(np.nextafter(value, np.float16(np.inf)), value)
    assert not is_one_rounding_away(value * np.float16(1.01), value)
