"""`epcheck status`: what is installed, which targets work here, and what would make others work."""

from __future__ import annotations

import typer
from rich.console import Console

from epcheck.api.machine.status import StatusOptions, TargetStatus, status
from epcheck.cli.options import command
from epcheck.cli.terminal.failure import CANNOT, GOOD
from epcheck.cli.terminal.plain import safe
from epcheck.cli.terminal.progress import TerminalProgress

app = typer.Typer(add_completion=False)


@command(app, StatusOptions)
def show(options: StatusOptions) -> int:
    """Show what is installed, which targets work here, and what would make others work, each with its command.

    Exit code: 0 the default target is ready, 2 it is not.
    """
    console = Console(emoji=False)
    found = status(options, progress=TerminalProgress(console))
    width = max(map(len, found.installed))
    for name, value in found.installed.items():
        console.print(f"{name:{width}}  {safe(value)}", soft_wrap=True, highlight=False)
    console.print("\n[bold]Targets that work here[/]")
    for target in found.targets:
        if target.ready:
            _show(console, target, "the default: " if target is found.default else "")
    others = [target for target in found.targets if not target.ready]
    if others:
        console.print("\n[bold]What would make others work[/]")
    for target in others:
        _show(console, target, "the default: " if target is found.default else "")
    return GOOD if found.default.ready else CANNOT


def _show(console: Console, target: TargetStatus, lead: str) -> None:
    console.print(f"[bold]{safe(target.name)}[/]  {lead}{safe(target.about)}", soft_wrap=True, highlight=False)
    console.print(f"    {safe(target.command or 'nothing: not on this machine')}", soft_wrap=True, highlight=False)
