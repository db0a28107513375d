"""What is installed on this machine, which targets work here, and what would make others work."""

from __future__ import annotations

import importlib.metadata
import platform
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from epcheck.api.machine.cache import cache_status
from epcheck.api.option import MACHINE, Option
from epcheck.api.progress import SILENT, Progress
from epcheck.api.suite.run import run
from epcheck.api.suite.run_options import RunOptions
from epcheck.conformance import lab
from epcheck.conformance.records.terms import PASS
from epcheck.conformance.targets.choice import best_choice, why_no_dml
from epcheck.conformance.targets.config import CONFIG, load_config
from epcheck.conformance.targets.recipes.environment import known_environments
from epcheck.conformance.targets.target import CPU, DML
from epcheck.conformance.workers import confinement
from epcheck.conformance.workers.program import machine
from epcheck.generators.error import EpcheckError

PACKAGES = ("epcheck", "onnx", "onnxruntime", "onnxruntime-directml", "onnxruntime-gpu", "numpy")
"""Distributions whose version is told where they are installed."""

TRIED = "Relu"
"""The operator of the case by which a target is tried."""


@dataclass(frozen=True)
class StatusOptions:
    """try_targets: start each target that is ready and run one case on it."""

    try_targets: Annotated[
        bool, Option("Start each ready target and run one case on it.", flags=("--try",), panel=MACHINE)
    ] = False


@dataclass(frozen=True)
class TargetStatus:
    """A target that this machine has or could have.

    ready: whether a run on it can begin; where it was tried, whether its case passed. about: what it is, or what keeps
    it from running. command: what runs the suite on it, or what has to be done first; empty where nothing helps here.
    """

    name: str
    ready: bool
    about: str
    command: str


@dataclass(frozen=True)
class MachineStatus:
    """installed: what is installed -> its version, or where it is and how large. targets: the default first."""

    installed: Mapping[str, str]
    targets: tuple[TargetStatus, ...]

    @property
    def default(self) -> TargetStatus:
        """The target of a run that names none."""
        return self.targets[0]


def status(options: StatusOptions | None = None, *, progress: Progress = SILENT) -> MachineStatus:
    """What is installed, which targets work here, and which command makes the others work. Nothing is started unless
    the options say so. Raises TargetError where `epcheck.toml` is wrong."""
    best = best_choice()
    targets = {target.name: target for target in _targets()}
    default = targets.pop(best.specification)
    if best.install_lab:
        default = replace(default, about=f"{default.about}; a run installs it first, about a minute")
    found = (default, *sorted(targets.values(), key=lambda target: not target.ready))
    if options is not None and options.try_targets:
        found = tuple(_try_target(target, progress) if target.ready else target for target in found)
    return MachineStatus(dict(_list_installed()), found)


def _list_installed() -> Iterator[tuple[str, str]]:
    yield "Python", f"{platform.python_version()} ({machine.system().partition('-')[0]} {machine.architecture()})"
    for name in PACKAGES:
        try:
            yield name, importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    if sys.platform != "win32":
        found = lab.status()
        yield "DirectML lab", _lab_in_words(found) if found.installed else "not installed"
    yield "jail", confinement.describe_jail()
    kept = cache_status()
    yield "cache", f"{kept.entries:,} entries, {kept.size_bytes / 1e6:.0f} MB"


def _lab_in_words(found: lab.LabStatus) -> str:
    releases = ", ".join(found.runtimes)
    return f"{releases} on Wine {found.wine_version}, {found.size_bytes / 1e9:.1f} GB in {found.folder}"


def _targets() -> Iterator[TargetStatus]:
    obstacle = why_no_dml()
    yield TargetStatus("cpu", True, "CPUExecutionProvider of this interpreter", "epcheck run --target cpu")
    for name, about in (("dml", "DirectML's provider"), ("directml", "DirectML itself, without the provider")):
        yield TargetStatus(
            name,
            obstacle is None,
            about if obstacle is None else f"{about}: {obstacle}",
            f"epcheck run --target {name} --thin" if obstacle is None else _command_for_dml(),
        )
    yield TargetStatus("reference", True, "onnx.reference.ReferenceEvaluator", "epcheck run --target reference --thin")
    for provider in _other_providers():
        name = f"{sys.executable}#{provider}"
        about = f"{provider}, built into the onnxruntime of this interpreter"
        yield TargetStatus(name, True, about, f"epcheck run --target {shlex.quote(name)} --thin")
    for made in known_environments():
        command = f"epcheck run --target {made.name} --thin" if made.is_complete else f"epcheck env create {made.name}"
        yield TargetStatus(made.name, made.is_complete, made.recipe.about, command)
    for name in load_config().get("targets", {}):
        yield TargetStatus(name, True, CONFIG, f"epcheck run --target {shlex.quote(name)} --thin")


def _command_for_dml() -> str:
    """What makes the target `dml` work; empty where nothing does."""
    if sys.platform == "win32":
        return "python -m pip install onnxruntime-directml"
    return "" if lab.can_install() else "epcheck lab install"


def _other_providers() -> tuple[str, ...]:
    """What the runtime of this interpreter has beside the CPU provider and DirectML; those of no machine left out."""
    import onnxruntime

    of_no_use = {CPU, DML, "AzureExecutionProvider"}  # the last one asks a server
    return tuple(name for name in onnxruntime.get_available_providers() if name not in of_no_use)


def _try_target(target: TargetStatus, progress: Progress) -> TargetStatus:
    """The target after one case."""
    with progress.working() as say, tempfile.TemporaryDirectory() as root:
        say(f"trying {target.name}")
        options = RunOptions(
            (target.name,), baseline="none", reference=False, operators=(TRIED,), dtypes=("float32",), limit=1,
            root=Path(root),
        )  # fmt: skip
        try:
            result = run(options)
        except EpcheckError as error:
            return replace(target, ready=False, about=f"{target.about}: {error}")
        if result.summary.by_status.get(PASS):
            return replace(target, about=f"{target.about}; tried: a case passes in {result.run.duration_s:.1f} s")
        why = "; ".join(record.reason for record in result.records()) or result.run.status
        return replace(target, ready=False, about=f"{target.about}; tried: {why}")
