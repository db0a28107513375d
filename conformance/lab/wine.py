"""Wine in a folder: Debian's packages made to work from there, or the machine's own Wine; and a prefix of our own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psutil

from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import Config, Layout
from epcheck.conformance.lab.graphics.pe import mark_builtin, strip_debug
from epcheck.conformance.lab.packages.apt import Archive, describe_other_versions
from epcheck.conformance.lab.packages.relocation import relocate, use_folders_of_program
from epcheck.conformance.lab.process import Say, Watch, cores, run
from epcheck.conformance.lab.vulkan import drivers
from epcheck.conformance.records import atomic_file
from epcheck.conformance.start_process import find_program, run_process

PACKAGES = ("wine64", "libvulkan1", "mesa-vulkan-drivers")
_OLDEST = 10  # of Wine; version 8 lacks functions that ONNX Runtime imports
_LINGER = 1  # seconds that Wine's daemons outlive the last program: a restarted worker finds them warm
_STOP_S = 30
_LAYER = "libVkLayer_MESA_device_select.so"
_SYSTEM_LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/lib64", "/usr/local/lib")
_PASSED_ON = ("XDG_RUNTIME_DIR", "USER", "LOGNAME", "TZ", "WINEDEBUG", "CUDA_VISIBLE_DEVICES")
_PASSED_ON_PREFIXES = ("EPCHECK_HOOK", "LP_", "MESA_", "NVIDIA_", "VKD3D_", "GALLIUM_")
_QUIET = {"WINEDEBUG": "-all", "VKD3D_DEBUG": "none", "VKD3D_SHADER_DEBUG": "none"}


@dataclass(frozen=True)
class Wine:
    """A Wine: the programs that load Windows programs and that keep their common state."""

    loader: Path
    server: Path


def find_system_wine() -> Wine:
    """The machine's own Wine. Raises LabError when there is none, or none that is recent enough."""
    loader = find_program("wine64") or find_program("wine") or find_program("wine64", path="/usr/lib/wine")
    if not loader:
        raise LabError("this machine has no Wine on its PATH; install Wine 10 or later, or leave --system-wine out")
    folders = os.pathsep.join([os.environ.get("PATH", ""), str(Path(loader).resolve().parent), "/usr/lib/wine"])
    server = find_program("wineserver", path=folders) or find_program("wineserver64", path=folders)
    if not server:
        raise LabError(f"{loader} has no wineserver beside it; install the whole of Wine, or leave --system-wine out")
    printed = run([loader, "--version"], what=f"{loader} --version", timeout=60)
    major = re.search(r"(\d+)\.\d+", printed)
    if not major or int(major[1]) < _OLDEST:
        raise LabError(f"{loader} is {printed.strip()!r}; Wine {_OLDEST} or later is needed: leave --system-wine out")
    return Wine(Path(loader), Path(server))


def wine(layout: Layout, config: Config) -> Wine:
    """The Wine that a lab uses."""
    if config.wine_loader and config.wine_server:
        return Wine(Path(config.wine_loader), Path(config.wine_server))
    programs = layout.root / "usr/lib/wine"
    return Wine(programs / "wine64", programs / "wineserver")


def environment(layout: Layout, config: Config, vulkan: Path | None = None) -> dict[str, str]:
    """The complete environment of a program in the lab: its own prefix, home and Vulkan driver, no X server.

    vulkan: a driver's ICD file to use instead of the lab's. Of the caller's environment only what concerns drivers
    and debug output is passed on; nothing is printed by Wine or vkd3d unless WINEDEBUG or VKD3D_DEBUG asks for it.
    Raises LabError when the Vulkan driver's file does not exist, or when there is no driver.
    """
    chosen = drivers.choose(layout, config, vulkan).files
    searched = [*os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep), *map(str, drivers.library_folders(chosen))]
    programs = wine(layout, config)
    inherited = {
        key: value for key, value in os.environ.items() if key in _PASSED_ON or key.startswith(_PASSED_ON_PREFIXES)
    }
    return {
        **_QUIET,
        **inherited,
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": str(layout.home),
        "XDG_CACHE_HOME": str(layout.home / ".cache"),
        # Compiled shaders outlive a worker: without these two folders the drivers keep none.
        "MESA_SHADER_CACHE_DIR": str(layout.home),
        "__GL_SHADER_DISK_CACHE": "1",
        "__GL_SHADER_DISK_CACHE_PATH": str(layout.home),
        "WINEPREFIX": str(layout.prefix),
        "WINELOADER": str(programs.loader),
        "WINESERVER": str(programs.server),
        "WINEARCH": "win64",
        # winedbg: a crashed program would wait for a debugger instead of ending.
        "WINEDLLOVERRIDES": "mscoree=;mshtml=;winemenubuilder.exe=;winedbg.exe=",
        # Wine asks for a window system's Vulkan extension; without one a layer of ours declares it.
        "VK_LOADER_DISABLE_INST_EXT_FILTER": "1",
        "NODEVICE_SELECT": "1",
        "VK_ADD_IMPLICIT_LAYER_PATH": str(layout.layers),
        **({"VK_DRIVER_FILES": os.pathsep.join(map(str, chosen))} if chosen else {}),
        **({"LD_LIBRARY_PATH": os.pathsep.join(filter(None, searched))} if any(searched) else {}),
    }


def install_private(layout: Layout, archive: Archive, say: Say) -> tuple[str, dict[str, str]]:
    """Unpack Debian's Wine and software Vulkan driver and make them work from this folder; returns detail and facts."""
    packages = archive.fetch(PACKAGES)
    shutil.rmtree(layout.root, ignore_errors=True)
    archive.unpack(packages, layout.root)
    say("making the files relocatable", None, None)
    _relink(layout.root)
    _trim(layout)
    programs = layout.root / "usr/lib/wine"
    server = programs / "wineserver"
    server.unlink(missing_ok=True)
    server.write_text(f'#!/bin/sh\nexec "${{0%/*}}/wineserver64" -p{_LINGER} "$@"\n')
    server.chmod(0o755)
    relocate(layout, layout.root, [programs / "wine64", programs / "wineserver64"], say)
    compilers = [path for path in layout.libraries.glob("libLLVM*.so*") if not path.is_symlink()]
    use_folders_of_program(layout, compilers, say)
    version = {p.name: p.version for p in packages}
    mesa = re.split(r"[-+]", version["mesa-vulkan-drivers"])[0]
    facts = {"wine_version": _clean(version["libwine"]), "vulkan": f"lavapipe, Mesa {mesa}"}
    return describe_other_versions(packages) or f"{len(packages)} packages as tested", facts


def _relink(root: Path) -> None:
    """Make links that start at `/` start at `root`, where they have a target there."""
    for folder, folders, files in os.walk(root):
        for name in [*folders, *files]:
            path = Path(folder, name)
            if not path.is_symlink() or not path.readlink().is_absolute():
                continue
            target = root / str(path.readlink())[1:]
            if target.exists():
                path.unlink()
                path.symlink_to(os.path.relpath(target, folder))


def _trim(layout: Layout) -> None:
    """Finish what packages do at installation, and drop 32-bit Windows and debug information."""
    libraries, windows = layout.libraries / "wine", layout.libraries / "wine/x86_64-windows"
    shutil.rmtree(libraries / "i386-windows", ignore_errors=True)
    for leftover in ("usr/share/doc", "usr/share/man", "usr/share/iso-codes", "usr/share/xml", "usr/share/locale"):
        shutil.rmtree(layout.root / leftover, ignore_errors=True)
    mark_builtin(layout.root / "usr/x86_64-w64-mingw32/lib/zlib1.dll", windows / "zlib1.dll")
    binaries = [p for p in windows.iterdir() if p.is_file() and not p.is_symlink() and p.suffix != ".a"]
    with ThreadPoolExecutor(cores()) as pool:
        list(pool.map(strip_debug, binaries))
    # wineserver looks for its nls files in share/wine/wine/nls, or in the machine's /usr/share/wine.
    nested = layout.root / "usr/share/wine/wine"
    if not nested.exists():
        nested.symlink_to(".")


def install_system(config: Config) -> tuple[str, dict[str, str]]:
    """Note which Wine of the machine is used; returns detail and facts."""
    assert config.wine_loader
    printed = run([config.wine_loader, "--version"], what="wine --version", timeout=60)
    version = re.search(r"\d+\.\d+(?:\.\d+)?", printed)
    facts = {"wine_version": version[0] if version else printed.strip()}
    return f"the machine's own, {config.wine_loader}", facts


def install_layer(layout: Layout, config: Config) -> None:
    """Write the Vulkan layer that declares Wine's null surface extension and does nothing else."""
    folders = [layout.libraries] if not config.wine_loader else [Path(p) for p in _SYSTEM_LIBRARIES]
    library = next((f / _LAYER for f in folders if (f / _LAYER).is_file()), None)
    if library is None:
        raise LabError(f"{_LAYER} is missing; install Mesa's Vulkan drivers (Debian: mesa-vulkan-drivers)")
    layer = {
        "name": "VK_LAYER_EPCHECK_nulldrv_surface",
        "type": "GLOBAL",
        "library_path": str(library),
        "api_version": "1.4.303",
        "implementation_version": "1",
        "description": "declares the name of Wine's null surface extension",
        "functions": {"vkNegotiateLoaderLayerInterfaceVersion": "vkNegotiateLoaderLayerInterfaceVersion"},
        "instance_extensions": [{"name": "VK_WINE_nulldrv_surface", "spec_version": "1"}],
        "disable_environment": {"EPCHECK_NO_NULLDRV_SURFACE": "1"},
    }
    atomic_file.write_text(
        layout.layers / "nulldrv_surface.json", json.dumps({"file_format_version": "1.0.0", "layer": layer})
    )


def install_prefix(layout: Layout, config: Config, say: Say) -> str:
    """Make the Wine prefix anew: Windows' folders and registry, drawing on nothing."""
    install_layer(layout, config)
    stop(layout, config)
    shutil.rmtree(layout.prefix, ignore_errors=True)
    layout.prefix.mkdir()
    layout.home.mkdir(exist_ok=True)
    try:
        _make_prefix(layout, environment(layout, config), wine(layout, config).loader, say)
    finally:
        stop(layout, config)  # writes the registry to disk
    return "no X server, null graphics driver"


def _make_prefix(layout: Layout, env: dict[str, str], loader: Path, say: Say) -> None:
    what = "making the Wine prefix"
    run([loader, "wineboot.exe", "-u"], what=what, env=env, watch=Watch(say, layout.prefix), timeout=300)
    settings = layout.scratch / "headless.reg"
    atomic_file.write_text(
        settings,
        "REGEDIT4\r\n\r\n"
        '[HKEY_CURRENT_USER\\Software\\Wine\\Drivers]\r\n"Graphics"="null"\r\n\r\n'
        '[HKEY_CURRENT_USER\\Software\\Wine\\Direct3D]\r\n"renderer"="no3d"\r\n',
    )
    drive_path = "Z:" + str(settings).replace("/", "\\")
    run([loader, "regedit.exe", "/S", drive_path], what="setting the Wine prefix up", env=env, timeout=120)


def stop(layout: Layout, config: Config) -> None:
    """End every program of the lab's prefix and wait until Wine's server is gone. Raises LabError when it stays.

    Programs whose server was ended from outside belong to no server any more, and wait for it without end.
    """
    server = wine(layout, config).server
    if not server.is_file() or not layout.prefix.is_dir():
        return
    env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(layout.home), "WINEPREFIX": str(layout.prefix)}
    nothing, programs = subprocess.DEVNULL, tuple(_programs(layout.prefix))
    for argument in ("-k", "-w"):
        try:
            run_process([server, argument], env=env, stdout=nothing, stderr=nothing, timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            raise LabError(f"Wine's server of {layout.folder} did not end in {_STOP_S} s; end its process") from None
    for program in programs:  # not those that somebody has started since
        with contextlib.suppress(psutil.Error):
            program.kill()


def _programs(prefix: Path) -> Iterator[psutil.Process]:
    """The programs that run in a prefix."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            is_wine = Path(process.exe()).name.startswith("wine")
            if is_wine and process.environ().get("WINEPREFIX") == str(prefix):
                yield process


def _clean(version: str) -> str:
    """`10.0~repack-6` is Wine 10.0."""
    return re.split(r"[~+-]", version)[0]
