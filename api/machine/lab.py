"""The real DirectML provider on Linux, in a private folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from epcheck.api.option import Option
from epcheck.api.progress import SILENT, Progress
from epcheck.conformance import lab
from epcheck.conformance.lab import LabStatus as LabStatus

Folder = Annotated[Path | None, Option("The lab's folder.", default="$EPCHECK_LAB, or the user's cache", file=False)]


@dataclass(frozen=True)
class LabOptions:
    """Which lab; None for EPCHECK_LAB or the user's cache."""

    folder: Folder = None


@dataclass(frozen=True)
class InstallLabOptions:
    """Where the lab is made, and of what. runtimes: releases of ONNX Runtime, `1.24.4` or `windowsml-1.30.0`; those
    that the lab has besides stay. mirror: None for the Debian archive of this machine's apt."""

    folder: Folder = None
    runtimes: Annotated[
        tuple[str, ...],
        Option("A release of onnxruntime-directml, or windowsml-VERSION; repeat for more.", flags=("--runtime",)),
    ] = (lab.DEFAULT_RUNTIME,)
    system_wine: Annotated[bool, Option("Use this machine's Wine (10 or later).", flags=("--system-wine",))] = False
    vulkan: Annotated[
        Path | None, Option("Use this machine's Vulkan driver, a GPU's for example.", metavar="ICD.json")
    ] = None
    mirror: Annotated[str | None, Option("The Debian archive to fetch packages from.", metavar="URL")] = None
    private_compiler: Annotated[
        bool, Option("Fetch a compiler even if this machine has one.", flags=("--private-compiler",))
    ] = False


def install_lab(options: InstallLabOptions | None = None, *, progress: Progress = SILENT) -> LabStatus:
    """Install the lab, or complete it: what is there stays. About 1.5 minutes and 1 GB; no root. Raises LabError."""
    options = options or InstallLabOptions()
    with progress.installing() as step:
        return lab.install(
            options.folder,
            runtimes=options.runtimes,
            system_wine=options.system_wine,
            vulkan=options.vulkan,
            mirror=options.mirror,
            private_compiler=options.private_compiler,
            progress=step,
        )


def lab_status(options: LabOptions | None = None) -> LabStatus:
    """What the lab has; nothing is installed in a folder that is none or is not there."""
    return lab.status((options or LabOptions()).folder)


def remove_lab(options: LabOptions | None = None) -> int:
    """End what runs in the lab and delete it. Returns the bytes that were freed. Raises LabError."""
    return lab.remove((options or LabOptions()).folder)
