"""`epcheck harvest`: nodes of models, and what the fuzzer found, as cases of the suite."""

from __future__ import annotations

import typer

from epcheck.api.models.harvest import HarvestOptions, ModelHarvest, harvest
from epcheck.cli.options import command
from epcheck.cli.terminal import exit_codes
from epcheck.cli.terminal.progress import TerminalProgress
from epcheck.cli.terminal.terminal import Terminal
from epcheck.cli.terminal.text import brief

app = typer.Typer(add_completion=False)


@command(app, HarvestOptions)
def harvest_models(options: HarvestOptions) -> int:
    """Make cases of every node of a model, or of what `epcheck fuzz` found.

    A case of a model has the node's attributes, shapes, dtypes and value ranges; a case of a fault has all its values.

    Exit code: 0 the folder was written, 1 it was, but a model of several does not run or cannot be read, 2 bad input,
    or it could not run.
    """
    terminal = Terminal()
    found = harvest(options, progress=TerminalProgress(terminal))
    for model in found.models:
        show(terminal, model)
    terminal.print(f'{found.folder}: {found.cases:,} cases; run them: epcheck run --source "{found.folder}"')
    if found.troubled:
        names = ", ".join(model.model for model in found.troubled)
        terminal.print(f"{len(found.troubled)} of {len(found.models)} models gave nothing: {names}", style="bold red")
    return exit_codes.FAILURES if found.troubled else exit_codes.GOOD


def show(terminal: Terminal, found: ModelHarvest) -> None:
    """What came of a model, and why nodes were left out."""
    if found.trouble:
        terminal.print(brief(f"{found.model}: {found.trouble}"), style="red")
        return
    terminal.print(f"{found.model}: {found.total:,} nodes, {found.cases:,} cases, {found.new:,} of them new")
    for why, count in found.reasons:
        terminal.print(f"  {count:,} left out: {why}")
