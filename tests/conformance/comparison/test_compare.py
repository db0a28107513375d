"""Outputs against the truth: distances by hand, and what is said of a difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from epcheck.conformance.comparison import compare
from epcheck.conformance.comparison.accuracy import measure_accuracy
from epcheck.conformance.comparison.ulp import ulp_error
from epcheck.conformance.records.accuracy import Accuracy, add_accuracy
from epcheck.conformance.records.opinion import Difference, Mismatch
from epcheck.generators.array import Array
from epcheck.generators.citation import statement
from epcheck.generators.truth import Bound, Exact, OneStep, Output, Outputs, Selection, Ulp

NAN, INF = np.nan, np.inf
A_TEST = (statement("a test"),)


def ulp(exact: float, got: float, dtype: str) -> float:
    return float(ulp_error(np.array([exact], np.float64), np.array([got], dtype))[0])


def difference(
    expected: Any, got: Any, bound: Bound | None = None, dtype: str = "float32", exact: Array | None = None
) -> Difference | None:
    """The only difference of one output `y`; None when there is none."""
    truth = Outputs((Output("y", np.array(expected, dtype), bound or Exact(), exact),))
    outputs = {} if got is None else {"y": np.asarray(got, getattr(got, "dtype", dtype))}
    found = compare.differences(truth, outputs)
    assert compare.are_right(truth, outputs) == (not found)
    assert len(found) <= 1
    return found[0] if found else None


def heat(mask: Array) -> tuple[tuple[int, ...], ...]:
    """The heat map of an output that is wrong where the mask is set."""
    return wrong(np.zeros(mask.shape), mask, dtype="bool").heat


def wrong(*arguments: Any, **keywords: Any) -> Difference:
    found = difference(*arguments, **keywords)
    assert found is not None
    return found


# ULP


@pytest.mark.parametrize(("dtype", "epsilon"), [("float16", 2.0**-10), ("float32", 2.0**-23), ("float64", 2.0**-52)])
def test_one_ulp_is_the_spacing_at_the_exact_value(dtype: str, epsilon: float) -> None:
    assert ulp(1.0, 1.0, dtype) == 0.0
    assert ulp(1.0, 1.0 + epsilon, dtype) == 1.0
    assert ulp(1.0, 1.0 + 3 * epsilon, dtype) == 3.0
    assert ulp(1.5, 1.5 - 2 * epsilon, dtype) == 2.0
    assert ulp(-1.5, -1.5 - epsilon, dtype) == 1.0
    assert ulp(1000.0, 1000.0 + 512 * epsilon, dtype) == 1.0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_spacing_halves_below_a_power_of_two(dtype: str) -> None:
    """Seen from 4, its lower neighbour is half a ULP away; seen from the neighbour, 4 is a whole one away."""
    below = float(np.nextafter(np.dtype(dtype).type(4), np.dtype(dtype).type(0)))
    assert ulp(4.0, below, dtype) == 0.5
    assert ulp(below, 4.0, dtype) == 1.0


@pytest.mark.parametrize("power", [3, 10, 200, 1000])
def test_the_spacing_halves_below_large_powers_of_two_of_float64(power: int) -> None:
    """log2 of such a neighbour rounds to the power itself."""
    top = 2.0**power
    below = float(np.nextafter(top, 0))
    assert ulp(below, top, "float64") == 1.0
    assert ulp(top, below, "float64") == 0.5


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_denormals_are_one_ulp_apart(dtype: str) -> None:
    smallest, tiny = (float(getattr(np.finfo(dtype), name)) for name in ("smallest_subnormal", "tiny"))
    assert ulp(0.0, smallest, dtype) == 1.0
    assert ulp(smallest, 0.0, dtype) == 1.0
    assert ulp(-smallest, smallest, dtype) == 2.0
    assert ulp(tiny, tiny - smallest, dtype) == 1.0
    assert ulp(7 * smallest, 4 * smallest, dtype) == 3.0


@pytest.mark.parametrize(("dtype", "significand"), [("float16", 10), ("float32", 23)])
def test_a_flushed_denormal_is_as_far_as_it_is_large(dtype: str, significand: int) -> None:
    info = np.finfo(dtype)
    assert ulp(float(info.tiny) - float(info.smallest_subnormal), 0.0, dtype) == 2**significand - 1


def test_the_exact_value_is_the_float64_truth_and_not_its_rounding() -> None:
    assert ulp(1.0 + 2.0**-24, 1.0, "float32") == 0.5
    assert ulp(1.0 + 2.0**-24, 1.0 + 2.0**-23, "float32") == 0.5
    assert ulp(1.0 + 2.0**-25, 1.0 + 2.0**-23, "float32") == 0.75


def test_zeros_of_both_signs_are_0_ulp_apart() -> None:
    assert ulp(0.0, -0.0, "float32") == 0.0
    assert ulp(-0.0, 0.0, "float16") == 0.0


@pytest.mark.parametrize(
    ("exact", "got", "distance"),
    [
        (INF, INF, 0.0),
        (-INF, -INF, 0.0),
        (NAN, NAN, 0.0),
        (INF, -INF, INF),
        (INF, 3.0, INF),
        (3.0, INF, INF),
        (NAN, 3.0, INF),
        (3.0, NAN, INF),
        (INF, NAN, INF),
    ],
)
def test_infinities_and_nan(exact: float, got: float, distance: float) -> None:
    for dtype in ("float16", "float32", "float64"):
        assert ulp(exact, got, dtype) == distance


def test_an_overflow_is_right_where_rounding_overflows() -> None:
    assert ulp(70000.0, INF, "float16") == 0.0
    assert ulp(70000.0, 65504.0, "float16") == (70000 - 65504) / 32
    assert ulp(65504.0, INF, "float16") == INF
    assert ulp(1e39, -INF, "float32") == INF


def test_ulp_of_integers_have_no_meaning() -> None:
    with pytest.raises(TypeError, match="ULP are defined for floating-point outputs, not for int32"):
        ulp_error(np.zeros(1), np.zeros(1, np.int32))


# Bounds


def test_exact_tells_the_signs_of_zero_apart() -> None:
    found = wrong([0.0, 1.0], [-0.0, 1.0])
    assert found.reason == "1 of 2 elements are wrong; each must match exactly"
    assert found.first == (Mismatch((0,), "0.0", "-0.0", 0.0),)


def test_exact_takes_any_nan_for_any_other() -> None:
    odd_nan = np.array([0x7FC00001, 0xFFC00000], np.uint32).view(np.float32)
    assert difference([NAN, NAN], odd_nan) is None
    assert wrong([NAN, 1.0], [1.0, NAN]).wrong == 2


def test_exact_sees_integers_that_float64_cannot_tell_apart() -> None:
    found = wrong([2**60, 0], [2**60 + 1, 0], dtype="int64")
    assert (found.wrong, found.total, found.max_abs, found.max_ulp) == (1, 2, 1.0, None)
    assert found.first == (Mismatch((0,), str(2**60), str(2**60 + 1), None),)
    assert wrong([2**60], [2**60 + 1000], dtype="int64").max_abs == 1000.0
    assert wrong([0], [2**64 - 1], dtype="uint64").max_abs == 2.0**64


def test_exact_compares_bools() -> None:
    found = wrong([True, False], [True, True], dtype="bool")
    assert (found.wrong, found.max_abs) == (1, 1.0)
    assert found.first == (Mismatch((1,), "False", "True", None),)


def test_ulp_accepts_up_to_its_bound() -> None:
    bound = Ulp(2.0, A_TEST)
    assert difference([1.0], [1.0 + 2 * 2.0**-23], bound) is None
    found = wrong([1.0, 1.0], [1.0, 1.0 + 3 * 2.0**-23], bound)
    assert found.reason == "1 of 2 elements are wrong; each must be within 2 ULP (a test)"
    assert (found.max_ulp, found.max_abs) == (3.0, 3 * 2.0**-23)


def test_ulp_measures_from_the_exact_value() -> None:
    exact = np.array([1.0 + 0.4 * 2.0**-23])
    assert difference([1.0], [1.0 + 2.0**-23], Ulp(0.7, A_TEST), exact=exact) is None
    found = wrong([1.0], [1.0 + 2.0**-23], Ulp(0.5, A_TEST), exact=exact)
    assert found.max_ulp == pytest.approx(0.6)
    assert found.first[0].expected == f"1.0 (exactly {exact[0]})"


def test_ulp_has_an_absolute_floor_near_zero() -> None:
    bound = Ulp(1.0, A_TEST, floor=1e-6)
    assert difference([1e-12], [9e-7], bound) is None
    assert wrong([1e-12], [2e-6], bound).wrong == 1
    assert wrong([1.0], [NAN], bound).wrong == 1
    assert wrong([INF], [1.0], bound).wrong == 1


def test_one_step_is_accepted_only_where_it_is_allowed() -> None:
    bound = OneStep(np.array([True, False, True]))
    assert difference([5, 5, 5], [6, 5, 4], bound, "uint8") is None
    found = wrong([5, 5, 5], [6, 6, 5], bound, "uint8")
    assert found.reason == (
        "1 of 3 elements are wrong; each must be the exactly rounded value; "
        "it is off by one quantisation step, and not a rounding tie"
    )
    assert found.first == (Mismatch((1,), "5", "6", None),)


def test_two_steps_are_never_accepted() -> None:
    found = wrong([5, 250], [7, 250], OneStep(np.array([True, True])), "uint8")
    assert found.reason == "1 of 2 elements are wrong; each must be the exactly rounded value"


def test_a_step_across_the_range_is_not_one_step() -> None:
    assert wrong([255], [0], OneStep(np.array([True])), "uint8").max_abs == 255.0
    assert wrong([-128], [127], OneStep(np.array([True])), "int8").max_abs == 255.0


# Form


def test_a_missing_output_is_a_difference() -> None:
    found = wrong([1.0, 2.0], None)
    assert found == Difference("y", "float32", (2,), "the output is missing", 2, 2)


def test_a_wrong_dtype_is_a_difference() -> None:
    assert wrong([1.0], np.array([1.0])).reason == "the dtype is float64, must be float32"


def test_a_wrong_shape_is_a_difference() -> None:
    assert wrong([1.0, 2.0], np.array([[1.0, 2.0]], np.float32)).reason == "the shape is [1, 2], must be [2]"
    assert wrong(np.empty((0, 2)), np.empty((0, 3), np.float32)).reason == "the shape is [0, 3], must be [0, 2]"


def test_equal_empty_outputs_and_scalars_do_not_differ() -> None:
    assert difference(np.empty((0, 3)), np.empty((0, 3), np.float32)) is None
    assert difference(2.0, np.array(2.0, np.float32)) is None
    assert wrong(2.0, np.array(3.0, np.float32)).reason == "1 of 1 elements is wrong; each must match exactly"


def test_every_output_is_judged() -> None:
    outputs = Outputs(tuple(Output(name, np.zeros(1, np.float32)) for name in ("a", "b", "c")))
    got = {"a": np.ones(1, np.float32), "b": np.zeros(1, np.float32)}
    assert [(d.output, d.wrong) for d in compare.differences(outputs, got)] == [("a", 1), ("c", 1)]
    assert not compare.are_right(outputs, got)


# What a difference lists


def test_the_first_eight_wrong_elements_are_listed_in_memory_order() -> None:
    expected = np.arange(20, dtype=np.int64).reshape(4, 5)
    got = expected.copy()
    got[1:] += 1
    found = wrong(expected, got, dtype="int64")
    assert [mismatch.at for mismatch in found.first] == [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (2, 0), (2, 1), (2, 2)]
    assert (found.wrong, found.total, found.shape) == (15, 20, (4, 5))


def test_infinite_distances_are_left_out() -> None:
    found = wrong([1.0, 2.0], [NAN, 2.5])
    assert (found.max_ulp, found.max_abs) == (None, None)
    assert [mismatch.ulp for mismatch in found.first] == [None, 0.5 * 2**22]


def test_heat_is_the_map_itself_when_it_is_small() -> None:
    mask = np.zeros((3, 4), bool)
    mask[1, 2] = mask[2, 3] = True
    assert heat(mask) == ((0, 0, 0, 0), (0, 0, 9, 0), (0, 0, 0, 9))


def test_heat_of_one_dimension_is_one_row() -> None:
    assert heat(np.array([True, False, True])) == ((9, 0, 9),)


def test_heat_of_a_scalar_is_nothing() -> None:
    assert heat(np.array(True)) == ()
    assert heat(np.array([True])) == ()


def test_heat_squeezes_large_outputs_to_16_by_48_shares() -> None:
    mask = np.zeros((32, 96), bool)
    mask[:16] = True
    found = heat(mask)
    assert (len(found), {len(row) for row in found}) == (16, {48})
    assert [row[0] for row in found] == [9] * 8 + [0] * 8


def test_heat_rounds_up_so_that_one_wrong_element_shows() -> None:
    mask = np.zeros((64, 480), bool)
    mask[63, 479] = True
    assert heat(mask)[15][47] == 1
    assert sum(map(sum, heat(mask))) == 1
    mask[:2, :10] = True
    assert heat(mask)[0][0] == 5


def test_heat_takes_leading_dimensions_for_rows() -> None:
    mask = np.zeros((2, 3, 4), bool)
    mask[1, 0, 3] = True
    found = heat(mask)
    assert len(found) == 6
    assert found[3] == (0, 0, 0, 9)


# Selections


NAMES = ("Values", "Indices")
DATA = np.array([[5, 1, 5, 3, 2]], np.float32)
TOP = (np.array([[5, 5, 3]], np.float32), np.int64([[0, 2, 3]]))


def selected(
    values: Sequence[float], indices: Sequence[int], ordered: bool = True, truth: Selection | None = None
) -> tuple[Difference, ...]:
    truth = truth or Selection(DATA, 1, (TOP,), ordered, NAMES)
    return compare.differences(
        truth, {"Values": np.array([values], np.float32), "Indices": np.array([indices], np.int64)}
    )


def sentence(values: Sequence[float], indices: Sequence[int], ordered: bool = True) -> str:
    """The reason, which is the same for both outputs."""
    found = selected(values, indices, ordered)
    (reason,) = {difference.reason.split("; ")[1] for difference in found}
    return reason


def test_the_right_selection_has_no_difference() -> None:
    assert selected([5, 5, 3], [0, 2, 3]) == ()


@pytest.mark.parametrize(
    ("values", "indices", "reason"),
    [
        ([5, 5, 3], [0, 2, 5], "an index is outside the axis of length 5"),
        ([5, 5, 3], [-5, 2, 3], "an index is outside the axis of length 5"),
        ([5, 5, 4], [0, 2, 3], "a value differs from the element at its index"),
        ([5, 5, 3], [0, 2, 4], "a value differs from the element at its index"),
        ([5, 5, 5], [0, 0, 0], "an index is selected twice"),
        ([5, 5, 3], [2, 2, 3], "an index is selected twice"),
        ([5, 5, 3], [2, 0, 3], "equal values must come with the lower index first"),
        ([3, 5, 5], [3, 0, 2], "the right elements are in the wrong order"),
        ([5, 5, 2], [0, 2, 4], "the wrong elements are selected"),
    ],
)
def test_what_is_wrong_with_a_selection(values: list[float], indices: list[int], reason: str) -> None:
    assert sentence(values, indices) == reason


def test_only_the_outputs_that_differ_are_named() -> None:
    (found,) = selected([5, 5, 3], [2, 0, 3])
    assert (found.output, found.wrong, found.total) == ("Indices", 2, 3)
    assert found.reason == "2 of 3 elements are wrong; equal values must come with the lower index first"
    assert found.first == (Mismatch((0, 0), "0", "2", None), Mismatch((0, 1), "2", "0", None))


@pytest.mark.parametrize("indices", [[0, 2, 3], [3, 2, 0], [2, 0, 3]])
def test_without_order_every_permutation_is_right(indices: list[int]) -> None:
    assert selected([float(DATA[0, i]) for i in indices], indices, ordered=False) == ()


@pytest.mark.parametrize(
    ("values", "indices", "reason"),
    [
        ([3, 5, 5], [3, 0, 0], "an index is selected twice"),
        ([5, 5, 3], [3, 2, 0], "a value differs from the element at its index"),
        ([5, 2, 5], [0, 4, 2], "the wrong elements are selected"),
    ],
)
def test_without_order_values_still_belong_to_their_indices(
    values: list[float], indices: list[int], reason: str
) -> None:
    assert sentence(values, indices, ordered=False) == reason


def test_any_accepted_pair_is_right_and_differences_are_to_the_nearest() -> None:
    data = np.array([[1, NAN, 2]], np.float32)
    nan_first = (np.array([[NAN, 2]], np.float32), np.int64([[1, 2]]))
    nan_last = (np.array([[2, 1]], np.float32), np.int64([[2, 0]]))
    truth = Selection(data, 1, (nan_first, nan_last), True, NAMES)
    assert selected([NAN, 2], [1, 2], truth=truth) == ()
    assert selected([2, 1], [2, 0], truth=truth) == ()
    values, indices = selected([2, NAN], [2, 1], truth=truth)
    assert (values.wrong, indices.wrong) == (1, 1)
    assert values.first[0].expected == "1.0"


def test_signs_of_selected_zeros_count() -> None:
    truth = Selection(np.array([[0.0, -0.0]], np.float32), 1, ((np.float32([[0.0]]), np.int64([[0]])),), True, NAMES)
    assert selected([0.0], [0], truth=truth) == ()
    (found,) = selected([-0.0], [0], truth=truth)
    assert (found.output, found.reason.split("; ")[1]) == ("Values", "a value differs from the element at its index")


def test_a_selection_of_the_wrong_form_is_not_compared() -> None:
    truth = Selection(DATA, 1, (TOP,), True, NAMES)
    got = {"Values": np.zeros((1, 2), np.float32), "Indices": np.zeros((1, 3), np.int32)}
    assert [d.reason for d in compare.differences(truth, got)] == [
        "the shape is [1, 2], must be [1, 3]",
        "the dtype is int32, must be int64",
    ]
    assert [d.reason for d in compare.differences(truth, {})] == ["the output is missing"] * 2


def test_selections_along_other_axes() -> None:
    data = np.array([[1, 9], [8, 2]], np.float32)
    truth = Selection(data, 0, ((np.float32([[8, 9]]), np.int64([[1, 0]])),), True, NAMES)
    right = {"Values": np.float32([[8, 9]]), "Indices": np.int64([[1, 0]])}
    assert compare.differences(truth, right) == ()
    assert compare.are_right(truth, right)
    values, _ = compare.differences(truth, {"Values": np.float32([[1, 9]]), "Indices": np.int64([[0, 0]])})
    assert values.reason == "1 of 2 elements are wrong; the wrong elements are selected"


ACCURATE = Ulp(4.0, A_TEST)


def measured(exact: list[float], got: list[float], dtype: str = "float32") -> Accuracy | None:
    truth = np.array(exact, np.float64)
    output = Output("y", truth.astype(dtype), ACCURATE, truth)
    return measure_accuracy(Outputs((output,)), {"y": np.array(got, dtype)})


def test_accuracy_counts_elements_by_their_error_in_ulp() -> None:
    step = float(np.finfo(np.float32).eps)
    found = measured([1.0] * 6, [1.0, 1 + step, 1 + 2 * step, 1 + 3 * step, 1 + 8 * step, np.nan])
    assert found == Accuracy(6, INF, 14.0, (1, 1, 1, 1, 1, *[0] * 20, 1))


def test_accuracy_of_the_rounded_truth_is_half_a_ulp_at_most() -> None:
    found = measured([1 / 3], [1 / 3])
    assert found is not None
    assert 0 < found.max_ulp <= 0.5
    assert (found.elements, found.counts) == (1, (1,))


def test_accuracy_is_of_outputs_with_a_bound_in_ulp_and_of_the_right_form() -> None:
    exact = Outputs((Output("y", np.zeros(2, np.float32)),))
    assert measure_accuracy(exact, {"y": np.zeros(2, np.float32)}) is None
    bounded = Outputs((Output("y", np.zeros(2, np.float32), ACCURATE),))
    assert measure_accuracy(bounded, {"y": np.zeros(3, np.float32)}) is None
    assert measure_accuracy(bounded, {}) is None
    assert measure_accuracy(bounded, {"y": np.zeros(2, np.float32)}) == Accuracy(2, 0.0, 0.0, (2,))


def test_accuracies_add_up() -> None:
    few, more = Accuracy(2, 1.0, 1.5, (1, 1)), Accuracy(3, 0.5, 0.75, (3,))
    assert add_accuracy(None, few) == few
    assert add_accuracy(few, more) == add_accuracy(more, few) == Accuracy(5, 1.0, 2.25, (4, 1))
