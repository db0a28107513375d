"""`epcheck trend`: what many nights of a store say together."""

from __future__ import annotations

import typer

from epcheck.api.runs.trend import TrendOptions, trend
from epcheck.cli.options import command
from epcheck.cli.terminal.terminal import Table, Terminal
from epcheck.reports import StoreError
from epcheck.reports.trend import sections
from epcheck.reports.trend.sections import Section
from epcheck.reports.trend.trend import Trend

app = typer.Typer(add_completion=False)


@command(app, TrendOptions)
def show_trend(options: TrendOptions) -> None:
    """Trends over stored runs: pass rate, regressions with the change that caused them, flaky
    cases, machines side by side. What did not run has no rate. Exit code 2 when no nights recorded.
    """
    found = trend(options)
    show(Terminal(), found, options.most)
    if not any(night.run_id for machine in found.machines for night in machine.nights):
        raise StoreError(f"{found.store}: no nights recorded")


def show(terminal: Terminal, found: Trend, most: int) -> None:
    """Print a trend."""
    for section in sections.sections(found, most):
        terminal.print()
        for sentence in section.sentences:
            terminal.print(sentence)
        if section.rows:
            terminal.print_table(_table(section))
    terminal.print()
    terminal.print(sections.headline(found), style="bold")


def _table(section: Section) -> Table:
    table = Table(section.title)
    for number, name in enumerate(section.header):
        table.add_column(name, right=number in section.numbers, fold=True)
    for row in section.rows:
        table.add_row(*row)
    return table
