"""`epcheck status`: what is installed, which targets work here, and what would make others work."""

from __future__ import annotations

import typer

from epcheck.api.machine.status import StatusOptions, TargetStatus, status
from epcheck.cli.options import command
from epcheck.cli.terminal.exit_codes import CANNOT, GOOD
from epcheck.cli.terminal.progress import TerminalProgress
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(add_completion=False)


@command(app, StatusOptions)
def show(options: StatusOptions) -> int:
    """Show what is installed, which targets work here, and the commands that add others.

    Exit code: 0 the default target is ready, 2 it is not.
    """
    terminal = Terminal()
    found = status(options, progress=TerminalProgress(terminal))
    width = max(map(len, found.installed))
    for name, value in found.installed.items():
        terminal.print(f"{name:{width}}  {value}")
    terminal.print()
    terminal.print("Targets that work here", style="bold")
    for target in found.targets:
        if target.ready:
            _show(terminal, target, "the default: " if target is found.default else "")
    others = [target for target in found.targets if not target.ready]
    if others:
        terminal.print()
        terminal.print("How to get the others", style="bold")
    for target in others:
        _show(terminal, target, "the default: " if target is found.default else "")
    return GOOD if found.default.ready else CANNOT


def _show(terminal: Terminal, target: TargetStatus, lead: str) -> None:
    terminal.print((target.name, "bold"), f"  {lead}{target.about}")
    terminal.print(f"    {target.command or 'not available on this machine'}")
