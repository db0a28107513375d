"""What is documented of a DirectML, put beside what its device says it supports (IDMLDevice::CheckFeatureSupport).

A worker of a direct target reports its claims among its facts. The documented ones join them, so that whoever reads a
run later has both. `reports.page.device_claims` compares them.
"""

from __future__ import annotations

from collections.abc import Mapping

from epcheck.generators.directml.feature_level import FeatureLevel, level_of_release
from epcheck.generators.directml.tensor import DataType

LEVEL, RELEASE = "feature_level", "DirectML.dll"
"""Facts of a direct target."""

FOUR_BITS = (DataType.UINT4, DataType.INT4)
"""They came with DML_QUANTIZE_OPERATOR_DESC and DML_DEQUANTIZE_OPERATOR_DESC, which take them, in level 6_3."""


def with_documented(facts: Mapping[str, str]) -> dict[str, str]:
    """The facts of a worker; where it claims a feature level, with `documented_feature_level` and
    `documented_data_types`, which are empty where its release is in no documented list."""
    if not facts.get(LEVEL):
        return dict(facts)
    level = level_of_release(facts.get(RELEASE, ""))
    data_types = [
        data_type.name
        for data_type in DataType
        if data_type not in FOUR_BITS or (level or 0) >= FeatureLevel.DML_FEATURE_LEVEL_6_3
    ]
    return {
        **facts,
        "documented_feature_level": level.name if level else "",
        "documented_data_types": ", ".join(data_types) if level else "",
    }
