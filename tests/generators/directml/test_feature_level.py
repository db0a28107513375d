"""Feature levels and the tensor tables read from feature_levels.json."""

import json
from importlib.resources import files

import pytest

from epcheck.generators.directml import DataType, FeatureLevel, find_level, tensor_support

FACTS = json.loads(files("epcheck.generators.directml").joinpath("feature_levels.json").read_text(encoding="utf-8"))
LEVEL = FeatureLevel

SLICE1 = "DML_SLICE1_OPERATOR_DESC"
TOP_K1 = "DML_TOP_K1_OPERATOR_DESC"
CONVOLUTION = "DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC"

# The data types of the 2020 pages' tables.
EIGHT = {"FLOAT32", "FLOAT16", "INT32", "INT16", "INT8", "UINT32", "UINT16", "UINT8"}


def names(data_types: frozenset[DataType]) -> set[str]:
    return {data_type.name for data_type in data_types}


def counts(name: str, level: FeatureLevel) -> dict[str, tuple[int, int]]:
    rows = tensor_support(name, level).values()
    return {row.tensor: (row.dimension_counts[0], row.dimension_counts[-1]) for row in rows}


def test_levels_are_those_of_the_history_with_the_values_of_the_header() -> None:
    recorded = {name: int(level["DML_TARGET_VERSION"], 16) for name, level in FACTS["feature_levels"].items()}
    assert {level.name: level.value for level in FeatureLevel} == recorded


def test_levels_are_ordered() -> None:
    assert LEVEL.DML_FEATURE_LEVEL_2_1 < LEVEL.DML_FEATURE_LEVEL_3_0 < LEVEL.DML_FEATURE_LEVEL_6_4
    assert list(FeatureLevel) == sorted(FeatureLevel)


@pytest.mark.parametrize("name", [SLICE1, TOP_K1, CONVOLUTION])
def test_the_operators_were_introduced_in_2_1(name: str) -> None:
    assert find_level(name) is LEVEL.DML_FEATURE_LEVEL_2_1
    assert tensor_support(name, LEVEL.DML_FEATURE_LEVEL_2_0) == {}


def test_every_recorded_table_can_be_read_at_every_level() -> None:
    for key, record in FACTS["operators"].items():
        if key == "DML_OPERATOR_REDUCE":
            continue
        name = key.replace("DML_OPERATOR_", "DML_") + "_OPERATOR_DESC"
        for level in FeatureLevel:
            known = record["support_by_level"] is not None and level >= find_level(name)
            assert bool(tensor_support(name, level)) is known, (name, level)


def test_an_unknown_operator_is_a_lookup_error() -> None:
    with pytest.raises(LookupError, match="no DML_OPERATOR_SLICE9"):
        find_level("DML_SLICE9_OPERATOR_DESC")


def test_reduce_has_no_table_by_level_alone() -> None:
    with pytest.raises(LookupError):
        tensor_support("DML_REDUCE_OPERATOR_DESC", LEVEL.DML_FEATURE_LEVEL_5_0)


def test_slice1_tables() -> None:
    for member in ("InputTensor", "OutputTensor"):
        old, page = (
            tensor_support(SLICE1, level)[member]
            for level in (LEVEL.DML_FEATURE_LEVEL_2_1, LEVEL.DML_FEATURE_LEVEL_3_0)
        )
        assert old.dimension_counts == range(4, 6)
        assert page.dimension_counts == range(1, 9)
        assert names(old.data_types) == names(page.data_types) == EIGHT


def test_slice1_has_64_bits_from_4_1_on_which_the_2020_page_does_not_list() -> None:
    before = tensor_support(SLICE1, LEVEL.DML_FEATURE_LEVEL_4_0)["InputTensor"]
    after = tensor_support(SLICE1, LEVEL.DML_FEATURE_LEVEL_4_1)["InputTensor"]
    assert names(after.data_types) - names(before.data_types) == {"FLOAT64", "INT64", "UINT64"}
    assert after.dimension_counts == range(1, 9)


def test_top_k1_tables() -> None:
    old = tensor_support(TOP_K1, LEVEL.DML_FEATURE_LEVEL_3_0)
    page = tensor_support(TOP_K1, LEVEL.DML_FEATURE_LEVEL_3_1)
    for member in ("InputTensor", "OutputValueTensor"):
        assert old[member].dimension_counts == range(4, 5)
        assert page[member].dimension_counts == range(1, 9)
        assert names(old[member].data_types) == names(page[member].data_types) == EIGHT
    assert names(old["OutputIndexTensor"].data_types) == names(page["OutputIndexTensor"].data_types) == {"UINT32"}


def test_top_k1_has_64_bits_from_5_0_on_which_the_2020_page_does_not_list() -> None:
    before = tensor_support(TOP_K1, LEVEL.DML_FEATURE_LEVEL_4_1)
    after = tensor_support(TOP_K1, LEVEL.DML_FEATURE_LEVEL_5_0)
    assert names(after["InputTensor"].data_types) - names(before["InputTensor"].data_types) == {"INT64", "UINT64"}
    assert names(after["OutputIndexTensor"].data_types) == {"UINT32", "UINT64"}


def test_convolution_has_the_types_and_optional_tensors_of_the_2020_page_at_every_level() -> None:
    eight_bits = {"INT8", "UINT8"}
    for level in FeatureLevel:
        if level < LEVEL.DML_FEATURE_LEVEL_2_1:
            continue
        rows = tensor_support(CONVOLUTION, level)
        assert {member: names(row.data_types) for member, row in rows.items()} == {
            "InputTensor": eight_bits,
            "InputScaleTensor": {"FLOAT32"},
            "InputZeroPointTensor": eight_bits,
            "FilterTensor": eight_bits,
            "FilterScaleTensor": {"FLOAT32"},
            "FilterZeroPointTensor": eight_bits,
            "BiasTensor": {"INT32"},
            "OutputScaleTensor": {"FLOAT32"},
            "OutputZeroPointTensor": eight_bits,
            "OutputTensor": eight_bits,
        }
        assert {member for member, row in rows.items() if row.optional} == {
            "InputZeroPointTensor",
            "FilterZeroPointTensor",
            "BiasTensor",
            "OutputZeroPointTensor",
        }


def test_convolution_has_four_dimensions_everywhere_at_2_1_as_on_the_2020_page() -> None:
    assert set(counts(CONVOLUTION, LEVEL.DML_FEATURE_LEVEL_3_1).values()) == {(4, 4)}


def test_convolution_has_three_dimensions_from_4_0_on_which_the_2020_page_does_not_list() -> None:
    expected = {
        "InputTensor": (3, 4),
        "InputScaleTensor": (1, 4),
        "InputZeroPointTensor": (1, 4),
        "FilterTensor": (3, 4),
        "FilterScaleTensor": (3, 4),
        "FilterZeroPointTensor": (1, 4),
        "BiasTensor": (3, 4),
        "OutputScaleTensor": (1, 4),
        "OutputZeroPointTensor": (1, 4),
        "OutputTensor": (3, 4),
    }
    assert counts(CONVOLUTION, LEVEL.DML_FEATURE_LEVEL_5_1) == expected
    assert counts(CONVOLUTION, LEVEL.DML_FEATURE_LEVEL_5_2) == expected | {"FilterScaleTensor": (1, 4)}


def test_an_empty_cell_of_a_table_means_that_no_types_are_recorded() -> None:
    row = tensor_support("DML_FOLD_OPERATOR_DESC", LEVEL.DML_FEATURE_LEVEL_6_4)["InputTensor"]
    assert row.data_types == frozenset()
    assert row.dimension_counts == range(3, 9)
