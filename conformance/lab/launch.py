"""How a program is started in the lab: the command, and the complete environment."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from epcheck.conformance.lab import graphics, startup, wine
from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.module_stores import module_store
from epcheck.conformance.lab.packages.pins import DEFAULT_RUNTIME
from epcheck.conformance.lab.packages.pins import runtime as runtime_wheel
from epcheck.conformance.lab.packages.python_runtime import runtime_folder
from epcheck.conformance.lab.steps import read_stamp
from epcheck.conformance.windows_path import windows_path

# Wine's daemons inherit the standard streams of the program that starts them and hold them open after it has ended.
# So where Wine's server does not run (`wineserver -k0` sends it signal 0), a program that does nothing, and has no
# streams, goes first.
_START = '{ "$WINESERVER" -k0 || command "$0" hostname.exe; } </dev/null >/dev/null 2>&1; exec "$0" "$@"'


@dataclass(frozen=True)
class Launch:
    """argv: a command to which a script and its arguments are appended. env: its environment, all of it."""

    argv: tuple[str, ...]
    env: dict[str, str]


def python_launch(folder: Path | None = None, *, runtime: str = DEFAULT_RUNTIME, vulkan: Path | None = None) -> Launch:
    """How to run the lab's Windows Python with one release of ONNX Runtime.

    The script is named by its `windows_path`; its folder is not on `sys.path` (`-P`), the runtime's is, first. The
    process is the Python itself, so killing it kills the worker. vulkan: the ICD file of another Vulkan driver, a real
    GPU's for example. Nothing is started here. Raises LabError when the lab, or this runtime in it, is not installed.
    """
    layout = Layout.of(folder)
    config = layout.config()
    wheel = runtime_wheel(runtime)
    for needed, remedy in (
        ("wine", "epcheck lab install"),
        ("prefix", "epcheck lab install"),
        ("python", "epcheck lab install"),
        (wheel.folder, f"epcheck lab install --runtime {runtime}"),
    ):
        if read_stamp(layout, needed) is None:
            raise LabError(f"the lab in {layout.folder} has no {needed}; run: {remedy}")
    env = wine.environment(layout, config, vulkan)
    made = read_stamp(layout, "wine")
    env |= {
        "PYTHONPATH": f"{windows_path(Path(str(files(startup))))};{windows_path(runtime_folder(layout, wheel))}",
        "PYTHONPYCACHEPREFIX": windows_path(layout.home / "pycache"),
        "PYTHONNOUSERSITE": "1",
        "PYTHONUTF8": "1",
        "EPCHECK_D3D12_SHIM": windows_path(Path(str(files(graphics).joinpath("d3d12_shim.py")))),
        "EPCHECK_MODULE_STORE": windows_path(module_store(layout, wheel.folder)),
        "EPCHECK_PIPELINES": windows_path(layout.home),
        "EPCHECK_GRAPHICS_STACK": f"wine {made.facts.get('wine_version', '?')}" if made else "wine",
    }
    if (built := read_stamp(layout, "dxil")) and layout.dxil.is_file():
        env["EPCHECK_VKD3D"] = windows_path(layout.dxil)
        env["EPCHECK_GRAPHICS_STACK"] += f", vkd3d {built.facts.get('vkd3d', '?')} DXIL"
    program = windows_path(layout.python / "python.exe")
    return Launch(("/bin/sh", "-c", _START, str(wine.wine(layout, config).loader), program, "-P"), env)


def prelude(folder: Path | None = None) -> Path:
    """A script that a worker in the lab executes before it imports onnxruntime.

    It patches Direct3D 12 as DirectML needs it and leaves in `sys._epcheck_facts` who finds out what it runs on, in a
    dict of str:
    see `d3d12_shim.adapter`, and `graphics_stack`. What it needs to know is in the environment that `python_launch`
    gives; epcheck itself need not be importable. Raises LabError when there is no lab.
    """
    Layout.of(folder).config()
    return Path(str(files(graphics).joinpath("d3d12_prelude.py")))


def written_folders(folder: Path | None = None) -> tuple[Path, ...]:
    """Where programs in the lab write: its prefix and home, and where Wine's server has its socket, made if need be.

    Debian's Wine keeps the name of the server's folder, below /tmp, in the prefix, and where it finds none there makes
    one: no program that is bound to these folders could. Others have one for each user.
    """
    layout = Layout.of(folder)
    name = f".wine-{os.getuid()}" if sys.platform != "win32" else ""
    with contextlib.suppress(OSError, LabError):
        if not layout.config().wine_loader:
            name = _named_server(layout.prefix / "wineserver")
    server = Path("/tmp") / name
    with contextlib.suppress(OSError):
        server.mkdir(mode=0o700, exist_ok=True)
    return layout.prefix, layout.home, server


def _named_server(file: Path) -> str:
    """The name of the server's folder, as Debian's Wine keeps it; it is chosen where there is none."""
    with contextlib.suppress(FileExistsError), file.open("x", encoding="utf-8") as new:
        new.write(Path(tempfile.mkdtemp(prefix="wine-", dir="/tmp")).name)
        file.chmod(0o400)
    return Path(file.read_text(encoding="utf-8").strip()).name


def windows_site_packages(folder: Path | None = None) -> Path:
    """The folder, on this machine, where the lab's Windows Python keeps packages for every runtime."""
    return Layout.of(folder).site_packages
