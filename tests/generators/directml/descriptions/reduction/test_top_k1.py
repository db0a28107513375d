"""DML_TOP_K1_OPERATOR_DESC, from its page ns-directml-dml_top_k1_operator_desc."""

from dataclasses import replace

import numpy as np
import pytest

from epcheck.generators.directml import AxisDirection, ConstraintViolation, DataType, FeatureLevel, TensorDesc, TopK1

LEVEL = FeatureLevel.DML_FEATURE_LEVEL_5_0
INCREASING, DECREASING = AxisDirection.INCREASING, AxisDirection.DECREASING

EXAMPLES_1_AND_2 = np.array([[[[0, 1, 10, 11], [3, 2, 9, 8], [4, 5, 6, 7]]]], np.float32)
EXAMPLES_3_AND_4 = np.array([[[[1, 2, 2, 3], [3, 4, 5, 5], [6, 6, 6, 6]]]], np.float32)


def top_k1(
    sizes: tuple[int, ...],
    axis: int,
    k: int,
    direction: AxisDirection = DECREASING,
    dtype: DataType = DataType.FLOAT32,
    index: DataType = DataType.UINT32,
) -> TopK1:
    output_sizes = (*sizes[:axis], k, *sizes[axis + 1 :])
    return TopK1(
        TensorDesc(dtype, sizes), TensorDesc(dtype, output_sizes), TensorDesc(index, output_sizes), axis, k, direction
    )


def along(values: np.ndarray, k: int, direction: AxisDirection) -> tuple[list[object], list[int]]:
    """Values and indices of the top K of one sequence."""
    desc = top_k1(values.shape, 0, k, direction, DataType.of(values.dtype))
    value, index = desc.evaluate(values)
    assert value.dtype == values.dtype
    return value.tolist(), index.tolist()


def names(desc: TopK1, level: FeatureLevel = LEVEL) -> list[str]:
    return [violation.constraint for violation in desc.validate(level)]


@pytest.mark.parametrize(
    ("data", "axis", "k", "direction", "values", "indices"),
    [
        pytest.param(
            EXAMPLES_1_AND_2, 3, 2, DECREASING,
            [[[[11, 10], [9, 8], [7, 6]]]],
            [[[[3, 2], [2, 3], [3, 2]]]],
            id="example_1",
        ),
        pytest.param(
            EXAMPLES_1_AND_2, 2, 2, DECREASING,
            [[[[4, 5, 10, 11], [3, 2, 9, 8]]]],
            [[[[2, 2, 0, 0], [1, 1, 1, 1]]]],
            id="example_2_using_a_different_axis",
        ),
        pytest.param(
            EXAMPLES_3_AND_4, 3, 3, DECREASING,
            [[[[3, 2, 2], [5, 5, 4], [6, 6, 6]]]],
            [[[[3, 1, 2], [2, 3, 1], [0, 1, 2]]]],
            id="example_3_tied_values",
        ),
        pytest.param(
            EXAMPLES_3_AND_4, 3, 3, INCREASING,
            [[[[1, 2, 2], [3, 4, 5], [6, 6, 6]]]],
            [[[[0, 1, 2], [0, 1, 2], [0, 1, 2]]]],
            id="example_4_increasing_axis_direction",
        ),
    ],
)  # fmt: skip
def test_the_page_s_examples(
    data: np.ndarray, axis: int, k: int, direction: AxisDirection, values: list[object], indices: list[object]
) -> None:
    desc = top_k1(data.shape, axis, k, direction)
    assert desc.validate(FeatureLevel.DML_FEATURE_LEVEL_2_1) == ()
    value, index = desc.evaluate(data)
    assert value.tolist() == values
    assert index.tolist() == indices
    assert (value.dtype, index.dtype) == (np.float32, np.uint32)


@pytest.mark.parametrize("direction", [INCREASING, DECREASING])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_sorted_by_value_then_by_ascending_index(axis: int, direction: AxisDirection) -> None:
    data = np.random.default_rng(axis).integers(0, 4, (3, 7, 5), dtype=np.int8)  # few values, many ties
    k = data.shape[axis] - 1
    values, indices = top_k1(data.shape, axis, k, direction, DataType.INT8).evaluate(data)
    sign = -1 if direction is DECREASING else 1
    sequences = np.moveaxis(data, axis, -1).reshape(-1, data.shape[axis])
    got_values = np.moveaxis(values, axis, -1).reshape(-1, k)
    got_indices = np.moveaxis(indices, axis, -1).reshape(-1, k)
    for sequence, value, index in zip(sequences.tolist(), got_values.tolist(), got_indices.tolist(), strict=True):
        expected = sorted(range(len(sequence)), key=lambda i, s=sequence: (sign * s[i], i))[:k]
        assert index == expected
        assert value == [sequence[i] for i in expected]


def test_indices_are_relative_to_their_sequence() -> None:
    _, indices = top_k1((2, 3), 1, 1).evaluate(np.array([[1, 2, 3], [9, 8, 7]], np.float32))
    assert indices.tolist() == [[2], [0]]


@pytest.mark.parametrize("index", [DataType.UINT32, DataType.UINT64])
def test_indices_have_the_type_of_their_tensor(index: DataType) -> None:
    _, indices = top_k1((3,), 0, 2, index=index).evaluate(np.array([1, 3, 2], np.float32))
    assert indices.dtype == index.dtype
    assert indices.tolist() == [1, 2]


def test_int64_is_compared_beyond_2_to_the_53() -> None:
    data = np.array([2**62, 2**62 + 2, 2**62 + 1, -(2**63), 2**63 - 1], np.int64)
    assert along(data, 4, DECREASING) == ([2**63 - 1, 2**62 + 2, 2**62 + 1, 2**62], [4, 1, 2, 0])
    assert along(data, 3, INCREASING) == ([-(2**63), 2**62, 2**62 + 1], [3, 0, 2])


def test_uint64_is_compared_beyond_the_signed_range() -> None:
    data = np.array([0, 2**64 - 1, 2**63, 2**64 - 2], np.uint64)
    assert along(data, 3, DECREASING) == ([2**64 - 1, 2**64 - 2, 2**63], [1, 3, 2])
    assert along(data, 2, INCREASING) == ([0, 2**63], [0, 2])


def test_the_least_integer_is_the_least() -> None:
    data = np.array([-128, 127, 0, -127], np.int8)
    assert along(data, 3, DECREASING) == ([127, 0, -127], [1, 2, 3])
    assert along(data, 2, INCREASING) == ([-128, -127], [0, 3])


def test_zeros_of_both_signs_are_tied_and_keep_their_sign() -> None:
    data = np.array([-0.0, 0.0, -1.0, -0.0], np.float32)
    values, indices = top_k1((4,), 0, 3, DECREASING).evaluate(data)
    assert indices.tolist() == [0, 1, 3]
    assert np.signbit(values).tolist() == [True, False, True]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_nan_is_greater_than_infinity(dtype: type) -> None:
    """The page does not say; this is numpy's order."""
    data = np.array([np.inf, np.nan, -np.inf, np.nan, 0], dtype)
    values, indices = along(data, 4, DECREASING)
    assert indices == [1, 3, 0, 4]
    np.testing.assert_array_equal(np.array(values), [np.nan, np.nan, np.inf, 0])
    assert along(data, 3, INCREASING) == ([-np.inf, 0, np.inf], [2, 4, 0])


def test_denormals_are_not_zero() -> None:
    tiny = float(np.finfo(np.float32).smallest_subnormal)
    data = np.array([0, tiny, -tiny], np.float32)
    assert along(data, 2, DECREASING) == ([tiny, 0], [1, 0])


def test_eight_dimensions() -> None:
    data = np.arange(3**8, dtype=np.int32).reshape((3,) * 8)
    desc = top_k1(data.shape, 5, 2, DECREASING, DataType.INT32)
    values, indices = desc.evaluate(data)
    assert desc.validate(LEVEL) == ()
    np.testing.assert_array_equal(values, data[:, :, :, :, :, [2, 1]])
    assert (indices[:, :, :, :, :, 0] == 2).all()
    assert (indices[:, :, :, :, :, 1] == 1).all()


@pytest.mark.parametrize(
    ("level", "valid"),
    [
        (FeatureLevel.DML_FEATURE_LEVEL_2_1, [4]),
        (FeatureLevel.DML_FEATURE_LEVEL_3_0, [4]),
        (FeatureLevel.DML_FEATURE_LEVEL_3_1, list(range(1, 9))),
        (FeatureLevel.DML_FEATURE_LEVEL_6_4, list(range(1, 9))),
    ],
)
def test_dimension_count_supported(level: FeatureLevel, valid: list[int]) -> None:
    for rank in range(1, 10):
        desc = top_k1((*(1,) * (rank - 1), 4), rank - 1, 2)
        assert names(desc, level) == ([] if rank in valid else ["dimension_count_supported"] * 3), rank


@pytest.mark.parametrize("dtype", [DataType.INT64, DataType.UINT64])
def test_64_bit_values_are_supported_from_5_0_on(dtype: DataType) -> None:
    desc = top_k1((4,), 0, 2, dtype=dtype)
    assert names(desc, FeatureLevel.DML_FEATURE_LEVEL_4_1) == ["data_type_supported"] * 2
    assert names(desc, FeatureLevel.DML_FEATURE_LEVEL_5_0) == []


def test_64_bit_indices_are_supported_from_5_0_on() -> None:
    desc = top_k1((4,), 0, 2, index=DataType.UINT64)
    assert names(desc, FeatureLevel.DML_FEATURE_LEVEL_4_1) == ["data_type_supported"]
    assert names(desc, FeatureLevel.DML_FEATURE_LEVEL_5_0) == []


def test_indices_are_unsigned() -> None:
    assert names(top_k1((4,), 0, 2, index=DataType.INT64)) == ["data_type_supported"]


def test_float64_is_supported_at_no_level() -> None:
    desc = top_k1((4,), 0, 2, dtype=DataType.FLOAT64)
    assert names(desc, FeatureLevel.DML_FEATURE_LEVEL_6_4) == ["data_type_supported"] * 2


def test_same_data_type() -> None:
    desc = replace(top_k1((4,), 0, 2), output_value_tensor=TensorDesc(DataType.FLOAT16, (2,)))
    assert names(desc) == ["same_data_type"]


@pytest.mark.parametrize("member", ["output_value_tensor", "output_index_tensor"])
def test_same_dimension_count(member: str) -> None:
    dtype = DataType.FLOAT32 if member == "output_value_tensor" else DataType.UINT32
    assert names(replace(top_k1((4,), 0, 2), **{member: TensorDesc(dtype, (1, 2))})) == ["same_dimension_count"]


@pytest.mark.parametrize("sizes", [(3, 4), (3, 1), (1, 2)])
def test_output_sizes_equal_the_input_s_except_for_k_along_the_axis(sizes: tuple[int, int]) -> None:
    desc = top_k1((3, 4), 1, 2)
    assert names(desc) == []
    values, indices = TensorDesc(DataType.FLOAT32, sizes), TensorDesc(DataType.UINT32, sizes)
    assert names(replace(desc, output_value_tensor=values)) == ["output_value_tensor_sizes"]
    assert names(replace(desc, output_index_tensor=indices)) == ["output_index_tensor_sizes"]


def test_axis_less_than_dimension_count() -> None:
    desc = top_k1((3, 4), 1, 2)
    assert names(desc) == []
    assert names(replace(desc, axis=2)) == ["axis_less_than_dimension_count"]


def test_k_positive() -> None:
    assert names(top_k1((4,), 0, 1)) == []
    assert names(top_k1((4,), 0, 0)) == ["tensor_sizes_nonzero", "tensor_sizes_nonzero", "k_positive"]


def test_k_less_than_the_axis_length_is_told_apart_from_more_than_all_of_it() -> None:
    assert names(top_k1((4,), 0, 3)) == []
    assert names(top_k1((4,), 0, 4)) == ["k_less_than_axis_length"]
    assert names(top_k1((4,), 0, 5)) == ["k_within_axis_length"]


def test_all_of_the_axis_can_be_evaluated_as_onnx_allows() -> None:
    assert along(np.array([1, 3, 2], np.int32), 3, DECREASING) == ([3, 2, 1], [1, 2, 0])
    assert along(np.array([7], np.int32), 1, INCREASING) == ([7], [0])


def test_more_than_all_of_the_axis_cannot_be_evaluated() -> None:
    with pytest.raises(ConstraintViolation, match="K is 4; axis 0 has 3 elements"):
        along(np.array([1, 3, 2], np.int32), 4, DECREASING)
