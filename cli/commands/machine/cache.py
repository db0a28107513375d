"""`epcheck cache`: what runs keep on this machine for the next ones."""

from __future__ import annotations

import typer

from epcheck.api.machine.cache import cache_status, clear_cache
from epcheck.cli.terminal import failure
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(
    add_completion=False,
    help="The cache that runs share: its folder and size; `clear` empties it.",
    invoke_without_command=True,
)


@app.callback()
def show(context: typer.Context) -> None:
    """Show the folder of the cache, its number of entries, its size and its limit."""
    if context.invoked_subcommand is None:
        with failure.one_sentence():
            kept = cache_status()
            size = f"{kept.size_bytes / 1e6:.1f} MB of at most {kept.limit_bytes / 1e6:.0f} MB"
            Terminal().print(f"cache in {kept.path}: {kept.entries:,} entries, {size}")


@app.command()
def clear() -> None:
    """Delete all entries. The next run takes longer; its results do not change."""
    with failure.one_sentence():
        Terminal().print(f"cleared, {clear_cache() / 1e6:.1f} MB freed")
