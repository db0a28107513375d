"""One case as a folder that anybody can run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from epcheck.api.models.examining.examination import examine
from epcheck.api.option import Option
from epcheck.api.progress import SILENT, Progress
from epcheck.conformance.preparation import pack, prepared_case, used_models
from epcheck.conformance.records.repro_command import quote_command
from epcheck.conformance.records.repro_command import repro_command as repro_command
from epcheck.conformance.scheduling import stream, use_reduction
from epcheck.conformance.scheduling.pools import session_request
from epcheck.conformance.scheduling.run import asking
from epcheck.conformance.scheduling.variant_runs import read_compiled
from epcheck.conformance.targets.target import CPU, Target
from epcheck.conformance.targets.variants import DYNAMIC, FROM, MOVED, SHARED, compile_for, variant_of
from epcheck.conformance.test_data import repro as folders
from epcheck.conformance.test_data import run_settings
from epcheck.conformance.test_data.repro import Judged, ReproError
from epcheck.conformance.test_data.run_settings import VariedModel
from epcheck.conformance.workers.client import TargetDown
from epcheck.conformance.workers.program.protocol import WEIGHTS_FILE
from epcheck.generators import suite
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase, Case

DEADLINE_S = 120.0
"""Seconds that building a stranger's case may take, besides `examination.ORACLE_S`."""


@dataclass(frozen=True)
class ReproOptions:
    """Which case, how it is run, and where its folder is made. target: whose provider, options and plugin the script
    uses; None for DirectML's provider, or another that the script is called with; of a target that makes no sessions of
    ONNX Runtime, as a callable, the folder is the ordinary one. variant: the way of running, as the
    records of a run name it (`level=all`); empty for the ordinary one. source: the folder of a harvested case;
    None for any other. reduce: whether a variant that is a use of sessions is run and reduced; seconds: for how long.
    One of a harvested case is not."""

    case_id: Annotated[str, Option("A case id, as in `epcheck list` and the report.", argument=True)]
    target: Annotated[
        str | None,
        Option("Use this target's provider and options in the script.", flags=("--target", "-t")),
    ] = None
    variant: Annotated[str, Option("Use this variant of the target, for example level=all.", metavar="AXIS=VALUE")] = ""
    out: Annotated[Path, Option("Folder to write.")] = Path("repro")
    source: Annotated[Path | None, Option("Folder of a harvested case.", metavar="FOLDER")] = None
    reduce: Annotated[bool, Option("Reduce a use of sessions that fails: fewer threads, sessions, runs and sizes.")] = (
        True
    )
    seconds: Annotated[float, Option("Time limit of that in seconds.", minimum=1)] = 180.0


def repro(options: ReproOptions, progress: Progress = SILENT) -> Path:
    """Write the case into a folder of its own under `out`: the model, ONNX test data, and a script that needs
    onnxruntime only. Returns the folder. progress: is told what was measured of a use. Raises SelectionError for an
    unknown id, TargetError for a target or a variant that is none, and ReproError when the case cannot be built or
    written, or another target compiles nothing of it. A case of a folder is a stranger's: it is built in a process of
    its own, within bounds; ExaminationError where it breaks them."""
    case = suite.case_by_id(options.case_id, options.source)
    target = _target(options)
    if target is not None and target.compiler is not None:
        target = _compile(case, target, options)
    if options.source is None:
        built = _build(case, target)
    else:
        request = _Request(case, target)
        built = examine(_build_of_stranger, request, options.source, SILENT.say, DEADLINE_S)
        built = replace(built, known=replace(built.known, words=case.id, session={}, files={}))
    if target is None:
        return folders.write_case(case.id, built.model, built.feeds, built.known, options.out)
    reduced: tuple[str, ...] = ()
    if options.reduce and options.source is None and target.makes_sessions and "use" in target.request_defaults:
        target, reduced = _reduce_use(case, target, options, progress)
    known = run_settings.apply_target(built.known, target, built.varied, reduced)
    return folders.write_case(case.id, built.model, built.feeds, known, options.out)


def _compile(case: Case, target: Target, options: ReproOptions) -> Target:
    """The variant with what the other target compiles of the case. Raises ReproError where that is nothing."""
    if options.source is not None:
        raise ReproError(f"case '{case.id}' is harvested, and no other target compiles it; leave out --variant")
    compiler = compile_for(target)
    assert target.compiler is not None
    with asking(target.compiler, prepared_case.of(folders.build_case(case))) as run:
        compiled, why = read_compiled(compiler, run(compiler))
    if why:
        raise ReproError(f"case '{case.id}': {why}")
    return replace(target, compiled=compiled)


def _reduce_use(
    case: Case, target: Target, options: ReproOptions, progress: Progress
) -> tuple[Target, tuple[str, ...]]:
    """The use that is left of the target's, and what was measured, as sentences."""
    ((candidate,), _) = stream.choose((options.target,) if options.target else (), "none")
    prepared = prepared_case.of(folders.build_case(case))
    try:
        with asking(candidate, prepared) as run, progress.working() as note:
            note(f"{target.variant}: it is run and reduced, for {options.seconds:g} s at most")
            reduction = use_reduction.reduce_use(prepared, target, candidate, run, options.seconds)
    except TargetDown as error:
        progress.say(f"{target.variant} is not reduced: {error}")
        return target, ()
    for sentence in reduction.describe():
        progress.say(f"{target.variant}: {sentence}")
    return reduction.apply(target), reduction.describe()


@dataclass(frozen=True)
class _Built:
    """What a folder has of a case. varied: the model of the target's variant, where that needs another."""

    model: bytes
    feeds: Mapping[str, Array]
    known: Judged
    varied: VariedModel | None


@dataclass(frozen=True)
class _Request:
    case: Case
    target: Target | None


def _build_of_stranger(request: _Request, _say: Callable[[str], None]) -> _Built:
    return _build(request.case, request.target)


def _build(case: Case, target: Target | None) -> _Built:
    built = folders.build_case(case)
    varied = None if target is None else _vary_model(built, target)
    return _Built(built.model, built.feeds, folders.judged(built), varied)


def _target(options: ReproOptions) -> Target | None:
    """The target, or the variant of it, whose sessions the script makes; None for any that it is called with, and for
    one that makes none."""
    if options.target is None and not options.variant:
        return None
    ((target,), _) = stream.choose((options.target,) if options.target else (), "none")
    if options.variant:
        return variant_of(target, options.variant, _find_compiler(options.variant))
    return target if target.makes_sessions else None


def _find_compiler(variant: str) -> Target | None:
    """The target that compiles what a variant loads; None for any other variant."""
    if not variant.startswith(FROM):
        return None
    ((compiler,), _) = stream.choose((variant.removeprefix(FROM),), "none")
    return compiler


def _vary_model(built: BuiltCase, target: Target) -> VariedModel | None:
    if target.packed:
        return _pack_with_copy(built)
    if target.variant in DYNAMIC:
        return VariedModel(used_models.open_sizes(built.model))
    if others := used_models.list_others(target.variant, built.model):
        return VariedModel(built.model, others=tuple(others))
    if target.variant == SHARED and (initializers := used_models.save_initializers(built.model)):
        return VariedModel(built.model, initializers=initializers)
    if target.variant in MOVED:
        model, weights = used_models.move_weights(built.model, WEIGHTS_FILE)
        if not weights:
            raise ReproError(f"case '{built.case.id}' has no initializer whose data can be elsewhere")
        return VariedModel(model, weights=weights)
    return None


def _pack_with_copy(built: BuiltCase) -> VariedModel:
    prepared = prepared_case.of(built)
    if prepared.must_be_refused or not prepared.graph:
        raise ReproError(f"case '{built.case.id}' cannot share a session with a copy of itself")
    cases = session_request.in_session([prepared], packed=True)
    return VariedModel(pack.model(cases), pack.prefixes(cases))


def script_command(folder: Path, options: ReproOptions) -> str:
    """The command line that runs the script of such a folder, in the target's interpreter where one is named and this
    shell can start it; that of `epcheck replay` for a target whose sessions the script cannot make."""
    script = str(folder / "run.py")
    line = ["python", script, CPU]
    if options.target or options.variant:
        ((target,), _) = stream.choose((options.target,) if options.target else (), "none")
        if target.calls_directml:
            return repro_command(options.case_id, target.name)
        if not target.makes_sessions:
            return quote_command("epcheck", "replay", str(folder), "--target", target.name)
        set_for_it = {
            name: value for name, value in (target.environment or {}).items() if os.environ.get(name) != value
        }
        own = ["env", *(f"{name}={value}" for name, value in set_for_it.items())] if set_for_it else []
        line = ["python", script] if target.in_lab or sys.platform == "win32" else [*own, *target.command, script]
    return quote_command(*line)
