"""Operators that work element by element: values from identities and tables, bounds, and what lowers to what."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epcheck.generators import registry, schema, suite
from epcheck.generators.array import Array
from epcheck.generators.bounds import elementary
from epcheck.generators.directml import DataType, FeatureLevel, TensorDesc
from epcheck.generators.directml.descriptions.elementwise.activation import ParameterizedRelu, Softplus
from epcheck.generators.directml.descriptions.elementwise.unary import (
    ElementWiseIsInfinity,
    ElementWiseRound,
    ElementWiseSqrt,
    IsInfinityMode,
    RoundingMode,
)
from epcheck.generators.directml.descriptions.elementwise.value_scale_2d import ValueScale2D
from epcheck.generators.node import Node, Operand
from epcheck.generators.truth import Outputs, Refusal, Ulp

FLOAT32 = np.dtype(np.float32)


def node(key: str, version: int, *values: Array, **attributes: float | tuple[float, ...]) -> Node:
    domain, _, name = key.rpartition("::")
    formals = schema.schema(name, version, domain).inputs
    operands = tuple(Operand(formal.name, value) for formal, value in zip(formals, values, strict=False))
    return Node(name, domain, version, operands, ("Y",), dict(attributes))


def result(key: str, version: int, *values: Array, **attributes: float | tuple[float, ...]) -> Array:
    truth = registry.all_operators()[key].truth(node(key, version, *values, **attributes))
    assert isinstance(truth, Outputs)
    return truth.outputs[0].value


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


def test_gelu_is_x_times_the_normal_distribution() -> None:
    x = floats(0, 1, -1, 2, -2, 3)
    phi = [0.5, 0.8413447460685429, 0.15865525393145705, 0.9772498680518208, 0.022750131948179195, 0.9986501019683699]
    for key in ("com.microsoft::Gelu", "com.microsoft::BiasGelu"):
        values = (x,) if key == "com.microsoft::Gelu" else (x, np.zeros_like(x))
        np.testing.assert_allclose(result(key, 1, *values), x * phi, rtol=1e-7)


def test_fast_gelu_is_the_form_with_tanh_of_x_plus_bias() -> None:
    got = result("com.microsoft::FastGelu", 1, floats(0.25, -3), floats(0.75, 1))
    inner = [math.sqrt(2 / math.pi) * (x + 0.044715 * x**3) for x in (1.0, -2.0)]
    expected = [0.5 * x * (1 + math.tanh(u)) for x, u in zip((1.0, -2.0), inner, strict=True)]
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_quick_gelu_has_alpha_1_702_by_default() -> None:
    x = floats(1, -2)
    expected = [v / (1 + math.exp(-float(np.float32(1.702)) * v)) for v in (1.0, -2.0)]
    np.testing.assert_allclose(result("com.microsoft::QuickGelu", 1, x), expected, rtol=1e-7)


def test_bias_split_gelu_multiplies_the_left_half_by_gelu_of_the_right() -> None:
    x, bias = floats(1, 2, 0, 1).reshape(1, 1, 4), floats(1, 1, 1, 0)
    got = result("com.microsoft::BiasSplitGelu", 1, x, bias)
    np.testing.assert_allclose(got, [[[2 * 0.8413447, 3 * 0.8413447]]], rtol=1e-6)


def test_a_bias_of_another_length_must_be_refused() -> None:
    truth = registry.all_operators()["com.microsoft::BiasGelu"].truth(
        node("com.microsoft::BiasGelu", 1, floats(1, 2, 3), floats(1, 2))
    )
    assert isinstance(truth, Refusal)


def test_affine_and_image_scaler_scale_and_shift() -> None:
    np.testing.assert_array_equal(result("Affine", 1, floats(1, 2), alpha=3.0, beta=-1.0), [2, 5])
    image = np.arange(4, dtype=np.float32).reshape(1, 2, 1, 2)
    scaled = result("ImageScaler", 1, image, scale=2.0, bias=(10.0, 20.0))
    np.testing.assert_array_equal(scaled, [[[[10, 12]], [[24, 26]]]])


def test_parametric_softplus_and_scaled_tanh() -> None:
    np.testing.assert_allclose(
        result("ParametricSoftplus", 1, floats(0, 1000), alpha=2.0, beta=0.5), [2 * math.log(2), 1000], rtol=1e-7
    )
    np.testing.assert_allclose(result("ScaledTanh", 1, floats(0.5), alpha=3.0, beta=2.0), [3 * math.tanh(1)], rtol=1e-7)


@pytest.mark.parametrize(
    ("key", "version", "value"),
    [("Softplus", 1, 1000.0), ("Sigmoid", 13, 1.0), ("Tanh", 13, 1.0), ("Erf", 13, 1.0), ("Softsign", 1, 1000 / 1001)],
)
def test_saturation_is_no_overflow(key: str, version: int, value: float) -> None:
    assert result(key, version, floats(1000.0)) == np.float32(value)


def test_nan_takes_the_branch_that_the_page_calls_otherwise() -> None:
    assert result("ThresholdedRelu", 10, floats(np.nan)) == 0
    assert result("Shrink", 9, floats(np.nan)) == 0
    assert np.isnan(result("LeakyRelu", 16, floats(np.nan)))


def test_prelu_of_unsigned_integers_is_the_identity() -> None:
    x = np.array([0, 1, 2**32 - 1], np.uint32)
    np.testing.assert_array_equal(result("PRelu", 16, x, np.array([7], np.uint32)), x)


def test_sine_may_be_off_as_direct3d_says_within_100_pi_only() -> None:
    x = np.array([1.0, 300.0, 400.0])
    bound = elementary.bound_of("sin", x, np.sin(x), FLOAT32)
    assert bound.bound == 4
    np.testing.assert_allclose(bound.floor, [0.0008, 0.0008, np.finfo(np.float32).tiny])


def test_exp_may_be_off_by_3_and_2_x_ulp_as_vulkan_says() -> None:
    x = np.array([0.0, -10.0])
    floor = np.asarray(elementary.bound_of("exp", x, np.exp(x), FLOAT32).floor)
    np.testing.assert_allclose(floor, [3 * 2.0**-23, 23 * 2.0**-23 * math.exp(-10)])


def test_acos_at_1_has_no_error_to_hide_behind() -> None:
    x = np.array([1.0])
    assert elementary.bound_of("acos", x, np.arccos(x), FLOAT32).floor == np.finfo(np.float32).tiny


def test_double_precision_has_the_bound_of_opencl_alone() -> None:
    bound = elementary.bound_of("sin", np.array([1.0]), np.array([0.84]), np.dtype(np.float64))
    assert bound == Ulp(5, bound.citations, float(np.finfo(np.float64).tiny))


def tensor(array: Array) -> TensorDesc:
    return TensorDesc.of(array)


def test_scale_and_bias_come_before_the_function() -> None:
    x = floats(0, 4)
    np.testing.assert_array_equal(ElementWiseSqrt(tensor(x), tensor(x), (2.0, 1.0)).evaluate(x)[0], [1, 3])


def test_rounding_modes() -> None:
    x = floats(-2.5, -0.5, 0.5, 1.5, 2.4)
    modes = {
        RoundingMode.HALVES_TO_NEAREST_EVEN: [-2, 0, 0, 2, 2],
        RoundingMode.TOWARD_ZERO: [-2, 0, 0, 1, 2],
        RoundingMode.TOWARD_INFINITY: [-3, -1, 1, 2, 3],
    }
    for mode, expected in modes.items():
        np.testing.assert_array_equal(ElementWiseRound(tensor(x), tensor(x), mode).evaluate(x)[0], expected)


def test_infinity_modes() -> None:
    x = floats(np.inf, -np.inf, np.nan, 1)
    flags = TensorDesc(DataType.UINT8, (4,))
    modes = {
        IsInfinityMode.EITHER: [1, 1, 0, 0],
        IsInfinityMode.POSITIVE: [1, 0, 0, 0],
        IsInfinityMode.NEGATIVE: [0, 1, 0, 0],
    }
    for mode, expected in modes.items():
        np.testing.assert_array_equal(ElementWiseIsInfinity(tensor(x), flags, mode).evaluate(x)[0], expected)


def test_sizes_types_and_numbers_are_constrained() -> None:
    x, y = tensor(floats(1, 2)), tensor(floats(1, 2, 3))
    assert [v.constraint for v in ElementWiseSqrt(x, y).constraints()] == ["same_sizes"]
    assert [v.constraint for v in ElementWiseIsInfinity(x, x).constraints()] == ["output_data_type"]
    assert [v.constraint for v in Softplus(x, x, 0.0).constraints()] == ["steepness_nonzero"]
    assert [v.constraint for v in ParameterizedRelu(x, y, x).constraints()] == ["same_sizes"]


def test_a_gentle_softplus_came_with_feature_level_6_4() -> None:
    x = TensorDesc(DataType.FLOAT32, (1, 1, 1, 2))
    gentle = Softplus(x, x, 0.5)
    assert gentle.validate(FeatureLevel.DML_FEATURE_LEVEL_6_4) == ()
    assert [v.constraint for v in gentle.validate(FeatureLevel.DML_FEATURE_LEVEL_6_3)] == ["steepness_at_least_1"]


def test_value_scale_2d_takes_one_or_three_channels() -> None:
    two = tensor(np.zeros((1, 2, 1, 1), np.float32))
    assert [v.constraint for v in ValueScale2D(two, two, 1.0, (1.0, 2.0)).constraints()] == ["channel_count_1_or_3"]
    assert [v.constraint for v in ValueScale2D(two, two, 1.0, (1.0,)).constraints()] == ["channel_count"]


def test_the_slope_is_broadcast_by_strides_of_0() -> None:
    lowering = suite.case_by_id("PRelu-16/float32/channel[runtime]").build().lowering
    assert lowering is not None
    assert isinstance(lowering.description, ParameterizedRelu)
    assert lowering.description.slope_tensor.strides == (0, 1, 0, 0)
