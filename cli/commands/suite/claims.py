"""`epcheck claims`: the tables of what providers claim."""

from __future__ import annotations

import typer

from epcheck.api.suite.claims import RefreshClaimsOptions, refresh_claims
from epcheck.cli.options import command
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(
    add_completion=False,
    help="Claim tables: what providers claim to support.",
    no_args_is_help=True,
)


@app.callback()
def _root() -> None:
    """Claim tables: what providers claim to support."""


@command(app, RefreshClaimsOptions)
def refresh(options: RefreshClaimsOptions) -> None:
    """Update a claim table from ONNX Runtime's documentation, and list the changes."""
    table = refresh_claims(options)
    changes = (("added", table.added), ("changed", table.changed), ("not on the page", table.undocumented))
    terminal = Terminal()
    for what, names in changes:
        terminal.print(f"{what}: {', '.join(names) or 'nothing'}")
    terminal.print(f"{table.operator_versions} operator versions in {table.path}")
