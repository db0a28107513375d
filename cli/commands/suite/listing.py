"""`epcheck list`: what the suite has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Annotated

import typer

from epcheck.api.option import Option
from epcheck.api.suite import listing
from epcheck.api.suite.listing import CasesOptions
from epcheck.cli.options import command
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(add_completion=False)


class What(StrEnum):
    """What can be listed."""

    cases = "cases"
    operators = "operators"
    dtypes = "dtypes"
    targets = "targets"
    expectations = "expectations"
    converted = "converted"


@dataclass(frozen=True)
class ListOptions(CasesOptions):
    what: Annotated[What, Option("What to list.", argument=True)] = What.cases
    target: Annotated[
        str | None,
        Option("Target whose expectations are listed. Default: the best of this machine.", flags=("--target", "-t")),
    ] = None


@command(app, ListOptions, prints_data=True)
def show(options: ListOptions) -> None:
    """List case ids, operators with versions and case counts, dtypes, the targets of this machine, or the expectations
    of a target with their conditions. ONNX operators and types without a case are listed with the reason. `converted`
    lists onnx's node tests converted to the versions that --target claims."""
    Terminal().print_lines(_lines(options))


def _lines(options: ListOptions) -> Iterator[str]:
    if options.what is What.targets:
        for target in listing.available_targets():
            yield f"{target.name:10} {target.meaning}"
    elif options.what is What.operators:
        for operator in listing.operators():
            versions = ", ".join(map(str, operator.since_versions))
            yield f"{operator.name:16} {operator.cases:5} cases  since_version {versions}"
        for left_out in listing.left_out():
            versions = ", ".join(map(str, left_out.since_versions)) or "unknown"
            yield f"{left_out.name:16}     no case   since_version {versions}: {left_out.why}"
    elif options.what is What.dtypes:
        for dtype in listing.element_types():
            yield f"{dtype.name:16} {f'no case: {dtype.why}' if dtype.why else 'has cases'}"
    elif options.what is What.expectations:
        chosen = CasesOptions(**{field.name: getattr(options, field.name) for field in fields(CasesOptions)})
        for entry in listing.expectations(options.target, chosen):
            yield f"{entry.status:16} {entry}: {entry.reason}"
    elif options.what is What.converted:
        for found in listing.version_conversions(options.target or "dml"):
            yield str(found)
    else:
        for case in listing.cases(options):
            yield case.id
