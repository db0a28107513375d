"""The real DirectML provider on Linux, in a private folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from epcheck.api.option import Option
from epcheck.api.progress import SILENT, Progress
from epcheck.conformance import lab
from epcheck.conformance.lab import LabStatus as LabStatus
from epcheck.conformance.lab import Packed as Packed
from epcheck.conformance.lab import VulkanStatus as VulkanStatus

Folder = Annotated[Path | None, Option("The lab's folder.", default="$EPCHECK_LAB, or the user's cache", file=False)]


@dataclass(frozen=True)
class LabOptions:
    """Which lab; None for EPCHECK_LAB or the user's cache."""

    folder: Folder = None


@dataclass(frozen=True)
class LabStatusOptions(LabOptions):
    """Which lab. vulkan: show the Vulkan drivers of this machine as well, see `vulkan_status`."""

    vulkan: Annotated[
        bool, Option("List the Vulkan drivers of this machine and what they lack.", flags=("--vulkan",))
    ] = False


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
    mirror: Annotated[str | None, Option("Debian archive for packages.", metavar="URL")] = None
    private_compiler: Annotated[
        bool, Option("Fetch a compiler even if this machine has one.", flags=("--private-compiler",))
    ] = False


@dataclass(frozen=True)
class PackLabOptions:
    """Which lab is written to which file. runtimes: those that are packed; empty for all of the lab. software_driver:
    the file holds the software Vulkan driver too."""

    file: Annotated[Path, Option("File to write.", argument=True, metavar="FILE", folder=False)]
    folder: Folder = None
    runtimes: Annotated[
        tuple[str, ...],
        Option("Release to pack; repeat for more.", flags=("--runtime",), default="all in the lab"),
    ] = ()
    software_driver: Annotated[
        bool,
        Option("Include the software Vulkan driver, for machines without a GPU.", flags=("--software-driver",)),
    ] = False


@dataclass(frozen=True)
class UnpackLabOptions:
    """From which file a lab is made, and where; None for EPCHECK_LAB or the user's cache."""

    file: Annotated[Path, Option("A file of `epcheck lab pack`.", argument=True, metavar="FILE", folder=False)]
    folder: Folder = None


@dataclass(frozen=True)
class LabPythonOptions:
    """Which script the lab's Windows Python runs. arguments: what the script gets. runtime: a release of ONNX Runtime
    that the lab has."""

    script: Annotated[Path, Option("A script, `run.py` of a reproduction.", argument=True, folder=False)]
    arguments: Annotated[
        tuple[str, ...], Option("Arguments of the script.", argument=True, metavar="[ARGUMENT]...")
    ] = ()
    folder: Folder = None
    runtime: Annotated[str, Option("The release of onnxruntime-directml, or windowsml-VERSION.")] = lab.DEFAULT_RUNTIME


def install_lab(options: InstallLabOptions | None = None, *, progress: Progress = SILENT) -> LabStatus:
    """Install the lab, or what is missing of it. Takes about a minute and 1 GB; needs no root. Raises LabError."""
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


def pack_lab(options: PackLabOptions, *, progress: Progress = SILENT) -> Packed:
    """Write the lab as one file, for machines without network. About 2 minutes and 40 MB, without the software Vulkan
    driver. Raises LabError and OSError."""
    with progress.installing() as step:
        return lab.pack(
            options.file,
            options.folder,
            runtimes=options.runtimes,
            software_driver=options.software_driver,
            progress=step,
        )


def unpack_lab(options: UnpackLabOptions, *, progress: Progress = SILENT) -> LabStatus:
    """Make a lab from a packed one: some seconds, no network, no other program. Raises LabError and OSError."""
    with progress.installing() as step:
        return lab.unpack(options.file, options.folder, progress=step)


def lab_status(options: LabOptions | None = None) -> LabStatus:
    """What the lab has; nothing is installed in a folder that is none or is not there."""
    return lab.status((options or LabOptions()).folder)


def vulkan_status(options: LabOptions | None = None) -> VulkanStatus:
    """The Vulkan drivers of this machine, which of them the lab uses, and what they lack. Raises LabError."""
    return lab.vulkan_status((options or LabOptions()).folder)


def remove_lab(options: LabOptions | None = None) -> int:
    """Stop all processes of the lab and delete it. Returns the bytes that were freed. Raises LabError."""
    return lab.remove((options or LabOptions()).folder)


def run_lab_python(options: LabPythonOptions) -> int:
    """Run a script with the lab's Windows Python, in which `import onnxruntime` has DmlExecutionProvider. Its streams
    are this process's; nothing is jailed. Returns its exit code. Raises LabError."""
    return lab.run_script(options.script, options.arguments, options.folder, runtime=options.runtime)
