"""`epcheck reduce`: the smallest part of a model that still fails, as a folder that anybody can run."""

from __future__ import annotations

import typer

from epcheck.api.models.reduce import ReduceOptions, reduce, replay_command, words
from epcheck.cli.options import command
from epcheck.cli.terminal.terminal import Terminal
from epcheck.models.validation.names import shorten_words

app = typer.Typer(add_completion=False)


@command(app, ReduceOptions)
def reduce_model(options: ReduceOptions) -> None:
    """Shrink a model to the smallest part that still fails on a target, with its real input values.

    Exit code: 0 a part that fails was written, 2 nothing fails, bad input, or it could not run.
    """
    terminal = Terminal()
    terminal.print(shorten_words(words(reduce(options))))
    terminal.print(f"{options.out}: run it with: {replay_command(options)}")
