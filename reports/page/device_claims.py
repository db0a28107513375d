"""What a device claims of itself beside what is documented of its DirectML, from the facts of a run's target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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
    """The claims among a target's facts; None where it makes none, or where nothing was put beside them."""
    if not facts.get("feature_level") or "documented_feature_level" not in facts:
        return None
    release, level, documented_level = (
        facts.get(name, "") for name in ("DirectML.dll", "feature_level", "documented_feature_level")
    )
    data_types, documented = (
        tuple(filter(None, facts.get(name, "").split(", "))) for name in ("tensor_data_types", "documented_data_types")
    )
    if not documented_level:
        unknown = f"DirectML {release or 'of no known release'} is not in the documented list of releases"
        return Claims(release, level, "", data_types, (), (unknown,))
    differences = [f"the device claims {level}; documented is {documented_level}"] if level != documented_level else []
    differences += [f"the device does not claim {name}" for name in documented if name not in data_types]
    differences += [
        f"the device claims {name}, which is not documented" for name in data_types if name not in documented
    ]
    return Claims(release, level, documented_level, data_types, documented, tuple(differences))
