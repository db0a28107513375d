"""Which operators, dimension counts and data types a DirectML feature level has.

Everything but the names of the levels is read from `feature_levels.json`, which was taken from the DirectML feature
level history and from the 'Tensor support' tables of the operators' pages. Where it differs from an older edition of
a page it is the newer one, and it is what `validate()` follows:

- DML_SLICE1_OPERATOR_DESC: the 2020 page ends at 3_0; 4_1 adds FLOAT64, INT64 and UINT64.
- DML_TOP_K1_OPERATOR_DESC: the 2020 page ends at 3_1; 5_0 adds INT64 and UINT64, for indices UINT64.
- DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC: the 2020 page has one table, four dimensions everywhere; that table
  is 2_1, while 4_0 and 5_2 admit three dimensions, and fewer for scales and zero points.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from epcheck.generators.directml.tensor import DataType


class FeatureLevel(IntEnum):
    """DML_FEATURE_LEVEL; ordered, a value is the C value (DirectML feature level history)."""

    DML_FEATURE_LEVEL_1_0 = 0x1000
    DML_FEATURE_LEVEL_2_0 = 0x2000
    DML_FEATURE_LEVEL_2_1 = 0x2100
    DML_FEATURE_LEVEL_3_0 = 0x3000
    DML_FEATURE_LEVEL_3_1 = 0x3100
    DML_FEATURE_LEVEL_4_0 = 0x4000
    DML_FEATURE_LEVEL_4_1 = 0x4100
    DML_FEATURE_LEVEL_5_0 = 0x5000
    DML_FEATURE_LEVEL_5_1 = 0x5100
    DML_FEATURE_LEVEL_5_2 = 0x5200
    DML_FEATURE_LEVEL_6_0 = 0x6000
    DML_FEATURE_LEVEL_6_1 = 0x6100
    DML_FEATURE_LEVEL_6_2 = 0x6200
    DML_FEATURE_LEVEL_6_3 = 0x6300
    DML_FEATURE_LEVEL_6_4 = 0x6400


@dataclass(frozen=True, slots=True)
class TensorSupport:
    """One row of a page's 'Tensor support' table: what one tensor of an operator may be.

    Empty `data_types` mean that the page leaves the cell empty (DML_FOLD_OPERATOR_DESC), not that no type is allowed.
    """

    tensor: str
    dimension_counts: range
    data_types: frozenset[DataType]
    optional: bool


@cache
def find_level(name: str) -> FeatureLevel:
    """The first feature level with the operator that `name`, a DML_*_OPERATOR_DESC, describes.

    Raises LookupError if there is no such operator.
    """
    return FeatureLevel[operator_record(name)["introduced_in"]]


@cache
def tensor_support(name: str, level: FeatureLevel) -> Mapping[str, TensorSupport]:
    """The table that holds at `level` for the DML_*_OPERATOR_DESC `name`, by tensor member ('InputTensor').

    Empty below the operator's introduction and for the operators whose table is not recorded. Raises LookupError if
    there is no such operator, or if its table depends on more than the level (DML_REDUCE_OPERATOR_DESC).
    """
    tables = operator_record(name)["support_by_level"] or {}
    levels = [table_level for table_level in map(FeatureLevel.__getitem__, tables) if table_level <= level]
    rows = tables[max(levels).name] if levels else []
    return MappingProxyType({row["tensor"]: support_row(row) for row in rows})


def is_documented(name: str) -> bool:
    """Whether the tensors that the DML_*_OPERATOR_DESC `name` takes are recorded; of many operators they are not."""
    try:
        return operator_record(name).get("support_by_level") is not None
    except LookupError:
        return False


def support_row(row: Mapping[str, Any]) -> TensorSupport:
    """A row of a table in `feature_levels.json`."""
    low, _, high = row["dimension_count"].partition("..")
    return TensorSupport(
        tensor=row["tensor"],
        dimension_counts=range(int(low), int(high or low) + 1),
        data_types=frozenset(DataType[name] for name in row["data_types"] if name),
        optional=row["optional"],
    )


def operator_record(name: str) -> Mapping[str, Any]:
    """What `feature_levels.json` has of the DML_*_OPERATOR_DESC `name`. Raises LookupError if there is none."""
    key = "DML_OPERATOR_" + name.removeprefix("DML_").removesuffix("_OPERATOR_DESC")
    try:
        return _facts()["operators"][key]  # type: ignore[no-any-return]
    except KeyError:
        raise LookupError(f"{name}: feature_levels.json has no {key}") from None


@cache
def level_of_release(version: str) -> FeatureLevel | None:
    """The feature level that is documented of a release of DirectML.dll, `1.15.4` or `1.15.4.0`; None of an unlisted
    one."""
    for release in _facts()["directml_versions"]:
        if version in (release["version"], f"{release['version']}.0"):
            return FeatureLevel[release["feature_level"]]
    return None


@cache
def _facts() -> dict[str, Any]:
    text = files(__package__).joinpath("feature_levels.json").read_text(encoding="utf-8")
    facts: dict[str, Any] = json.loads(text)
    return facts
