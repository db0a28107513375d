"""What of ai.onnx the suite leaves out: operators without a case, and element types that no case has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import onnx
from onnx import defs

from epcheck.generators import registry, suite
from epcheck.generators.families.narrow import ONNX_NAMES
from epcheck.generators.left_out import reasons
from epcheck.generators.schema import NUMPY_NAMES


@dataclass(frozen=True)
class LeftOut:
    """An operator of ai.onnx, or one that the installed onnx does not know, without a case.

    since_versions: in rising order; empty where the installed onnx has no schema.
    """

    name: str
    since_versions: tuple[int, ...]
    why: str


def operators() -> Iterator[LeftOut]:
    """Every operator of ai.onnx that the suite has no case of, by name, and what is declared for a newer onnx."""
    versions: dict[str, set[int]] = {}
    for schema in defs.get_all_schemas_with_history():
        if not schema.domain and not schema.deprecated:
            versions.setdefault(schema.name, set()).add(schema.since_version)
    covered = {operator.name for operator in registry.all_operators().values() if not operator.domain}
    for name in sorted(versions.keys() - covered):
        yield LeftOut(name, tuple(sorted(versions[name])), reasons.OPERATORS.get(name, ""))
    unknown = f"onnx {onnx.__version__} has no schema of it; a newer onnx has"
    for key in sorted(registry.unknown_operators()):
        yield LeftOut(key, (), unknown)


def element_types() -> Iterator[tuple[str, str]]:
    """Every element type that an operator of ai.onnx allows a tensor to have, and why no case has it, if none has.

    The types have ONNX's names, except that those of numpy and ml_dtypes have the names there.
    """
    allowed = {
        element[0]
        for schema in defs.get_all_schemas_with_history()
        if not schema.domain
        for constraint in schema.type_constraints
        for spelled in constraint.allowed_type_strs
        if (element := re.search(r"(?<=tensor\()\w+", spelled))
    }
    covered = suite.dtypes()
    names = {onnx_name: NUMPY_NAMES.get(onnx_name) or _NARROW.get(onnx_name, onnx_name) for onnx_name in allowed}
    for onnx_name, name in sorted(names.items(), key=lambda pair: pair[1]):
        yield name, "" if name in covered else reasons.TYPES.get(onnx_name, "")


_NARROW = {onnx_name: name for name, onnx_name in ONNX_NAMES.items()}
