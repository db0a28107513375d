"""DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC, from its page.

The page (ns-directml-dml_quantized_linear_convolution_operator_desc) has no worked example; the numbers here were
worked out by hand or in exact fractions from its formulas.
"""

import itertools
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from epcheck.generators.directml import (
    ConstraintViolation,
    DataType,
    FeatureLevel,
    QuantizedLinearConvolution,
    TensorDesc,
)

LEVEL = FeatureLevel.DML_FEATURE_LEVEL_5_0
INT8, UINT8, INT32, FLOAT32 = DataType.INT8, DataType.UINT8, DataType.INT32, DataType.FLOAT32


def tensor(array: np.ndarray | None) -> TensorDesc | None:
    return None if array is None else TensorDesc(DataType.of(array.dtype), array.shape)


def scalar(value: float, dtype: Any = np.float32, rank: int = 4) -> np.ndarray:
    return np.full((1,) * rank, value, dtype)


def each(*values: float, dtype: Any = np.float32, rank: int = 4) -> np.ndarray:
    """One value for each output channel, {1, OutputChannelCount, 1, 1}."""
    return np.array(values, dtype).reshape(1, -1, *(1,) * (rank - 2))


@dataclass(frozen=True)
class Members:
    """What a test asks of a convolution beside its image and its filter; the defaults change nothing."""

    x_scale: float = 1
    x_zero_point: np.ndarray | None = None
    w_scale: np.ndarray | None = None
    w_zero_point: np.ndarray | None = None
    bias: np.ndarray | None = None
    y_scale: float = 1
    y_zero_point: np.ndarray | None = None
    y_dtype: DataType = INT8
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    start_padding: tuple[int, ...] = ()
    end_padding: tuple[int, ...] = ()
    group_count: int = 1


def convolve(x: np.ndarray, w: np.ndarray, level: FeatureLevel = LEVEL, **members: Any) -> np.ndarray:
    """Describe the convolution of these arrays, check that the description is valid, and evaluate it."""
    asked, spatial = Members(**members), x.ndim - 2
    ones, zeros = (1,) * spatial, (0,) * spatial
    strides, dilations = asked.strides or ones, asked.dilations or ones
    start_padding, end_padding = asked.start_padding or zeros, asked.end_padding or zeros
    sizes = [
        (x.shape[2 + i] + start_padding[i] + end_padding[i] - dilations[i] * (w.shape[2 + i] - 1) - 1) // strides[i] + 1
        for i in range(spatial)
    ]
    arrays = {
        "input_tensor": x,
        "input_scale_tensor": scalar(asked.x_scale, rank=x.ndim),
        "input_zero_point_tensor": asked.x_zero_point,
        "filter_tensor": w,
        "filter_scale_tensor": scalar(1, rank=x.ndim) if asked.w_scale is None else asked.w_scale,
        "filter_zero_point_tensor": asked.w_zero_point,
        "bias_tensor": asked.bias,
        "output_scale_tensor": scalar(asked.y_scale, rank=x.ndim),
        "output_zero_point_tensor": asked.y_zero_point,
    }
    desc = QuantizedLinearConvolution(
        **{name: tensor(array) for name, array in arrays.items()},
        output_tensor=TensorDesc(asked.y_dtype, (x.shape[0], w.shape[0], *sizes)),
        strides=strides,
        dilations=dilations,
        start_padding=start_padding,
        end_padding=end_padding,
        group_count=asked.group_count,
    )
    assert desc.validate(level) == ()
    (output,) = desc.evaluate(*arrays.values())
    assert output.dtype == asked.y_dtype.dtype
    assert output.shape == desc.output_tensor.sizes
    return output


def exact(x: np.ndarray, w: np.ndarray, **arguments: Any) -> np.ndarray:
    """The page's formulas element by element in fractions: dequantise, convolve, add the bias, quantise."""
    groups, (n_count, _, h, v) = arguments["group_count"], x.shape
    m_count, c_count, kh, kw = w.shape
    (sh, sw), (dh, dw) = arguments["strides"], arguments["dilations"]
    (ph, pw), (qh, qw) = arguments["start_padding"], arguments["end_padding"]
    x_scale, y_scale = (
        Fraction(float(np.float32(arguments["x_scale"]))),
        Fraction(float(np.float32(arguments["y_scale"]))),
    )
    oh, ow = (h + ph + qh - dh * (kh - 1) - 1) // sh + 1, (v + pw + qw - dw * (kw - 1) - 1) // sw + 1
    y = np.empty((n_count, m_count, oh, ow), arguments["y_dtype"].dtype)
    for n, m, i, j in itertools.product(range(n_count), range(m_count), range(oh), range(ow)):
        w_scale = Fraction(float(arguments["w_scale"][0, m, 0, 0]))
        total = int(arguments["bias"][0, m, 0, 0]) * x_scale * w_scale
        for c, a, b in itertools.product(range(c_count), range(kh), range(kw)):
            row, column = i * sh + a * dh - ph, j * sw + b * dw - pw
            if 0 <= row < h and 0 <= column < v:
                channel = m // (m_count // groups) * c_count + c
                real_x = (int(x[n, channel, row, column]) - int(arguments["x_zero_point"])) * x_scale
                total += real_x * (int(w[m, c, a, b]) - int(arguments["w_zero_point"][0, m, 0, 0])) * w_scale
        limits = np.iinfo(y.dtype)
        rounded = round(total / y_scale) + int(arguments["y_zero_point"])  # round() of a fraction: ties to even
        y[n, m, i, j] = min(max(rounded, limits.min), limits.max)
    return y


def test_two_by_two_filter_worked_by_hand() -> None:
    # x real: [[-1, 0, 1], [2, 3, 4], [5, 6, 7]] * 0.5; w real: [[1, -1], [2, 0]] * 0.25, so the sums are
    # -1*1 + 0*-1 + 2*2 = 3, 0 - 1 + 6 = 5, 2 - 3 + 10 = 9, 3 - 4 + 12 = 11, in steps of 0.125.
    x = np.array([[[[9, 10, 11], [12, 13, 14], [15, 16, 17]]]], np.uint8)
    w = np.array([[[[1, -1], [2, 0]]]], np.int8)
    output = convolve(
        x,
        w,
        x_scale=0.5,
        x_zero_point=scalar(10, np.uint8),
        w_scale=scalar(0.25),
        y_scale=0.125,
        y_zero_point=scalar(3, np.int8),
    )
    assert output.tolist() == [[[[6, 8], [12, 14]]]]


@pytest.mark.parametrize("x_dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("w_dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("y_dtype", [INT8, UINT8])
@pytest.mark.parametrize("group_count", [1, 2])
def test_all_members_at_once_against_fractions(x_dtype: Any, w_dtype: Any, y_dtype: DataType, group_count: int) -> None:
    random = np.random.default_rng([group_count, y_dtype.value, np.dtype(x_dtype).num, np.dtype(w_dtype).num])

    def integers(dtype: Any, *sizes: int) -> np.ndarray:
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max, sizes, dtype=dtype, endpoint=True)

    x, w = integers(x_dtype, 2, 4, 5, 6), integers(w_dtype, 6, 4 // group_count, 2, 3)
    arguments = {
        "x_scale": 0.1,
        "x_zero_point": integers(x_dtype, 1, 1, 1, 1),
        "w_scale": random.uniform(0.01, 0.5, (1, 6, 1, 1)).astype(np.float32),
        "w_zero_point": integers(w_dtype, 1, 6, 1, 1),
        "bias": random.integers(-9999, 9999, (1, 6, 1, 1), dtype=np.int32),
        "y_scale": 7.3,
        "y_zero_point": integers(y_dtype.dtype, 1, 1, 1, 1),
        "y_dtype": y_dtype,
        "strides": (2, 1),
        "dilations": (1, 2),
        "start_padding": (1, 0),
        "end_padding": (0, 3),
        "group_count": group_count,
    }
    expected = exact(x, w, **arguments | {name: arguments[name].item() for name in ("x_zero_point", "y_zero_point")})
    assert len(np.unique(expected)) > 20  # not all saturated
    np.testing.assert_array_equal(convolve(x, w, **arguments), expected)


def test_round_takes_ties_to_even() -> None:
    x = np.array([[[[-5, -3, -1, 1, 3, 5]]]], np.int8)
    output = convolve(x, np.ones((1, 1, 1, 1), np.int8), y_scale=2)
    assert output.ravel().tolist() == [-2, -2, 0, 0, 2, 2]


def test_the_zero_point_is_added_after_rounding() -> None:
    # 0.5 rounds to 0 and 1.5 to 2; rounding 0.5 + 1 and 1.5 + 1 would give 2 and 2.
    output = convolve(
        np.array([[[[1, 3]]]], np.int8), np.ones((1, 1, 1, 1), np.int8), y_scale=2, y_zero_point=scalar(1, np.int8)
    )
    assert output.ravel().tolist() == [1, 3]


def test_a_tie_stays_a_tie_though_no_float_holds_the_scale_s_decimal_value() -> None:
    # The output scale is twice the input scale, bit for bit, so 5 and 7 become 2.5 and 3.5.
    output = convolve(
        np.array([[[[5, 7]]]], np.int8), np.ones((1, 1, 1, 1), np.int8), x_scale=0.1, y_scale=float(np.float32(0.1)) * 2
    )
    assert output.ravel().tolist() == [2, 4]


@pytest.mark.parametrize(("y_dtype", "low", "high"), [(INT8, -128, 127), (UINT8, 0, 255)])
def test_the_result_is_clamped(y_dtype: DataType, low: int, high: int) -> None:
    x = np.array([[[[-128, 127]]]], np.int8)
    output = convolve(x, np.full((1, 1, 1, 1), 127, np.int8), y_dtype=y_dtype)
    assert output.ravel().tolist() == [low, high]


def test_a_quotient_far_beyond_the_integers_is_clamped() -> None:
    x = np.array([[[[-1, 0, 1]]]], np.int8)
    output = convolve(x, np.ones((1, 1, 1, 1), np.int8), x_scale=3e38, w_scale=scalar(3e38), y_scale=1e-45)
    assert output.ravel().tolist() == [-128, 0, 127]


def test_the_bias_counts_in_steps_of_input_scale_times_filter_scale() -> None:
    # bias 6 * 0.5 * 0.25 = 0.75 = 3 output steps; and 2**31 - 1 does not overflow.
    x, w = np.zeros((1, 1, 1, 1), np.int8), np.zeros((1, 1, 1, 1), np.int8)
    arguments = {"x_scale": 0.5, "w_scale": scalar(0.25), "y_scale": 0.25}
    assert convolve(x, w, bias=each(6, dtype=np.int32), **arguments).item() == 3
    assert convolve(x + 1, w + 1, bias=each(2**31 - 1, dtype=np.int32), **arguments).item() == 127
    assert convolve(x + 1, w + 1, bias=each(-(2**31), dtype=np.int32), **arguments).item() == -128


def test_the_sum_is_exact_where_float32_is_not() -> None:
    # The products sum to 300 * 255 * 255 = 19507500, beyond 2**24; the bias leaves 1 of it.
    x, w = np.full((1, 300, 1, 1), 255, np.uint8), np.full((1, 300, 1, 1), 255, np.uint8)
    bias = each(-(300 * 255 * 255) + 1, dtype=np.int32)
    assert convolve(x, w, bias=bias).item() == 1


def test_filter_scale_is_per_output_channel() -> None:
    x = np.array([[[[1]], [[10]]]], np.int8)  # two input channels
    w = np.array([[[[1]], [[2]]], [[[1]], [[2]]], [[[3]], [[1]]]], np.int8)  # sums 21, 21, 13
    assert convolve(x, w, w_scale=each(1, 2, 4)).ravel().tolist() == [21, 42, 52]


def test_filter_scale_is_per_output_channel_even_where_input_channels_are_as_many() -> None:
    x = np.array([[[[1]], [[10]]]], np.int8)
    w = np.array([[[[1]], [[1]]], [[[1]], [[2]]]], np.int8)  # sums 11 and 21, not 1 * s0 + 10 * s1
    assert convolve(x, w, w_scale=each(1, 3)).ravel().tolist() == [11, 63]


def test_filter_zero_point_is_per_output_channel() -> None:
    x = np.array([[[[1]], [[10]]]], np.int8)
    w = np.array([[[[1]], [[1]]], [[[1]], [[2]]]], np.int8)
    zero_point = each(0, 1, dtype=np.int8)  # the second filter is [0, 1]
    assert convolve(x, w, w_zero_point=zero_point).ravel().tolist() == [11, 10]


def test_padding_is_the_real_value_0() -> None:
    # All of the input is its zero point plus 1, so a 3x3 filter of ones counts the elements it covers.
    x, w = np.full((1, 1, 2, 2), 101, np.uint8), np.ones((1, 1, 3, 3), np.uint8)
    output = convolve(x, w, x_zero_point=scalar(100, np.uint8), start_padding=(1, 2), end_padding=(1, 0))
    assert output.tolist() == [[[[2, 4], [2, 4]]]]


def test_strides_and_dilations_apply_to_their_own_dimension() -> None:
    x = np.arange(20, dtype=np.int8).reshape(1, 1, 4, 5)
    w = np.array([[[[1, 1]]]], np.int8)
    # rows 0 and 2, columns j and j + 3 for j in 0, 1
    output = convolve(x, w, strides=(2, 1), dilations=(1, 3))
    assert output.tolist() == [[[[3, 5], [23, 25]]]]


def test_the_filter_is_not_flipped() -> None:
    x = np.array([[[[1, 2, 3]]]], np.int8)
    assert convolve(x, np.array([[[[1, 0, -1]]]], np.int8)).item() == -2


def test_group_count_equal_to_the_channels_is_depth_wise() -> None:
    x = np.array([[[[1, 2]], [[3, 4]], [[5, 6]]]], np.int8)
    w = np.array([[[[1]]], [[[2]]], [[[3]]]], np.int8)
    assert convolve(x, w, group_count=3).tolist() == [[[[1, 2]], [[6, 8]], [[15, 18]]]]


def test_filters_are_divided_among_groups_in_order() -> None:
    x = np.array([[[[1]], [[10]]]], np.int8)
    w = np.array([[[[1]]], [[[2]]], [[[3]]], [[[4]]]], np.int8)
    assert convolve(x, w, group_count=2).ravel().tolist() == [1, 2, 30, 40]


def test_batches_do_not_mix() -> None:
    x = np.array([[[[1, 2]]], [[[3, 4]]]], np.int8)
    assert convolve(x, np.array([[[[1, 1]]]], np.int8)).ravel().tolist() == [3, 7]


def test_one_spatial_dimension_from_4_0_on() -> None:
    x = np.array([[[1, 2, 3, 4]]], np.int8)
    w = np.array([[[1, 10]]], np.int8)
    output = convolve(x, w, w_scale=scalar(1, rank=3), strides=(2,), level=FeatureLevel.DML_FEATURE_LEVEL_4_0)
    assert output.tolist() == [[[21, 43]]]


@pytest.mark.parametrize(
    ("scales", "message"),
    [
        ({"y_scale": 0}, "OutputScaleTensor is 0"),
        ({"x_scale": np.inf}, "not finite"),
        ({"w_scale": scalar(np.nan)}, "not finite"),
        ({"y_scale": np.nan}, "not finite"),
    ],
)
def test_scales_without_a_defined_result_are_refused(scales: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        convolve(np.ones((1, 1, 1, 1), np.int8), np.ones((1, 1, 1, 1), np.int8), **scales)


# Constraints. A valid neighbour of every case below: the description as it stands.

VALID = QuantizedLinearConvolution(
    input_tensor=TensorDesc(UINT8, (2, 4, 5, 6)),
    input_scale_tensor=TensorDesc(FLOAT32, (1, 1, 1, 1)),
    input_zero_point_tensor=TensorDesc(UINT8, (1, 1, 1, 1)),
    filter_tensor=TensorDesc(INT8, (6, 2, 2, 3)),
    filter_scale_tensor=TensorDesc(FLOAT32, (1, 6, 1, 1)),
    filter_zero_point_tensor=TensorDesc(INT8, (1, 6, 1, 1)),
    bias_tensor=TensorDesc(INT32, (1, 6, 1, 1)),
    output_scale_tensor=TensorDesc(FLOAT32, (1, 1, 1, 1)),
    output_zero_point_tensor=TensorDesc(INT8, (1, 1, 1, 1)),
    output_tensor=TensorDesc(INT8, (2, 6, 4, 4)),
    strides=(1, 1),
    dilations=(1, 1),
    start_padding=(0, 0),
    end_padding=(0, 0),
    group_count=2,
)


def names(desc: QuantizedLinearConvolution, level: FeatureLevel = LEVEL) -> list[str]:
    return [violation.constraint for violation in desc.validate(level)]


@pytest.mark.parametrize("level", [level for level in FeatureLevel if level >= 0x2100])
def test_four_dimensions_are_valid_at_every_level(level: FeatureLevel) -> None:
    assert VALID.dimension_count == 2
    assert names(VALID, level) == []


def test_optional_tensors_may_be_left_out() -> None:
    left_out = replace(
        VALID,
        input_zero_point_tensor=None,
        filter_zero_point_tensor=None,
        bias_tensor=None,
        output_zero_point_tensor=None,
    )
    assert names(left_out) == []
    assert left_out.as_dict()["BiasTensor"] is None


def test_parameters_may_be_one_value_and_one_value_may_have_fewer_dimensions_from_4_0_on() -> None:
    scalar = replace(
        VALID,
        input_scale_tensor=TensorDesc(FLOAT32, (1,)),
        input_zero_point_tensor=TensorDesc(UINT8, (1,)),
        filter_scale_tensor=TensorDesc(FLOAT32, (1, 1, 1)),
        filter_zero_point_tensor=TensorDesc(INT8, (1,)),
        output_scale_tensor=TensorDesc(FLOAT32, (1, 1)),
        output_zero_point_tensor=TensorDesc(INT8, (1,)),
    )
    assert names(scalar, FeatureLevel.DML_FEATURE_LEVEL_4_0) == []
    assert names(scalar, FeatureLevel.DML_FEATURE_LEVEL_3_1) == ["dimension_count_supported"] * 6


def test_the_filter_scale_may_have_one_or_two_dimensions_from_5_2_on() -> None:
    desc = replace(VALID, filter_scale_tensor=TensorDesc(FLOAT32, (1,)))
    assert names(desc, FeatureLevel.DML_FEATURE_LEVEL_5_1) == ["dimension_count_supported"]
    assert names(desc, FeatureLevel.DML_FEATURE_LEVEL_5_2) == []


def test_the_page_supports_two_spatial_dimensions_and_the_newer_table_one_as_well_from_4_0_on() -> None:
    one_spatial = QuantizedLinearConvolution(
        input_tensor=TensorDesc(UINT8, (1, 1, 4)),
        input_scale_tensor=TensorDesc(FLOAT32, (1, 1, 1)),
        input_zero_point_tensor=None,
        filter_tensor=TensorDesc(UINT8, (1, 1, 2)),
        filter_scale_tensor=TensorDesc(FLOAT32, (1, 1, 1)),
        filter_zero_point_tensor=None,
        bias_tensor=None,
        output_scale_tensor=TensorDesc(FLOAT32, (1, 1, 1)),
        output_zero_point_tensor=None,
        output_tensor=TensorDesc(UINT8, (1, 1, 3)),
        strides=(1,),
        dilations=(1,),
        start_padding=(0,),
        end_padding=(0,),
        group_count=1,
    )
    assert names(one_spatial, FeatureLevel.DML_FEATURE_LEVEL_4_0) == []
    assert names(one_spatial, FeatureLevel.DML_FEATURE_LEVEL_3_1) == [
        *["dimension_count_supported"] * 6,
        "spatial_dimension_count_supported",
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"input_zero_point_tensor": TensorDesc(INT8, (1, 1, 1, 1))}, "input_zero_point_same_data_type"),
        ({"filter_zero_point_tensor": TensorDesc(UINT8, (1, 6, 1, 1))}, "filter_zero_point_same_data_type"),
        ({"output_zero_point_tensor": TensorDesc(UINT8, (1, 1, 1, 1))}, "output_zero_point_same_data_type"),
        ({"input_scale_tensor": TensorDesc(DataType.FLOAT16, (1, 1, 1, 1))}, "data_type_supported"),
        ({"bias_tensor": TensorDesc(FLOAT32, (1, 6, 1, 1))}, "data_type_supported"),
        ({"dilations": (1,)}, "arrays_have_dimension_count"),
        ({"start_padding": (0, 0, 0)}, "arrays_have_dimension_count"),
        ({"end_padding": ()}, "arrays_have_dimension_count"),
        ({"bias_tensor": TensorDesc(INT32, (1, 6, 1))}, "same_dimension_count"),
        ({"output_tensor": TensorDesc(INT8, (2, 6, 16))}, "same_dimension_count"),
        ({"input_scale_tensor": TensorDesc(FLOAT32, (1, 4, 1, 1))}, "input_scale_tensor_expected_dimensions"),
        ({"input_zero_point_tensor": TensorDesc(UINT8, (2, 1, 1, 1))}, "input_zero_point_tensor_expected_dimensions"),
        ({"filter_scale_tensor": TensorDesc(FLOAT32, (6, 1, 1, 1))}, "filter_scale_tensor_expected_dimensions"),
        ({"filter_scale_tensor": TensorDesc(FLOAT32, (1, 2, 1, 1))}, "filter_scale_tensor_expected_dimensions"),
        ({"filter_zero_point_tensor": TensorDesc(INT8, (6,))}, "filter_zero_point_tensor_expected_dimensions"),
        ({"bias_tensor": TensorDesc(INT32, (1, 1, 1, 1))}, "bias_tensor_expected_dimensions"),
        ({"output_scale_tensor": TensorDesc(FLOAT32, (1, 6, 1, 1))}, "output_scale_tensor_expected_dimensions"),
        ({"output_zero_point_tensor": TensorDesc(INT8, (1, 6, 1, 1))}, "output_zero_point_tensor_expected_dimensions"),
        ({"output_tensor": TensorDesc(INT8, (1, 6, 4, 4))}, "output_batch_count"),
        ({"group_count": 0}, "group_count_positive"),
        ({"group_count": 1}, "input_channels_in_groups"),
        ({"input_tensor": TensorDesc(UINT8, (2, 6, 5, 6))}, "input_channels_in_groups"),
        ({"strides": (1, 0)}, "strides_positive"),
        ({"dilations": (0, 1)}, "dilations_positive"),
        ({"dilations": (5, 1)}, "filter_within_padded_input"),
        ({"output_tensor": TensorDesc(INT8, (2, 6, 3, 4))}, "output_spatial_size"),
        ({"output_tensor": TensorDesc(INT8, (2, 6, 4, 5))}, "output_spatial_size"),
        ({"start_padding": (0, 1)}, "output_spatial_size"),
        ({"end_padding": (1, 0)}, "output_spatial_size"),
        ({"strides": (1, 2)}, "output_spatial_size"),
        ({"dilations": (2, 1)}, "output_spatial_size"),
    ],
)
def test_one_change_breaks_one_constraint(changes: dict[str, Any], expected: str) -> None:
    assert names(replace(VALID, **changes)) == [expected]


def test_group_count_fits_uint() -> None:
    expected = ["value_fits_uint", "input_channels_in_groups", "filters_in_groups"]
    assert names(replace(VALID, group_count=2**32)) == expected


def test_output_channel_count() -> None:
    desc = replace(
        VALID,
        output_tensor=TensorDesc(INT8, (2, 4, 4, 4)),
        filter_scale_tensor=TensorDesc(FLOAT32, (1, 4, 1, 1)),
        filter_zero_point_tensor=None,
        bias_tensor=None,
    )
    assert names(desc) == ["output_channel_count"]


def test_filters_in_groups() -> None:
    desc = replace(
        VALID,
        filter_tensor=TensorDesc(INT8, (5, 2, 2, 3)),
        filter_scale_tensor=TensorDesc(FLOAT32, (1, 1, 1, 1)),
        filter_zero_point_tensor=None,
        bias_tensor=None,
        output_tensor=TensorDesc(INT8, (2, 5, 4, 4)),
    )
    assert names(desc) == ["filters_in_groups"]


def test_spatial_dimension_count_matches_the_tensors() -> None:
    desc = replace(VALID, strides=(1,), dilations=(1,), start_padding=(0,), end_padding=(0,))
    assert desc.dimension_count == 1
    assert names(desc) == ["spatial_dimension_count_matches_tensors"]


def test_output_size_counts_padding_on_both_sides_dilation_and_stride() -> None:
    # height: (5 + 1 + 0 - 2 * (2 - 1) - 1) // 2 + 1 = 2; width: (6 + 0 + 2 - 3 * (3 - 1) - 1) // 1 + 1 = 2
    desc = replace(
        VALID,
        strides=(2, 1),
        dilations=(2, 3),
        start_padding=(1, 0),
        end_padding=(0, 2),
        output_tensor=TensorDesc(INT8, (2, 6, 2, 2)),
    )
    assert names(desc) == []


def test_a_filter_may_be_as_large_as_the_padded_input() -> None:
    desc = replace(VALID, dilations=(4, 1), output_tensor=TensorDesc(INT8, (2, 6, 1, 4)))
    assert names(desc) == []


def arrays(desc: QuantizedLinearConvolution) -> dict[str, np.ndarray | None]:
    return {
        name: None
        if (described := getattr(desc, name)) is None
        else np.ones(described.sizes, described.data_type.dtype)
        for name in QuantizedLinearConvolution.__annotations__
        if name.endswith("_tensor") and name != "output_tensor"
    }


def test_arrays_are_given_exactly_where_tensors_are_described() -> None:
    with pytest.raises(ValueError, match="BiasTensor is part of the description; its array is missing"):
        VALID.evaluate(*(arrays(VALID) | {"bias_tensor": None}).values())
    with pytest.raises(ValueError, match="BiasTensor is left out of the description; its array must be None"):
        replace(VALID, bias_tensor=None).evaluate(*arrays(VALID).values())
    assert VALID.evaluate(*arrays(VALID).values())[0].tolist() == np.full((2, 6, 4, 4), 2).tolist()


def test_a_description_without_a_defined_result_is_not_evaluated() -> None:
    desc = replace(VALID, group_count=1)
    with pytest.raises(ConstraintViolation, match="InputTensor has 4 channels"):
        desc.evaluate(*arrays(desc).values())
