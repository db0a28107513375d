"""`epcheck profile`: what a provider claims and what is expected of it, as JSON."""

from __future__ import annotations

import json

import typer

from epcheck.api.runs.profile import (
    ProfileOptions,
    ProviderProfile,
    ReadProfileOptions,
    profile_schema,
    profile_text,
    provider_profile,
    read_profile,
)
from epcheck.cli.options import command
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(
    add_completion=False,
    help="Provider profiles: a provider's claims and expected deviations, as JSON.",
    no_args_is_help=True,
)


@command(app, ProfileOptions, prints_data=True)
def write(options: ProfileOptions) -> None:
    """Write the profile of a target, or print it where no file is named."""
    found = provider_profile(options)
    if options.out:
        Terminal().print(f"{_describe_profile(found)}: {options.out}")
    else:
        Terminal().print_document(profile_text(found))


@command(app, ReadProfileOptions)
def read(options: ReadProfileOptions) -> None:
    """Read a profile, say what it has, and write its exclusions as expectations if asked. Exit code 2 if it is none."""
    Terminal().print(_describe_profile(read_profile(options)))


@app.command()
def schema() -> None:
    """Print the JSON Schema of a profile."""
    Terminal().print_document(json.dumps(profile_schema(), indent=2))


def _describe_profile(found: ProviderProfile) -> str:
    claims = "no claims" if found.claims is None else f"{len(found.claims.operators):,} operator versions claimed"
    return f"{found.provider}, target {found.target}: {claims}, {len(found.expectations):,} exclusions"
