"""Makes `api.json`, the table of DirectML's C API, from a release's header.

`python -m epcheck.generators.directml.read_header PATH/DirectML.h` writes it anew. The header is in the NuGet package
Microsoft.AI.DirectML, and in the Windows SDK; the table holds what it declares, and none of its text:

- `operators`: DML_OPERATOR_TYPE without its prefix -> `type` (its number) and `members`, [name, kind] each, in order.
- `enumerations`: DML_* -> the names of its members, without the prefix that they share -> value.

A kind is one of KINDS, or the name of an enumeration. Where a struct is declared below which feature level is in
`feature_levels.json`, which also says which tensors are optional.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

TABLE: Final = Path(__file__).with_name("api.json")

KINDS: Final = {
    "input": "const DML_TENSOR_DESC*, null where it is optional and left out; bound by BindInputs",
    "inputs": "an array of DML_TENSOR_DESC, as many as the count before it; each bound by BindInputs",
    "output": "const DML_TENSOR_DESC*, bound by BindOutputs",
    "outputs": "an array of DML_TENSOR_DESC, bound by BindOutputs",
    "uint": "UINT",
    "uint64": "UINT64",
    "int": "INT",
    "float": "FLOAT",
    "bool": "BOOL",
    "uints": "const UINT*, an array",
    "ints": "const INT*, an array",
    "floats": "const FLOAT*, an array",
    "scalar": "DML_SCALAR_UNION, of the data type in the member DataType before it",
    "size_2d": "DML_SIZE_2D: width, height",
    "scale_bias": "const DML_SCALE_BIAS*, or null",
    "operator": "const DML_OPERATOR_DESC*, an activation without tensors, or null",
    "operators": "an array of DML_OPERATOR_DESC",
}
"""Kind of a member -> its C type."""

_PLAIN: Final = {
    "UINT": "uint", "UINT64": "uint64", "INT": "int", "FLOAT": "float", "BOOL": "bool", "DML_SCALAR_UNION": "scalar",
    "DML_SIZE_2D": "size_2d",
    "UINT*": "uints", "INT*": "ints", "FLOAT*": "floats", "DML_SCALE_BIAS*": "scale_bias",
}  # fmt: skip
_QUANTISATION_OF_THE_OUTPUT: Final = ("OutputScaleTensor", "OutputZeroPointTensor")
_STRUCT = re.compile(r"struct\s+DML_(\w+)_OPERATOR_DESC\s*\{([^}]*)\}")
_ENUM = re.compile(r"enum\s+(DML_\w+)\s*\{([^}]*)\}")
_NOISE = re.compile(
    r"//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*|\b_\w+_\b(\([^()]*(\([^()]*\))?[^()]*\))?|\bconst\b", re.S | re.M
)


def read(header: str) -> dict[str, Any]:
    """The table of a header. Raises ValueError where it declares a member of a type that the table has no kind for."""
    text = _NOISE.sub(" ", header)
    enumerations = {name: dict(_values(name, body)) for name, body in _ENUM.findall(text)}
    types = enumerations.pop("DML_OPERATOR_TYPE")
    structs = {name: list(_members(name, body, enumerations)) for name, body in _STRUCT.findall(text)}
    operators = {
        name: {"type": number, "members": structs[name]}
        for name, number in sorted(types.items(), key=lambda item: item[1])
        if name in structs
    }
    return {"operators": operators, "enumerations": enumerations}


def _values(enum: str, body: str) -> Iterator[tuple[str, int]]:
    """The members of an enumeration, numbered as C numbers them; one may be another's name (SCATTER_ELEMENTS)."""
    following, numbers = 0, dict[str, int]()
    names = [entry.strip() for entry in body.split(",") if entry.strip()]
    prefix = "DML_OPERATOR_" if enum == "DML_OPERATOR_TYPE" else f"{enum.removesuffix('S')}_"
    for entry in names:
        name, _, value = (part.strip() for part in entry.partition("="))
        number = numbers[value] if value in numbers else int(value, 0) if value else following
        following, numbers[name] = number + 1, number
        yield name.removeprefix(f"{enum}_").removeprefix(prefix), number


def _members(struct: str, body: str, enumerations: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(name, kind) of each member.

    The quantisation of an output is an input where it stands before the output, and a result where it stands after.
    """
    seen: list[str] = []
    for declaration in filter(None, (" ".join(part.split()) for part in body.split(";"))):
        c_type, _, name = declaration.replace(" *", "*").replace("*", "* ").rpartition(" ")
        c_type = c_type.replace(" ", "")
        many = name.endswith(("Tensors", "Descs"))
        if c_type == "DML_TENSOR_DESC*":
            is_read = name in _QUANTISATION_OF_THE_OUTPUT and "OutputTensor" not in seen
            kind = ("output" if name.startswith("Output") and not is_read else "input") + ("s" if many else "")
        elif c_type == "DML_OPERATOR_DESC*":
            kind = "operators" if many else "operator"
        elif c_type in enumerations:
            kind = c_type
        elif c_type in _PLAIN:
            kind = _PLAIN[c_type]
        else:
            raise ValueError(f"DML_{struct}_OPERATOR_DESC: {name} has the type {c_type}, for which there is no kind")
        seen.append(name)
        yield name, kind


def write_table(table: Mapping[str, Any]) -> str:
    """The table as JSON, one operator or enumeration a line."""
    parts = []
    for part, entries in table.items():
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items())
        parts.append(f' "{part}": {{\n{lines}\n }}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    TABLE.write_text(write_table(read(Path(sys.argv[1]).read_text(encoding="utf-8-sig"))), encoding="utf-8")
