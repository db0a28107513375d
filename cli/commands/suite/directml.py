"""`epcheck directml`: DirectML's operators called directly, held to their pages and to their device's own claims."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from epcheck.api.suite.directml import LOST, DirectMLOptions, DirectMLResult, directml, tally
from epcheck.cli.options import command
from epcheck.cli.terminal import exit_codes
from epcheck.cli.terminal.terminal import Table, Terminal
from epcheck.conformance.directml.probing import JUDGEMENTS, NOT_COMPILED, Border

app = typer.Typer(add_completion=False)

WIDTH = 200
"""Characters of a line that goes to no terminal."""


@command(app, DirectMLOptions)
def call(options: DirectMLOptions) -> int:
    """Call DirectML directly for what ONNX cannot express (flags, layouts, ownership), and compare the device's claims
    with the documented ones.

    Exit code: 0 all right, 1 a probe is wrong or a process ended, 2 it could not run.
    """
    result = directml(options)
    show(Terminal(width=WIDTH), result)
    return exit_codes.GOOD if result.conforms else exit_codes.FAILURES


def show(terminal: Terminal, result: DirectMLResult) -> None:
    """The claims, the probes by group, what is wrong, and how often page and device agree."""
    if result.claims is not None:
        claims = result.claims
        terminal.print(f"device: {claims.level}, tensors of {', '.join(claims.data_types)}")
        for difference in claims.differences or ("its claims are the documented ones",):
            terminal.print(f"  {difference}")
    for group in dict.fromkeys(probed.id.partition("/")[0] for probed in result.probes):
        own = [probed for probed in result.probes if probed.id.startswith(f"{group}/") and not probed.left_out]
        terminal.print(f"{group}: {sum(not probed.wrong for probed in own)} of {len(own)} right")
    for probed in result.probes:
        if probed.wrong or probed.left_out:
            terminal.print(f"  {probed.id}: {probed.wrong or f'left out: {probed.left_out}'}")
    if result.borders:
        _show_borders(terminal, result.borders)


def _show_borders(terminal: Terminal, found: Sequence[Border]) -> None:
    table = Table(ruled=True)
    table.add_column("operator", whole=True)
    for judgement in JUDGEMENTS:
        table.add_column(judgement, right=True)
    for operator, counts in tally(found).items():
        table.add_row(operator, *(str(counts[judgement] or "") for judgement in JUDGEMENTS))
    terminal.print_table(table)
    for border in found:
        if border.judgement in (LOST, NOT_COMPILED) or (border.documented and border.judgement.startswith("only")):
            terminal.print(f"{border.operator} {border.what}: {border.judgement}: {border.reasons}")
