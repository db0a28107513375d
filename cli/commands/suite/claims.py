"""`epcheck claims`: the tables of what providers claim."""

from __future__ import annotations

import typer

from epcheck.api.suite.claims import RefreshClaimsOptions, refresh_claims
from epcheck.cli.options import command
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(
    add_completion=False,
    help="What providers claim to support: the tables that cases are read against.",
    no_args_is_help=True,
)


@app.callback()
def _root() -> None:
    """What providers claim to support: the tables that cases are read against."""


@command(app, RefreshClaimsOptions)
def refresh(options: RefreshClaimsOptions) -> None:
    """Take over what ONNX Runtime's documentation says of a provider's kernels, and say what is new."""
    table = refresh_claims(options)
    changes = (("added", table.added), ("changed", table.changed), ("not on the page", table.undocumented))
    terminal = Terminal()
    for what, names in changes:
        terminal.print(f"{what}: {', '.join(names) or 'nothing'}")
    terminal.print(f"{table.operator_versions} operator versions in {table.path}")
