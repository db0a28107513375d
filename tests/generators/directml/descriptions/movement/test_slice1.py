"""DML_SLICE1_OPERATOR_DESC, from its page ns-directml-dml_slice1_operator_desc."""

import itertools
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from epcheck.generators.directml import ConstraintViolation, DataType, FeatureLevel, Slice1, TensorDesc

LEVEL = FeatureLevel.DML_FEATURE_LEVEL_5_0

# 'The following examples use this same input tensor.'
PAGE_INPUT = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
PAGE_INPUT_TENSOR = TensorDesc(DataType.FLOAT32, (1, 1, 4, 4))
PAGE_OUTPUT_TENSOR = TensorDesc(DataType.FLOAT32, (1, 1, 2, 2))
EXAMPLE_1 = Slice1(PAGE_INPUT_TENSOR, PAGE_OUTPUT_TENSOR, (0, 0, 0, 1), (1, 1, 4, 3), (1, 1, 2, 2))
EXAMPLE_2 = Slice1(PAGE_INPUT_TENSOR, PAGE_OUTPUT_TENSOR, (0, 0, 0, 1), (1, 1, 4, 3), (1, 1, -2, 2))


def along(
    length: int, offset: int, size: int, stride: int, output: int, dtype: DataType = DataType.INT32, rank: int = 1
) -> Slice1:
    """A slice of the last of `rank` dimensions; the others have size 1."""
    ones = (1,) * (rank - 1)
    return Slice1(
        TensorDesc(dtype, (*ones, length)),
        TensorDesc(dtype, (*ones, output)),
        (*(0,) * (rank - 1), offset),
        (*ones, size),
        (*ones, stride),
    )


def names(desc: Slice1, level: FeatureLevel = LEVEL) -> list[str]:
    return [violation.constraint for violation in desc.validate(level)]


def test_example_1_strided_slice_with_positive_strides() -> None:
    assert EXAMPLE_1.validate(FeatureLevel.DML_FEATURE_LEVEL_2_1) == ()
    (output,) = EXAMPLE_1.evaluate(PAGE_INPUT)
    assert output.dtype == np.float32
    assert output.tolist() == [[[[2, 4], [10, 12]]]]


def test_example_2_strided_slice_with_negative_strides() -> None:
    assert EXAMPLE_2.validate(FeatureLevel.DML_FEATURE_LEVEL_2_1) == ()
    (output,) = EXAMPLE_2.evaluate(PAGE_INPUT)
    assert output.tolist() == [[[[14, 16], [6, 8]]]]


@pytest.mark.parametrize(
    ("desc", "output", "copy_start", "source", "value"),
    [
        (EXAMPLE_1, (0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 0, 1), 2),
        (EXAMPLE_1, (0, 0, 0, 1), (0, 0, 0, 1), (0, 0, 0, 3), 4),
        (EXAMPLE_1, (0, 0, 1, 0), (0, 0, 0, 1), (0, 0, 2, 1), 10),
        (EXAMPLE_1, (0, 0, 1, 1), (0, 0, 0, 1), (0, 0, 2, 3), 12),
        (EXAMPLE_2, (0, 0, 0, 0), (0, 0, 3, 1), (0, 0, 3, 1), 14),
        (EXAMPLE_2, (0, 0, 0, 1), (0, 0, 3, 1), (0, 0, 3, 3), 16),
        (EXAMPLE_2, (0, 0, 1, 0), (0, 0, 3, 1), (0, 0, 1, 1), 6),
        (EXAMPLE_2, (0, 0, 1, 1), (0, 0, 3, 1), (0, 0, 1, 3), 8),
    ],
)
def test_the_page_s_coordinates(
    desc: Slice1, output: tuple[int, ...], copy_start: tuple[int, ...], source: tuple[int, ...], value: int
) -> None:
    walked = zip(copy_start, desc.input_window_strides, output, strict=True)
    assert tuple(start + stride * coordinate for start, stride, coordinate in walked) == source
    assert PAGE_INPUT[source] == value
    assert desc.evaluate(PAGE_INPUT)[0][output] == value


def test_the_pseudo_code_element_by_element() -> None:
    random = np.random.default_rng(20201104)
    for _ in range(50):
        rank = int(random.integers(1, 5))
        sizes = tuple(map(int, random.integers(1, 6, rank)))
        offsets = tuple(int(random.integers(0, size)) for size in sizes)
        windows = tuple(int(random.integers(1, size - offset + 1)) for size, offset in zip(sizes, offsets, strict=True))
        strides = tuple(map(int, random.choice([-3, -2, -1, 1, 2, 3], rank)))
        reachable = (1 + (size - 1) // abs(stride) for size, stride in zip(windows, strides, strict=True))
        output_sizes = tuple(int(random.integers(1, most + 1)) for most in reachable)
        desc = Slice1(
            TensorDesc(DataType.INT16, sizes), TensorDesc(DataType.INT16, output_sizes), offsets, windows, strides
        )
        data = random.integers(-(2**15), 2**15, sizes, dtype=np.int16)

        assert desc.validate(LEVEL) == ()
        expected = np.empty(output_sizes, np.int16)
        copy_start = list(offsets)
        for axis in range(desc.dimension_count):
            if strides[axis] < 0:
                copy_start[axis] += windows[axis] - 1
        for coordinates in itertools.product(*map(range, output_sizes)):
            expected[coordinates] = data[
                tuple(copy_start[axis] + strides[axis] * coordinates[axis] for axis in range(rank))
            ]
        np.testing.assert_array_equal(desc.evaluate(data)[0], expected)


def test_negative_stride_copies_from_the_end_of_the_window() -> None:
    desc = along(6, offset=1, size=4, stride=-3, output=2)
    assert desc.evaluate(np.arange(6, dtype=np.int32))[0].tolist() == [4, 1]


def test_the_output_need_not_copy_all_reachable_elements() -> None:
    desc = along(6, offset=0, size=6, stride=-1, output=2)
    assert desc.validate(LEVEL) == ()
    assert desc.evaluate(np.arange(6, dtype=np.int32))[0].tolist() == [5, 4]


def test_eight_dimensions() -> None:
    shape = (2,) * 8
    tensor = TensorDesc(DataType.UINT16, shape)
    desc = Slice1(tensor, tensor, (0,) * 8, shape, (-1,) * 8)
    data = np.arange(256, dtype=np.uint16).reshape(shape)
    assert desc.validate(LEVEL) == ()
    assert desc.evaluate(data)[0].ravel().tolist() == list(range(255, -1, -1))


def test_64_bit_integers_are_copied_exactly() -> None:
    data = np.array([2**63 - 1, 2**53 + 1, -(2**63)], np.int64)
    assert along(3, 0, 3, -1, 3, DataType.INT64).evaluate(data)[0].tolist() == [-(2**63), 2**53 + 1, 2**63 - 1]


def test_floating_point_bits_are_copied_nan_payloads_included() -> None:
    bits = np.array([0x7FC0_0001, 0xFF80_0000, 0x8000_0000, 0x0000_0001], np.uint32)
    (output,) = along(4, 0, 4, -1, 4, DataType.FLOAT32).evaluate(bits.view(np.float32))
    assert output.view(np.uint32).tolist() == bits[::-1].tolist()


def test_bool_travels_as_uint8_and_stays_bool() -> None:
    (output,) = along(3, 0, 3, -1, 3, DataType.UINT8).evaluate(np.array([True, False, False]))
    assert output.dtype == np.bool_
    assert output.tolist() == [False, False, True]


def test_a_type_that_directml_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="bfloat16"):
        along(2, 0, 2, 1, 2).evaluate(np.zeros(2, ml_dtypes.bfloat16))


# DimensionCount: 'between 1 and 8, inclusively, starting from 3_0; earlier feature levels require either 4 or 5'.


@pytest.mark.parametrize(
    ("level", "valid"),
    [
        (FeatureLevel.DML_FEATURE_LEVEL_2_1, range(4, 6)),
        (FeatureLevel.DML_FEATURE_LEVEL_3_0, range(1, 9)),
        (FeatureLevel.DML_FEATURE_LEVEL_6_4, range(1, 9)),
    ],
)
def test_dimension_count_supported(level: FeatureLevel, valid: range) -> None:
    for rank in range(1, 10):
        expected = [] if rank in valid else ["dimension_count_supported"] * 2
        assert names(along(4, 0, 4, 1, 4, rank=rank), level) == expected, rank


@pytest.mark.parametrize("dtype", [DataType.FLOAT64, DataType.INT64, DataType.UINT64])
def test_64_bit_types_are_supported_from_4_1_on(dtype: DataType) -> None:
    desc = along(4, 0, 4, 1, 4, dtype)
    assert names(desc, FeatureLevel.DML_FEATURE_LEVEL_4_0) == ["data_type_supported"] * 2
    assert names(desc, FeatureLevel.DML_FEATURE_LEVEL_4_1) == []


def test_same_data_type() -> None:
    desc = replace(along(4, 0, 4, 1, 4), output_tensor=TensorDesc(DataType.UINT32, (4,)))
    assert names(desc) == ["same_data_type"]


def test_same_dimension_count() -> None:
    desc = replace(along(4, 0, 4, 1, 4), output_tensor=TensorDesc(DataType.INT32, (1, 4)))
    assert names(desc) == ["same_dimension_count"]


def test_dimension_count_matches_the_tensors() -> None:
    desc = replace(
        along(4, 0, 4, 1, 4), input_window_offsets=(0, 0), input_window_sizes=(1, 4), input_window_strides=(1, 1)
    )
    assert desc.dimension_count == 2
    assert names(desc) == ["dimension_count_matches_tensors"]


@pytest.mark.parametrize("member", ["input_window_offsets", "input_window_sizes", "input_window_strides"])
def test_window_arrays_have_dimension_count_values(member: str) -> None:
    assert names(replace(EXAMPLE_1, **{member: (1, 1, 1)})) == ["window_arrays_have_dimension_count"]


def test_window_within_input() -> None:
    assert names(along(4, offset=1, size=3, stride=1, output=3)) == []
    assert names(along(4, offset=2, size=3, stride=1, output=3)) == ["window_within_input"]
    assert names(along(4, offset=0, size=5, stride=1, output=4)) == ["window_within_input"]


def test_window_not_empty() -> None:
    assert names(along(4, offset=0, size=1, stride=1, output=1)) == []
    assert names(along(4, offset=0, size=0, stride=1, output=1)) == ["window_not_empty"]


@pytest.mark.parametrize(("stride", "expected"), [(-1, []), (0, ["stride_nonzero"]), (1, [])])
def test_stride_nonzero(stride: int, expected: list[str]) -> None:
    assert names(along(4, 0, 4, stride, 1)) == expected


@pytest.mark.parametrize("stride", [3, -3])
def test_output_size_within_max_copied_elements(stride: int) -> None:
    # MaxCopiedElements = 1 + (7 - 1) / 3 = 3, whichever way the window is walked.
    assert names(along(8, 0, 7, stride, 3)) == []
    assert names(along(8, 0, 7, stride, 4)) == ["output_size_within_max_copied_elements"]


def test_max_copied_elements_rounds_down() -> None:
    # 1 + (6 - 1) / 3 = 2
    assert names(along(8, 0, 6, 3, 2)) == []
    assert names(along(8, 0, 6, 3, 3)) == ["output_size_within_max_copied_elements"]


def test_output_size_is_at_least_1() -> None:
    assert names(along(8, 0, 8, 1, 0)) == ["tensor_sizes_nonzero", "output_size_within_max_copied_elements"]


def test_each_dimension_is_checked_and_named() -> None:
    desc = replace(EXAMPLE_1, input_window_offsets=(1, 0, 0, 2))
    assert [(found.constraint, found.message.split(" the ")[0]) for found in desc.validate(LEVEL)] == [
        ("window_within_input", "in dimension 0"),
        ("window_within_input", "in dimension 3"),
    ]


def test_reads_outside_of_the_input_are_not_evaluated() -> None:
    with pytest.raises(ConstraintViolation, match="window_within_input"):
        along(4, offset=2, size=3, stride=-1, output=3).evaluate(np.zeros(4, np.int32))
