"""Where Vulkan drivers are on this machine, and which of them a program in the lab uses.

The places are those of Vulkan's loader ("Architecture of the Vulkan Loader Interfaces", driver discovery on Linux), and
that of NVIDIA's driver in containers, where the loader does not look.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import Config, Layout

_CHOSEN = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
_CONTAINER = "/usr/local/nvidia/share"
_FOLDER = "vulkan/icd.d"
_LIBRARY_FOLDERS = ("lib64", "lib/x86_64-linux-gnu", "lib")
_SYSTEM = Path("/usr")  # its libraries are found without being named


@dataclass(frozen=True)
class DriverFile:
    """An ICD file (JSON), which names a driver's library. place: what it was found through."""

    path: Path
    place: str


@dataclass(frozen=True)
class Choice:
    """The drivers that a program in the lab may use. reason: why these."""

    files: tuple[Path, ...]
    reason: str


def own_drivers(layout: Layout) -> list[Path]:
    """The software driver of a lab; none where the lab was unpacked without it."""
    return sorted((layout.root / "usr/share" / _FOLDER).glob("lvp_icd*.json"))


def machine_drivers() -> list[DriverFile]:
    """The drivers of this machine in the order in which Vulkan's loader looks, those of the environment alone if it
    names any."""
    for variable in _CHOSEN:
        if named := os.environ.get(variable):
            return [DriverFile(path, variable) for path in _expand_files(named)]
    found = {}
    if added := os.environ.get("VK_ADD_DRIVER_FILES"):
        found = {path.resolve(): DriverFile(path, "VK_ADD_DRIVER_FILES") for path in _expand_files(added)}
    for place in _places():
        for path in sorted((place / _FOLDER).glob("*.json")):
            found.setdefault(path.resolve(), DriverFile(path, str(path.parent)))
    return list(found.values())


def choose(layout: Layout, config: Config, named: Path | None = None) -> Choice:
    """Which drivers a program in the lab uses. named: the ICD file that the user names for this run.

    The files are none for the machine's own Wine, whose Vulkan loader chooses. Raises LabError when a file that was
    named does not exist, and when there is no driver at all.
    """
    for path, reason in (
        (named, "--vulkan names it"),
        (Path(config.vulkan) if config.vulkan else None, "the lab was installed with it"),
    ):
        if path:
            if not path.is_file():
                raise LabError(f"no such Vulkan driver: {path}; name the driver's ICD file (JSON)")
            return Choice((path,), reason)
    if config.wine_loader:
        return Choice((), "the machine's own Wine uses what Vulkan's loader finds")
    if own := own_drivers(layout):
        return Choice((own[0],), "the lab's software driver; --vulkan names another one")
    if found := machine_drivers():
        return Choice(tuple(file.path for file in found), "the lab has no driver of its own; the best device is used")
    raise LabError(
        f"this machine has no Vulkan driver that can be found, and the lab in {layout.folder} has none of its own; "
        "install a driver, or name its ICD file (JSON) with --vulkan"
    )


def library_folders(files: Iterable[Path]) -> list[Path]:
    """The folders with the libraries of drivers that lie under a prefix of their own, such as /usr/local/nvidia.

    The system's loader does not look there unless it is configured to. A folder with a C library is left out: no
    program of this machine would start with it.
    """
    found: dict[Path, None] = {}
    for file in files:
        name = library(file)
        prefix = file.parent.parent.parent.parent
        if not name or "/" in name or file.parent.parent.parent.name != "share" or prefix == _SYSTEM:
            continue
        for folder in (prefix / part for part in _LIBRARY_FOLDERS):
            if (folder / name).exists() and not (folder / "libc.so.6").exists():
                found[folder] = None
                break
    return list(found)


def library(file: Path) -> str | None:
    """The library that an ICD file names: a name alone, a path, or a path relative to the file; None for no library."""
    try:
        name = json.loads(file.read_text(encoding="utf-8"))["ICD"]["library_path"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return name if isinstance(name, str) and name else None


def _expand_files(named: str) -> list[Path]:
    """The files of a list of files and folders, as the loader's environment variables have it."""
    found: list[Path] = []
    for part in filter(None, named.split(os.pathsep)):
        path = Path(part)
        found += sorted(path.glob("*.json")) if path.is_dir() else [path]
    return found


def _places() -> Iterator[Path]:
    home = Path(os.environ.get("HOME", "/"))
    yield Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    yield from _folders("XDG_CONFIG_DIRS", "/etc/xdg")
    yield Path("/etc")
    yield Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share")
    yield from _folders("XDG_DATA_DIRS", "/usr/local/share:/usr/share")
    yield Path("/usr/local/share")
    yield Path("/usr/share")
    yield Path(_CONTAINER)


def _folders(variable: str, default: str) -> list[Path]:
    return [Path(part) for part in (os.environ.get(variable) or default).split(os.pathsep) if part]
