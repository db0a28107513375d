"""`epcheck doctor`: which nodes float16 harms on a target, which need float32, and which quantisers are wrong."""

from __future__ import annotations

from dataclasses import replace

import typer

from epcheck.api.models.doctor import (
    FAULTY,
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
from epcheck.cli.terminal import exit_codes
from epcheck.cli.terminal.progress import TerminalProgress
from epcheck.cli.terminal.terminal import Table, Terminal
from epcheck.cli.terminal.text import brief

app = typer.Typer(add_completion=False)

EXIT_CODES = {
    RIGHT: exit_codes.GOOD,
    MENDED: exit_codes.FAILURES,
    NOT_MENDED: exit_codes.FAILURES,
    FAULTY: exit_codes.FAILURES,
    UNJUDGED: exit_codes.CANNOT,
}
COLOURS = {RIGHT: "green", MENDED: "yellow", NOT_MENDED: "red", FAULTY: "red", UNJUDGED: "yellow"}

SHOWN = 12
"""Rows of the table in the terminal; the page has all."""

WIDTH = 120
"""Characters of a line that goes to no terminal; rich takes 80."""


@command(app, DoctorOptions)
def examine(options: DoctorOptions) -> int:
    """Which nodes overflow, underflow or lose digits in float16, and the smallest set that has to stay in float32.
    In a quantised model: which QuantizeLinear and DequantizeLinear nodes saturate, waste their range, or have a scale,
    zero point or axis that cannot be right.

    Exit code: 0 the model is right as it is, 1 it is not, 2 it cannot be told, bad input, or it could not run.
    """
    terminal = Terminal(width=WIDTH)
    html = options.html or default_page(options.model)
    found = doctor(replace(options, html=html), progress=TerminalProgress(terminal))
    show(terminal, found)
    terminal.print(f"Page: {html}")
    return EXIT_CODES[found.status]


def show(terminal: Terminal, found: Diagnosis) -> None:
    """A diagnosis in the terminal."""
    rows = sorted((each for each in found.nodes if each.keeps or each.fault), key=lambda each: not each.keeps)
    if rows:
        table = Table(indented=True)
        for name in ("node", "in float16", "needs float32"):
            table.add_column(name, fold=True)
        for each in rows[:SHOWN]:
            table.add_row(brief(str(each.node)), brief(each.words), "yes" if each.keeps else "no")
        terminal.print_table(table)
    if len(rows) > SHOWN:
        terminal.print(f"   and {len(rows) - SHOWN} more: see the page")
    show_quantizers(terminal, found)
    if found.status != UNJUDGED and found.nodes:
        terminal.print(brief(f"   in float16: {found.before.words}"))
    if found.after is not None:
        where = f", as written to {found.written}" if found.written else ""
        with_them = "with these nodes in float32" if found.keep else "as written"
        terminal.print(brief(f"   {with_them}{where}: {found.after.words}"))
    terminal.print(brief(found.headline), style=f"bold {COLOURS[found.status]}")


def show_quantizers(terminal: Terminal, found: Diagnosis) -> None:
    """The quantisers at fault, and those whose scales suit badly without effect."""
    rows = (*found.quantization.faults, *found.quantization.harmless) if found.quantization else ()
    if rows:
        table = Table(indented=True)
        for name in ("quantiser", "what is wrong", "error alone", "better scale", "matters"):
            table.add_column(name, fold=True)
        for each in rows[:SHOWN]:
            effect = (f"{each.effect.alone:.2g}", f"{each.effect.better:.2g}") if each.effect else ("", "")
            table.add_row(brief(str(each.node)), brief(each.words), *effect, "yes" if each.matters else "no")
        terminal.print_table(table)
    if len(rows) > SHOWN:
        terminal.print(f"   and {len(rows) - SHOWN} more: see the page")
