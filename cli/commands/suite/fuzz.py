"""`epcheck fuzz`: search for faults that no case of the suite shows."""

from __future__ import annotations

import typer

from epcheck.api.fuzzing.fuzz import FuzzOptions, FuzzResult, fuzz
from epcheck.cli.options import command
from epcheck.cli.terminal import exit_codes, failure
from epcheck.cli.terminal.progress import TerminalProgress
from epcheck.cli.terminal.terminal import Terminal
from epcheck.cli.terminal.text import cut

app = typer.Typer(add_completion=False)

SHOWN = 20
"""Faults that the terminal lists; the folder has all."""


@command(app, FuzzOptions)
def search(options: FuzzOptions) -> int:
    """Fuzz: generate random nodes, check them like the suite, and minimise each fault.

    Exit code: 0 no new fault, 1 faults, 2 bad input or it could not run, 130 interrupted.
    """
    terminal = Terminal()
    result = fuzz(options, progress=TerminalProgress(terminal))
    show(terminal, result)
    if result.interrupted == "interrupted":
        failure.say("interrupted; the faults found so far are kept")
        return exit_codes.INTERRUPTED
    if result.interrupted:
        failure.say(f"the search stopped early: {result.interrupted}")
        return exit_codes.CANNOT
    return exit_codes.GOOD if result.conforms else exit_codes.FAILURES


def show(terminal: Terminal, result: FuzzResult) -> None:
    """The faults, and how much was searched."""
    for fault, folder in list(zip(result.faults, result.folders, strict=True))[:SHOWN]:
        kind = ("fault", "red") if fault.is_new else ("baseline too", "cyan") if not fault.known else ("known", "cyan")
        terminal.print(
            kind,
            f" {fault.cause.symptom.operator} {fault.record.status} ({fault.occurrences} times, blame: "
            f"{fault.record.blame or 'nobody'}): {cut(fault.record.reason, 300)}",
        )
        if fault.known:
            terminal.print(f"  resembles {cut(fault.known, 200)}")
        terminal.print(f"  reproduce: {folder}")
        if fault.is_new:
            terminal.print(f'  keep as a case: epcheck harvest "{folder}"')
    if len(result.faults) > SHOWN:
        terminal.print(f"… and {len(result.faults) - SHOWN} more in {result.out}")
    new = sum(fault.is_new and not fault.replayed for fault in result.faults)
    before = sum(fault.is_new and fault.replayed for fault in result.faults)
    still = f", {before} found before and still there," if before else ""
    known_ones = sum(bool(fault.known) for fault in result.faults)
    shared = f", {result.shared} that the baseline shows too," if result.shared else ""
    terminal.print(
        f"{result.target}: {new} new faults{still} and {known_ones} known ones{shared} in {result.judged:,} "
        f"nodes, {result.rate:,.0f} a second; {result.replayed} examples replayed; seed {result.seed}, "
        f"{result.seconds:.0f} s",
        style="bold",
    )
