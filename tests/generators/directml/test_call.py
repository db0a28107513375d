"""Descriptions as DirectML's C API has them: the table, and the call that is made of it."""

import importlib
import pkgutil
from dataclasses import fields

import numpy as np
import pytest

from epcheck.generators import directml
from epcheck.generators.directml import AxisDirection, DataType, OperatorDesc, Slice1, TensorDesc, TopK1, read_header
from epcheck.generators.directml.call import CallError, bound, call, enumerations, operators, same_members, scalar
from epcheck.generators.directml.descriptions.convolution_pooling.roi import RoiPooling
from epcheck.generators.directml.descriptions.elementwise.activation import make_fused
from epcheck.generators.directml.descriptions.movement.layout import Join, Padding1, PaddingMode
from epcheck.generators.directml.descriptions.recurrent.recurrent import Gru, RecurrentNetworkDirection
from epcheck.generators.directml.feature_level import operator_record


def descriptions() -> list[type[OperatorDesc]]:
    """Every class that describes an operator."""
    for module in pkgutil.iter_modules(directml.__path__):
        importlib.import_module(f"{directml.__name__}.{module.name}")
    found, waiting = [], [OperatorDesc]
    while waiting:
        for cls in waiting.pop().__subclasses__():
            waiting.append(cls)
            if getattr(cls, "NAME", ""):
                found.append(cls)
    return sorted(set(found), key=lambda cls: (cls.NAME, cls.__qualname__))


@pytest.mark.parametrize("desc", descriptions(), ids=lambda desc: desc.__name__)
def test_a_description_has_the_members_of_its_struct_in_order(desc: type[OperatorDesc]) -> None:
    names = [field.name for field in fields(desc)]
    members = operators()[desc.NAME].members
    assert same_members(names, members), f"{names} are not {[member.name for member in members]}"


def test_the_table_has_every_operator_of_the_feature_levels_with_the_same_tensors() -> None:
    different = {}
    for name, operator in operators().items():
        try:
            support = operator_record(name).get("support_by_level")
        except LookupError:
            continue
        if isinstance(support, dict) and isinstance(rows := list(support.values())[-1], list):
            bindings = ("input", "inputs", "output", "outputs")
            tensors = {member.name for member in operator.members if member.kind in bindings}
            if tensors != {row["tensor"] for row in rows}:
                different[name] = (tensors, {row["tensor"] for row in rows})
    assert different == {}
    assert len(operators()) == 177


def test_the_numbers_of_operators_are_dense_from_1() -> None:
    assert sorted(operator.number for operator in operators().values()) == list(range(1, 178))


def test_enumerations_that_descriptions_use_have_the_values_of_the_header() -> None:
    assert enumerations()["DML_AXIS_DIRECTION"] == {"INCREASING": 0, "DECREASING": 1}
    assert enumerations()["DML_TENSOR_DATA_TYPE"] == {"UNKNOWN": 0} | {
        data_type.name: data_type.value for data_type in DataType
    }
    assert enumerations()["DML_EXECUTION_FLAGS"]["DISABLE_META_COMMANDS"] == 2


def test_a_call_has_the_members_with_their_kinds_and_numbers_its_tensors() -> None:
    source, target = TensorDesc(DataType.FLOAT32, (6,)), TensorDesc(DataType.FLOAT32, (2,))
    assert call(Slice1(source, target, (1,), (4,), (-2,))) == {
        "type": 111,
        "members": [["input", 0], ["output", 0], ["uint", 1], ["uints", [1]], ["uints", [4]], ["ints", [-2]]],
    }


def test_outputs_are_numbered_for_themselves_and_an_enumeration_is_a_uint() -> None:
    row, index = TensorDesc(DataType.FLOAT16, (1, 1, 1, 4)), TensorDesc(DataType.UINT64, (1, 1, 1, 4))
    made = call(TopK1(row, row, index, 3, 4, AxisDirection.DECREASING))
    assert made["members"] == [["input", 0], ["output", 0], ["output", 1], ["uint", 3], ["uint", 4], ["uint", 1]]


def test_an_array_of_tensors_is_a_list_of_numbers() -> None:
    part, whole = TensorDesc(DataType.INT8, (1, 2)), TensorDesc(DataType.INT8, (2, 2))
    desc = Join((part, part), whole, 0)
    assert call(desc)["members"] == [["uint", 2], ["inputs", [0, 1]], ["output", 0], ["uint", 0]]
    assert bound(desc) == ((part, part), (whole,))


def test_nested_operators_are_calls_without_tensors_and_left_out_tensors_are_null() -> None:
    tensor = TensorDesc(DataType.FLOAT32, (1, 1, 1, 1))
    weights = TensorDesc(DataType.FLOAT32, (1, 1, 3, 1))
    desc = Gru(tensor, weights, weights, None, None, None, tensor, None, (make_fused("Sigmoid"), make_fused("Tanh")),
               RecurrentNetworkDirection.FORWARD, True)  # fmt: skip
    members = call(desc)["members"]
    assert members[3:8] == [["input", None]] * 3 + [["output", 0], ["output", None]]
    sigmoid, tanh = members[9][1]
    assert (sigmoid["type"], sigmoid["members"]) == (47, [["input", None], ["output", None]])
    assert tanh["type"] == 51
    assert bound(desc) == ((tensor, weights, weights, None, None, None), (tensor, None))


def test_a_scalar_is_eight_bytes_of_the_type_in_the_member_before_it() -> None:
    tensor = TensorDesc(DataType.FLOAT16, (1,))
    desc = Padding1(
        tensor, TensorDesc(DataType.FLOAT16, (2,)), PaddingMode.CONSTANT, DataType.FLOAT16, "1.5", (0,), (1,)
    )
    assert call(desc)["members"][4] == ["scalar", "003e000000000000"]
    assert scalar("-1", DataType.INT32) == b"\xff\xff\xff\xff\0\0\0\0"
    assert scalar(np.float64(2), DataType.FLOAT64) == np.float64(2).tobytes()


def test_a_size_2d_stands_in_the_struct_itself() -> None:
    image, region = TensorDesc(DataType.FLOAT32, (1, 1, 4, 4)), TensorDesc(DataType.FLOAT32, (1, 1, 1, 5))
    desc = RoiPooling(image, region, TensorDesc(DataType.FLOAT32, (1, 1, 2, 3)), 1.0, (3, 2))
    assert call(desc)["members"][3:] == [["float", 1.0], ["size_2d", [3, 2]]]


def test_an_integer_beyond_its_c_type_has_no_call() -> None:
    tensor = TensorDesc(DataType.FLOAT32, (1,))
    with pytest.raises(CallError, match=r"DML_SLICE1_OPERATOR_DESC: .* is no uints"):
        call(Slice1(tensor, tensor, (-1,), (1,), (1,)))


HEADER = """
#if DML_TARGET_VERSION >= 0x2000
enum DML_OPERATOR_TYPE {
    DML_OPERATOR_INVALID, DML_OPERATOR_A, DML_OPERATOR_B = 7, DML_OPERATOR_ALIAS = DML_OPERATOR_A
};
enum DML_MODE { DML_MODE_ONE, /* of two */ DML_MODE_TWO = 0x10, };
#endif
struct DML_A_OPERATOR_DESC {
    const DML_TENSOR_DESC* InputTensor; // read
    _Maybenull_ const DML_TENSOR_DESC* OutputScaleTensor;
    const DML_TENSOR_DESC* OutputTensor;
    DML_MODE Mode;
    UINT Count;
    _Field_size_(Count) const FLOAT* Values;
    _Maybenull_ const DML_OPERATOR_DESC* FusedActivation;
};
struct DML_B_OPERATOR_DESC { const DML_TENSOR_DESC* OutputTensor; const DML_TENSOR_DESC* OutputScaleTensor; };
"""


def test_a_header_is_read_with_its_types_members_and_values() -> None:
    table = read_header.read(HEADER)
    assert table["enumerations"] == {"DML_MODE": {"ONE": 0, "TWO": 16}}
    assert table["operators"] == {
        "A": {
            "type": 1,
            "members": [
                ("InputTensor", "input"), ("OutputScaleTensor", "input"), ("OutputTensor", "output"),
                ("Mode", "DML_MODE"), ("Count", "uint"), ("Values", "floats"), ("FusedActivation", "operator"),
            ],
        },
        "B": {"type": 7, "members": [("OutputTensor", "output"), ("OutputScaleTensor", "output")]},
    }  # fmt: skip


def test_a_member_of_an_unknown_type_is_named() -> None:
    with pytest.raises(ValueError, match="DML_A_OPERATOR_DESC: Odd has the type WCHAR"):
        read_header.read("enum DML_OPERATOR_TYPE { DML_OPERATOR_A = 1 }; struct DML_A_OPERATOR_DESC { WCHAR Odd; };")
