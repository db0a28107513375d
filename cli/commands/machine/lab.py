"""`epcheck lab`: the real DirectML provider on Linux, in a private folder."""

from __future__ import annotations

import typer

from epcheck.api.machine.lab import (
    InstallLabOptions,
    LabOptions,
    LabPythonOptions,
    LabStatusOptions,
    PackLabOptions,
    UnpackLabOptions,
    VulkanStatus,
    install_lab,
    lab_status,
    pack_lab,
    remove_lab,
    run_lab_python,
    unpack_lab,
    vulkan_status,
)
from epcheck.cli.options import command
from epcheck.cli.terminal.progress import TerminalProgress
from epcheck.cli.terminal.terminal import Table, Terminal
from epcheck.conformance.lab.status import LabStatus

app = typer.Typer(
    add_completion=False, help="The real DirectML provider on Linux, in a private folder.", no_args_is_help=True
)


@command(app, InstallLabOptions)
def install(options: InstallLabOptions) -> None:
    """Install the lab, or what is missing of it. Takes about a minute and 1 GB; needs no root."""
    terminal = Terminal()
    _show(terminal, install_lab(options, progress=TerminalProgress(terminal, keeps_steps=True)))


@command(app, LabStatusOptions)
def status(options: LabStatusOptions) -> int:
    """Show what the lab has. Exit code: 1 if it is incomplete, or, with --vulkan, if it has no usable driver."""
    terminal, found = Terminal(), lab_status(options)
    _show(terminal, found)
    if not options.vulkan:
        return 0 if found.installed else 1
    drivers = vulkan_status(options)
    _show_drivers(terminal, drivers)
    return 0 if found.installed and drivers.usable else 1


@command(app, LabOptions)
def remove(options: LabOptions) -> None:
    """Stop all processes of the lab and delete it."""
    freed = remove_lab(options)
    Terminal().print(f"removed, {freed / 1e6:.0f} MB freed")


@command(app, PackLabOptions)
def pack(options: PackLabOptions) -> None:
    """Pack the lab into one file for machines without network. Takes about 2 minutes."""
    terminal = Terminal()
    made = pack_lab(options, progress=TerminalProgress(terminal, keeps_steps=True))
    driver = "with" if made.software_driver else "without"
    terminal.print(
        f"{made.path}: {made.size_bytes / 1e6:.1f} MB, {made.unpacked_bytes / 1e6:.0f} MB unpacked, {driver} the "
        f"software Vulkan driver; runtimes: {', '.join(made.runtimes)}"
    )


@command(app, UnpackLabOptions)
def unpack(options: UnpackLabOptions) -> None:
    """Install the lab from a packed file. Needs neither network nor root."""
    terminal = Terminal()
    _show(terminal, unpack_lab(options, progress=TerminalProgress(terminal, keeps_steps=True)))


@command(app, LabPythonOptions, passes_on=True)
def python(options: LabPythonOptions) -> int:
    """Run a script with the lab's Windows Python and DirectML, not jailed. The exit code is the script's."""
    return run_lab_python(options)


def _show(terminal: Terminal, found: LabStatus) -> None:
    state = "installed" if found.installed else "not installed"
    terminal.print(f"lab in {found.folder}: {state}, {found.size_bytes / 1e6:.0f} MB")
    table = Table(header=False)
    for name in ("state", "step", "detail"):
        table.add_column(name)
    for step in found.steps:
        table.add_row("done" if step.done else "missing", step.name, step.detail)
    terminal.print_table(table)
    if found.installed:
        facts = {
            "wine": found.wine_version,
            "Vulkan": found.vulkan or "the machine's",
            "shader model 6": "yes" if found.dxil else "no",
            "runtimes": ", ".join(found.runtimes),
        }
        terminal.print("; ".join(f"{name}: {value}" for name, value in facts.items()))


def _show_drivers(terminal: Terminal, found: VulkanStatus) -> None:
    """One line for each driver, whole also where the terminal is narrow: paths are copied from it."""
    terminal.print()
    for driver in found.drivers:
        missing = ", ".join(f"{lacks.name} (Debian: {lacks.package or 'unknown'})" for lacks in driver.missing)
        state = "can be loaded" if driver.loadable else f"cannot be loaded: {driver.problem or f'it needs {missing}'}"
        line = (
            f"{'used' if driver.used else 'not used'}: {driver.file} ({driver.library or '?'}; {driver.place}): {state}"
        )
        terminal.print(line)
    terminal.print(f"Vulkan: {found.reason}")
