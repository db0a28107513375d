"""`epcheck expect`: what a run found, written down as expected for now."""

from __future__ import annotations

import typer

from epcheck.api.suite.expect import ExpectOptions, expect
from epcheck.cli.options import command
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(add_completion=False)


@command(app, ExpectOptions)
def expect_failures(options: ExpectOptions) -> None:
    """Add expectations for the failures of a run, with a reason, and show the diff. `--write` writes the file.

    A glob is written only where every case that it matches fails; `epcheck run --expect FILE` uses the file.
    """
    found = expect(options)
    if not found.added:
        Terminal(stderr=True).print(f"{found.file}: nothing to add: {found.covered:,} failures are already expected")
        return
    Terminal().print_document(found.diff)
    done = "written" if found.written else "dry run; write it with --write"
    Terminal(stderr=True).print(f"{found.file}: {found.added:,} failures are expected with it ({done})")
