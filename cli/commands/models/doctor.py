"""`epcheck doctor`: which nodes float16 harms on a target, and which have to stay in float32."""

from __future__ import annotations

from dataclasses import replace

import typer
from rich.console import Console
from rich.table import Table

from epcheck.api.models.doctor import (
    MENDED,
    NOT_MENDED,
    RIGHT,
    UNJUDGED,
    Diagnosis,
    DoctorOptions,
    default_page,
    doctor,
)
from epcheck.cli.options import command
from epcheck.cli.terminal import failure
from epcheck.cli.terminal.plain import safe
from epcheck.cli.terminal.progress import TerminalProgress

app = typer.Typer(add_completion=False)

EXIT_CODES = {RIGHT: failure.GOOD, MENDED: failure.FAILURES, NOT_MENDED: failure.FAILURES, UNJUDGED: failure.CANNOT}
COLOURS = {RIGHT: "green", MENDED: "yellow", NOT_MENDED: "red", UNJUDGED: "yellow"}

SHOWN = 12
"""Rows of the table in the terminal; the page has all."""

MESSAGE = 600
"""Characters of a runtime's message in the terminal; the page has all."""

WIDTH = 120
"""Characters of a line that goes to no terminal; rich takes 80."""


@command(app, DoctorOptions)
def examine(options: DoctorOptions) -> int:
    """Which nodes overflow, underflow or lose digits in float16, and the smallest set that has to stay in float32.

    Exit code: 0 the model is right in float16, 1 it is not, 2 it cannot be told, bad input, or it could not run.
    """
    console = Console(emoji=False, highlight=False, soft_wrap=True)
    console.width = console.width if console.is_terminal else WIDTH
    html = options.html or default_page(options.model)
    found = doctor(replace(options, html=html), progress=TerminalProgress(console))
    show(console, found)
    console.print(f"Page: {safe(str(html))}")
    return EXIT_CODES[found.status]


def show(console: Console, found: Diagnosis) -> None:
    """A diagnosis in the terminal."""
    rows = sorted((each for each in found.nodes if each.keeps or each.fault), key=lambda each: not each.keeps)
    if rows:
        table = Table(box=None, pad_edge=True)
        for name in ("node", "in float16", "needs float32"):
            table.add_column(name, overflow="fold")
        for each in rows[:SHOWN]:
            table.add_row(safe(str(each.node)), safe(each.words), "yes" if each.keeps else "no")
        console.print(table)
    if len(rows) > SHOWN:
        console.print(f"   and {len(rows) - SHOWN} more, which the page has")
    if found.status != UNJUDGED:
        console.print(safe(f"   in float16: {found.before.words[:MESSAGE]}"))
    if found.after is not None:
        where = f", as written to {found.written}" if found.written else ""
        with_them = "with these nodes in float32" if found.keep else "as written"
        console.print(safe(f"   {with_them}{where}: {found.after.words[:MESSAGE]}"))
    console.print(safe(found.headline), style=f"bold {COLOURS[found.status]}")
