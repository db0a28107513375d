"""`epcheck lab`: the real DirectML provider on Linux, in a private folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from epcheck.cli.terminal import failure
from epcheck.cli.terminal.display import LabDisplay
from epcheck.conformance import lab

app = typer.Typer(
    add_completion=False, help="The real DirectML provider on Linux, in a private folder.", no_args_is_help=True
)

_Folder = Annotated[
    Path | None,
    typer.Option(help="The lab's folder.", show_default="$EPCHECK_LAB, or the user's cache", file_okay=False),
]


@app.command()
def install(
    folder: _Folder = None,
    runtime: Annotated[
        list[str] | None,
        typer.Option(help="A release of onnxruntime-directml, or windowsml-VERSION; repeat for more."),
    ] = None,
    system_wine: Annotated[bool, typer.Option("--system-wine", help="Use this machine's Wine (10 or later).")] = False,
    vulkan: Annotated[
        Path | None, typer.Option(metavar="ICD.json", help="Use this machine's Vulkan driver, a GPU's for example.")
    ] = None,
    mirror: Annotated[
        str | None, typer.Option(metavar="URL", help="The Debian archive to fetch packages from.")
    ] = None,
    private_compiler: Annotated[
        bool, typer.Option("--private-compiler", help="Fetch a compiler even if this machine has one.")
    ] = False,
) -> None:
    """Install the lab, or complete it: what is there stays. About 1.5 minutes and 1 GB; no root."""
    console = Console()

    with failure.one_sentence():
        with LabDisplay(console) as bars:
            found = lab.install(
                folder,
                runtimes=runtime or (lab.DEFAULT_RUNTIME,),
                system_wine=system_wine,
                vulkan=vulkan,
                mirror=mirror,
                private_compiler=private_compiler,
                progress=bars,
            )
        _show(console, found)


@app.command()
def status(folder: _Folder = None) -> None:
    """Show what the lab has. Exit status 1 when it is not complete."""
    with failure.one_sentence():
        found = lab.status(folder)
        _show(Console(), found)
    if not found.installed:
        raise typer.Exit(1)


@app.command()
def remove(folder: _Folder = None) -> None:
    """End what runs in the lab and delete it."""
    with failure.one_sentence():
        freed = lab.remove(folder)
        Console().print(f"removed, {freed / 1e6:.0f} MB freed")


def _show(console: Console, found: lab.LabStatus) -> None:
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
