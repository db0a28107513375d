"""`epcheck zoo`: architectures with random weights, as models on disk."""

from __future__ import annotations

import typer

from epcheck.api.models.zoo import WriteZooOptions, architectures, write_zoo
from epcheck.cli.options import command
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(add_completion=False, help="Small models of every kind, with random weights.", no_args_is_help=True)


@app.command(name="list")
def list_architectures() -> None:
    """Print the architectures and, last, the real exports: name, what each stands for, its dynamic dimensions."""
    terminal = Terminal()
    for architecture in architectures():
        dims = "".join(f"  {name}={','.join(map(str, values))}" for name, values in architecture.dims.items())
        terminal.print(f"{architecture.name:26} {architecture.kind}{dims}")


@command(app, WriteZooOptions)
def write(options: WriteZooOptions) -> None:
    """Write the model, and feeds for it as ONNX test data: what `epcheck replay` reads."""
    Terminal().print_lines(map(str, write_zoo(options)))
