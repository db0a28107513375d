"""What every operator description has in common."""

import importlib
import inspect
import json
import pkgutil
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest

from epcheck.generators import directml
from epcheck.generators.directml import (
    AxisDirection,
    ConstraintViolation,
    DataType,
    FeatureLevel,
    OperatorDesc,
    QuantizedLinearConvolution,
    Slice1,
    TensorDesc,
    TopK1,
    Violation,
    find_level,
    tensor_support,
)
from epcheck.generators.directml.operator_desc import c_name

LEVEL = FeatureLevel.DML_FEATURE_LEVEL_5_0


def slice1(size: int = 4, **changes: object) -> Slice1:
    """The whole of one dimension."""
    tensor = TensorDesc(DataType.INT32, (size,))
    return replace(Slice1(tensor, tensor, (0,), (size,), (1,)), **changes)


def names(violations: tuple[Violation, ...]) -> list[str]:
    return [violation.constraint for violation in violations]


def descriptions(base: type[OperatorDesc] = OperatorDesc) -> Iterator[type[OperatorDesc]]:
    """Every class that describes an operator, of every module of the package."""
    for desc in base.__subclasses__():
        if vars(desc).get("NAME"):
            yield desc
        yield from descriptions(desc)


for module in pkgutil.iter_modules(directml.__path__):
    importlib.import_module(f"{directml.__name__}.{module.name}")
OPERATORS = sorted(descriptions(), key=lambda desc: (desc.NAME, desc.__name__))
UNRECORDED = {"DML_ACTIVATION_LINEAR_OPERATOR_DESC"}
"""Operators that the feature level history does not name: they are as old as DirectML."""

WITHOUT_TABLE = UNRECORDED | {"DML_REDUCE_OPERATOR_DESC"}
WITH_TABLE = [
    desc
    for desc in OPERATORS
    if desc.NAME not in WITHOUT_TABLE and tensor_support(desc.NAME, FeatureLevel.DML_FEATURE_LEVEL_6_4)
]
"""Those whose page's table is recorded; that of DML_REDUCE depends on more than the level."""


@pytest.mark.parametrize("desc", WITH_TABLE, ids=lambda desc: f"{desc.__module__.rpartition('.')[2]}.{desc.__name__}")
def test_the_tensor_members_are_those_of_the_operator_s_table(desc: type[OperatorDesc]) -> None:
    table = tensor_support(desc.NAME, FeatureLevel.DML_FEATURE_LEVEL_6_4)
    members = {c_name(f.name): "None" in str(f.type) for f in fields(desc) if "TensorDesc" in str(f.type)}
    assert list(members.items()) == [(row.tensor, row.optional) for row in table.values()]


def test_every_description_is_of_an_operator_that_a_feature_level_introduced() -> None:
    assert len({desc.NAME for desc in OPERATORS}) >= 120
    for desc in OPERATORS:
        assert desc.NAME in UNRECORDED or find_level(desc.NAME) <= FeatureLevel.DML_FEATURE_LEVEL_6_4


@pytest.mark.parametrize("desc", [QuantizedLinearConvolution, Slice1, TopK1], ids=lambda desc: desc.__name__)
def test_evaluate_takes_tensors_by_the_names_of_their_fields_in_the_struct_s_order(desc: type[OperatorDesc]) -> None:
    parameters = list(getattr(desc, "INPUTS", list(inspect.signature(desc.evaluate).parameters)[1:]))
    names = [name for name, hint in desc.__annotations__.items() if "TensorDesc" in str(hint)]
    assert parameters
    assert parameters == [name for name in names if name in parameters]


def test_a_description_is_frozen_and_hashable() -> None:
    desc = slice1()
    assert hash(desc) == hash(slice1())
    with pytest.raises(FrozenInstanceError):
        desc.input_window_offsets = (1,)  # type: ignore[misc]


def test_as_dict_has_the_c_members_in_the_struct_s_order_and_survives_json() -> None:
    desc = Slice1(
        TensorDesc(DataType.FLOAT32, (1, 1, 4, 4)),
        TensorDesc(DataType.FLOAT32, (1, 1, 2, 2), strides=(4, 4, 2, 1)),
        (0, 0, 0, 1),
        (1, 1, 4, 3),
        (1, 1, -2, 2),
    )
    members = {
        "InputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 4, 4], "Strides": None},
        "OutputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 2, 2], "Strides": [4, 4, 2, 1]},
        "DimensionCount": 4,
        "InputWindowOffsets": [0, 0, 0, 1],
        "InputWindowSizes": [1, 1, 4, 3],
        "InputWindowStrides": [1, 1, -2, 2],
    }
    assert desc.as_dict() == members
    assert list(desc.as_dict()) == list(members)
    assert json.loads(json.dumps(desc.as_dict())) == members


def test_as_dict_gives_enumerations_their_c_names() -> None:
    value, index = TensorDesc(DataType.INT8, (1,)), TensorDesc(DataType.UINT32, (1,))
    desc = TopK1(TensorDesc(DataType.INT8, (4,)), value, index, 0, 1, AxisDirection.DECREASING)
    members = desc.as_dict()
    assert list(members) == ["InputTensor", "OutputValueTensor", "OutputIndexTensor", "Axis", "K", "AxisDirection"]
    assert members["AxisDirection"] == "DML_AXIS_DIRECTION_DECREASING"
    assert members["OutputIndexTensor"] == {"DataType": "UINT32", "Sizes": [1], "Strides": None}


def test_axis_directions_have_their_c_values() -> None:
    assert (AxisDirection.INCREASING.value, AxisDirection.DECREASING.value) == (0, 1)


def test_tensors_are_given_by_their_c_names() -> None:
    desc = slice1()
    assert desc.tensors() == {"InputTensor": desc.input_tensor, "OutputTensor": desc.output_tensor}


def test_a_valid_description_has_no_violations() -> None:
    assert slice1().validate(LEVEL) == ()


def test_a_violation_names_constraint_numbers_and_page() -> None:
    (violation,) = slice1(input_window_offsets=(1,)).validate(LEVEL)
    assert violation == Violation(
        "window_within_input",
        "in dimension 0 the window of offset 1 and size 4 ends at 5; the input ends at 4",
        "ns-directml-dml_slice1_operator_desc",
    )


def test_below_its_introduction_only_the_operator_itself_is_unsupported() -> None:
    (violation,) = slice1().validate(FeatureLevel.DML_FEATURE_LEVEL_2_0)
    assert violation.constraint == "operator_not_in_feature_level"
    assert violation.message == (
        "DML_SLICE1_OPERATOR_DESC was introduced in DML_FEATURE_LEVEL_2_1; this is DML_FEATURE_LEVEL_2_0"
    )


def test_a_required_tensor_is_not_left_out() -> None:
    assert names(slice1(output_tensor=None).validate(LEVEL)) == ["tensor_required"]


def test_a_size_of_0_is_invalid_in_any_tensor() -> None:
    empty = TensorDesc(DataType.INT32, (0, 4))
    desc = TopK1(empty, empty, TensorDesc(DataType.UINT32, (0, 4)), 1, 4, AxisDirection.INCREASING)
    assert names(desc.validate(LEVEL)) == ["tensor_sizes_nonzero"] * 3 + ["k_less_than_axis_length"]
    assert desc.validate(LEVEL)[0].source == "ns-directml-dml_buffer_tensor_desc"


@pytest.mark.parametrize(
    ("sizes", "strides"),
    [
        ((2**16, 2**16), None),  # 2**32 elements
        ((2**16, 2**16), (0, 1)),  # stored as few, seen as 2**32
        ((2, 2), (2**32 - 1, 1)),  # four elements, far apart
    ],
)
def test_a_tensor_has_at_most_2_to_the_32_minus_1_elements(sizes: tuple[int, ...], strides: tuple[int, ...]) -> None:
    output = TensorDesc(DataType.INT32, (1, 1))
    desc = Slice1(TensorDesc(DataType.INT32, sizes, strides), output, (0, 0), (1, 1), (1, 1))
    assert names(desc.validate(LEVEL)) == ["tensor_element_count"]


def test_2_to_the_32_minus_1_elements_are_valid() -> None:
    output = TensorDesc(DataType.INT32, (1, 1))
    desc = Slice1(TensorDesc(DataType.INT32, (2**16 - 1, 2**16 + 1)), output, (0, 0), (1, 1), (1, 1))
    assert desc.validate(LEVEL) == ()


@pytest.mark.parametrize("stride", [-(2**31), 2**31 - 1])
def test_int_members_hold_all_of_int32(stride: int) -> None:
    desc = slice1(output_tensor=TensorDesc(DataType.INT32, (1,)), input_window_strides=(stride,))
    assert desc.validate(LEVEL) == ()
    assert desc.evaluate(np.array([5, 6, 7, 8], np.int32))[0].tolist() == [8 if stride < 0 else 5]


@pytest.mark.parametrize("stride", [-(2**31) - 1, 2**31])
def test_int_members_hold_no_more_than_int32(stride: int) -> None:
    desc = slice1(output_tensor=TensorDesc(DataType.INT32, (1,)), input_window_strides=(stride,))
    assert names(desc.validate(LEVEL)) == ["value_fits_int"]


def test_uint_members_are_not_negative() -> None:
    desc = slice1(input_window_offsets=(-1,))
    assert names(desc.validate(LEVEL)) == ["value_fits_uint"]


def test_uint_members_hold_no_more_than_uint32() -> None:
    value, index = TensorDesc(DataType.INT8, (2,)), TensorDesc(DataType.UINT32, (2,))
    desc = TopK1(TensorDesc(DataType.INT8, (4,)), value, index, 2**32, 2, AxisDirection.DECREASING)
    assert names(desc.validate(LEVEL)) == ["value_fits_uint", "axis_less_than_dimension_count"]


def test_evaluating_what_has_no_defined_result_names_the_constraints() -> None:
    with pytest.raises(ConstraintViolation, match="DML_SLICE1_OPERATOR_DESC has no defined result") as caught:
        slice1(input_window_offsets=(-1,)).evaluate(np.zeros(4, np.int32))
    assert names(caught.value.violations) == ["value_fits_uint"]
    assert caught.value.name == "DML_SLICE1_OPERATOR_DESC"


@pytest.mark.parametrize("array", [np.zeros(5, np.int32), np.zeros((1, 4), np.int32), np.zeros(4, np.uint32)])
def test_an_array_has_the_shape_and_type_of_its_tensor(array: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"InputTensor is INT32 of sizes \(4,\); got") as caught:
        slice1().evaluate(array)
    assert not isinstance(caught.value, ConstraintViolation)
