"""Cast to and from the types that numpy lacks: the oracle against the page's table and against ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from epcheck.generators.case import BuiltCase
from epcheck.generators.families import narrow
from epcheck.generators.truth import Outputs
from tests.generators.built_suite import built


def case(name: str) -> tuple[list[float], list[float]]:
    """What goes in and what comes out of the case of Cast-25."""
    (found,) = (b for b in built("Cast", 25) if f"{b.case.dtype}/{b.case.sample}" == name)
    return found.node.array("input").tolist(), outputs(found)


def outputs(found: BuiltCase) -> list[float]:
    assert isinstance(found.truth, Outputs)
    values: list[float] = found.truth.outputs[0].value.tolist()
    return values


@pytest.mark.parametrize(
    ("name", "largest", "overflow"),
    [
        ("float8_e4m3fn", 448.0, np.nan),
        ("float8_e4m3fnuz", 240.0, np.nan),
        ("float8_e5m2", 57344.0, np.inf),
        ("float8_e5m2fnuz", 57344.0, np.nan),
    ],
)
def test_what_overflows_follows_the_table_of_the_page(name: str, largest: float, overflow: float) -> None:
    values, saturated = case(f"float32-{name}/float8_beyond")
    assert saturated[values.index(np.inf)] == largest
    assert saturated[values.index(-np.inf)] == -largest
    assert np.isnan(saturated[-2])
    values, not_saturated = case(f"float32-{name}/float8_beyond_saturate_0")
    np.testing.assert_equal(not_saturated[values.index(np.inf)], overflow)
    np.testing.assert_equal(not_saturated[values.index(2 * largest)], overflow)
    assert not_saturated[0] == largest


@pytest.mark.parametrize("name", narrow.FLOAT8)
def test_rounding_is_that_of_ml_dtypes(name: str) -> None:
    for sample in ("float_ties", "float_beside_ties", "every_value", "float_zeros"):
        values, found = case(f"float32-{name}/{sample}")
        expected = np.array(values, np.float32).astype(getattr(ml_dtypes, name)).astype(np.float32)
        np.testing.assert_array_equal(np.array(found, np.float32), expected)
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


def test_integers_keep_their_lower_bits_and_fractions_go_to_the_nearest_even() -> None:
    values, found = case("int32-int4/narrow_lower_bits")
    assert [found[values.index(value)] for value in (7, 8, 15, 16, -9, 200)] == [7, -8, -1, 0, 7, -8]
    values, found = case("float32-int4/narrow_halves")
    assert [found[values.index(value)] for value in (0.5, 1.5, 2.5, -0.5, -1.5)] == [0, 2, 2, 0, -2]
    values, found = case("float32-uint2/narrow_fractions")
    assert [found[values.index(value)] for value in (0.25, 0.75, 2.75)] == [0, 1, 3]


def test_a_power_of_two_is_chosen_by_the_round_mode() -> None:
    found = {
        mode: dict(zip(*case(f"float32-float8_e8m0fnu/float8_power_of_two{mode}"), strict=True))
        for mode in ("", "_round_mode_up", "_round_mode_down", "_round_mode_nearest")
    }
    assert [found[mode][1.25] for mode in found] == [2.0, 2.0, 1.0, 1.0]
    assert [found[mode][1.5] for mode in found] == [2.0, 2.0, 1.0, 2.0]
    assert [found[mode][1.0] for mode in found] == [1.0, 1.0, 1.0, 1.0]


def test_float4_has_neither_nan_nor_infinity() -> None:
    values, found = case("float32-float4_e2m1fn/float4_beyond")
    assert set(found) == {6.0, -6.0, 1.0}
    assert found[values.index(np.inf)] == found[-2] == 6.0
