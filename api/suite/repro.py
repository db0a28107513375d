"""One case as a folder that anybody can run."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from epcheck.api.option import Option
from epcheck.conformance.preparation import pack, prepared_case
from epcheck.conformance.scheduling import stream
from epcheck.conformance.scheduling.pools import session_request
from epcheck.conformance.targets.variants import variant_of
from epcheck.conformance.test_data import repro as folders
from epcheck.conformance.test_data import run_settings
from epcheck.conformance.test_data.repro import Judged, ReproError
from epcheck.generators import suite
from epcheck.generators.case import BuiltCase


@dataclass(frozen=True)
class ReproOptions:
    """Which case, how it is run, and where its folder is made. target: whose provider, options and plugin the script
    uses; None for DirectML's provider, or another that the script is called with. variant: the way of running, as the
    records of a run name it (`level=all`); empty for the ordinary one. source: the folder of a harvested case;
    None for any other."""

    case_id: Annotated[str, Option("A case id, as `epcheck list` and the report print it.", argument=True)]
    target: Annotated[
        str | None,
        Option("Have the script use this target's provider and options.", flags=("--target", "-t")),
    ] = None
    variant: Annotated[str, Option("Run it in this way of the target, as level=all.", metavar="AXIS=VALUE")] = ""
    out: Annotated[Path, Option("Where the folder is made.")] = Path("repro")
    source: Annotated[Path | None, Option("The folder of a harvested case.", metavar="FOLDER")] = None


def repro(options: ReproOptions) -> Path:
    """Write the case into a folder of its own under `out`: the model, ONNX test data, and a script that needs
    onnxruntime only. Returns the folder. Raises SelectionError for an unknown id, TargetError for a target or a variant
    that is none, and ReproError when the case cannot be built or written."""
    case = suite.case_by_id(options.case_id, options.source)
    try:
        built = case.build()
    except Exception as error:  # of the case's generator, whatever it is
        raise ReproError(f"case '{case.id}' cannot be built: {type(error).__name__}: {error}") from error
    return folders.write(built, options.out, _known(built, options))


def _known(built: BuiltCase, options: ReproOptions) -> Judged:
    """What is right in the case, and how the target runs it."""
    known = folders.judged(built)
    if options.target is None and not options.variant:
        return known
    ((target,), _) = stream.choose((options.target,) if options.target else (), "none")
    if target.arguments[:1] != ("onnxruntime",):
        raise ReproError(
            f"target '{target.name}' runs no sessions of ONNX Runtime, which is all that the script can do"
        )
    if options.variant:
        target = variant_of(target, options.variant)
    return run_settings.settled(known, target, _packed(built) if target.packed else None)


def _packed(built: BuiltCase) -> tuple[bytes, tuple[str, ...]]:
    """A model with the case and a copy of it, and what stands before the names of each."""
    prepared = prepared_case.of(built)
    if prepared.must_be_refused or not prepared.graph:
        raise ReproError(f"case '{built.case.id}' cannot share a session with a copy of itself")
    cases = session_request.in_session([prepared], packed=True)
    return pack.model(cases), pack.prefixes(cases)


def script_command(folder: Path, options: ReproOptions) -> str:
    """The command line that runs the script of such a folder, in the target's interpreter where one is named and this
    shell can start it."""
    line = ["python", "run.py", "CPUExecutionProvider"]
    if options.target or options.variant:
        ((target,), _) = stream.choose((options.target,) if options.target else (), "none")
        set_for_it = {
            name: value for name, value in (target.environment or {}).items() if os.environ.get(name) != value
        }
        own = ["env", *(f"{name}={value}" for name, value in set_for_it.items())] if set_for_it else []
        line = ["python", "run.py"] if target.in_lab or sys.platform == "win32" else [*own, *target.command, "run.py"]
    return f'cd "{folder}" && {" ".join(shlex.quote(word) for word in line)}'


def repro_command(case_id: str) -> str:
    """The command line that does the same; in double quotes, since those are all that Windows' cmd.exe knows."""
    return folders.command(case_id)
