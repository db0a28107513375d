"""`epcheck list`: what the suite has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from epcheck.api.option import Option
from epcheck.api.suite import listing
from epcheck.api.suite.listing import CasesOptions
from epcheck.cli.options import command

app = typer.Typer(add_completion=False)


class What(StrEnum):
    """What can be listed."""

    cases = "cases"
    operators = "operators"
    targets = "targets"


@dataclass(frozen=True)
class ListOptions(CasesOptions):
    what: Annotated[What, Option("What to list.", argument=True)] = What.cases


@command(app, ListOptions)
def show(options: ListOptions) -> None:
    """Print case ids, operators with their versions and case counts, or the targets of this machine."""
    if options.what is What.targets:
        for target in listing.available_targets():
            typer.echo(f"{target.name:10} {target.meaning}")
    elif options.what is What.operators:
        for operator in listing.operators():
            versions = ", ".join(map(str, operator.since_versions))
            typer.echo(f"{operator.name:16} {operator.cases:5} cases  since_version {versions}")
    else:
        for case in listing.cases(options):
            typer.echo(case.id)
