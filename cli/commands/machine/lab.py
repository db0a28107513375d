"""`epcheck lab`: the real DirectML provider on Linux, in a private folder."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table

from epcheck.api.machine.lab import InstallLabOptions, LabOptions, install_lab, lab_status, remove_lab
from epcheck.cli.options import command
from epcheck.cli.terminal.progress import TerminalProgress
from epcheck.conformance.lab.status import LabStatus

app = typer.Typer(
    add_completion=False, help="The real DirectML provider on Linux, in a private folder.", no_args_is_help=True
)


@command(app, InstallLabOptions)
def install(options: InstallLabOptions) -> None:
    """Install the lab, or complete it: what is there stays. About 1.5 minutes and 1 GB; no root."""
    console = Console()
    _show(console, install_lab(options, progress=TerminalProgress(console, keeps_steps=True)))


@command(app, LabOptions)
def status(options: LabOptions) -> int:
    """Show what the lab has. Exit status 1 when it is not complete."""
    found = lab_status(options)
    _show(Console(), found)
    return 0 if found.installed else 1


@command(app, LabOptions)
def remove(options: LabOptions) -> None:
    """End what runs in the lab and delete it."""
    freed = remove_lab(options)
    Console().print(f"removed, {freed / 1e6:.0f} MB freed")


def _show(console: Console, found: LabStatus) -> None:
    state = "installed" if found.installed else "not installed"
    console.print(f"lab in {found.folder}: {state}, {found.size_bytes / 1e6:.0f} MB", markup=False, soft_wrap=True)
    table = Table(box=None, show_header=False, pad_edge=False)
    for step in found.steps:
        table.add_row("done" if step.done else "missing", step.name, step.detail)
    console.print(table)
    if found.installed:
        facts = {
            "wine": found.wine_version,
            "Vulkan": found.vulkan or "the machine's",
            "shader model 6": "yes" if found.dxil else "no",
            "runtimes": ", ".join(found.runtimes),
        }
        console.print("; ".join(f"{name}: {value}" for name, value in facts.items()), highlight=False)
