"""`epcheck repro`: one case as a folder that anybody can run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epcheck.cli.terminal import failure
from epcheck.conformance.test_data import repro
from epcheck.generators import suite
from epcheck.generators.suite import SelectionError

app = typer.Typer(add_completion=False)


def write_repro(case_id: str, out: Path) -> Path:
    """Write the case of that id into a folder of its own under `out`; returns the folder.

    Raises SelectionError for an unknown id and ReproError when it cannot be written.
    """
    return repro.write(suite.case_by_id(case_id).build(), out)


def archive(case_id: str) -> bytes | None:
    """What `write_repro` writes, as a zip file, for a run's page; None for a case that this suite does not have."""
    try:
        return repro.archive(suite.case_by_id(case_id).build())
    except SelectionError:
        return None


@app.command()
def command(
    case_id: Annotated[str, typer.Argument(help="A case id, as `epcheck list` and the report print it.")],
    out: Annotated[Path, typer.Option(help="Where the folder is made.")] = Path("repro"),
) -> None:
    """Write a case as model.onnx, ONNX test data and a script that needs onnxruntime only."""
    with failure.one_sentence():
        folder = write_repro(case_id, out)
        typer.echo(f'{folder}: run it with: cd "{folder}" && python run.py CPUExecutionProvider')
