"""Making a lab, completing it, and taking it away again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from epcheck.conformance.lab import system, wine
from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import Config, Layout, size
from epcheck.conformance.lab.packages import apt, wheels
from epcheck.conformance.lab.packages.pins import DEFAULT_RUNTIME, runtime
from epcheck.conformance.lab.plan import plan, runtime_step
from epcheck.conformance.lab.process import Progress
from epcheck.conformance.lab.status import LabStatus, status
from epcheck.conformance.lab.steps import lock_lab, perform, valid_stamps


def can_install() -> str | None:
    """None if this machine can have a lab, else one sentence that says why not. Looks around only; no network."""
    if reason := system.unfit() or wheels.missing():
        return reason
    if not (reason := apt.missing()):
        return None
    try:
        wine.find_system_wine()
    except LabError:
        return reason
    return None


def install(
    folder: Path | None = None,
    *,
    runtimes: Sequence[str] = (DEFAULT_RUNTIME,),
    system_wine: bool = False,
    vulkan: Path | None = None,
    mirror: str | None = None,
    private_compiler: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> LabStatus:
    """Make a lab, or complete one: what is done already stays, what was interrupted is done again.

    folder: None for the default. runtimes: releases of ONNX Runtime (`1.24.4`, `windowsml-1.30.0`); those that the lab
    has besides stay. system_wine: use the machine's Wine (10 or later) instead of Debian's. vulkan: the ICD file of
    a Vulkan driver of the machine to use instead of the software driver. mirror: the URL of a Debian archive instead of
    the one that the machine's apt uses. private_compiler: fetch a compiler even if the machine has one.
    Takes about a minute and 1 GB. Raises LabError.
    """
    if reason := _impossible(system_wine):
        raise LabError(reason)
    wanted = [runtime(version) for version in runtimes]
    config = Config(vulkan=str(vulkan.expanduser().absolute()) if vulkan else None)
    if config.vulkan and not Path(config.vulkan).is_file():
        raise LabError(f"no such Vulkan driver: {config.vulkan}; name the driver's ICD file (JSON)")
    if system_wine:
        found = wine.find_system_wine()
        config = Config(str(found.loader), str(found.server), config.vulkan)
    layout = Layout.of(folder)
    layout.refuse_foreign()
    with lock_lab(layout) as keep_open:
        layout.mark(config)
        steps = plan(layout, config, mirror=mirror, private_compiler=private_compiler, keep_open=keep_open)
        perform(layout, [*steps, *(runtime_step(layout, w, keep_open) for w in wanted)], progress)
        apt.forget(layout)
        shutil.rmtree(layout.scratch, ignore_errors=True)
    return status(layout.folder)


def ensure_runtime(
    version: str, folder: Path | None = None, progress: Callable[[Progress], None] | None = None
) -> None:
    """Add a release of ONNX Runtime to a lab that is installed; costs nothing when it is there. Raises LabError."""
    layout = Layout.of(folder)
    layout.config()
    wanted = runtime(version)
    step = runtime_step(layout, wanted)
    if step.name in valid_stamps(layout, [step]):
        return
    if reason := wheels.missing():
        raise LabError(reason)
    with lock_lab(layout, wait=600) as keep_open:
        perform(layout, [runtime_step(layout, wanted, keep_open)], progress)


def remove(folder: Path | None = None) -> int:
    """Delete a lab, its programs ended first; returns the bytes freed.

    Raises LabError for a folder that is not a lab, and while an install works in it.
    """
    layout = Layout.of(folder)
    if not layout.exists():
        raise LabError(f"{layout.folder} is not a lab; nothing was removed")
    try:
        config = layout.config()
    except LabError:
        config = Config()  # a lab that is damaged or of another version can be removed all the same
    with lock_lab(layout):
        wine.stop(layout, config)
        freed = size(layout.folder)
        # The mark goes last: a removal that is interrupted can be repeated.
        for path in layout.folder.iterdir():
            if path not in (layout.marker, layout.lock):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        layout.marker.unlink()
        layout.lock.unlink()
        layout.folder.rmdir()
    return freed


def stop(folder: Path | None = None) -> None:
    """End every program that runs in a lab, Wine's daemons included. Raises LabError for a folder that is no lab."""
    layout = Layout.of(folder)
    wine.stop(layout, layout.config())


def _impossible(system_wine: bool) -> str | None:
    reason = can_install()
    if reason or system_wine:
        return reason
    return apt.missing()
