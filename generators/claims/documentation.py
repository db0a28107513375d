"""ONNX Runtime's own documentation of its kernels, docs/OperatorKernels.md, as rows of a claim table.

The page has a section for each execution provider and in it a table for each domain: operator, parameters, opset
versions (`13+`, `[7, 12]`, `10`), types by constraint. A row without an operator belongs to the one above.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from epcheck.generators.error import EpcheckError
from epcheck.generators.node import qualified_name

SOURCE = "https://raw.githubusercontent.com/microsoft/onnxruntime/main/docs/OperatorKernels.md"

Constraints = Mapping[str, list[str]]
"""Type constraint -> ONNX element types (`float`) or whole types (`seq(tensor(float))`), sorted."""


class DocumentationError(EpcheckError, ValueError):
    """The text is not the page; the message says what is missing."""


@dataclass(frozen=True)
class Refreshed:
    """A claim table after a look at the page. added, changed, undocumented: `Operator-version`, in the page's order.

    undocumented: rows of the table that the page does not have; they stay, since it leaves out what is not public.
    """

    table: dict[str, Any]
    added: tuple[str, ...]
    changed: tuple[str, ...]
    undocumented: tuple[str, ...]


def parse(text: str, provider: str) -> dict[tuple[str, str, int], Constraints]:
    """(domain, operator, since_version) -> its constraints, in the page's order; the domain of ai.onnx is 'ai.onnx'.

    Raises DocumentationError when the page has no section of the provider, or nothing in it.
    """
    heading = f"## Operators implemented by {provider}"
    _, found, section = text.partition(heading)
    if not found:
        raise DocumentationError(f"the page has no section '{heading}'; give ONNX Runtime's docs/OperatorKernels.md")
    rows = dict(_rows(section.partition("\n## ")[0]))
    if not rows:
        raise DocumentationError(f"the section '{heading}' has no operators")
    return rows


def refresh_table(table: Mapping[str, Any], rows: Mapping[tuple[str, str, int], Constraints]) -> Refreshed:
    """The table with the page's dtypes; whatever else it knows of an operator stays."""
    known = {(row["domain"], row["name"], row["since_version"]): row for row in table["operators"]}
    added, changed = [], []
    for key, constraints in rows.items():
        row = known.get(key)
        if row is None:
            domain, name, since_version = key
            known[key] = {"domain": domain, "name": name, "since_version": since_version}
            added.append(_name(key))
        elif row["type_constraints"] != constraints:
            changed.append(_name(key))
        known[key] = {**known[key], "type_constraints": dict(constraints)}
        if conditional := known[key].get("conditional"):
            known[key]["conditional"] = [kept for part in conditional if (kept := _still_claimed(part, constraints))]
    operators = sorted(known.values(), key=lambda row: (row["domain"], row["name"], -row["since_version"]))
    missing = tuple(_name(key) for key in known if key not in rows)
    return Refreshed({**table, "operators": operators}, tuple(added), tuple(changed), missing)


def _still_claimed(part: Mapping[str, Any], constraints: Constraints) -> dict[str, Any]:
    """What a row claims on a condition, without the dtypes that the page has no longer; empty when none is left."""
    types = part.get("type_constraints", {})
    left = {name: [dtype for dtype in types[name] if dtype in constraints.get(name, ())] for name in types}
    left = {name: dtypes for name, dtypes in left.items() if dtypes}
    return {**part, "type_constraints": left} if left else {} if types else dict(part)


def _rows(section: str) -> Iterator[tuple[tuple[str, str, int], Constraints]]:
    domain, operator = "", ""
    for line in section.splitlines():
        if named := re.search(r"\*\*Operator Domain:\*\* \*([\w.]+)\*", line):
            domain = named[1]
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if line.startswith("||"):
            cells = ["", *line.strip()[1:-1].split("|")[1:]]
        if len(cells) != 4 or not (version := re.match(r"\[?(\d+)", cells[2])):
            continue
        operator = cells[0] or operator
        yield (domain, operator, int(version[1])), _constraints(cells[3])


def _constraints(cell: str) -> Constraints:
    found = {}
    for part in re.split(r"<br\s*/?>", cell):
        name, equals, types = part.partition("=")
        if equals:
            listed = re.findall(r"[\w]+\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", types)
            found[name.strip().strip("*")] = sorted({_element(listed_type) for listed_type in listed})
    return found


def _element(type_string: str) -> str:
    """`tensor(float)` -> `float`; `seq(tensor(float))` -> `seq(float)`; other types as they are."""
    if plain := re.fullmatch(r"tensor\((\w+)\)", type_string):
        return plain[1]
    sequence = re.fullmatch(r"seq\(tensor\((\w+)\)\)", type_string)
    return f"seq({sequence[1]})" if sequence else type_string


def _name(key: tuple[str, str, int]) -> str:
    domain, name, since_version = key
    return f"{qualified_name(name, '' if domain == 'ai.onnx' else domain)}-{since_version}"
