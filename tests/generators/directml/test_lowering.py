"""The DirectML operators that cases are lowered to: valid, and of one opinion with the standard."""

from __future__ import annotations

import collections
from dataclasses import replace

import numpy as np
import pytest

from epcheck.conformance.preparation import prepared_case
from epcheck.generators import suite
from epcheck.generators.case import BuiltCase
from epcheck.generators.directml import (
    AxisDirection,
    FeatureLevel,
    OperatorDesc,
    QuantizedLinearConvolution,
    Slice1,
    TopK1,
)
from epcheck.generators.truth import Outputs, Refusal, Selection
from tests.generators.built_suite import built_first

LEVEL = FeatureLevel.DML_FEATURE_LEVEL_6_4


def lowered(case_id: str) -> OperatorDesc:
    lowering = suite.case_by_id(case_id).build().lowering
    assert lowering is not None
    return lowering.description


def expected_violations(built: BuiltCase) -> collections.Counter[str]:
    """What the pages refuse although ONNX allows it. Two pages are stricter than the DML EP's documentation needs:

    DML_TOP_K1 wants K *less* than the axis length, and no feature level has TopK in float64 (nor does the EP claim it).
    """
    violations: collections.Counter[str] = collections.Counter()
    if isinstance(built.truth, Selection):
        if built.truth.accepted[0][0].shape == built.truth.data.shape:
            violations["k_less_than_axis_length"] = 1
        if built.case.dtype == "float64":
            violations["data_type_supported"] = 2  # InputTensor and OutputValueTensor
    return violations


def nothing_to_execute(built: BuiltCase) -> bool:
    """A refusal, an empty result, what DirectML does not have (3-D convolutions, 9 dimensions), or a whole graph."""
    if built.case.sample.startswith(("beyond_rank_9_", "graph_")):
        return True
    match built.truth:
        case Refusal():
            return True
        case Outputs((output,)):
            return output.value.size == 0 or (built.case.operator == "QLinearConv" and output.value.ndim > 4)
        case Selection(accepted=accepted):
            return accepted[0][0].size == 0
    raise AssertionError(built.truth)


def test_a_case_is_lowered_unless_there_is_nothing_to_execute() -> None:
    for built in built_first():
        assert (built.lowering is None) == nothing_to_execute(built), built.case.id


def test_every_description_is_valid_but_for_the_known_exceptions() -> None:
    for built in built_first():
        if built.lowering is not None:
            found = collections.Counter(v.constraint for v in built.lowering.description.validate(LEVEL))
            assert found == expected_violations(built), built.case.id


def test_both_kinds_of_exception_occur() -> None:
    found = {v for built in built_first() if built.lowering for v in expected_violations(built)}
    assert found == {"k_less_than_axis_length", "data_type_supported"}


@pytest.mark.slow
def test_every_description_evaluates_to_the_truth() -> None:
    opinions = collections.Counter(
        (name, opinion) for built in built_first() for name, opinion in prepared_case.of(built).oracles.items()
    )
    assert {opinion for _, opinion in opinions} == {"agrees"}
    assert {name for name, _ in opinions} == {
        "DML_SLICE1_OPERATOR_DESC",
        "DML_TOP_K1_OPERATOR_DESC",
        "DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC",
    }
    assert opinions.total() == sum(built.lowering is not None for built in built_first()) > 3000


def test_a_lowering_has_one_array_for_each_input_tensor() -> None:
    for built in built_first():
        if built.lowering is not None:
            inputs = [
                t
                for name, t in built.lowering.description.tensors().items()
                if not name.startswith("Output") or name in ("OutputScaleTensor", "OutputZeroPointTensor")
            ]
            assert [None if f is None else f.shape for f in built.lowering.feeds] == [
                None if tensor is None else tensor.sizes for tensor in inputs
            ]


@pytest.mark.parametrize(
    ("sample", "window"),
    [
        ("steps_omitted", ((1,), (4,), (1,), (4,))),
        ("whole_axis_step_2", ((0,), (6,), (2,), (3,))),
        ("whole_axis_step_minus_2", ((0,), (6,), (-2,), (3,))),
        ("inner_backward", ((2,), (3,), (-1,), (3,))),
        ("inner_backward_by_2", ((1,), (5,), (-2,), (3,))),
        ("whole_axis_step_int64_max", ((0,), (6,), (2**31 - 1,), (1,))),
        ("whole_axis_step_int64_min", ((0,), (6,), (-(2**31),), (1,))),
    ],
)
def test_slice_becomes_a_window_walked_with_the_signed_step(sample: str, window: tuple[tuple[int, ...], ...]) -> None:
    desc = lowered(f"Slice-13/float32/{sample}[initializer]")
    assert isinstance(desc, Slice1)
    assert (
        desc.input_window_offsets,
        desc.input_window_sizes,
        desc.input_window_strides,
        desc.output_tensor.sizes,
    ) == window


def test_slice_leaves_unsliced_axes_whole() -> None:
    desc = lowered("Slice-13/float32/middle_axis_only[initializer]")
    assert isinstance(desc, Slice1)
    assert (desc.input_window_offsets, desc.input_window_sizes) == ((0, 1, 0), (3, 3, 3))


def test_topk_is_padded_to_four_dimensions() -> None:
    desc = lowered("TopK-11/float32/axis_0_smallest[initializer]")
    assert isinstance(desc, TopK1)
    assert desc.input_tensor.sizes == (1, 4, 5, 6)
    assert desc.output_value_tensor.sizes == desc.output_index_tensor.sizes == (1, 2, 5, 6)
    assert (desc.axis, desc.k, desc.axis_direction) == (1, 2, AxisDirection.INCREASING)
    assert desc.output_index_tensor.data_type.name == "UINT64"


def test_topk_of_more_dimensions_keeps_them() -> None:
    desc = lowered("TopK-11/float32/rank_8_last_axis[initializer]")
    assert isinstance(desc, TopK1)
    assert desc.input_tensor.sizes == (2, 3, 2, 3, 2, 3, 2, 3)
    assert (desc.axis, desc.axis_direction) == (7, AxisDirection.DECREASING)


def test_a_1d_convolution_gets_a_height_of_1() -> None:
    desc = lowered("QLinearConv-10/uint8-int8-uint8/1d_pads_strides_dilations[initializer]")
    assert isinstance(desc, QuantizedLinearConvolution)
    assert (desc.input_tensor.sizes, desc.filter_tensor.sizes) == ((2, 3, 1, 11), (4, 3, 1, 3))
    assert (desc.strides, desc.dilations) == ((1, 2), (1, 2))
    assert (desc.start_padding, desc.end_padding) == ((0, 3), (0, 1))


def test_auto_pad_becomes_explicit_padding() -> None:
    desc = lowered("QLinearConv-10/uint8-int8-uint8/auto_pad_same_lower_stride_2[initializer]")
    assert isinstance(desc, QuantizedLinearConvolution)
    assert desc.input_tensor.sizes == (1, 2, 9, 8)
    assert (desc.start_padding, desc.end_padding) == ((1, 1), (1, 0))


def test_per_channel_vectors_stand_at_the_channels() -> None:
    desc = lowered("QLinearConv-10/uint8-int8-uint8/per_channel_bias[initializer]")
    assert isinstance(desc, QuantizedLinearConvolution)
    assert desc.filter_scale_tensor.sizes == (1, 3, 1, 1)
    assert desc.bias_tensor is not None
    assert desc.bias_tensor.sizes == (1, 3, 1, 1)
    assert desc.input_scale_tensor.sizes == (1, 1, 1, 1)


def test_a_wrong_lowering_would_be_noticed() -> None:
    built = suite.case_by_id("Slice-13/float32/whole_axis_step_2[initializer]").build()
    assert built.lowering is not None
    wrong = np.flip(built.lowering.feeds[0])  # type: ignore[arg-type]
    opinions = prepared_case.of(replace(built, lowering=replace(built.lowering, feeds=(wrong,)))).oracles
    assert opinions == {
        "DML_SLICE1_OPERATOR_DESC": "disagrees: output: 3 of 3 elements are wrong; each must match exactly"
    }
