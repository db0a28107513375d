"""`epcheck cache`: what runs keep on this machine for the next ones."""

from __future__ import annotations

import typer

from epcheck.api.machine.cache import cache_status, clear_cache
from epcheck.cli.terminal import failure
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(
    add_completion=False,
    help="What runs keep for the next ones: where it is, how much it is; `clear` empties it.",
    invoke_without_command=True,
)


@app.callback()
def show(context: typer.Context) -> None:
    """Show where runs keep prepared cases and opinions for the next ones, how many, and how large that may become."""
    if context.invoked_subcommand is None:
        with failure.one_sentence():
            kept = cache_status()
            size = f"{kept.size_bytes / 1e6:.1f} MB of at most {kept.limit_bytes / 1e6:.0f} MB"
            Terminal().print(f"cache in {kept.path}: {kept.entries:,} entries, {size}")


@app.command()
def clear() -> None:
    """Forget everything that is kept: the next run takes longer, and comes out the same."""
    with failure.one_sentence():
        Terminal().print(f"cleared, {clear_cache() / 1e6:.1f} MB freed")
