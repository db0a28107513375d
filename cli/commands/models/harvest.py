"""`epcheck harvest`: nodes of models, and what the fuzzer found, as cases of the suite."""

from __future__ import annotations

import typer

from epcheck.api.models.harvest import HarvestOptions, ModelHarvest, harvest
from epcheck.cli.options import command
from epcheck.cli.terminal.progress import TerminalProgress
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(add_completion=False)


@command(app, HarvestOptions)
def harvest_models(options: HarvestOptions) -> None:
    """Make cases of every node of a model, or of what `epcheck fuzz` found.

    A case of a model has the node's attributes, shapes, dtypes and value ranges; a case of a fault has all its values.

    Exit code: 0 the folder was written, 2 bad input, or it could not run.
    """
    terminal = Terminal()
    found = harvest(options, progress=TerminalProgress(terminal))
    for model in found.models:
        show(terminal, model)
    terminal.print(f'{found.folder}: {found.cases:,} cases; run them: epcheck run --source "{found.folder}"')


def show(terminal: Terminal, found: ModelHarvest) -> None:
    """What came of a model, and why nodes were left out."""
    terminal.print(f"{found.model}: {found.total:,} nodes, {found.cases:,} cases, {found.new:,} of them new")
    for why, count in found.reasons:
        terminal.print(f"  {count:,} left out: {why}")
