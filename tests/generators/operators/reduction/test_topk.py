"""TopK-1, 10, 11, 24: what its cases cover, and its oracle against values that it did not produce."""

from __future__ import annotations

import math
from functools import cmp_to_key
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from epcheck.generators import registry, suite
from epcheck.generators.case import BuiltCase
from epcheck.generators.claims import claims_of
from epcheck.generators.node import Node
from epcheck.generators.truth import Refusal, Selection
from tests.generators.built_suite import Array, built, node_of

INT64 = np.iinfo(np.int64)
PAGE = np.array([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], np.float32)


def topk_node(x: Array, k: int | list[int], since_version: int = 11, **attributes: int) -> Node:
    if since_version == 1:
        return node_of("TopK", 1, [x], k=k, **attributes)
    ks = np.array(k if isinstance(k, list) else [k], np.int64)
    return node_of("TopK", since_version, [x, ks], **attributes)


def selection(x: Array, k: int, since_version: int = 11, **attributes: int) -> Selection:
    truth = registry.all_operators()["TopK"].truth(topk_node(x, k, since_version, **attributes))
    assert isinstance(truth, Selection)
    return truth


def top(x: list[Any] | Array, k: int, dtype: str = "float32", **attributes: int) -> tuple[list[Any], list[Any]]:
    """The only accepted (values, indices)."""
    ((values, indices),) = selection(np.array(x, dtype), k, **attributes).accepted
    assert values.dtype == dtype
    assert indices.dtype == np.int64
    return values.tolist(), indices.tolist()


def refusal(x: Array, k: int | list[int], **attributes: int) -> str:
    truth = registry.all_operators()["TopK"].truth(topk_node(x, k, **attributes))
    assert isinstance(truth, Refusal)
    return truth.reason


def valid(since_version: int = 11) -> list[tuple[BuiltCase, Selection]]:
    return [(b, b.truth) for b in built("TopK", since_version) if isinstance(b.truth, Selection)]


# The example of the operator page, and the rules of its text, by hand.


@pytest.mark.parametrize("since_version", [1, 10, 11, 24])
def test_the_example_of_the_page(since_version: int) -> None:
    ((values, indices),) = selection(PAGE, 3, since_version, axis=1).accepted
    assert values.tolist() == [[3, 2, 1], [7, 6, 5], [11, 10, 9]]
    assert indices.tolist() == [[3, 2, 1], [3, 2, 1], [3, 2, 1]]


def test_the_smallest_come_in_ascending_order() -> None:
    assert top([5, 1, 4, 2, 3], 3, largest=0) == ([1, 2, 3], [1, 3, 4])


def test_without_an_axis_the_last_one_is_searched() -> None:
    assert top([[1, 9], [8, 2]], 1) == ([[9], [8]], [[1], [0]])
    assert top([[1, 9], [8, 2]], 1, axis=0) == ([[8, 9]], [[1, 0]])
    assert top([[1, 9], [8, 2]], 1, axis=-2) == ([[8, 9]], [[1, 0]])


@pytest.mark.parametrize("largest", [0, 1])
def test_among_equals_the_lower_index_comes_first_in_both_directions(largest: int) -> None:
    assert top([7, 7, 7, 7], 3, largest=largest) == ([7, 7, 7], [0, 1, 2])


def test_ties_at_the_edge_of_the_selection_go_to_the_lower_index() -> None:
    assert top([1, 3, 2, 3, 2, 2], 4) == ([3, 3, 2, 2], [1, 3, 2, 4])
    assert top([3, 1, 2, 1, 2, 2], 4, largest=0) == ([1, 1, 2, 2], [1, 3, 2, 4])


def test_zeros_of_both_signs_are_equal() -> None:
    assert top([-0.0, 0.0, -0.0, 0.0], 4)[1] == [0, 1, 2, 3]
    assert top([0.0, -0.0, 0.0, -0.0], 4, largest=0)[1] == [0, 1, 2, 3]
    assert [math.copysign(1, v) for v in top([-0.0, 0.0], 2)[0]] == [-1.0, 1.0]


def test_infinities_are_beyond_every_number() -> None:
    most = float(np.finfo(np.float32).max)
    assert top([most, np.inf, -np.inf, -most], 4)[1] == [1, 0, 3, 2]


def test_integers_beyond_2_53_keep_their_order() -> None:
    assert top([2**53, 2**53 + 1, 2**53 + 2, 2**53 - 1], 4, "int64")[1] == [2, 1, 0, 3]
    assert top([2**63, 2**63 - 1, 2**64 - 1, 0], 4, "uint64", largest=0)[1] == [3, 1, 0, 2]


def test_the_least_integer_is_the_last_of_the_largest() -> None:
    assert top([-128, 127, 0, -1], 4, "int8")[0] == [127, 0, -1, -128]
    assert top([INT64.min, INT64.max, 0], 3, "int64")[0] == [INT64.max, 0, INT64.min]


def test_k_0_selects_nothing() -> None:
    ((values, indices),) = selection(np.ones((3, 4), np.float32), 0).accepted
    assert values.shape == indices.shape == (3, 0)


def test_nan_may_stand_at_either_end_and_nowhere_else() -> None:
    first, last = selection(np.array([1, np.nan, 3, np.nan, 2], np.float32), 5).accepted
    assert first[1].tolist() == [1, 3, 2, 4, 0]
    assert last[1].tolist() == [2, 4, 0, 1, 3]
    first, last = selection(np.array([1, np.nan, 3], np.float32), 1, largest=0).accepted
    assert (first[1].tolist(), last[1].tolist()) == ([0], [1])


def test_without_nan_only_one_answer_is_accepted() -> None:
    assert len(selection(PAGE, 2).accepted) == 1


def test_sorted_0_leaves_the_order_open() -> None:
    assert selection(PAGE, 2).ordered
    assert selection(PAGE, 2, sorted=1).ordered
    assert not selection(PAGE, 2, sorted=0).ordered


@pytest.mark.parametrize(
    ("x", "k", "attributes", "reason"),
    [
        (PAGE, 5, {}, "k = 5 must be within [0, 4], the length of the axis"),
        (PAGE, 4, {"axis": 0}, "k = 4 must be within [0, 3], the length of the axis"),
        (PAGE, -1, {}, "k = -1 must be within [0, 4], the length of the axis"),
        (PAGE, INT64.max, {}, f"k = {INT64.max} must be within [0, 4], the length of the axis"),
        (PAGE, [2, 3], {}, "K must be a 1-D tensor with a single value"),
        (PAGE, 1, {"axis": 2}, "axis 2 must be within [-2, 1] for rank 2"),
        (PAGE, 1, {"axis": -3}, "axis -3 must be within [-2, 1] for rank 2"),
        (np.float32(1), 1, {}, "axis -1 must be within [0, -1] for rank 0"),
    ],
)
def test_what_must_be_refused(x: Array, k: int | list[int], attributes: dict[str, int], reason: str) -> None:
    assert refusal(np.asarray(x), k, **attributes) == reason


# Sorting by comparison, pair by pair.


def brute_force(sequence: list[Any], k: int, largest: bool) -> list[int]:
    def before(a: int, b: int) -> int:
        left, right = sequence[a], sequence[b]
        if left == right:
            return a - b
        return -1 if (left > right) == largest else 1

    return sorted(range(len(sequence)), key=cmp_to_key(before))[:k]


@pytest.mark.slow
@seed(20260103)
@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@hypothesis.given(
    st.sampled_from(["float16", "float32", "float64", "int8", "uint8", "int64", "uint64", "int16"]).flatmap(
        lambda dtype: hnp.arrays(
            dtype,
            hnp.array_shapes(min_dims=1, max_dims=3, max_side=7),
            elements=(
                hnp.from_dtype(np.dtype(dtype), allow_nan=False) | st.sampled_from([0, 1, 2]).map(np.dtype(dtype).type)
            ),
        )
    ),
    st.data(),
)
def test_sorting_by_comparison_gives_the_same(x: Array, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    k = data.draw(st.integers(0, x.shape[axis]))
    largest = data.draw(st.booleans())
    ((values, indices),) = selection(x, k, axis=axis, largest=int(largest)).accepted
    for at in np.ndindex(*np.delete(x.shape, axis)):
        along = (*at[: axis % x.ndim], slice(None), *at[axis % x.ndim :])
        expected = brute_force(x[along].tolist(), k, largest)
        assert indices[along].tolist() == expected
        assert values[along].tobytes() == x[along][expected].tobytes()


# What the cases cover.


@pytest.mark.slow
def test_largest_sorted_axis_and_k_are_covered_in_combination() -> None:
    combined = {
        (attributes["largest"], attributes["sorted"], int(case.node.value("K")[0]))  # type: ignore[index]
        for case, _ in valid()
        if {"largest", "sorted"} <= (attributes := case.node.attributes).keys()
    }
    assert {(largest, is_sorted, k) for largest in (0, 1) for is_sorted in (0, 1) for k in (0, 1, 2, 6, 7)} == combined


def test_k_reaches_0_1_one_less_than_the_axis_the_axis_and_beyond() -> None:
    lengths = {(int(case.node.value("K")[0]) - truth.data.shape[truth.axis]) for case, truth in valid()}  # type: ignore[index]
    assert {0, -1} <= lengths
    refused = [case for case in built("TopK", 11) if isinstance(case.truth, Refusal)]
    ks = {int(k) for case in refused for k in case.node.value("K")}  # type: ignore[union-attr]
    assert {8, INT64.max, 2**32 + 1, -1} <= ks


def test_every_attribute_is_left_out_alone_and_with_the_others() -> None:
    combinations = {frozenset(case.node.attributes) for case, _ in valid()}
    assert {frozenset(), frozenset({"largest"}), frozenset({"sorted"}), frozenset({"axis"})} <= combinations


def test_axes_are_covered_by_both_names_for_both_directions() -> None:
    of_rank_3 = {
        (case.node.attributes["axis"], case.node.attributes.get("largest"))
        for case, truth in valid()
        if truth.data.shape == (4, 5, 6)
    }
    assert of_rank_3 == {(axis, largest) for axis in (-3, -2, -1, 0, 1, 2) for largest in (None, 0)}


def test_ranks_1_to_8_are_covered_along_their_first_and_last_axis() -> None:
    covered = {(truth.data.ndim, truth.axis) for _, truth in valid()}
    assert {(rank, axis) for rank in range(1, 9) for axis in (0, rank - 1)} <= covered


def test_every_dtype_that_directml_claims_has_cases_with_ties_and_boundary_values() -> None:
    table = claims_of("DmlExecutionProvider")
    assert table is not None
    for since_version in (1, 10, 11):
        claimed = table.operators["", "TopK", since_version]["T"]
        assert claimed >= {"float16", "float32"}
        tested = {b.case.dtype for b in built("TopK", since_version)}
        assert tested >= (claimed if since_version == 11 else {"float16", "float32", "float64"})
    assert len(table.operators["", "TopK", 11]["T"]) == 10
    for dtype in table.operators["", "TopK", 11]["T"]:
        samples = {b.case.sample for b in built("TopK", 11) if b.case.dtype == dtype}
        assert {"ties_largest", "ties_smallest", "boundary_largest", "boundary_smallest", "defaults"} <= samples


def test_kinds_of_data_hold_what_their_names_say() -> None:
    def data_of(sample: str, dtype: str = "float32") -> Array:
        x = suite.case_by_id(f"TopK-11/{dtype}/{sample}[initializer]").build().node.value("X")
        assert x is not None
        return x

    assert len(np.unique(data_of("ties_largest"))) <= 4
    assert len(np.unique(data_of("all_equal_largest"))) == 1
    assert (np.diff(data_of("ascending_largest").ravel()) > 0).all()
    assert (np.diff(data_of("descending_largest").ravel()) < 0).all()
    assert np.isnan(data_of("nan_largest")).sum(axis=1).tolist() == [5, 5]
    assert (data_of("nan_largest") < 0).any(axis=1).all()
    assert np.isinf(data_of("nan_largest")).sum(axis=1).tolist() == [2, 2]
    assert np.isfinite(data_of("denormals_largest")).all()
    assert (abs(data_of("denormals_largest")) <= np.finfo(np.float32).tiny).all()
    assert np.isnan(data_of("all_nan_largest")).all()
    assert set(np.unique(data_of("infinities_largest"))) == {-np.inf, -1.0, 0.0, 1.0, np.inf}
    zeros = data_of("signed_zeros_largest")
    assert not zeros.any()
    assert 0 < np.signbit(zeros).sum() < zeros.size
    for dtype in ("int64", "uint64", "float64"):
        wide = data_of("beyond_2_53_largest", dtype)
        assert wide.max() > 2**53
    wide = data_of("beyond_2_53_largest", "int64")
    assert len(np.unique(wide)) > len(np.unique(wide.astype(np.float64)))


def test_special_floats_are_left_to_float_dtypes() -> None:
    kinds = {"nan", "all_nan", "infinities", "signed_zeros", "denormals"}
    for case, _ in valid():
        if any(case.case.sample.startswith(f"{kind}_") for kind in kinds):
            assert case.case.dtype.startswith("float")


def test_lengths_on_both_sides_of_thread_groups_are_covered() -> None:
    assert {31, 32, 33, 127, 257, 1025, 4097} <= {truth.data.shape[truth.axis] for _, truth in valid()}


def test_sizes_0_and_1_are_covered() -> None:
    shapes = {truth.data.shape for _, truth in valid()}
    assert {(4, 1), (1, 6, 1), (0, 5), (3, 0)} <= shapes


def test_largest_and_sorted_come_with_topk_11() -> None:
    for since_version in (1, 10):
        for case, truth in valid(since_version):
            assert case.node.attributes.keys() <= {"axis", "k"}
            assert truth.ordered
    assert not any(truth.ordered for case, truth in valid(24) if "unsorted" in case.case.sample)


def test_topk_1_has_k_as_an_attribute_greater_than_0() -> None:
    for case, _ in valid(1):
        assert len(case.node.inputs) == 1
        assert case.node.attributes["k"] > 0  # type: ignore[operator]
