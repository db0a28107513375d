"""One case as a folder that anybody can run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from epcheck.api.option import Option
from epcheck.conformance.test_data import repro as folders
from epcheck.conformance.test_data.repro import ReproError
from epcheck.generators import suite


@dataclass(frozen=True)
class ReproOptions:
    """Which case, and where its folder is made. source: the folder of a harvested case; None for any other."""

    case_id: Annotated[str, Option("A case id, as `epcheck list` and the report print it.", argument=True)]
    out: Annotated[Path, Option("Where the folder is made.")] = Path("repro")
    source: Annotated[Path | None, Option("The folder of a harvested case.", metavar="FOLDER")] = None


def repro(options: ReproOptions) -> Path:
    """Write the case into a folder of its own under `out`: the model, ONNX test data, and a script that needs
    onnxruntime only. Returns the folder. Raises SelectionError for an unknown id and ReproError when the case cannot be
    built or written."""
    case = suite.case_by_id(options.case_id, options.source)
    try:
        built = case.build()
    except Exception as error:  # of the case's generator, whatever it is
        raise ReproError(f"case '{case.id}' cannot be built: {type(error).__name__}: {error}") from error
    return folders.write(built, options.out)


def repro_command(case_id: str) -> str:
    """The command line that does the same; in double quotes, since those are all that Windows' cmd.exe knows."""
    return folders.command(case_id)
