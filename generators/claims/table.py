"""Claim tables as files: JSON, one row for each operator version, written by a person, a program or `epcheck probe`.

    {"provider": "OpenVINOExecutionProvider", "when": {"runtime": "1.24.*"},
     "operators": [{"domain": "ai.onnx", "name": "Abs", "since_version": 13, "type_constraints": {"T": ["float"]}}]}

`schema()` is the whole format as a JSON Schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from epcheck.generators.error import EpcheckError
from epcheck.generators.node import qualified_name


class TableError(EpcheckError, ValueError):
    """A claim table is not valid; the message names the file, the place and what is wrong."""


class Conditional(msgspec.Struct, omit_defaults=True):
    """What of a row is claimed only on some releases and machines.

    when: which, as in an expectation's `when`. type_constraints: those of the row that this is about; without any, the
    whole row.
    """

    when: dict[str, str | list[str]]
    type_constraints: dict[str, list[str]] = {}


class Row(msgspec.Struct, omit_defaults=True):
    """What is claimed of an operator version.

    domain: `ai.onnx` stands for the default one. type_constraints: type constraint -> ONNX element types (`float`) or
    whole types (`seq(float)`). partial: those of them of which only some nodes are claimed, by shape, attributes or
    where an input comes from: to decline one of these breaks no promise. conditional: what of them holds only with some
    releases: elsewhere to decline it breaks no promise either. note: of a person, or of who made the table.
    The others are of DirectML's table and say how a registered kernel is chosen.
    """

    domain: str
    name: str
    since_version: int
    type_constraints: dict[str, list[str]]
    partial: dict[str, list[str]] = {}
    note: str = ""
    conditional: list[Conditional] = []
    support_query: str | None = None
    support_query_rule: str | None = None
    required_cpu_inputs: list[int] = []
    kind: str = ""

    @property
    def label(self) -> str:
        """`Slice-13`, `com.microsoft::Gelu-1`."""
        return f"{qualified_name(self.name, '' if self.domain == 'ai.onnx' else self.domain)}-{self.since_version}"


class Probed(msgspec.Struct, omit_defaults=True):
    """How `epcheck probe` made a table.

    date: of the day, in UTC. target: its name. facts: what its worker reported of runtime, provider and device.
    options: the provider's. cases, placed: how many nodes were asked about, and how many were taken. packed: whether
    the nodes of several cases were in one model.
    """

    date: str
    target: str
    epcheck: str
    onnx: str
    facts: dict[str, str]
    options: dict[str, str] = {}
    cases: int = 0
    placed: int = 0
    packed: bool = False


class Table(msgspec.Struct, omit_defaults=True):
    """The claims of one provider.

    when: on which releases and machines the table holds, as in an expectation's `when`; elsewhere it is not used.
    documentation: addresses of the provider's own pages that a person compared the table with. review: what came of
    that comparison.
    """

    operators: list[Row]
    provider: str = ""
    about: str = ""
    when: dict[str, str | list[str]] = {}
    documentation: list[str] = []
    review: str = ""
    probed: Probed | None = None


def decode_table(text: str | bytes, source: str) -> Table:
    """The table of a JSON text; `source` names it in errors. Raises TableError."""
    try:
        table = msgspec.json.decode(text, type=Table)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TableError(f"claim table '{source}' is not valid: {error}; `epcheck probe` writes one") from None
    seen: set[tuple[str, str, int]] = set()
    for row in table.operators:
        key = row.domain, row.name, row.since_version
        if key in seen:
            raise TableError(f"claim table '{source}' has {row.label} twice; leave one row")
        seen.add(key)
        _check_part(row, row.partial, "in part", source)
        for conditional in row.conditional:
            _check_part(row, conditional.type_constraints, "on a condition", source)
    return table


def _check_part(row: Row, part: Mapping[str, list[str]], how: str, source: str) -> None:
    for constraint, dtypes in part.items():
        if extra := set(dtypes) - set(row.type_constraints.get(constraint, ())):
            raise TableError(
                f"claim table '{source}': {row.label} is claimed {how} for {constraint} = {min(extra)}, which "
                f"is not among its type_constraints"
            )


def encode_table(table: Table) -> str:
    """The JSON text of a table: one line for each operator version, so that a change of one shows as one."""
    fields = msgspec.to_builtins(table)
    rows = fields.pop("operators")
    head = msgspec.json.format(msgspec.json.encode(fields), indent=1).decode()
    lines = ",\n".join(f"  {msgspec.json.encode(row).decode()}" for row in rows)
    opening = "{\n" if head == "{}" else f"{head.rstrip().removesuffix('}').rstrip()},\n"
    return f'{opening} "operators": [\n{lines}\n ]\n}}\n'


def schema() -> dict[str, Any]:
    """The format as a JSON Schema (2020-12)."""
    return msgspec.json.schema(Table)
