"""`epcheck status`: what is installed, which targets work here, and what would make others work."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import typer

from epcheck.api.machine.status import MachineStatus, StatusOptions, TargetStatus, status
from epcheck.cli.options import command
from epcheck.cli.output import AsJson, choose_progress
from epcheck.cli.terminal.exit_codes import CANNOT, GOOD
from epcheck.cli.terminal.terminal import Terminal
from epcheck.conformance.records import strict_json

app = typer.Typer(add_completion=False)


SCHEMA = 1
"""Of the document that `--json` prints; a reader refuses a newer one."""


@dataclass(frozen=True)
class ShownStatus(StatusOptions):
    """What is asked, and how it is shown."""

    json: AsJson = False


@command(app, ShownStatus)
def show(options: ShownStatus) -> int:
    """Show what is installed, which targets work here, and the commands that add others.

    Exit code: 0 the default target is ready, 2 it is not.
    """
    terminal = Terminal()
    found = status(options, progress=choose_progress(quiet=False, json=options.json))
    if options.json:
        targets = [{**asdict(target), "default": target is found.default} for target in found.targets]
        terminal.print_document(
            strict_json.dumps({"schema": SCHEMA, "installed": dict(found.installed), "targets": targets})
        )
    else:
        _show_all(terminal, found)
    return GOOD if found.default.ready else CANNOT


def _show_all(terminal: Terminal, found: MachineStatus) -> None:
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


def _show(terminal: Terminal, target: TargetStatus, lead: str) -> None:
    terminal.print((target.name, "bold"), f"  {lead}{target.about}")
    terminal.print(f"    {target.command or 'not available on this machine'}")
