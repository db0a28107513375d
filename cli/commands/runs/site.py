"""`epcheck site`: which provider computes what, as a static site of a store."""

from __future__ import annotations

import typer

from epcheck.api.runs.site import SiteOptions, site
from epcheck.cli.options import command
from epcheck.cli.terminal import failure
from epcheck.cli.terminal.terminal import Terminal
from epcheck.reports.site.page import headline
from epcheck.reports.site.write import PAGE

app = typer.Typer(add_completion=False)


@command(app, SiteOptions)
def make_site(options: SiteOptions) -> None:
    """Write a static site of a store: every provider, release and adapter side by side, operator by operator.

    Exit code 2 when the store cannot be read or has no record.
    """
    found = site(options)
    Terminal().print(f"{headline(found)}: {options.out / PAGE}")
    for problem in found.problems:
        failure.say(problem)
