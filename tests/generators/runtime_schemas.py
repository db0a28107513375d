"""The schemas of operators that the onnx package does not know: `generators/runtime_schemas.json`.

`python tests/generators/runtime_schemas.py com.microsoft::GatherBlockQuantized` adds a row for each version of an
operator, as the installed onnxruntime has it, and prints its page. Rows that are there stay as they are: a later
release may allow more than the cases cover.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import onnx
import onnx.helper
from onnxruntime.capi import onnxruntime_pybind11_state as pybind

from epcheck.generators.node import split_name

SCHEMAS = Path(__file__).parents[2] / "generators" / "runtime_schemas.json"


def list_schemas(key: str) -> list[Any]:
    """Every version of an operator that onnxruntime knows. Raises ValueError where there is none."""
    name, domain = split_name(key)
    own = [schema for schema in pybind.get_all_operator_schema() if (schema.domain, schema.name) == (domain, name)]
    if not own:
        raise ValueError(f"onnxruntime has no schema of {key}")
    return own


def make_row(schema: Any) -> dict[str, Any]:
    """What the file has of a schema."""
    return {
        "domain": schema.domain,
        "name": schema.name,
        "since_version": schema.since_version,
        "inputs": list(map(_make_formal, schema.inputs)),
        "outputs": list(map(_make_formal, schema.outputs)),
        "type_constraints": {c.type_param_str: sorted(c.allowed_type_strs) for c in schema.type_constraints},
        "attributes": {name: _make_attribute(a) for name, a in sorted(schema.attributes.items())},
    }


def _make_attribute(attribute: Any) -> list[Any]:
    """Type, whether it is required, and the default if there is one."""
    default = onnx.AttributeProto.FromString(attribute._default_value)
    stated = [] if default.type == onnx.AttributeProto.UNDEFINED else [onnx.helper.get_attribute_value(default)]
    return [attribute.type.name, attribute.required, *(v.decode() if isinstance(v, bytes) else v for v in stated)]


def _make_formal(formal: Any) -> list[str]:
    heterogeneous = ["heterogeneous"] * (not formal.isHomogeneous)
    return [formal.name, formal.typeStr, formal.option.name.lower(), *heterogeneous]


def write_rows(rows: Iterable[dict[str, Any]], path: Path = SCHEMAS) -> None:
    """Add rows of operator versions that the file does not have, in the order of domain, name and version."""
    table = json.loads(path.read_text(encoding="utf-8"))
    known = {_key(row): row for row in table["schemas"]}
    known = {**{_key(row): row for row in rows}, **known}
    lines = ",\n".join(f"  {json.dumps(known[key])}" for key in sorted(known))
    text = f'{{\n "source": {json.dumps(table["source"])},\n "schemas": [\n{lines}\n ]\n}}\n'
    path.write_text(text, encoding="utf-8", newline="\n")


def _key(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["domain"], row["name"], row["since_version"]


def list_sentences(schema: Any) -> Iterator[str]:
    """The page of an operator: what it does, then its attributes, inputs and outputs."""
    yield schema.doc or "no description"
    for attribute in schema.attributes.values():
        yield f"{attribute.name}: {attribute.description}"
    for formal in (*schema.inputs, *schema.outputs):
        yield f"{formal.name} ({formal.typeStr}): {formal.description}"


def main() -> None:
    """Add the schemas of the operators that the command line names, and print their pages."""
    schemas = [schema for key in sys.argv[1:] for schema in list_schemas(key)]
    write_rows(map(make_row, schemas))
    print("\n".join(sentence for schema in schemas for sentence in list_sentences(schema)))


if __name__ == "__main__":
    main()
