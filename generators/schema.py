"""What the schema of an operator says: its versions, the dtypes of its type constraints, the opset to stamp.

Schemas are those of `onnx.defs`, and of `runtime_schemas.json` for what ONNX Runtime defines beyond ONNX.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import onnx.defs
import onnx.helper
from onnx.defs import OpSchema

NUMPY_NAMES = {
    "float": "float32",
    "double": "float64",
    **{name: name for name in ("float16", "bool", *(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)))},
}
"""ONNX element type -> numpy dtype name, for the types that numpy itself can hold."""

OLDEST_OPSET = 7
"""The oldest opset that ONNX Runtime guarantees to read (its compatibility page)."""


@cache
def _history(domain: str) -> dict[str, dict[int, OpSchema]]:
    versions: dict[str, dict[int, OpSchema]] = {}
    for schema in (*_runtime_schemas(), *onnx.defs.get_all_schemas_with_history()):
        if schema.domain == domain and not schema.deprecated:
            versions.setdefault(schema.name, {})[schema.since_version] = schema
    return versions


@cache
def _runtime_schemas() -> tuple[OpSchema, ...]:
    """The schemas that the onnx package does not have."""
    table = json.loads((files(__package__) / "runtime_schemas.json").read_text(encoding="utf-8"))
    return tuple(map(_runtime_schema, table["schemas"]))


def _runtime_schema(row: Mapping[str, Any]) -> OpSchema:
    return OpSchema(
        row["name"],
        row["domain"],
        row["since_version"],
        inputs=[_formal(*formal) for formal in row["inputs"]],
        outputs=[_formal(*formal) for formal in row["outputs"]],
        type_constraints=[(name, types, "") for name, types in row["type_constraints"].items()],
        attributes=[_attribute(name, *attribute) for name, attribute in row["attributes"].items()],
    )


def _attribute(name: str, kind: str, required: bool, default: Any = None) -> OpSchema.Attribute:
    if default is None:
        return OpSchema.Attribute(name, getattr(OpSchema.AttrType, kind), required=required)
    return OpSchema.Attribute(
        name, onnx.helper.make_attribute(name, default, attr_type=getattr(onnx.AttributeProto, kind))
    )


def _formal(name: str, type_string: str, option: str, homogeneous: str = "homogeneous") -> OpSchema.FormalParameter:
    return OpSchema.FormalParameter(
        name,
        type_string,
        param_option=getattr(OpSchema.FormalParameterOption, option.capitalize()),
        is_homogeneous=homogeneous == "homogeneous",
    )


def schema(operator: str, since_version: int, domain: str = "") -> OpSchema:
    """The schema of exactly that revision; KeyError when there is none."""
    return _history(domain)[operator][since_version]


@cache
def input_names(operator: str, since_version: int, domain: str = "") -> tuple[str, ...]:
    """The formal inputs of that revision; KeyError when there is none."""
    return tuple(formal.name for formal in schema(operator, since_version, domain).inputs)


@cache
def attribute_names(operator: str, since_version: int, domain: str = "") -> frozenset[str]:
    """The attributes of that revision; KeyError when there is none."""
    return frozenset(schema(operator, since_version, domain).attributes)


@dataclass(frozen=True)
class Signature:
    """The types of one revision: the type string of each input and output, and the constraints they may name.

    single: constraint -> numpy dtype name, for constraints that allow one type only of those that numpy has.
    variadic: the last input, the last output stands for any number of them.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constraints: frozenset[str]
    single: Mapping[str, str]
    variadic: tuple[bool, bool]

    def inputs_of(self, count: int) -> tuple[str, ...]:
        """The type strings of a node's first `count` inputs."""
        return _repeat_last(self.inputs, self.variadic[0], count)

    def outputs_of(self, count: int) -> tuple[str, ...]:
        """The type strings of a node's first `count` outputs."""
        return _repeat_last(self.outputs, self.variadic[1], count)


def _repeat_last(types: tuple[str, ...], variadic: bool, count: int) -> tuple[str, ...]:
    return (*types, *types[-1:] * (count - len(types))) if variadic else types[:count]


@cache
def signature(operator: str, since_version: int, domain: str = "") -> Signature:
    """The signature of that revision; KeyError when there is none."""
    definition = schema(operator, since_version, domain)
    allowed = {c.type_param_str: c.allowed_type_strs for c in definition.type_constraints}
    return Signature(
        tuple(formal.type_str for formal in definition.inputs),
        tuple(formal.type_str for formal in definition.outputs),
        frozenset(allowed),
        {name: names.pop() for name, types in allowed.items() if len(names := _numpy_names(types)) == 1},
        (_is_variadic(definition.inputs), _is_variadic(definition.outputs)),
    )


@cache
def default_attributes(operator: str, since_version: int, domain: str = "") -> Mapping[str, Any]:
    """Attribute -> the value that a node without it has: an int, a float, a str, or a list of them. Empty for an
    operator without a schema."""
    if not has(operator, since_version, domain):
        return {}
    attributes = schema(operator, since_version, domain).attributes
    values = {name: onnx.helper.get_attribute_value(a.default_value) for name, a in attributes.items() if _is_set(a)}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in values.items()}


def _is_set(attribute: OpSchema.Attribute) -> bool:
    kind = attribute.default_value.type
    plain = (onnx.AttributeProto.INT, onnx.AttributeProto.FLOAT, onnx.AttributeProto.STRING, onnx.AttributeProto.INTS)
    return kind in plain


def _is_variadic(formals: Sequence[OpSchema.FormalParameter]) -> bool:
    return bool(formals) and formals[-1].option == OpSchema.FormalParameterOption.Variadic


@cache
def dtype_name(dtype: np.dtype[Any]) -> str:
    """`dtype.name`, which numpy works out anew each time."""
    return dtype.name


def is_in_onnx(operator: str, since_version: int, domain: str = "") -> bool:
    """Whether the onnx package itself has the schema of exactly that revision."""
    versions = _history(domain).get(operator, {})
    return since_version in versions and versions[since_version] not in _runtime_schemas()


def knows(operator: str, domain: str = "") -> bool:
    """Whether there is a schema of the operator, of whatever revision."""
    return operator in _history(domain)


def has(operator: str, since_version: int, domain: str = "") -> bool:
    """Whether some opset that runtimes read resolves the operator to this revision."""
    return operator in _history(domain) and since_version in since_versions(operator, domain)


@cache
def has_bodies(operator: str, domain: str = "") -> bool:
    """Whether an attribute of the operator is a graph, as the branches of If are; False of one that nobody knows."""
    graphs = (OpSchema.AttrType.GRAPH, OpSchema.AttrType.GRAPHS)
    versions = _history(domain).get(operator, {}).values()
    return any(attribute.type in graphs for version in versions for attribute in version.attributes.values())


def allows(operator: str, since_version: int, dtype: str, domain: str = "") -> bool:
    """Whether some input or output of that revision may have the dtype, or a sequence or an optional of it.

    dtype: a numpy name, the name of an ONNX element type, or a whole type such as `seq(float32)`.
    """
    definition = schema(operator, since_version, domain)
    allowed = {name for constraint in definition.type_constraints for name in constraint.allowed_type_strs}
    allowed |= {formal.type_str for formal in (*definition.inputs, *definition.outputs)}
    spelled = {numpy_name: onnx_name for onnx_name, numpy_name in NUMPY_NAMES.items()}
    element = re.search(r"\w+(?=\)*$)", dtype)
    assert element is not None
    name = spelled.get(element[0], element[0])
    whole = dtype[: element.start()] + (name if "tensor(" in dtype else f"tensor({name})") + dtype[element.end() :]
    return whole in allowed


@cache
def since_versions(operator: str, domain: str = "") -> tuple[int, ...]:
    """Every revision of the operator to which an opset that runtimes read resolves, oldest first.

    KeyError when nobody knows the operator.
    """
    known = sorted(_history(domain)[operator])
    ends = [later - 1 for later in known[1:]] + [sys.maxsize]
    return tuple(version for version, end in zip(known, ends, strict=True) if domain or end >= OLDEST_OPSET)


@cache
def dtypes(operator: str, since_version: int, constraint: str, domain: str = "") -> tuple[str, ...]:
    """The numpy dtype names that a type constraint allows, sorted with float32 first where it is allowed.

    Of a constraint that allows no tensor, only sequences or optionals, those of the tensors in them. The type of an
    input that is always the same, such as `tensor(float)`, stands for itself.
    """
    if fixed := element_name(constraint):
        return (fixed,)
    (allowed,) = (
        c.allowed_type_strs
        for c in schema(operator, since_version, domain).type_constraints
        if c.type_param_str == constraint
    )
    names = _numpy_names(allowed) or _numpy_names(map(_innermost, allowed))
    return tuple(sorted(names, key=lambda name: (name != "float32", name)))


def _numpy_names(types: Iterable[str]) -> set[str]:
    return {element_name(name) for name in types} - {""}


def element_name(tensor_type: str) -> str:
    """`tensor(float)` -> `float32`; an empty string for what numpy cannot hold."""
    match = re.fullmatch(r"tensor\((\w+)\)", tensor_type)
    return NUMPY_NAMES.get(match[1], "") if match else ""


def _innermost(type_string: str) -> str:
    """`optional(seq(tensor(float)))` -> `tensor(float)`."""
    match = re.search(r"tensor\(\w+\)", type_string)
    return match[0] if match else ""


def opset_for(since_version: int, domain: str = "") -> int:
    """The opset that makes a runtime resolve an operator to this revision of it: the oldest such one from 7 on."""
    return since_version if domain else max(since_version, OLDEST_OPSET)
