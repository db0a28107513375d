"""Which files of a lab are packed: those that DirectML needs, found by following what programs and libraries ask for.

Linux' side starts at Wine's programs, at the Unix halves of the Windows libraries that are kept, and at the libraries
that a Vulkan driver may ask for; all that these need (DT_NEEDED) is kept. Libraries that Wine opens by name and does
without are not: fonts, sound, printing, X11 windows, GnuTLS, GStreamer. Windows' side starts at `WINDOWS_STARTED` and
at what Python and ONNX Runtime import; a module of Wine that names another one keeps it. Nothing is traced, so the
choice does not depend on what a run happened to open.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.graphics import pe
from epcheck.conformance.lab.packages import elf
from epcheck.conformance.lab.vulkan import drivers

WINDOWS_STARTED = (
    # Wine starts these with the first program of a prefix; the registry names the drivers and services.
    "wineboot.exe", "services.exe", "winedevice.exe", "plugplay.exe", "svchost.exe", "rpcss.exe", "explorer.exe",
    "wevtsvc.dll", "mountmgr.sys", "ndis.sys", "nsiproxy.sys", "ntoskrnl.exe", "hidclass.sys", "hidparse.sys",
    "winebth.sys", "winebus.sys", "winehid.sys", "wineusb.sys",
    # A launch starts it before Python, see `launch`; a program that prints has a console.
    "hostname.exe", "conhost.exe", "start.exe",
    # Loaded by name: what every process has, and what Python asks about the system.
    "apisetschema.dll", "ntdll.dll", "kernelbase.dll", "win32u.dll", "imm32.dll", "uxtheme.dll", "actxprxy.dll",
    "bcryptprimitives.dll", "cryptbase.dll", "rsaenh.dll", "kernel.appcore.dll", "wbemprox.dll", "psapi.dll",
    "tzres.dll",
    # Loaded by name: Direct3D 12 and Vulkan.
    "d3d12.dll", "d3d12core.dll", "dxcore.dll", "dxgi.dll", "wined3d.dll", "winevulkan.dll", "vulkan-1.dll",
)  # fmt: skip
"""Windows programs and libraries of Wine that DirectML needs though no other file names them."""

DRIVERS_ASK_FOR = (
    "libvulkan.so.1",  # Vulkan's loader, which Wine opens by name
    "libVkLayer_MESA_device_select.so",  # stands behind the layer that replaces a window system
    "libX11.so.6", "libX11-xcb.so.1", "libXext.so.6", "libxcb.so.1", "libxcb-dri3.so.0", "libxcb-present.so.0",
    "libxcb-randr.so.0", "libxcb-shm.so.0", "libxcb-sync.so.1", "libxcb-xfixes.so.0", "libxshmfence.so.1",
    "libwayland-client.so.0", "libdrm.so.2",
    "libGLdispatch.so.0", "libGLX.so.0", "libOpenGL.so.0", "libEGL.so.1",  # of vendor-neutral OpenGL (GLVND)
    "libstdc++.so.6", "libgcc_s.so.1", "libz.so.1", "libzstd.so.1", "libexpat.so.1", "libelf.so.1",
    "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0",
)  # fmt: skip
"""Libraries that a machine without a window system lacks though its Vulkan driver needs them, and the lab has."""

SOFTWARE_DRIVER = "libvulkan_lvp.so"

_UNUSED_PYTHON = ("python.cat", "sqlite3.dll", "_sqlite3.pyd", "_msi.pyd", "winsound.pyd")
_C_API = "onnxruntime.dll"
_UNUSED_FOLDERS = frozenset({"tests", "testing_data", "f2py", "distutils", "transformers", "quantization", "tools",
                             "datasets", "backend", "__pycache__", "bin", "include"})  # fmt: skip
_UNUSED_ENDINGS = (".lib", ".a", ".pyi", ".h", ".pxd", ".pyx", ".whl")
_KEPT_UNDER = 100_000  # bytes: what else the prefix holds (folders of a user, .inf and .manifest files) is small
_REPLACEABLE = frozenset({".dll", ".exe", ".sys", ".drv", ".cpl", ".ocx", ".acm", ".ax", ".ds", ".tlb", ".com",
                          ".msstyles"})  # fmt: skip


def list_packed_files(layout: Layout, runtimes: Iterable[Path], *, software_driver: bool) -> list[Path]:
    """The files and links of a lab that are packed, and the folders that have to be there though they are empty.

    runtimes: the folders of those that are packed. software_driver: keep the software Vulkan driver as well.
    runtimes: the folders of those that are packed. software_driver: keep the software Vulkan driver too.
    """
    if layout.config().wine_loader:
        raise LabError(f"the lab in {layout.folder} uses this machine's Wine, which cannot be packed")
    python = [*_python(layout, runtimes)]
    if software_driver and not drivers.own_drivers(layout):
        raise LabError(f"the lab in {layout.folder} has no software Vulkan driver; leave --software-driver out")
    windows = _windows_modules(layout, [*python, layout.dxil])
    found = {*python, *_linux(layout, windows, software_driver), *_prefix(layout, windows), *windows.values()}
    return sorted(path for path in found if path.is_symlink() or path.exists())


def _python(layout: Layout, runtimes: Iterable[Path]) -> Iterator[Path]:
    """Windows Python, its packages and these runtimes, without their tests, headers and tools."""
    for folder in (layout.python, *runtimes):
        for path in _files(folder, _UNUSED_FOLDERS):
            unused = path.name in _UNUSED_PYTHON or path.suffix in _UNUSED_ENDINGS
            if not unused and not (path.name == _C_API and _has_runtime_inside(path.parent)):
                yield path


def _has_runtime_inside(folder: Path) -> bool:
    """Whether the Python module of a runtime has all of ONNX Runtime in it, and leaves the library for C unused."""
    modules = list(folder.glob("onnxruntime_pybind11_state*.pyd"))
    return bool(modules) and not any(_C_API in pe.read_imports(module) for module in modules)


def _windows_modules(layout: Layout, programs: Iterable[Path]) -> dict[str, Path]:
    """Wine's Windows modules that are started, or that a kept module or one of these programs asks for.

    Name in lower case -> file.
    """
    available = {p.name.lower(): p for p in (layout.libraries / "wine/x86_64-windows").iterdir() if p.is_file()}
    found = {name: available[name] for name in WINDOWS_STARTED if name in available}
    pending = [name for path in programs if path.suffix in (".dll", ".exe", ".pyd") for name in pe.read_imports(path)]
    for path in found.values():
        pending += pe.find_module_names(path)
    while pending:
        name = pending.pop()
        if name in available and name not in found:
            found[name] = available[name]
            pending += pe.find_module_names(available[name])
    return found


def _linux(layout: Layout, windows: Mapping[str, Path], software_driver: bool) -> Iterator[Path]:
    """Wine's programs, the Unix halves of these Windows modules, and the libraries that all of them need."""
    root, libraries = layout.root, layout.libraries
    share = root / "usr/share"
    programs = [root / "usr/lib/wine" / name for name in ("wine64", "wineserver64")]
    halves = [libraries / "wine/x86_64-unix" / f"{Path(name).stem}.so" for name in windows]
    driver = [libraries / SOFTWARE_DRIVER] if software_driver else []
    yield from (*programs, root / "usr/lib/wine/wineserver", libraries / "ld-linux-x86-64.so.2")
    yield from (share / "wine/wine.inf", share / "wine/wine", *_files(share / "wine/nls"), layout.dxil)
    if software_driver:
        yield from drivers.own_drivers(layout)
    wanted = [libraries / name for name in DRIVERS_ASK_FOR]
    yield from _with_libraries(layout, [p for p in [*programs, *halves, *driver, *wanted] if p.exists()])


def _with_libraries(layout: Layout, pending: list[Path]) -> Iterator[Path]:
    """These files and the libraries of the lab that they need, links with what they lead to."""
    seen: set[Path] = set()
    while pending:
        path = pending.pop()
        if path in seen:
            continue
        seen.add(path)
        yield path
        if path.is_symlink():
            pending.append(path.parent / path.readlink())
            continue
        for name in elf.read_needed(path):
            # A half of Wine's own lies beside the one that needs it.
            beside, library = path.parent / name, layout.libraries / name
            if not (beside.exists() or library.exists()):
                raise LabError(f"the lab in {layout.folder} lacks {name}; run: epcheck lab remove, then install")
            pending.append(beside if beside.exists() else library)


def _prefix(layout: Layout, windows: Mapping[str, Path]) -> Iterator[Path]:
    """The Wine prefix: its registry, its folders, its small files, and its copies of these Windows modules.

    The drives are not packed: one leads out of the lab, and `relocation` makes them.
    """
    yield from layout.prefix.glob("*.reg")
    yield layout.prefix / ".update-timestamp"
    for folder, folders, files in os.walk(layout.prefix / "drive_c"):
        yield from (Path(folder, name) for name in folders)
        for name in files:
            path = Path(folder, name)
            if path.suffix.lower() in _REPLACEABLE:
                if name.lower() in windows:
                    yield path
            elif path.suffix == ".nls" or path.stat().st_size < _KEPT_UNDER:
                yield path


def _files(folder: Path, left_out: frozenset[str] = frozenset()) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in left_out]
        yield from (Path(parent, name) for name in files)
