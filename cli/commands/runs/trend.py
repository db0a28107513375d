"""`epcheck trend`: what many nights of a store say together."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table

from epcheck.api.runs.trend import TrendOptions, trend
from epcheck.cli.options import command
from epcheck.cli.terminal.plain import safe
from epcheck.reports import StoreError
from epcheck.reports.trend import sections
from epcheck.reports.trend.sections import Section
from epcheck.reports.trend.trend import Trend

app = typer.Typer(add_completion=False)


@command(app, TrendOptions)
def show_trend(options: TrendOptions) -> None:
    """Tell what many nights say together: pass rates, since when which case is broken and what came with it, flaky
    cases, machines side by side. What did not run has no rate. Exit code 2 when there is no night to tell of.
    """
    found = trend(options)
    show(Console(emoji=False), found, options.most)
    if not any(night.run_id for machine in found.machines for night in machine.nights):
        raise StoreError(f"{found.store}: there is no night to tell of")


def show(console: Console, found: Trend, most: int) -> None:
    """Print a trend."""
    for section in sections.sections(found, most):
        console.print()
        for sentence in section.sentences:
            console.print(safe(sentence), soft_wrap=True, highlight=False)
        if section.rows:
            console.print(_table(section))
    console.print(f"\n{safe(sections.headline(found))}", style="bold", soft_wrap=True, highlight=False)


def _table(section: Section) -> Table:
    table = Table(title=section.title, title_justify="left", box=None, pad_edge=False)
    for number, name in enumerate(section.header):
        table.add_column(safe(name), justify="right" if number in section.numbers else "left", overflow="fold")
    for row in section.rows:
        table.add_row(*map(safe, row))
    return table
