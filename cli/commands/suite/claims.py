"""`epcheck claims`: the tables of what providers claim."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Annotated

import typer

from epcheck.cli.terminal import failure
from epcheck.generators.claims import PROVIDERS, documentation, table_path

app = typer.Typer(
    add_completion=False,
    help="What providers claim to support: the tables that cases are read against.",
    no_args_is_help=True,
)

PATIENCE_S = 60
"""Seconds to wait for a page."""


@app.callback()
def _root() -> None:
    """What providers claim to support: the tables that cases are read against."""


@app.command()
def refresh(
    source: Annotated[
        str, typer.Argument(help="docs/OperatorKernels.md of an ONNX Runtime release: a file or a URL.")
    ] = documentation.SOURCE,
    provider: Annotated[str, typer.Option(help="Whose table.")] = PROVIDERS[0],
    out: Annotated[Path | None, typer.Option(help="The table to write.", show_default="the one in use")] = None,
) -> None:
    """Take over what ONNX Runtime's documentation says of a provider's kernels, and say what is new."""
    with failure.one_sentence():
        path = table_path(provider)
        if path is None:
            failure.say(f"provider '{provider}' has no claim table; there is one of {', '.join(PROVIDERS)}")
            raise typer.Exit(failure.CANNOT)
        rows = documentation.parse(_read(source), provider)
        found = documentation.refreshed(json.loads(path.read_text(encoding="utf-8")), rows)
        written = out or path
        written.write_text(json.dumps(found.table, indent=1) + "\n", encoding="utf-8", newline="\n")
    for what, names in (("added", found.added), ("changed", found.changed), ("not on the page", found.undocumented)):
        typer.echo(f"{what}: {', '.join(names) or 'nothing'}")
    typer.echo(f"{len(found.table['operators'])} operator versions in {written}")


def _read(source: str) -> str:
    if "://" not in source:
        return Path(source).read_text(encoding="utf-8")
    if not source.startswith(("https://", "http://")):
        raise documentation.DocumentationError(f"'{source}' is no address of a page; give a file, http or https")
    with urllib.request.urlopen(source, timeout=PATIENCE_S) as answer:
        return str(answer.read().decode("utf-8"))
