"""What descriptions demand of the sizes of their tensors: DirectML refuses each of these neighbours, too.

`epcheck directml --borders` asks DirectML about every neighbour of every operator; here is one of each kind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from epcheck.generators.directml import DataType, FeatureLevel, OperatorDesc, TensorDesc
from epcheck.generators.directml.descriptions.attention.multihead_attention import (
    MultiheadAttention,
    MultiheadAttentionMaskType,
)
from epcheck.generators.directml.descriptions.convolution_pooling.convolution import (
    Convolution,
    ConvolutionDirection,
    ConvolutionMode,
)
from epcheck.generators.directml.descriptions.convolution_pooling.pooling import Fold
from epcheck.generators.directml.descriptions.elementwise.elementwise import ElementWiseLogicalEquals
from epcheck.generators.directml.descriptions.matmul.matrix_multiply import QuantizedLinearMatrixMultiply
from epcheck.generators.directml.descriptions.movement.filling import (
    DiagonalMatrix1,
    FillValueConstant,
    NonzeroCoordinates,
)
from epcheck.generators.directml.descriptions.movement.gathering import Gather, GatherND1, ScatterND
from epcheck.generators.directml.descriptions.movement.layout import Slice, SpaceToDepth, Split
from epcheck.generators.directml.descriptions.quantized.linear_quantization import ElementWiseQuantizedLinearAdd
from epcheck.generators.directml.descriptions.recurrent.recurrent import RecurrentNetworkDirection, Rnn
from epcheck.generators.directml.neighbours import neighbours

LEVEL = FeatureLevel.DML_FEATURE_LEVEL_6_4


def floats(*sizes: int) -> TensorDesc:
    return TensorDesc(DataType.FLOAT32, sizes)


def integers(*sizes: int) -> TensorDesc:
    return TensorDesc(DataType.INT64, sizes)


def bytes_(*sizes: int) -> TensorDesc:
    return TensorDesc(DataType.UINT8, sizes)


SLICE = Slice(floats(1, 1, 4, 9), floats(1, 1, 2, 3), (0, 0, 1, 2), (1, 1, 2, 5), (1, 1, 1, 2))
SPLIT = Split(floats(1, 2, 3, 4), (floats(1, 2, 3, 1), floats(1, 2, 3, 3)), 3)
DEPTH = SpaceToDepth(floats(1, 1, 4, 6), floats(1, 4, 2, 3), 2)
DIAGONAL = DiagonalMatrix1(floats(1, 1, 3, 4), floats(1, 1, 3, 4), DataType.FLOAT32, "1", 0, 1)
GATHER = Gather(floats(1, 1, 5, 3), integers(1, 1, 1, 2), floats(1, 1, 2, 3), 2, 1)
GATHER_ND = GatherND1(floats(1, 3, 2, 5), integers(1, 3, 4, 1), floats(1, 3, 4, 5), 3, 3, 1)
SCATTER_ND = ScatterND(floats(1, 1, 4, 5), integers(1, 1, 2, 1), floats(1, 1, 2, 5), floats(1, 1, 4, 5), 2, 2)
CONVOLUTION = Convolution(
    floats(2, 4, 5, 5), floats(6, 2, 3, 3), floats(1, 6, 1, 1), floats(2, 6, 3, 3),
    ConvolutionMode.CROSS_CORRELATION, ConvolutionDirection.FORWARD, (1, 1), (1, 1), (0, 0), (0, 0), (0, 0), 2, None,
)  # fmt: skip
ONE = floats(1, 1, 1, 1)
PRODUCT = QuantizedLinearMatrixMultiply(
    bytes_(1, 2, 3, 4), floats(1, 1, 3, 1), None, bytes_(1, 2, 4, 5), floats(1, 1, 1, 5), None, ONE, None,
    bytes_(1, 2, 3, 5),
)  # fmt: skip
SUM = ElementWiseQuantizedLinearAdd(
    bytes_(1, 1, 2, 3), ONE, None, bytes_(1, 1, 2, 3), ONE, None, ONE, bytes_(1, 1, 1, 1), bytes_(1, 1, 2, 3)
)
FOLD = Fold(floats(1, 8, 6), floats(1, 2, 3, 4), (2, 2), (1, 1), (1, 1), (0, 0), (0, 0))
FILL = FillValueConstant(floats(1, 2, 3), DataType.FLOAT32, "1")
EQUALS = ElementWiseLogicalEquals(floats(1, 1, 2, 3), floats(1, 1, 2, 3), bytes_(1, 1, 2, 3))
NONZERO = NonzeroCoordinates(
    floats(1, 1, 2, 4), TensorDesc(DataType.UINT32, (1, 1, 1, 1)), TensorDesc(DataType.UINT32, (1, 1, 8, 3))
)
LAYER = Rnn(
    floats(1, 5, 2, 3), floats(1, 1, 4, 3), floats(1, 1, 4, 4), floats(1, 1, 1, 8), floats(1, 1, 2, 4), None,
    floats(5, 1, 2, 4), floats(1, 1, 2, 4), (), RecurrentNetworkDirection.FORWARD,
)  # fmt: skip
ATTENTION = MultiheadAttention(
    floats(2, 3, 8), floats(2, 5, 8), floats(2, 5, 6), *(None,) * 6, floats(2, 2, 1, 4), floats(2, 2, 1, 3),
    floats(2, 3, 6), floats(2, 2, 6, 4), floats(2, 2, 6, 3), 1.0, -10000.0, 2, MultiheadAttentionMaskType.NONE,
)  # fmt: skip

VALID = (
    SLICE, SPLIT, DEPTH, DIAGONAL, GATHER, GATHER_ND, SCATTER_ND, CONVOLUTION, PRODUCT, SUM, FOLD, FILL, NONZERO,
    EQUALS, LAYER, ATTENTION,
)  # fmt: skip


def violated(description: OperatorDesc) -> set[str]:
    return {violation.constraint for violation in description.validate(LEVEL)}


@pytest.mark.parametrize("valid", VALID, ids=lambda desc: desc.NAME)
def test_what_is_valid_violates_nothing(valid: OperatorDesc) -> None:
    assert violated(valid) == set()


@pytest.mark.parametrize(
    ("valid", "changes", "constraint"),
    [
        (SLICE, {"output_tensor": floats(1, 1, 2, 4)}, "output_tensor_sizes"),
        (SLICE, {"strides": (1, 1, 1, 0)}, "strides_positive"),
        (SPLIT, {"input_tensor": integers(1, 2, 3, 4)}, "same_data_type"),
        (SPLIT, {"input_tensor": floats(1, 3, 3, 4)}, "sizes_add_up"),
        (SPLIT, {"input_tensor": floats(1, 1, 2, 3, 4)}, "same_dimension_count"),
        (DEPTH, {"input_tensor": floats(1, 1, 5, 6)}, "blocks_are_whole"),
        (DEPTH, {"block_size": 0}, "blocks_are_whole"),
        (DIAGONAL, {"input_tensor": integers(1, 1, 3, 4)}, "same_data_type"),
        (DIAGONAL, {"input_tensor": floats(1, 1, 3, 5)}, "same_sizes"),
        (DIAGONAL, {"value_data_type": DataType.INT64}, "value_data_type"),
        (GATHER, {"output_tensor": floats(1, 1, 3, 3)}, "output_tensor_sizes"),
        (GATHER, {"axis": 3}, "output_tensor_sizes"),
        (GATHER, {"axis": 4}, "axis_less_than_dimension_count"),
        (GATHER, {"indices_tensor": integers(1, 1, 2, 2)}, "dimensions_counted"),
        (GATHER, {"index_dimensions": 9}, "dimensions_counted"),
        (GATHER_ND, {"indices_tensor": integers(1, 2, 4, 1)}, "same_batches"),
        (GATHER_ND, {"indices_tensor": integers(1, 3, 4, 3)}, "tuples_fit_input"),
        (GATHER_ND, {"input_dimension_count": 2}, "dimensions_counted"),
        (GATHER_ND, {"output_tensor": floats(1, 3, 4, 4)}, "output_tensor_sizes"),
        (SCATTER_ND, {"updates_tensor": floats(1, 1, 3, 5)}, "updates_tensor_sizes"),
        (SCATTER_ND, {"indices_tensor": integers(1, 1, 2, 3)}, "tuples_fit_input"),
        (CONVOLUTION, {"bias_tensor": floats(6, 1, 1, 1)}, "bias_sizes"),
        (CONVOLUTION, {"output_tensor": floats(3, 6, 3, 3)}, "same_batches"),
        (CONVOLUTION, {"output_tensor": floats(2, 7, 3, 3)}, "a_filter_for_each_channel"),
        (CONVOLUTION, {"group_count": 4}, "channels_in_groups"),
        (PRODUCT, {"a_scale_tensor": floats(1, 2, 3, 1)}, "a_scale_tensor_sizes"),
        (PRODUCT, {"b_scale_tensor": floats(1, 1, 4, 1)}, "b_scale_tensor_sizes"),
        (PRODUCT, {"output_scale_tensor": floats(1, 1, 1, 5)}, "output_scale_tensor_sizes"),
        (SUM, {"a_scale_tensor": floats(1, 1, 2, 3)}, "a_scale_tensor_sizes"),
        (SUM, {"output_zero_point_tensor": bytes_(1, 1, 1)}, "output_zero_point_tensor_sizes"),
        (FOLD, {"input_tensor": floats(1, 8, 7)}, "input_sizes"),
        (FOLD, {"dilations": (0, 1)}, "windows_positive"),
        (FILL, {"output_tensor": floats(*(1,) * 9)}, "tensor_dimension_count"),
        (LAYER, {"bias_tensor": floats(1, 1, 1, 4)}, "sizes_fit"),
        (LAYER, {"hidden_init_tensor": floats(1, 1, 3, 4)}, "sizes_fit"),
        (LAYER, {"output_single_tensor": floats(5, 1, 2, 4)}, "sizes_fit"),
        (ATTENTION, {"output_tensor": floats(2, 3, 8)}, "sizes_fit"),
        (ATTENTION, {"head_count": 4}, "whole_heads"),
        (ATTENTION, {"past_key_tensor": floats(2, 2, 2, 4)}, "output_present_value_tensor_sizes"),
        (ATTENTION, {"past_value_tensor": floats(2, 2, 1, 4)}, "past_value_tensor_sizes"),
        (ATTENTION, {"key_tensor": bytes_(2, 5, 8)}, "same_data_type"),
        (NONZERO, {"output_coordinates_tensor": TensorDesc(DataType.UINT32, (1, 1, 8, 1))}, "coordinates_fit_rank"),
        (
            NONZERO,
            {"output_coordinates_tensor": TensorDesc(DataType.UINT32, (1, 1, 7, 3))},
            "output_coordinates_tensor_sizes",
        ),
        (NONZERO, {"output_count_tensor": integers(1, 1, 1, 1)}, "output_data_type"),
        (EQUALS, {"output_tensor": floats(1, 1, 2, 3)}, "result_data_type"),
    ],
)
def test_one_step_beyond_is_a_violation(valid: OperatorDesc, changes: dict[str, Any], constraint: str) -> None:
    assert constraint in violated(replace(valid, **changes))


def test_a_comparison_may_answer_in_uint32_too() -> None:
    assert violated(replace(EQUALS, output_tensor=TensorDesc(DataType.UINT32, (1, 1, 2, 3)))) == set()


def test_backward_the_output_is_the_wide_one() -> None:
    transposed = replace(
        CONVOLUTION,
        direction=ConvolutionDirection.BACKWARD,
        input_tensor=floats(2, 6, 3, 3),
        bias_tensor=floats(1, 4, 1, 1),
        output_tensor=floats(2, 4, 5, 5),
    )
    assert violated(transposed) == set()
    assert "a_filter_for_each_channel" in violated(replace(transposed, input_tensor=floats(2, 4, 3, 3)))


def test_neighbours_differ_in_one_thing_each() -> None:
    found = {neighbour.what: neighbour.description for neighbour in neighbours(PRODUCT)}
    assert found["as it is"] == PRODUCT
    assert found["AScaleTensor FLOAT16"] == replace(PRODUCT, a_scale_tensor=TensorDesc(DataType.FLOAT16, (1, 1, 3, 1)))
    assert found["ATensor of 2^32 elements"] == replace(PRODUCT, a_tensor=bytes_(1, 1, 1 << 16, 1 << 16))
    assert "ATensor left out" not in found
    of_convolution = {neighbour.what: neighbour.description for neighbour in neighbours(CONVOLUTION)}
    assert of_convolution["BiasTensor left out"] == replace(CONVOLUTION, bias_tensor=None)
    assert of_convolution["Strides of zeros"] == replace(CONVOLUTION, strides=(0, 0))


def test_a_tensor_of_2_to_the_32_elements_is_too_large() -> None:
    assert "tensor_element_count" in violated(replace(FILL, output_tensor=floats(1, 1 << 16, 1 << 16)))
