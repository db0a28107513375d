"""The descriptions of convolutions, pools and regions: what they demand, and what they compute on small numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from epcheck.generators.directml import DataType, FeatureLevel, OperatorDesc, TensorDesc
from epcheck.generators.directml.descriptions.convolution_pooling.convolution import (
    Convolution,
    ConvolutionDirection,
    ConvolutionInteger,
    ConvolutionMode,
)
from epcheck.generators.directml.descriptions.convolution_pooling.pooling import (
    AveragePooling,
    AveragePooling1,
    Fold,
    LpPooling,
    MaxPooling,
    MaxPooling2,
    MaxUnpooling,
    QuantizedLinearAveragePooling,
)
from epcheck.generators.directml.descriptions.convolution_pooling.roi import (
    InterpolationMode,
    ReduceFunction,
    RoiAlign1,
    RoiPooling,
)
from epcheck.generators.directml.descriptions.elementwise.activation import make_fused

LEVEL = FeatureLevel.DML_FEATURE_LEVEL_6_4


def float32(*sizes: int) -> TensorDesc:
    return TensorDesc(DataType.FLOAT32, sizes)


def image(rows: list[list[float]]) -> np.ndarray[Any, np.dtype[Any]]:
    return np.array([[rows]], np.float32)


WINDOW: Mapping[str, Any] = {
    "input_tensor": float32(1, 1, 2, 3), "output_tensor": float32(1, 1, 1, 2), "strides": (1, 1),
    "window_size": (2, 2), "start_padding": (0, 0), "end_padding": (0, 0),
}  # fmt: skip
CONVOLUTION = Convolution(
    input_tensor=float32(1, 1, 2, 3), filter_tensor=float32(1, 1, 2, 2), bias_tensor=None,
    output_tensor=float32(1, 1, 1, 2), mode=ConvolutionMode.CROSS_CORRELATION,
    direction=ConvolutionDirection.FORWARD, strides=(1, 1), dilations=(1, 1), start_padding=(0, 0),
    end_padding=(0, 0), output_padding=(0, 0), group_count=1, fused_activation=None,
)  # fmt: skip
ROI_POOLING = RoiPooling(float32(1, 2, 4, 4), float32(1, 1, 3, 5), float32(3, 2, 1, 2), 1.0, (2, 1))
ROI_ALIGN = RoiAlign1(
    float32(1, 2, 4, 4), float32(1, 1, 3, 4), TensorDesc(DataType.UINT64, (1, 1, 1, 3)), float32(3, 2, 1, 2),
    ReduceFunction.AVERAGE, InterpolationMode.LINEAR, 1.0, 1.0, 0.5, -0.5, 0.0, 1, 4, False,
)  # fmt: skip
X = image([[1, 2, 3], [4, 5, 6]])


def names(desc: OperatorDesc) -> set[str]:
    return {violation.constraint for violation in desc.validate(LEVEL)}


def test_a_convolution_is_a_sum_of_products() -> None:
    weights = image([[1, 0], [0, 2]])
    assert CONVOLUTION.evaluate(X, weights, None)[0].tolist() == [[[[11, 14]]]]
    biased = replace(CONVOLUTION, bias_tensor=float32(1, 1, 1, 1))
    assert biased.evaluate(X, weights, np.full((1, 1, 1, 1), 3, np.float32))[0].tolist() == [[[[14, 17]]]]


def test_backward_a_convolution_spreads_its_filter() -> None:
    backward = replace(
        CONVOLUTION, input_tensor=float32(1, 1, 1, 2), output_tensor=float32(1, 1, 2, 3),
        direction=ConvolutionDirection.BACKWARD,
    )  # fmt: skip
    spread = backward.evaluate(image([[1, 10]]), image([[1, 2], [3, 4]]), None)[0]
    assert spread.tolist() == [[[[1, 12, 20], [3, 34, 40]]]]


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ({"strides": (1,)}, "arrays_have_dimension_count"),
        ({"strides": (0, 1)}, "strides_positive"),
        ({"group_count": 2}, "channels_in_groups"),
        ({"filter_tensor": TensorDesc(DataType.FLOAT16, (1, 1, 2, 2))}, "same_data_type"),
        ({"bias_tensor": float32(1, 1, 1)}, "same_dimension_count"),
    ],
)
def test_what_a_convolution_demands(change: dict[str, Any], constraint: str) -> None:
    assert not names(CONVOLUTION)
    assert constraint in names(replace(CONVOLUTION, **change))


def test_a_fused_activation_is_described_without_tensors_and_applied_to_the_sum() -> None:
    halved = replace(CONVOLUTION, fused_activation=make_fused("LeakyRelu", 0.5))
    activation = halved.as_dict()["FusedActivation"]
    nothing = {"InputTensor": None, "OutputTensor": None}
    assert activation == {"Type": "DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC", **nothing, "Alpha": 0.5}
    negative, negative_halved = (desc.evaluate(X, image([[-1, 0], [0, -2]]), None)[0] for desc in (CONVOLUTION, halved))
    np.testing.assert_array_equal(negative_halved, negative / 2)
    assert (negative < 0).all()


def test_an_integer_convolution_takes_the_zero_points_off() -> None:
    def tensor(*sizes: int) -> TensorDesc:
        return TensorDesc(DataType.UINT8, sizes)

    desc = ConvolutionInteger(
        tensor(1, 1, 1, 2), tensor(1, 1, 1, 1), tensor(1, 1, 1, 2), None, TensorDesc(DataType.INT32, (1, 1, 1, 2)),
        (1, 1), (1, 1), (0, 1), (0, 0), 1,
    )  # fmt: skip
    x, zero = np.array([[[[7, 9]]]], np.uint8), np.full((1, 1, 1, 1), 5, np.uint8)
    assert desc.evaluate(x, zero, np.array([[[[1, 10]]]], np.uint8), None)[0].tolist() == [[[[20, 42]]]]
    assert not names(desc)
    other = TensorDesc(DataType.INT8, (1, 1, 1, 1))
    assert "zero_point_same_data_type" in names(replace(desc, input_zero_point_tensor=other))


def test_pools_reduce_what_lies_under_the_window() -> None:
    assert AveragePooling(**WINDOW, include_padding=False).evaluate(X)[0].tolist() == [[[[3, 4]]]]
    assert MaxPooling(**WINDOW).evaluate(X)[0].tolist() == [[[[5, 6]]]]
    assert LpPooling(**WINDOW, p=1).evaluate(X)[0].tolist() == [[[[12, 16]]]]
    dilated = {**WINDOW, "output_tensor": float32(1, 1, 1, 1)}
    assert AveragePooling1(**dilated, dilations=(1, 2), include_padding=False).evaluate(X)[0].tolist() == [[[[3.5]]]]


def test_an_average_counts_the_padding_only_where_it_is_included() -> None:
    padded = {**WINDOW, "start_padding": (0, 1), "output_tensor": float32(1, 1, 1, 3)}
    assert AveragePooling(**padded, include_padding=False).evaluate(X)[0][..., 0].item() == 2.5
    assert AveragePooling(**padded, include_padding=True).evaluate(X)[0][..., 0].item() == 1.25


def test_a_maximum_tells_where_in_the_whole_input_it_lies() -> None:
    desc = MaxPooling2(
        **{**WINDOW, "input_tensor": float32(1, 2, 2, 3), "output_tensor": float32(1, 2, 1, 2)},
        output_indices_tensor=TensorDesc(DataType.UINT64, (1, 2, 1, 2)),
        dilations=(1, 1),
    )
    values, indices = desc.evaluate(np.concatenate([X, -X], 1))
    assert values.tolist() == [[[[5, 6]], [[-1, -2]]]]
    assert indices.tolist() == [[[[4, 5]], [[6, 7]]]]
    assert "same_sizes" in names(replace(desc, output_indices_tensor=TensorDesc(DataType.UINT64, (1, 1, 1, 2))))


def test_what_a_pool_demands() -> None:
    desc = MaxPooling(**WINDOW)
    assert not names(desc)
    assert "same_data_type" in names(replace(desc, output_tensor=TensorDesc(DataType.FLOAT16, (1, 1, 1, 2))))
    assert "same_leading_sizes" in names(replace(desc, output_tensor=float32(1, 2, 1, 2)))
    assert "arrays_have_dimension_count" in names(replace(desc, window_size=(2,)))


def test_unpooling_puts_elements_where_their_indices_say() -> None:
    indices = TensorDesc(DataType.UINT64, (1, 1, 1, 2))
    desc = MaxUnpooling(float32(1, 1, 1, 2), indices, float32(1, 1, 2, 2))
    output = desc.evaluate(image([[7, 8]]), np.array([[[[3, 0]]]], np.uint64))[0]
    assert output.tolist() == [[[[8, 0], [0, 7]]]]
    assert not names(desc)
    assert "same_sizes" in names(replace(desc, indices_tensor=TensorDesc(DataType.UINT64, (1, 1, 1, 1))))
    assert "same_data_type" in names(replace(desc, output_tensor=TensorDesc(DataType.FLOAT16, (1, 1, 2, 2))))


def test_folding_adds_blocks_up_where_they_overlap() -> None:
    desc = Fold(float32(1, 2, 2), float32(1, 1, 3), (2,), (1,), (1,), (0,), (0,))
    assert desc.evaluate(np.array([[[1, 2], [10, 20]]], np.float32))[0].tolist() == [[[1, 12, 20]]]
    assert "arrays_have_dimension_count" in names(replace(desc, dilations=(1, 1)))


def test_a_quantised_average_is_rounded_to_even_and_clamped() -> None:
    def tensor(kind: DataType, *sizes: int) -> TensorDesc:
        return TensorDesc(kind, sizes)

    scalar = (1, 1, 1, 1)
    desc = QuantizedLinearAveragePooling(
        tensor(DataType.UINT8, 1, 1, 1, 3), tensor(DataType.FLOAT32, *scalar), tensor(DataType.UINT8, *scalar),
        tensor(DataType.FLOAT32, *scalar), None, tensor(DataType.UINT8, 1, 1, 1, 2),
        (1, 1), (1, 2), (0, 0), (0, 0), (1, 1), False,
    )  # fmt: skip
    scale, zero = np.ones(scalar, np.float32), np.full(scalar, 1, np.uint8)
    x = np.array([[[[2, 3, 0]]]], np.uint8)
    assert desc.evaluate(x, scale, zero, scale, None)[0].tolist() == [[[[2, 0]]]]  # 1.5 and 0.5
    other = tensor(DataType.INT8, *scalar)
    assert "zero_point_same_data_type" in names(replace(desc, input_zero_point_tensor=other))


def test_what_regions_demand() -> None:
    assert not names(ROI_POOLING)
    assert not names(ROI_ALIGN)
    assert "roi_has_five_values" in names(replace(ROI_POOLING, roi_tensor=float32(1, 1, 3, 4)))
    assert "output_sizes" in names(replace(ROI_POOLING, pooled_size=(1, 2)))
    assert "roi_has_four_values" in names(replace(ROI_ALIGN, roi_tensor=float32(1, 1, 3, 5)))
    assert "one_batch_index_for_each_roi" in names(replace(ROI_ALIGN, roi_tensor=float32(1, 1, 2, 4)))
    assert "samples_in_order" in names(replace(ROI_ALIGN, minimum_samples_per_output=5))
