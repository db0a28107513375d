"""`epcheck env`: environments in which other providers really run."""

from __future__ import annotations

import typer

from epcheck.api.machine.env import (
    CreateEnvOptions,
    Environment,
    PackEnvOptions,
    RemoveEnvOptions,
    create_env,
    environments,
    pack_env,
    remove_env,
)
from epcheck.cli.options import command
from epcheck.cli.terminal import failure
from epcheck.cli.terminal.progress import TerminalProgress
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(
    add_completion=False, help="Environments for other providers, in a private folder.", no_args_is_help=True
)


@command(app, CreateEnvOptions)
def create(options: CreateEnvOptions) -> None:
    """Create the environment of a provider, or recreate it. Takes less than two minutes; needs no root."""
    terminal = Terminal()
    made = create_env(options, progress=TerminalProgress(terminal, keeps_steps=True))
    terminal.print(f"{made.name}: {_words(made)}; run: epcheck run --target {made.name} --thin")


@app.command(name="list")
def show() -> None:
    """List the existing and the available environments."""
    with failure.one_sentence():
        for made in environments():
            Terminal().print(f"{made.name}: {_words(made)}")


@command(app, PackEnvOptions)
def pack(options: PackEnvOptions) -> None:
    """Pack epcheck and environments for a machine without network, with a script that installs them."""
    terminal = Terminal()
    packed = pack_env(options, progress=TerminalProgress(terminal, keeps_steps=True))
    what = ", ".join(("epcheck", *packed.names))
    terminal.print(f"{what}: {packed.wheels} wheels, {packed.size_bytes / 1e6:.1f} MB in {len(packed.parts)} files")
    if packed.left_out:
        terminal.print(f"left out: {', '.join(packed.left_out)}")
    terminal.print(f"Copy {packed.folder} to the machine; run there: python3 install.py --to FOLDER")


@command(app, RemoveEnvOptions)
def remove(options: RemoveEnvOptions) -> None:
    """Delete an environment."""
    Terminal().print(f"removed, {remove_env(options) / 1e6:.0f} MB freed")


def _words(made: Environment) -> str:
    if not made.is_complete:
        return f"not made ({made.recipe.about})"
    packages = ", ".join(f"{name} {version}" for name, version in made.versions.items())
    return f"{packages}{f', {made.driver}' if made.driver else ''}; in {made.folder}"
