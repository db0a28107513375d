"""A description as a call of DirectML: what `CreateOperator` is given, in types that JSON has.

Everything that knows C comes from `api.json` (see `read_header`), so that no operator has code of its own. A call is

    {"type": DML_OPERATOR_TYPE, "members": [[kind, value], ...]}

with the members in the struct's order. A value is a tensor's number where the kind is one of a tensor, None where it is
left out; a list of them; a number; eight bytes in hexadecimal for a `scalar`; a call for a nested operator.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from epcheck.generators.directml.operator_desc import OperatorDesc
from epcheck.generators.directml.tensor import DataType, TensorDesc

INPUTS, OUTPUTS = ("input", "inputs"), ("output", "outputs")
"""Kinds of members that are bound as inputs, and as outputs."""


class Member(NamedTuple):
    """A member of a struct: its C name, and one of `read_header.KINDS` or the name of an enumeration."""

    name: str
    kind: str


@dataclass(frozen=True)
class Operator:
    """A row of the table: the number of the DML_OPERATOR_TYPE and the members of its struct, in order."""

    number: int
    members: tuple[Member, ...]


class CallError(ValueError):
    """A description that cannot be put into the C struct; the message says which member, and why."""


@cache
def operators() -> Mapping[str, Operator]:
    """DML_*_OPERATOR_DESC -> its row of the table."""
    return {
        f"DML_{name}_OPERATOR_DESC": Operator(row["type"], tuple(Member(*member) for member in row["members"]))
        for name, row in _table()["operators"].items()
    }


@cache
def enumerations() -> Mapping[str, Mapping[str, int]]:
    """DML_* -> its members, without the prefix that they share -> value."""
    found: Mapping[str, Mapping[str, int]] = _table()["enumerations"]
    return found


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(files(__package__).joinpath("api.json").read_text(encoding="utf-8"))
    return table


def bound(desc: OperatorDesc) -> tuple[tuple[TensorDesc | None, ...], tuple[TensorDesc | None, ...]]:
    """What is bound for a description: its inputs and its outputs, in the struct's order; None where one is left out.

    Raises CallError for a description that the table does not know.
    """
    found: dict[tuple[str, ...], list[TensorDesc | None]] = {INPUTS: [], OUTPUTS: []}
    for kind, value in _values(desc):
        for side, tensors in found.items():
            if kind in side:
                tensors.extend(value if isinstance(value, tuple) else (value,))
    return tuple(found[INPUTS]), tuple(found[OUTPUTS])


def bound_names(desc: OperatorDesc) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The C names of what `bound` gives; those of an array are numbered: `InputTensors[0]`. Raises CallError."""
    found: dict[tuple[str, ...], list[str]] = {INPUTS: [], OUTPUTS: []}
    for (kind, value), member in zip(_values(desc), operators()[desc.NAME].members, strict=True):
        for side, names in found.items():
            if kind in side:
                many = isinstance(value, tuple)
                names.extend([f"{member.name}[{n}]" for n in range(len(value))] if many else [member.name])
    return tuple(found[INPUTS]), tuple(found[OUTPUTS])


def call(desc: OperatorDesc) -> dict[str, Any]:
    """The call that creates the operator; its tensors are numbered, inputs and outputs each for themselves.

    Raises CallError where a member does not fit its C type.
    """
    counts = {INPUTS: 0, OUTPUTS: 0}
    members: list[list[Any]] = []
    data_type = DataType.UINT8
    for kind, value in _values(desc):
        if kind == "DML_TENSOR_DATA_TYPE":
            data_type = value
        side = next((side for side in counts if kind in side), None)
        if side is None:
            members.append(_encode_plain(desc, kind, value, data_type))
            continue
        tensors = value if isinstance(value, tuple) else (value,)
        numbers = [None if tensor is None else counts[side] + place for place, tensor in enumerate(tensors)]
        counts[side] += len(tensors)
        members.append([kind, numbers if isinstance(value, tuple) else numbers[0]])
    return {"type": operators()[desc.NAME].number, "members": members}


def _values(desc: OperatorDesc) -> Iterator[tuple[str, Any]]:
    """(kind, value) of each member. Raises CallError unless the description has the members that the table has."""
    row = operators().get(desc.NAME)
    if row is None:
        raise CallError(f"{desc.NAME} is not in api.json")
    names = [field.name for field in fields(desc)]
    if not same_members(names, row.members):
        raise CallError(f"{desc.NAME} has the members {', '.join(names)}; its struct has others")
    for name, member in zip(names, row.members, strict=True):
        yield member.kind, getattr(desc, name)


def same_members(names: Sequence[str], members: Sequence[Member]) -> bool:
    """Whether fields in snake_case are the members of a struct, in order: `roi_tensor` is ROITensor."""
    return [name.replace("_", "") for name in names] == [member.name.lower() for member in members]


def _encode_plain(desc: OperatorDesc, kind: str, value: Any, data_type: DataType) -> list[Any]:
    """[kind, value] of a member that is no tensor of the operator's own; of an enumeration as the UINT that it is."""
    try:
        match kind:
            case "scalar":
                return [kind, scalar(value, data_type).hex()]
            case "operator" | "operators" | "scale_bias" if value is None:
                return [kind, None]
            case "operator":
                return [kind, call(value)]
            case "operators":
                return [kind, [call(item) for item in value]]
            case "bool":
                return [kind, int(value)]
            case "float" | "uint" | "uint64" | "int":
                return [kind, _number(kind, value)]
            case "floats" | "uints" | "ints" | "size_2d" | "scale_bias":
                each = {"size_2d": "uint", "scale_bias": "float"}.get(kind, kind.removesuffix("s"))
                return [kind, [_number(each, item) for item in value]]
            case _:
                return ["uint", _find_enumerator(kind, value)]
    except (TypeError, ValueError, OverflowError, struct.error) as error:
        raise CallError(f"{desc.NAME}: {value!r} is no {kind}: {error}") from error


_FORMATS = {"uint": "<I", "uint64": "<Q", "int": "<i", "float": "<f"}


def _number(kind: str, value: Any) -> int | float | str:
    """A number that fits its C type; one that JSON cannot write, as text. Raises struct.error."""
    if kind != "float":
        struct.pack(_FORMATS[kind], int(value))
        return int(value)
    with np.errstate(over="ignore"):
        single = float(np.float32(value))
    return single if np.isfinite(single) else str(single)


def _find_enumerator(enumeration: str, value: Any) -> int:
    """The value of an enumeration's member, which the table has to have under the same name."""
    if enumeration not in enumerations():
        raise ValueError(f"{enumeration} is not in api.json")
    if not isinstance(value, Enum) or enumerations()[enumeration].get(value.name) != value.value:
        raise ValueError(f"{enumeration} has no such member")
    return int(value.value)


def scalar(value: Any, data_type: DataType) -> bytes:
    """The eight bytes of a DML_SCALAR_UNION: a numpy scalar, a Python number, or one as text."""
    dtype = data_type.dtype
    if isinstance(value, str):
        value = int(value) if dtype.kind in "iu" else float(value)
    with np.errstate(over="ignore"):
        packed: bytes = np.asarray(value).astype(dtype).tobytes()
    return packed.ljust(8, b"\0")
