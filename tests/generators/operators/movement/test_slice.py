"""Slice-1, 10, 11, 13: what its cases cover, and its oracle against values that it did not produce."""

from __future__ import annotations

import math
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import seed, settings
from hypothesis import strategies as st

from epcheck.generators import registry
from epcheck.generators.case import BuiltCase
from epcheck.generators.node import Node
from epcheck.generators.truth import Exact, Outputs, Refusal
from tests.generators.built_suite import Array, built, node_of, true_outputs

INT32, INT64 = np.iinfo(np.int32), np.iinfo(np.int64)
PAGE = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
EVERY_DTYPE = {"bool", "float16", "float32", "float64"} | {f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)}


def slice_node(
    data: Array,
    starts: list[int],
    ends: list[int],
    axes: list[int] | None = None,
    steps: list[int] | None = None,
    since_version: int = 13,
    index_dtype: str = "int64",
) -> Node:
    parameters = {"starts": starts, "ends": ends, "axes": axes, "steps": steps}
    if since_version == 1:
        return node_of("Slice", 1, [data], **{k: tuple(v) for k, v in parameters.items() if v is not None})
    inputs = [None if value is None else np.array(value, index_dtype) for value in parameters.values()]
    return node_of("Slice", since_version, [data, *inputs])


def sliced(data: Array, *parameters: Any, **keywords: Any) -> list[Any]:
    (output,) = true_outputs(slice_node(data, *parameters, **keywords))
    result: list[Any] = output.tolist()
    return result


def refusal(data: Array, *parameters: Any) -> str:
    truth = registry.all_operators()["Slice"].truth(slice_node(data, *parameters))
    assert isinstance(truth, Refusal)
    return truth.reason


def values(case: BuiltCase, name: str) -> list[int]:
    listed = case.node.attributes.get(name, case.node.value(name))
    return [] if listed is None else [int(v) for v in listed]  # type: ignore[union-attr]


def valid(since_version: int = 13) -> list[BuiltCase]:
    return [b for b in built("Slice", since_version) if isinstance(b.truth, Outputs)]


# The examples of the operator page, typed in.


@pytest.mark.parametrize("since_version", [10, 11, 13])
def test_example_1_of_the_page(since_version: int) -> None:
    assert sliced(PAGE, [1, 0], [2, 3], [0, 1], [1, 2], since_version=since_version) == [[5, 7]]


@pytest.mark.parametrize("since_version", [1, 10, 11, 13])
def test_example_2_of_the_page(since_version: int) -> None:
    assert sliced(PAGE, [0, 1], [-1, 1000], since_version=since_version) == [[2, 3, 4]]


def test_example_1_of_the_page_of_slice_1() -> None:
    assert sliced(PAGE, [1, 0], [2, 3], [0, 1], since_version=1) == [[5, 6, 7]]


# The clamping rules of Slice-13, by hand, over 0, 1, 2, 3, 4, 5.


@pytest.mark.parametrize(
    ("start", "end", "step", "expected"),
    [
        (0, INT64.max, 1, [0, 1, 2, 3, 4, 5]),
        (0, INT32.max, 2, [0, 2, 4]),
        (1, -1, 2, [1, 3]),
        (-2, 6, 1, [4, 5]),
        (-7, 2, 1, [0, 1]),
        (INT64.min, INT64.max, 4, [0, 4]),
        (6, 9, 1, []),
        (3, 3, 1, []),
        (4, 2, 1, []),
        (0, -8, 1, []),
        (0, INT64.max, INT64.max, [0]),
        (5, INT64.max, INT64.max, [5]),
        (-1, INT64.min, -1, [5, 4, 3, 2, 1, 0]),
        (INT64.max, INT64.min, -4, [5, 1]),
        (6, 0, -1, [5, 4, 3, 2, 1]),
        (4, 1, -1, [4, 3, 2]),
        (-2, -5, -2, [4, 2]),
        (0, -7, -1, [0]),
        (-7, INT64.min, -1, [0]),
        (-1, -1, -1, []),
        (1, 4, -1, []),
        (-1, INT64.min, INT64.min, [5]),
        (INT32.max + 1, INT32.min - 1, -3, [5, 2]),
    ],
)
def test_the_clamping_rules(start: int, end: int, step: int, expected: list[int]) -> None:
    assert sliced(np.arange(6), [start], [end], [0], [step]) == expected


def test_negative_stride_copies_from_the_end_of_the_window() -> None:
    assert sliced(np.arange(8), [-1], [-9], [0], [-3]) == [7, 4, 1]


def test_axes_need_no_order_and_may_be_negative() -> None:
    matrix = np.arange(20).reshape(4, 5)
    assert sliced(matrix, [1, 0], [4, 3], [1, 0]) == [[1, 2, 3], [6, 7, 8], [11, 12, 13]]
    assert sliced(matrix, [1, 0], [4, 3], [-1, -2]) == [[1, 2, 3], [6, 7, 8], [11, 12, 13]]


def test_fewer_starts_than_dimensions_slice_the_first_ones() -> None:
    assert sliced(np.arange(6).reshape(3, 2), [1], [3]) == [[2, 3], [4, 5]]


def test_an_axis_of_size_0_gives_nothing_in_both_directions() -> None:
    for start, end, step in ((0, 5, 1), (-1, -5, -1), (INT64.min, INT64.max, 1), (INT64.max, INT64.min, -1)):
        (output,) = true_outputs(slice_node(np.empty((0, 3)), [start], [end], [0], [step]))
        assert output.shape == (0, 3)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        (([0], [4], [0], [0]), "'steps' cannot be 0"),
        (([0, 1], [2, 3], [1, 1]), "an axis is repeated, which the standard leaves undefined"),
        (([0, 1], [2, 3], [1, -1]), "an axis is repeated, which the standard leaves undefined"),
        (([0], [1], [2]), "axes must be within [-2, 1] for rank 2"),
        (([0], [1], [-3]), "axes must be within [-2, 1] for rank 2"),
        (([0, 0], [1]), "starts and ends must have one element for each sliced axis"),
        (([0, 0], [1, 1], [0]), "starts, axes and steps must have the same length"),
        (([0, 0], [1, 1], [0, 1], [1]), "starts, axes and steps must have the same length"),
        (([0, 0, 0], [1, 1, 1]), "starts, axes and steps must have the same length"),
    ],
)
def test_what_must_be_refused(parameters: tuple[Any, ...], reason: str) -> None:
    assert refusal(PAGE, *parameters) == reason


# numpy's own slicing, where ONNX and numpy agree: a start that does not lie before the axis when stepping backward.


@st.composite
def sane_slices(draw: st.DrawFn) -> tuple[tuple[int, ...], list[tuple[int, int, int]]]:
    shape = tuple(draw(st.lists(st.integers(0, 7), min_size=1, max_size=4)))
    ranges = []
    for dim in shape:
        step = draw(st.integers(-9, 9).filter(bool))
        start = draw(st.integers(-dim - 3 if step > 0 else -dim, dim + 3))
        ranges.append((start, draw(st.integers(-dim - 4, dim + 4)), step))
    return shape, ranges


@pytest.mark.slow
@seed(20260101)
@settings(max_examples=400, derandomize=True, database=None, deadline=None)
@hypothesis.given(sane_slices())
def test_numpy_slices_the_same(drawn: tuple[tuple[int, ...], list[tuple[int, int, int]]]) -> None:
    shape, ranges = drawn
    data = np.arange(math.prod(shape)).reshape(shape)
    starts, ends, steps = (list(part) for part in zip(*ranges, strict=True))
    (output,) = true_outputs(slice_node(data, starts, ends, list(range(len(shape))), steps))
    expected = data[tuple(slice(*bounds) for bounds in ranges)]
    assert output.shape == expected.shape
    assert (output == expected).all()


@pytest.mark.slow
@seed(20260102)
@settings(max_examples=400, derandomize=True, database=None, deadline=None)
@hypothesis.given(st.integers(1, 6), st.integers(INT64.min, INT64.max), st.integers(INT64.min, INT64.max), st.data())
def test_extremes_are_the_same_as_one_step_beyond_the_axis(dim: int, start: int, end: int, data: st.DataObject) -> None:
    step = data.draw(st.sampled_from([1, 2, -1, -2, INT64.max, INT64.min, INT32.max + 1]))
    near_start, near_end = (min(max(value, -dim - 1), dim + 1) for value in (start, end))
    near_step = min(max(step, -dim - 1), dim + 1)
    axis = np.arange(dim)
    assert sliced(axis, [start], [end], [0], [step]) == sliced(axis, [near_start], [near_end], [0], [near_step])


# What the cases cover.


def test_slices_are_copied_exactly() -> None:
    for case in valid():
        if case.node.surroundings:
            continue
        assert isinstance(case.truth, Outputs)
        assert [output.bound for output in case.truth.outputs] == [Exact()]


def test_every_dtype_of_the_schema_is_covered_by_every_version() -> None:
    for since_version in (1, 10, 11, 13):
        assert {b.case.dtype for b in built("Slice", since_version)} == EVERY_DTYPE


def test_every_dtype_has_a_backward_slice_an_empty_one_and_every_boundary_value() -> None:
    common = {"every_value_forward", "every_value_backward", "negative_step_past_both_ends", "empty_start_equals_end"}
    for dtype in EVERY_DTYPE:
        assert common <= {b.case.sample for b in built("Slice", 13) if b.case.dtype == dtype}


def test_every_sign_and_magnitude_of_step_is_covered() -> None:
    steps = {step for case in valid() for step in values(case, "steps")}
    magnitudes = {1, 2, 3, 5, 6, 7, INT32.max, INT32.max + 1, INT64.max}
    assert magnitudes | {-magnitude for magnitude in magnitudes} | {INT64.min} <= steps


def test_starts_and_ends_are_covered_inside_and_beyond_both_sides_in_both_directions() -> None:
    positions = {
        0,
        1,
        5,
        6,
        7,
        -1,
        -2,
        -6,
        -7,
        INT32.max,
        INT32.min,
        INT64.max,
        INT64.min,
        INT32.max + 1,
        INT32.min - 1,
    }
    over_six = [case for case in valid() if case.node.inputs[0].value.shape == (6,)]  # type: ignore[union-attr]
    for step in (1, 2, -1, -2):
        with_step = [case for case in over_six if values(case, "steps") == [step]]
        assert positions <= {values(case, "starts")[0] for case in with_step}, step
        assert positions <= {values(case, "ends")[0] for case in with_step}, step


def test_starts_before_the_axis_are_left_to_slice_13_when_stepping_backward() -> None:
    """Older pages say 'similar to numpy', which selects nothing there; Slice-13 clamps to the first element."""
    assert "start_minus_7_step_minus_1" in {case.case.sample for case in valid(13)}
    for since_version in (10, 11):
        for case in valid(since_version):
            shape = case.node.inputs[0].value.shape  # type: ignore[union-attr]
            axes = values(case, "axes") or range(len(shape))
            for start, step, axis in zip(values(case, "starts"), values(case, "steps"), axes, strict=False):
                assert step > 0 or start >= -shape[axis], case.case.id


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_both_index_dtypes_reach_their_own_extremes(dtype: str) -> None:
    info = np.iinfo(dtype)
    cases = [b for b in valid() if (starts := b.node.value("starts")) is not None and starts.dtype == dtype]
    for name, extremes in {
        "starts": {info.max, info.min},
        "ends": {info.max, info.min},
        "steps": {info.max, info.min},
    }.items():
        assert extremes <= {value for case in cases for value in values(case, name)}, name


def test_axes_and_steps_are_omitted_together_and_alone() -> None:
    omitted = {(b.node.value("axes") is None, b.node.value("steps") is None) for b in valid()}
    assert omitted == {(False, False), (False, True), (True, False), (True, True)}


def test_ranks_1_to_8_are_covered_forward_and_backward_and_9_forward() -> None:
    def ranks(backward: bool) -> set[int]:
        return {
            case.node.inputs[0].value.ndim  # type: ignore[union-attr]
            for case in valid()
            if any(step < 0 for step in values(case, "steps")) == backward
        }

    assert (ranks(False), ranks(True)) == (set(range(1, 10)), set(range(1, 9)))


def test_results_are_empty_forward_backward_on_one_axis_and_for_size_0() -> None:
    empty = {
        case.case.sample: case.truth.outputs[0].value.shape
        for case in valid()
        if isinstance(case.truth, Outputs) and case.truth.outputs[0].value.size == 0
    }
    assert empty["empty_start_at_length"] == (0,)
    assert empty["empty_backward_end_minus_1_is_last"] == (0,)
    assert empty["empty_one_axis_of_two"] == (3, 0)
    assert empty["size_0_axis_sliced_backward"] == (0, 3)
    assert empty["size_0_axis_beside"] == (0, 2)
    assert {sample for sample in empty if sample.startswith(("empty_", "size_0_"))} == {
        case.case.sample for case in valid() if case.case.sample.startswith(("empty_", "size_0_"))
    }


def test_sizes_of_1_are_covered() -> None:
    assert {"size_1_dimensions", "size_1_dimensions_backward"} <= {case.case.sample for case in valid()}


def test_refusals_are_expected_as_initializers_and_as_runtime_inputs() -> None:
    refused = {(case.case.sample, case.case.binding) for case in built("Slice", 13) if isinstance(case.truth, Refusal)}
    samples = {sample for sample, _ in refused}
    assert samples == {f"refused_{what}" for what in (
        "step_0", "repeated_axis", "repeated_axis_by_sign", "axis_at_rank", "axis_below_rank", "axis_of_a_scalar",
        "fewer_ends", "fewer_axes", "fewer_steps", "more_than_rank",
    )}  # fmt: skip
    assert {(sample, binding) for sample in samples for binding in ("initializer", "runtime")} <= refused


def test_pages_before_slice_11_state_no_refusal() -> None:
    for since_version in (1, 10):
        assert not any(isinstance(case.truth, Refusal) for case in built("Slice", since_version))


def test_slice_1_has_attributes_and_no_steps() -> None:
    for case in valid(1):
        assert len(case.node.inputs) == 1
        assert "steps" not in case.node.attributes
        assert {"starts", "ends"} <= case.node.attributes.keys()
