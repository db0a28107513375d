"""`epcheck list`: what the suite has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Annotated, Any

import typer

from epcheck.api.option import SELECT, Option
from epcheck.api.suite import listing
from epcheck.api.suite.listing import CasesOptions
from epcheck.cli.options import command
from epcheck.cli.output import AsJson
from epcheck.cli.terminal.terminal import Terminal
from epcheck.conformance.records import strict_json

app = typer.Typer(add_completion=False)


class What(StrEnum):
    """What can be listed."""

    cases = "cases"
    operators = "operators"
    dtypes = "dtypes"
    targets = "targets"
    expectations = "expectations"
    converted = "converted"


SCHEMA = 1
"""Of the document that `--json` prints; a reader refuses a newer one."""


@dataclass(frozen=True)
class ListOptions(CasesOptions):
    what: Annotated[What, Option("What to list.", argument=True)] = What.cases
    target: Annotated[
        str | None,
        Option(
            "Target whose expectations are listed. Default: the best of this machine.", flags=("--target", "-t"),
            metavar="TARGET", panel=SELECT,
        ),
    ] = None  # fmt: skip
    json: AsJson = False


@command(app, ListOptions, prints_data=True)
def show(options: ListOptions) -> None:
    """List case ids, operators with versions and case counts, dtypes, the targets of this machine, or the expectations
    of a target with their conditions. ONNX operators and types without a case are listed with the reason. `converted`
    lists onnx's node tests converted to the versions that --target claims."""
    rows = LISTS[options.what](options)
    if options.json:
        document = {"schema": SCHEMA, options.what.value: [row.fields for row in rows]}
        Terminal().print_document(strict_json.dumps(document))
    else:
        Terminal().print_lines(row.words for row in rows)


@dataclass(frozen=True)
class Row:
    """One of what is listed. words: a line. fields: for programs."""

    words: str
    fields: Mapping[str, Any]


def _cases(options: ListOptions) -> Iterator[Row]:
    for case in listing.cases(options):
        names = ("id", "operator", "domain", "since_version", "dtype", "sample", "binding", "source")
        yield Row(case.id, {name: getattr(case, name) for name in names} if options.json else {})


def _operators(options: ListOptions) -> Sequence[Row]:
    chosen = _select_cases(options)
    found, without = listing.operators(chosen), listing.left_out(chosen)
    width = max(map(len, (*(each.name for each in found), *(each.name for each in without))))
    rows = [
        Row(
            f"{each.name:{width}} {each.cases:5} cases  since_version {', '.join(map(str, each.since_versions))}",
            {"name": each.name, "since_versions": each.since_versions, "cases": each.cases, "why": ""},
        )
        for each in found
    ]
    for left_out in without:
        versions = ", ".join(map(str, left_out.since_versions)) or "unknown"
        words = f"{left_out.name:{width}}     no case   since_version {versions}: {left_out.why}"
        rows.append(Row(words, {**asdict(left_out), "cases": 0}))
    return sorted(rows, key=lambda row: str(row.fields["name"]))


def _dtypes(_options: ListOptions) -> Iterator[Row]:
    for dtype in listing.element_types():
        yield Row(f"{dtype.name:16} {f'no case: {dtype.why}' if dtype.why else 'has cases'}", asdict(dtype))


def _targets(_options: ListOptions) -> Iterator[Row]:
    for target in listing.available_targets():
        yield Row(f"{target.name:10} {target.meaning}", asdict(target))


def _expectations(options: ListOptions) -> Iterator[Row]:
    for entry in listing.expectations(options.target, _select_cases(options)):
        fields = {name: getattr(entry, name) for name in ("case", "status", "reason", "link", "bound")}
        yield Row(
            f"{entry.status:16} {entry}: {entry.reason}",
            {**fields, "when": str(entry.when), "where": entry.where_text, "variant": entry.variant_text},
        )


def _list_conversions(options: ListOptions) -> Iterator[Row]:
    for found in listing.version_conversions(options.target or "dml"):
        fields = {"test": found.test.name, "operator": found.test.key, "was": found.was, "now": found.now}
        yield Row(str(found), {**fields, "why": found.why})


LISTS: Mapping[What, Callable[[ListOptions], Iterable[Row]]] = {
    What.cases: _cases, What.operators: _operators, What.dtypes: _dtypes, What.targets: _targets,
    What.expectations: _expectations, What.converted: _list_conversions,
}  # fmt: skip


def _select_cases(options: ListOptions) -> CasesOptions:
    return CasesOptions(**{field.name: getattr(options, field.name) for field in fields(CasesOptions)})
