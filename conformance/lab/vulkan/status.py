"""Whether the Vulkan drivers of this machine can be loaded by the lab, and what is missing if not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import Config, Layout
from epcheck.conformance.lab.vulkan.drivers import (
    DriverFile,
    choose,
    library,
    library_folders,
    machine_drivers,
    own_drivers,
)
from epcheck.conformance.lab.vulkan.packages import PACKAGES
from epcheck.conformance.start_process import run_process

_MACHINE_LOADER = Path("/lib64/ld-linux-x86-64.so.2")
_SYSTEM_FOLDERS = ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib")
_COMPLAINT = re.compile(r"cannot be preloaded \(([^)]*)\)")
_STOPPED = re.compile(r"error while loading shared libraries: ([^\s:]+): cannot open")
_NOT_FOUND = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)


@dataclass(frozen=True)
class MissingLibrary:
    """A library that a driver needs and the lab does not find. package: Debian's that has it; None where unknown."""

    name: str
    package: str | None


@dataclass(frozen=True)
class VulkanDriver:
    """A Vulkan driver. file: its ICD file. place: what it was found through. library: None where the file names none.

    loadable: the library and all that it needs is found. problem: why not, in a few words. used: the lab offers it to
    DirectML.
    """

    file: Path
    place: str
    library: str | None
    used: bool
    loadable: bool
    missing: tuple[MissingLibrary, ...] = ()
    problem: str | None = None


@dataclass(frozen=True)
class VulkanStatus:
    """The drivers of a machine, and why the lab uses those that it does, or that it cannot use any."""

    drivers: tuple[VulkanDriver, ...]
    reason: str

    @property
    def usable(self) -> bool:
        """Whether a driver that is used can be loaded."""
        return any(driver.used and driver.loadable for driver in self.drivers)


def vulkan_status(folder: Path | None = None) -> VulkanStatus:
    """Look for Vulkan drivers and try which the lab could load; no driver is started.

    folder: the lab's; without a lab in it, the machine's own loader tries. Raises LabError on other systems than Linux.
    """
    if sys.platform != "linux":
        raise LabError("the lab is for Linux; on Windows, DirectML uses Direct3D's own drivers")
    layout = Layout.of(folder)
    config = layout.config() if layout.exists() else Config()
    chosen: tuple[Path, ...] = ()
    try:
        choice = choose(layout, config)
        chosen, reason = choice.files, choice.reason
    except LabError as error:
        reason = str(error)
    found = machine_drivers()
    known = {file.path for file in found}
    extra = [(path, "the lab") for path in own_drivers(layout)]
    extra += [(path, "the lab's choice") for path in chosen if path not in {path for path, _ in extra}]
    found = [*(DriverFile(path, place) for path, place in extra if path not in known), *found]
    everything = config.wine_loader is not None and not chosen
    return VulkanStatus(tuple(_try_driver(file, layout, everything or file.path in chosen) for file in found), reason)


def why_none_loads(files: Sequence[Path], folder: Path | None = None) -> str:
    """Why the lab can load none of these Vulkan drivers, in a clause with what to install; empty where it can load
    one. files: their ICD files. folder: the lab's."""
    tried = [_try_driver(DriverFile(path, "the lab's choice"), Layout.of(folder), True) for path in files]
    if not tried or any(driver.loadable for driver in tried):
        return ""
    first = tried[0]
    if not first.missing:
        return f"its Vulkan driver {first.file} cannot be loaded: {first.problem}"
    packages = sorted({lacks.package for lacks in first.missing if lacks.package})
    known = f" (Debian: {', '.join(packages)})" if packages else ""
    return (
        f"its Vulkan driver {first.file} needs {', '.join(lacks.name for lacks in first.missing)}: install them{known}"
    )


def _try_driver(file: DriverFile, layout: Layout, used: bool) -> VulkanDriver:
    if not file.path.is_file():
        return VulkanDriver(file.path, file.place, None, used, False, (), "the file does not exist")
    name = library(file.path)
    if name is None:
        return VulkanDriver(file.path, file.place, None, used, False, (), "the file names no library")
    searched = [*os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep), *map(str, library_folders([file.path]))]
    missing, problem = _load(
        str((file.path.parent / name).resolve()) if "/" in name else name, layout, list(filter(None, searched))
    )
    loadable = not missing and problem is None
    return VulkanDriver(file.path, file.place, name, used, loadable, missing, problem)


def _load(name: str, layout: Layout, folders: Sequence[str]) -> tuple[tuple[MissingLibrary, ...], str | None]:
    """Have the lab's own loader find a library, and all that it needs, for Wine; the machine's where there is no lab.

    Returns what is missing, and what the loader complains of.
    """
    program, loader = layout.root / "usr/lib/wine/wine64", layout.libraries / _MACHINE_LOADER.name
    if not (program.is_file() and loader.is_file()):
        program, loader = Path("/bin/sh"), _MACHINE_LOADER
    path = ["--library-path", os.pathsep.join(folders)] if folders else []
    try:
        done = _run([str(loader), *path, "--preload", name, "--list", str(program)])
        if complaint := _COMPLAINT.search(done.stderr):
            return (), f"{name}: {complaint[1]}"
        if done.returncode == 0:
            return (), None
        # The loader stops at the first library that is missing. Of a library that stands alone it lists them all.
        names = _STOPPED.findall(done.stderr)
        everywhere = [*folders, str(layout.libraries), *_SYSTEM_FOLDERS]
        if located := next((found for part in everywhere if (found := Path(part, name)).is_file()), None):
            listed = _run([str(loader), "--library-path", os.pathsep.join(everywhere), "--list", str(located)])
            names += _NOT_FOUND.findall(listed.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        return (), f"{loader} cannot be started: {error}"
    missing = tuple(MissingLibrary(found, PACKAGES.get(found)) for found in dict.fromkeys(names))
    return missing, None if missing else done.stderr.strip() or f"{loader} failed"


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return run_process(command, env={"LC_ALL": "C", "PATH": os.defpath}, timeout=30)
