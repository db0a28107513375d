"""`epcheck probe`: ask a provider what it takes, and write its claim table."""

from __future__ import annotations

import typer

from epcheck.api.machine.probe import ProbeOptions, probe
from epcheck.cli.options import command
from epcheck.cli.terminal.progress import TerminalProgress
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(add_completion=False)


@command(app, ProbeOptions)
def ask(options: ProbeOptions) -> None:
    """Probe every operator, version and dtype of a provider without running nodes, and write a claim table.

    Compare the table with the provider's documentation before you use it with `epcheck run --claims FILE`.
    """
    made = probe(options, progress=TerminalProgress(Terminal(stderr=True)))
    Terminal().print(
        f"{made.path}: takes {made.taken:,} of {made.asked:,} nodes; {made.versions:,} operator versions with "
        f"{made.dtypes:,} dtypes, {made.partial:,} of them in part; {made.seconds:.0f} s"
    )
