"""Fetching Python packages with pip, the client that epcheck's own installation used; wheels for Windows included."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path

from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.packages.pins import Wheel
from epcheck.conformance.lab.process import Say, Watch, run
from epcheck.conformance.records import atomic_file

FOR_WINDOWS = ("--platform", "win_amd64", "--python-version", "3.12", "--implementation", "cp", "--abi", "cp312",
               "--abi", "abi3", "--abi", "none", "--only-binary", ":all:")  # fmt: skip
"""What pip is told so that it takes files for the lab's Python."""


def pip() -> tuple[str, ...] | None:
    """The command that runs pip for this Python: the pip that it has, or else the one that Python keeps for new
    environments (https://docs.python.org/3/library/ensurepip.html), which runs from its wheel. Those of `uvx` and
    `pipx run` have none. None where there is neither."""
    if importlib.util.find_spec("pip"):
        return sys.executable, "-m", "pip"
    kept = importlib.util.find_spec("ensurepip")
    folders = [Path(kept.origin).parent / "_bundled"] if kept and kept.origin else []
    if of_distribution := sysconfig.get_config_var("WHEEL_PKG_DIR"):
        folders.append(Path(of_distribution))
    wheels = [wheel for folder in folders for wheel in folder.glob("pip-*.whl")]
    return (sys.executable, str(wheels[0] / "pip")) if wheels else None


def missing() -> str | None:
    """One sentence when this Python cannot run pip, else None."""
    return None if pip() else f"{sys.executable} has no pip; run: {sys.executable} -m ensurepip"


def pip_install_windows(requirements: Sequence[str], target: Path) -> None:
    """Install packages for the lab's Windows Python (3.12, 64 bit) into a folder of their own.

    requirements: as pip takes them: names, versions, wheel files. target: put it on `sys.path` there. Only wheels are
    taken, with their dependencies, and this Python's pip does it: no Wine is started. Raises LabError.
    """
    if reason := missing():
        raise LabError(reason)
    _pip(["install", "--upgrade", "--target", str(target), "--no-compile", *FOR_WINDOWS, *requirements],
         f"installing {', '.join(requirements)} for Windows")  # fmt: skip


def fetch(
    wheels: Iterable[Wheel],
    target: Path,
    layout: Layout,
    say: Say,
    *,
    windows: bool = True,
    unpack: bool = True,
    keep_open: int | None = None,
) -> None:
    """Put exactly these files, and nothing that they depend on, into `target`, which appears only when it is whole.

    windows: for the lab's Python instead of for this one. unpack: False leaves the downloaded files as they are.
    """
    wheels = tuple(wheels)
    what = "downloading " + ", ".join(f"{w.name} {w.version}" for w in wheels)
    scratch = layout.scratch / f"pip-{target.name}"
    shutil.rmtree(scratch, ignore_errors=True)
    requirements = scratch / "requirements.txt"
    atomic_file.write_text(requirements, "".join(f"{w.requirement}\n" for w in wheels))
    temporary, part = scratch / "tmp", scratch / "part"
    temporary.mkdir()
    sizes = [w.size for w in wheels]
    total = None if None in sizes else sum(s for s in sizes if s)
    _pip(
        [
            *(["install", "--target", str(part), "--no-compile"] if unpack else ["download", "--dest", str(part)]),
            "--no-deps",
            *(["--require-hashes"] if all(w.sha256 for w in wheels) else []),
            *(FOR_WINDOWS if windows else ()),
            "--requirement",
            str(requirements),
        ],
        what,
        temporary=temporary,
        say=say,
        total=total,
        keep_open=keep_open,
    )
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    part.replace(target)
    shutil.rmtree(scratch, ignore_errors=True)


def _pip(
    arguments: Sequence[str],
    what: str,
    *,
    temporary: Path | None = None,
    say: Say | None = None,
    total: int | None = None,
    keep_open: int | None = None,
) -> None:
    # The machine's pip configuration (index, proxy, certificates) applies: a hash decides, not where a file came from.
    env = {k: v for k, v in os.environ.items() if not k.startswith("PIP_TARGET")}
    if temporary:
        env["TMPDIR"] = str(temporary)
    run(
        [
            *(pip() or ()),
            "--disable-pip-version-check",
            "--no-input",
            arguments[0],
            "--quiet",
            *arguments[1:],
        ],
        what=what,
        env=env,
        watch=Watch(say, temporary, total) if say else None,
        keep_open=keep_open,
    )
