"""Element-wise operators and casts: values from outside, what is refused, and the way to DirectML."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epcheck.generators import registry, suite
from epcheck.generators.directml import ConstraintViolation, DataType, FeatureLevel, OperatorDesc, TensorDesc
from epcheck.generators.directml.descriptions.elementwise import elementwise as dml
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.node import Node, Operand
from epcheck.generators.truth import Outputs, Refusal

LEVEL = FeatureLevel.DML_FEATURE_LEVEL_6_4
MATRIX = TensorDesc(DataType.FLOAT32, (1, 1, 2, 3))


def node(key: str, since_version: int, *values: Any, **attributes: Any) -> Node:
    """A node whose inputs are named by their position."""
    domain, _, name = key.rpartition("::")
    names = {"Clip": ("input", "min", "max"), "Cast": ("input",), "CastLike": ("input", "target_type")}.get(
        name, ("X", "Y", "Z")
    )
    operands = tuple(
        None if value is None else Operand(formal, value) for formal, value in zip(names, values, strict=False)
    )
    return Node(name, domain, since_version, operands, ("out",), attributes)


def result(key: str, since_version: int, *values: Any, **attributes: Any) -> Any:
    """What must come out, as a list."""
    truth = registry.all_operators()[key].truth(node(key, since_version, *values, **attributes))
    assert isinstance(truth, Outputs), truth
    return truth.outputs[0].value.tolist()


def is_refused(key: str, since_version: int, *values: Any, **attributes: Any) -> bool:
    truth = registry.all_operators()[key].truth(node(key, since_version, *values, **attributes))
    return isinstance(truth, Refusal)


def lowering(key: str, since_version: int, *values: Any, **attributes: Any) -> Lowering | None:
    return registry.all_operators()[key].lower(node(key, since_version, *values, **attributes))


def description(key: str, since_version: int, *values: Any, **attributes: Any) -> OperatorDesc:
    found = lowering(key, since_version, *values, **attributes)
    assert found is not None
    assert found.description.validate(LEVEL) == ()
    return found.description


def floats(*values: float) -> Any:
    return np.array(values, np.float32)


def ints(*values: int, dtype: Any = np.int32) -> Any:
    return np.array(values, dtype)


def test_bias_and_skip_are_added_to_the_channels() -> None:
    x, skip = np.ones((1, 2, 3), np.float32), np.full((1, 2, 3), 10, np.float32)
    assert result("com.microsoft::BiasAdd", 1, x, floats(1, 2, 3), skip) == [[[12, 13, 14], [12, 13, 14]]]


def test_bias_must_have_as_many_elements_as_x_has_channels() -> None:
    x = np.ones((1, 2, 3), np.float32)
    assert is_refused("com.microsoft::BiasAdd", 1, x, floats(1, 2), x)
    assert is_refused("com.microsoft::BiasAdd", 1, x, floats(1, 2, 3), np.ones((1, 1, 3), np.float32))


@pytest.mark.parametrize("operator", ["DmlFusedAdd", "DmlFusedSum"])
def test_a_fused_activation_is_applied_to_the_sum(operator: str) -> None:
    key, a, b = f"com.microsoft.dml::{operator}", floats(1, -4), floats(1, 2)
    assert result(key, 1, a, b, fused_activation="Relu") == [2, 0]
    assert result(key, 1, a, b, fused_activation="LeakyRelu", fused_alpha=0.5) == [2, -1]
    assert result(key, 1, a, b, fused_activation="LeakyRelu") == [2, float(np.float32(-0.02))]


def test_integers_are_divided_toward_zero() -> None:
    assert result("Div", 14, ints(7, -7, 7, -7), ints(2, 2, -2, -2)) == [3, -3, -3, 3]


def test_the_remainder_has_the_sign_of_the_divisor_or_with_fmod_of_the_dividend() -> None:
    a, b = ints(7, -7, 7, -7), ints(3, 3, -3, -3)
    assert result("Mod", 13, a, b) == [1, 2, -2, -1]
    assert result("Mod", 13, a, b, fmod=1) == [1, -1, 1, -1]


def test_fmod_of_floats_must_be_1_until_the_page_defines_0() -> None:
    a, b = floats(5.5, -5.5), floats(2, 2)
    assert is_refused("Mod", 10, a, b)
    assert is_refused("Mod", 13, a, b)
    assert result("Mod", 28, a, b) == [1.5, 0.5]


def test_remainders_of_64_bits_are_exact() -> None:
    a, b = ints(2**62 + 1, dtype=np.int64), ints(2**53, dtype=np.int64)
    assert result("Mod", 10, a, b, fmod=1) == [1]


def test_powers_of_int64_are_exact() -> None:
    assert result("Pow", 15, ints(3, dtype=np.int64), ints(39, dtype=np.int64)) == [3**39]


def test_the_exponent_has_its_own_type_since_pow_12() -> None:
    assert is_refused("Pow", 7, floats(2), ints(3))
    assert result("Pow", 12, floats(2), ints(3)) == [8]


def test_nan_wins_in_min_and_max() -> None:
    assert np.isnan(result("Min", 13, floats(np.nan, 1), floats(1, np.nan))).all()
    assert np.isnan(result("Max", 13, floats(np.nan, 1), floats(1, np.nan))).all()


def test_version_6_has_no_broadcasting() -> None:
    assert is_refused("Sum", 6, np.ones((2, 3), np.float32), floats(1, 2, 3))
    assert result("Sum", 8, np.ones((1, 3), np.float32), floats(1, 2, 3)) == [[2, 3, 4]]


def test_a_shift_by_the_width_leaves_the_sign() -> None:
    x, by = ints(-5, 5, 5, dtype=np.int8), ints(8, 8, -1, dtype=np.int8)
    assert result("BitShift", 28, x, by, direction="RIGHT") == [-1, 0, 0]
    assert result("BitShift", 28, x, by, direction="LEFT") == [0, 0, 0]


def test_a_shift_needs_its_direction() -> None:
    assert is_refused("BitShift", 11, ints(1, dtype=np.uint8), ints(1, dtype=np.uint8))


def test_clip_takes_max_where_min_is_beyond_it_and_keeps_nan() -> None:
    four, three = np.float32(4).reshape(()), np.float32(3).reshape(())
    assert result("Clip", 13, floats(0, 3.5, 9), four, three) == [3, 3, 3]
    assert np.isnan(result("Clip", 13, floats(np.nan), three, four)).all()


def test_clip_has_the_ends_of_the_type_for_defaults() -> None:
    values = np.array([np.inf, -np.inf], np.float16)
    assert result("Clip", 13, values) == [65504, -65504]


def test_clip_6_has_attributes() -> None:
    assert result("Clip", 6, floats(-1, 0.5, 9), min=0.0, max=1.0) == [0, 0.5, 1]


def test_everything_but_zero_is_true() -> None:
    assert result("Cast", 13, floats(0.25, -0.0, np.nan, 256), to=9) == [True, False, True, True]


def test_integers_lose_their_higher_bits() -> None:
    assert result("Cast", 13, ints(200, -129, dtype=np.int16), to=3) == [-56, 127]


def test_a_cast_beyond_float16_is_infinity() -> None:
    assert result("Cast", 13, floats(70000, -70000), to=10) == [np.inf, -np.inf]


def test_a_cast_needs_a_type() -> None:
    assert is_refused("Cast", 13, floats(1), to=0)


def test_cast_like_takes_the_type_of_its_second_input() -> None:
    assert result("CastLike", 15, floats(1.5, -1.5), ints(0)) == [1, -1]


def test_the_output_of_a_cast_case_has_the_type_of_the_attribute() -> None:
    built = suite.case_by_id("Cast-13/float32-int8/fractions[runtime]").build()
    assert dict(built.types) == {"T1": "float32", "T2": "int8"}
    assert isinstance(built.truth, Outputs)
    assert built.truth.outputs[0].value.dtype == np.int8


def test_broadcasting_is_a_stride_of_0_in_four_dimensions() -> None:
    found = lowering("Add", 14, np.ones((3, 1), np.float32), floats(1, 2))
    assert found is not None
    desc = found.description
    assert isinstance(desc, dml.ElementWiseAdd)
    assert (desc.a_tensor.sizes, desc.a_tensor.strides) == ((1, 1, 3, 2), (3, 3, 1, 0))
    assert (desc.b_tensor.sizes, desc.b_tensor.strides) == ((1, 1, 3, 2), (2, 2, 0, 1))
    assert (desc.output_tensor.sizes, desc.output_tensor.strides) == ((1, 1, 3, 2), None)
    assert [feed.shape for feed in found.feeds if feed is not None] == [(1, 1, 3, 2)] * 2


@pytest.mark.parametrize(
    ("values", "attributes", "expected"),
    [
        ((floats(1), floats(1)), {"fmod": 1}, dml.ElementWiseModulusTruncate),
        ((ints(1), ints(1)), {}, dml.ElementWiseModulusFloor),
    ],
)
def test_mod_is_truncated_or_floored(values: Any, attributes: Any, expected: type[OperatorDesc]) -> None:
    assert type(description("Mod", 13, *values, **attributes)) is expected


def test_the_absolute_value_of_unsigned_integers_is_themselves() -> None:
    assert type(description("Abs", 13, ints(1, dtype=np.uint8))) is dml.ElementWiseIdentity
    assert type(description("Abs", 13, ints(1, dtype=np.int8))) is dml.ElementWiseAbs


def test_a_comparison_gives_uint8() -> None:
    desc = description("Less", 13, floats(1), floats(2))
    assert isinstance(desc, dml.ElementWiseLogicalLessThan)
    assert desc.output_tensor.data_type is DataType.UINT8


def test_an_exponent_of_one_element_is_a_constant() -> None:
    desc = description("Pow", 15, floats(2, 3), floats(0.5))
    assert isinstance(desc, dml.ElementWiseConstantPow)
    assert desc.exponent == 0.5
    assert type(description("Pow", 15, floats(2, 3), floats(1, 2))) is dml.ElementWisePow


def test_clip_says_its_ends_in_the_type_of_the_input() -> None:
    desc = description("Clip", 13, ints(1, dtype=np.int64), np.array(2**53 + 1), None)
    assert isinstance(desc, dml.ElementWiseClip1)
    members = desc.as_dict()
    assert (members["MinMaxDataType"], members["Min"], members["Max"]) == ("INT64", 2**53 + 1, 2**63 - 1)


def test_one_input_is_an_identity_and_three_have_no_single_description() -> None:
    assert type(description("Sum", 13, floats(1))) is dml.ElementWiseIdentity
    assert type(description("Mean", 13, floats(1), floats(2))) is dml.ElementWiseMean
    assert lowering("Max", 13, floats(1), floats(2), floats(3)) is None


def test_what_has_no_elements_and_a_cast_to_bool_are_not_lowered() -> None:
    assert lowering("Add", 14, np.ones((0, 2), np.float32), floats(1)) is None
    assert lowering("Cast", 13, floats(1), to=9) is None


def test_a_fused_activation_is_a_description_of_its_own() -> None:
    desc = description("com.microsoft.dml::DmlFusedAdd", 1, floats(1), floats(2), fused_activation="LeakyRelu")
    activation = desc.as_dict()["FusedActivation"]
    assert activation["Type"] == "DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC"
    assert activation["Alpha"] == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("desc", "broken"),
    [
        (dml.ElementWiseAdd(MATRIX, TensorDesc(DataType.FLOAT32, (1, 1, 1, 3)), MATRIX), "same_sizes"),
        (dml.ElementWiseAdd(MATRIX, TensorDesc(DataType.FLOAT16, (1, 1, 2, 3)), MATRIX), "same_data_type"),
        (dml.ElementWiseLogicalEquals(MATRIX, MATRIX, MATRIX), "result_data_type"),
        (dml.ElementWiseIf(MATRIX, MATRIX, MATRIX, MATRIX), "condition_is_uint8"),
        (
            dml.ElementWiseClip1(MATRIX, MATRIX, None, DataType.INT32, np.int32(0), np.int32(1)),
            "min_max_data_type",
        ),
    ],
)
def test_a_description_that_breaks_its_page_has_no_value(desc: OperatorDesc, broken: str) -> None:
    assert [violation.constraint for violation in desc.validate(LEVEL)] == [broken]
    with pytest.raises(ConstraintViolation, match=broken):
        desc.require_defined()


def test_scale_and_bias_come_before_the_function() -> None:
    desc = dml.ElementWiseAbs(MATRIX, MATRIX, (2.0, -3.0))
    (found,) = desc.evaluate(np.arange(6, dtype=np.float32).reshape(MATRIX.sizes))
    assert found.reshape(-1).tolist() == [3, 1, 1, 3, 5, 7]
