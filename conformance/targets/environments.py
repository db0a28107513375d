"""Releases of a runtime side by side: each in a virtual environment of its own in the user's cache."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from pathlib import Path

import platformdirs

from epcheck.conformance.lab.packages import wheels
from epcheck.conformance.records import atomic_file
from epcheck.conformance.start_process import run_process
from epcheck.generators.error import EpcheckError

NOT_IMPORTED = r"[/\\](_?tests?|testing|transformers|tools|quantization|f2py|distutils|typing|sympy|mpmath|google)[/\\]"
"""Folders of packages, as a regular expression, that `import onnxruntime` reads nothing of: most of what there is."""

WINDOWSML, WINDOWSML_PACKAGE = "windowsml-", "onnxruntime-windowsml"
"""Before the number of a release of Windows ML, which has the target `dml` as well; and its package, whose releases
have the number of ONNX Runtime and then that of a build: 1.30.0.202609102321 is named 1.30.0."""


class RuntimeInstallError(EpcheckError, RuntimeError):
    """A release of a runtime cannot be installed; the message says which and what pip said."""


def folder() -> Path:
    """Where the environments are: `EPCHECK_RUNTIMES`, or `runtimes` in the user's cache."""
    return Path(os.environ.get("EPCHECK_RUNTIMES") or platformdirs.user_cache_path("epcheck") / "runtimes")


def find_package(release: str) -> tuple[str, str]:
    """The package that has a release of `dml`, and its number there: `windowsml-1.30.0` is one of Windows ML."""
    package = WINDOWSML_PACKAGE if release.startswith(WINDOWSML) else "onnxruntime-directml"
    return package, release.removeprefix(WINDOWSML)


def ensure(package: str, version: str) -> Path:
    """The interpreter of an environment that has exactly this release; made by pip on the first use.

    Raises RuntimeInstallError, and leaves nothing behind that would look complete.
    """
    home = folder() / f"{package}-{version}"
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    complete = home / "complete"
    if complete.is_file():
        return python
    failure = f"{package} {version} cannot be installed"
    run_step(failure, make_command(home))
    any_build = ".*" if package == WINDOWSML_PACKAGE else ""
    run_step(failure, install_command(python, f"{package}=={version}{any_build}", *_numpy_for(version)))
    compile_imports(python)
    complete.touch()
    return python


def make_command(home: Path) -> list[str]:
    """What makes a new virtual environment. It has no pip: to install one takes longer than all else."""
    return [sys.executable, "-m", "venv", "--clear", "--without-pip", str(home)]


def install_command(python: Path, *requirements: str) -> list[str]:
    """What installs packages for that interpreter. Raises RuntimeInstallError where this Python has no pip."""
    return pip_command("--python", str(python), "install", "-q", "--no-compile", *requirements)


def pip_command(*arguments: str) -> list[str]:
    """What runs this Python's pip. Raises RuntimeInstallError where it has none."""
    pip = wheels.pip()
    if pip is None:
        raise RuntimeInstallError(str(wheels.missing()))
    return [*pip, "--disable-pip-version-check", *arguments]


def compile_imports(python: Path) -> None:
    """Keep compiled what a worker imports: a jailed worker may not keep it. The compiler reads the modules and executes
    none of them, nor what a package has for the start of the interpreter (`-S`). What cannot be compiled is not kept.
    """
    run_process([str(python), "-S", "-I", "-m", "compileall", "-qq", "-x", NOT_IMPORTED, str(_site_packages(python))])


def add_packages(python: Path, folder: Path) -> None:
    """Let an environment have the packages of a folder as well, after its own."""
    atomic_file.write_text(_site_packages(python) / "packages_from.pth", f"{folder.absolute()}\n")


def _site_packages(python: Path) -> Path:
    base = str(python.parents[1])
    return Path(sysconfig.get_path("purelib", "venv", vars={"base": base, "platbase": base}))


def list_installed(package: str) -> tuple[str, ...]:
    """The releases of a package that have an environment, in no particular order."""
    return tuple(mark.parent.name.removeprefix(f"{package}-") for mark in folder().glob(f"{package}-[0-9]*/complete"))


def _numpy_for(version: str) -> list[str]:
    """Releases before 1.19 were built against numpy 1 and do not import with numpy 2 (1.19's release notes)."""
    release = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    return ["numpy<2"] if release < (1, 19) else ["numpy"]


def run_step(failure: str, command: list[str]) -> str:
    """What a step of an installation prints. failure: what it means that it fails, `webgpu cannot be made`. Raises
    RuntimeInstallError, with the last error that pip tells, or else the last line."""
    done = run_process(command)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR:")] or lines
        raise RuntimeInstallError(f"{failure}: {errors[-1] if errors else 'no message'}")
    return done.stdout
