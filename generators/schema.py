"""What `onnx.defs` knows about an operator: its versions, the dtypes of its type constraints, the opset to stamp."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import onnx.defs

NUMPY_NAMES = {
    "float": "float32",
    "double": "float64",
    **{name: name for name in ("float16", "bool", *(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)))},
}
"""ONNX element type -> numpy dtype name, for the types that numpy itself can hold."""

OLDEST_OPSET = 7
"""The oldest opset that ONNX Runtime guarantees to read (its compatibility page)."""


@cache
def _history(domain: str) -> dict[str, dict[int, onnx.defs.OpSchema]]:
    versions: dict[str, dict[int, onnx.defs.OpSchema]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == domain:
            versions.setdefault(schema.name, {})[schema.since_version] = schema
    return versions


def schema(operator: str, since_version: int, domain: str = "") -> onnx.defs.OpSchema:
    """The schema of exactly that revision; KeyError when onnx does not have it."""
    return _history(domain)[operator][since_version]


@dataclass(frozen=True)
class Signature:
    """The types of one revision: the type string of each input and output, and the constraints they may name.

    single: constraint -> numpy dtype name, for constraints that allow one type only.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constraints: frozenset[str]
    single: Mapping[str, str]


@cache
def signature(operator: str, since_version: int, domain: str = "") -> Signature:
    """The signature of that revision; KeyError when onnx does not have it."""
    definition = schema(operator, since_version, domain)
    allowed = {c.type_param_str: c.allowed_type_strs for c in definition.type_constraints}
    return Signature(
        tuple(formal.type_str for formal in definition.inputs),
        tuple(formal.type_str for formal in definition.outputs),
        frozenset(allowed),
        {name: element_name(types[0]) for name, types in allowed.items() if len(types) == 1},
    )


@cache
def dtype_name(dtype: np.dtype[Any]) -> str:
    """`dtype.name`, which numpy works out anew each time."""
    return dtype.name


def since_versions(operator: str, domain: str = "") -> tuple[int, ...]:
    """Every revision of the operator, oldest first; KeyError when onnx does not know the operator."""
    return tuple(sorted(_history(domain)[operator]))


@cache
def dtypes(operator: str, since_version: int, constraint: str, domain: str = "") -> tuple[str, ...]:
    """The numpy dtype names that a type constraint allows, sorted with float32 first where it is allowed."""
    (allowed,) = (
        c.allowed_type_strs
        for c in schema(operator, since_version, domain).type_constraints
        if c.type_param_str == constraint
    )
    names = {element_name(name) for name in allowed} - {""}
    return tuple(sorted(names, key=lambda name: (name != "float32", name)))


def element_name(tensor_type: str) -> str:
    """`tensor(float)` -> `float32`; an empty string for what numpy cannot hold."""
    match = re.fullmatch(r"tensor\((\w+)\)", tensor_type)
    return NUMPY_NAMES.get(match[1], "") if match else ""


@cache
def opset_for(operator: str, since_version: int, domain: str = "") -> int:
    """The opset that makes a runtime resolve the operator to this revision: the oldest such one from 7 on."""
    successor = dict(pairwise(since_versions(operator, domain))).get(since_version)
    newest = successor - 1 if successor else since_version
    return max(since_version, min(OLDEST_OPSET, newest)) if not domain else since_version
