"""What a device says it supports (IDMLDevice::CheckFeatureSupport) beside what is documented of its DirectML.

A worker of a direct target tells it among its facts; whoever has the facts, a run or a report, can compare.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from epcheck.generators.directml.feature_level import FeatureLevel, level_of_release
from epcheck.generators.directml.tensor import DataType

LEVEL, DATA_TYPES, RELEASE = "feature_level", "tensor_data_types", "DirectML.dll"
"""Facts of a direct target."""

FOUR_BITS = (DataType.UINT4, DataType.INT4)
"""They came with DML_QUANTIZE_OPERATOR_DESC and DML_DEQUANTIZE_OPERATOR_DESC, which take them, in level 6_3."""


@dataclass(frozen=True)
class Claims:
    """What a device claims, what is documented, and every difference in words.

    release: of DirectML.dll. documented_level: empty, and documented_data_types too, where the release is not in the
    documented list of releases.
    """

    release: str
    level: str
    documented_level: str
    data_types: tuple[str, ...]
    documented_data_types: tuple[str, ...]
    differences: tuple[str, ...]


def claims(facts: Mapping[str, str]) -> Claims | None:
    """The claims among a target's facts; None where it makes none."""
    if not facts.get(LEVEL):
        return None
    release, claimed = facts.get(RELEASE, ""), facts[LEVEL]
    data_types = tuple(filter(None, facts.get(DATA_TYPES, "").split(", ")))
    level = level_of_release(release)
    if level is None:
        unknown = f"DirectML {release or 'of no known release'} is not in the documented list of releases"
        return Claims(release, claimed, "", data_types, (), (unknown,))
    documented = tuple(
        one.name for one in DataType if one not in FOUR_BITS or level >= FeatureLevel.DML_FEATURE_LEVEL_6_3
    )
    differences = [f"the device claims {claimed}; documented is {level.name}"] if claimed != level.name else []
    differences += [f"the device does not claim {name}" for name in documented if name not in data_types]
    differences += [
        f"the device claims {name}, which is not documented" for name in data_types if name not in documented
    ]
    return Claims(release, claimed, level.name, data_types, documented, tuple(differences))
