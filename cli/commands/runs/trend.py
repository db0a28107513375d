"""`epcheck trend`: what many nights of a store say together."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from epcheck.cli.terminal import failure
from epcheck.cli.terminal.plain import safe
from epcheck.generators import suite
from epcheck.reports import StoreError
from epcheck.reports.runs.run_folder import replacing
from epcheck.reports.store.store import default_store, open_store
from epcheck.reports.trend import sections
from epcheck.reports.trend import trend as trends
from epcheck.reports.trend.json_document import document
from epcheck.reports.trend.markdown import markdown as in_markdown
from epcheck.reports.trend.page import write_html
from epcheck.reports.trend.sections import Section

app = typer.Typer(add_completion=False)

_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@app.command()
def trend(
    store: Annotated[Path | None, typer.Option(help="A store.", show_default="EPCHECK_STORE, or epcheck-store")] = None,
    since: Annotated[str, typer.Option(metavar="YYYY-MM-DD", help="Only nights from this day on.")] = "",
    most: Annotated[int, typer.Option("--most", min=1, help="List at most so many of a kind.")] = 20,
    html: Annotated[Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Write the page.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Write Markdown.")] = None,
    json: Annotated[Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Write JSON.")] = None,
) -> None:
    """Tell what many nights say together: pass rates, since when which case is broken and what came with it, flaky
    cases, machines side by side. What did not run has no rate. Exit code 2 when there is no night to tell of.
    """
    with failure.one_sentence():
        if since and not _DAY.fullmatch(since):
            raise StoreError(f"--since {since}: is not a day; write it as 2026-11-21")
        found = trends.trend(open_store(store or default_store()), suite.family_of, since)
        if json:
            _write(json, document(found))
        if markdown:
            _write(markdown, in_markdown(found, most).encode())
        if html:
            write_html(found, html)
        show(Console(emoji=False), found, most)
        if not any(night.run_id for machine in found.machines for night in machine.nights):
            raise StoreError(f"{found.store}: there is no night to tell of")


def show(console: Console, found: trends.Trend, most: int) -> None:
    """Print a trend."""
    for section in sections.sections(found, most):
        console.print()
        for sentence in section.sentences:
            console.print(safe(sentence), soft_wrap=True, highlight=False)
        if section.rows:
            console.print(_table(section))
    console.print(f"\n{safe(sections.headline(found))}", style="bold", soft_wrap=True, highlight=False)


def _write(path: Path, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)


def _table(section: Section) -> Table:
    table = Table(title=section.title, title_justify="left", box=None, pad_edge=False)
    for number, name in enumerate(section.header):
        table.add_column(safe(name), justify="right" if number in section.numbers else "left", overflow="fold")
    for row in section.rows:
        table.add_row(*map(safe, row))
    return table
