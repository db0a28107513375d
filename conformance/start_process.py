"""How every process of ours is started: nothing is executed or imported that lies in the working directory, where there
may be a model, a run or a store of somebody else.

Python puts the working directory first on `sys.path` for `-m` and `-c`, and an empty entry of PYTHONPATH means it
(https://docs.python.org/3/using/cmdline.html); Windows looks there first for a program that is named without a folder.
"""

from __future__ import annotations

import errno
import os
import shutil
import site
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

HOME = Path(__file__).absolute().parents[2]
"""The folder that has the package `epcheck`."""

FOLDERS = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Environment variables that list folders in which programs, modules and libraries are looked for."""

FOLDER = ("PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX")
"""Environment variables that name a folder from which Python takes modules."""

DROPPED = ("PYTHONSTARTUP", "PYTHONINSPECT")
"""Environment variables that have Python execute a file, or wait for what is typed."""

NOT_FROM_HERE = "NoDefaultCurrentDirectoryInExePath"
"""Environment variable: Windows looks for no program in the working directory (NeedCurrentDirectoryForExePathW)."""

PRINTS = "PYTHONIOENCODING"
"""Environment variable: in which encoding Python prints where no terminal is. On Windows it would be the code page, of
which a reader knows nothing."""


def start_process(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    make: Callable[..., subprocess.Popen[Any]] | None = None,
    **options: Any,
) -> subprocess.Popen[Any]:
    """Start a process. This interpreter gets `-P`, unless the command has `-I`; other interpreters may be older than
    3.11, so a command that has them execute a module or a text has `-I`.

    env: its whole environment, None for this process's; what it inherits is cleaned. make: what makes the process, None
    for Popen. options: of Popen. Raises OSError or ValueError; FileNotFoundError where there is no such program.
    """
    program, *arguments = map(str, command)
    if program == sys.executable and arguments[:1] not in (["-I"], ["-P"]):
        arguments.insert(0, "-P")
    if Path(program).name == program:
        found = find_program(program)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
        program = found
    return (make or subprocess.Popen)([program, *arguments], env=clean_environment(env), **options)


def run_process(
    command: Sequence[str | Path], *, timeout: float | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a process to its end, with nothing to read; its output and errors are text in UTF-8, unless `options` say
    otherwise.

    timeout: seconds. options: of `start_process`. Raises OSError, ValueError and subprocess.TimeoutExpired.
    """
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    options = {**pipes, "encoding": "utf-8", "errors": "replace", **options}
    with start_process(command, stdin=subprocess.DEVNULL, **options) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def find_program(name: str, path: str | None = None) -> str | None:
    """The file of a program, never one of the working directory. path: folders as PATH lists them, None for PATH."""
    folders = os.environ.get("PATH", os.defpath) if path is None else path
    suffixes = ("", *os.environ.get("PATHEXT", ".EXE").split(os.pathsep)) if sys.platform == "win32" else ("",)
    for folder in filter(_is_absolute, _entries(folders)):
        for suffix in suffixes:
            if found := shutil.which(Path(folder, name + suffix)):
                return str(found)
    return None


def clean_environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment in which no program looks for code in the working directory because of what it inherits.

    variables: the environment, None for this process's. What it has of its own is the caller's wish, and stays.
    """
    cleaned = dict(os.environ if variables is None else variables)
    inherited = {name for name, value in cleaned.items() if value == os.environ.get(name)}
    for name in inherited.intersection(FOLDERS):
        entries = _entries(cleaned[name])
        kept = _clean_modules(entries) if name == "PYTHONPATH" else list(filter(_is_absolute, entries))
        cleaned[name] = os.pathsep.join(kept)
        if not kept:  # an empty entry means the working directory
            del cleaned[name]
    for name in inherited.intersection(DROPPED + FOLDER):
        if name in DROPPED or not _is_absolute(cleaned[name]):
            del cleaned[name]
    if sys.platform == "win32":
        cleaned[NOT_FROM_HERE] = "1"
        cleaned.setdefault(PRINTS, "utf-8")
    return cleaned


def module_environment() -> dict[str, str]:
    """The environment of a process of this interpreter that finds epcheck, and what it needs, where this one does."""
    own = [entry for entry in sys.path if Path(entry).resolve() not in _standard_folders()]
    variables = {**clean_environment(), "PYTHONPATH": os.pathsep.join(_clean_modules(own))}
    if not variables["PYTHONPATH"]:
        del variables["PYTHONPATH"]
    return variables


@cache
def _standard_folders() -> frozenset[Path]:
    """What any process of this interpreter has on `sys.path`: an interpreter of another environment must not get it."""
    library = Path(sysconfig.get_path("stdlib"))
    archive = f"python{sys.version_info[0]}{sys.version_info[1]}.zip"
    folders: list[str | Path] = [site.getusersitepackages(), *site.getsitepackages(), *sysconfig.get_paths().values()]
    folders += [library / "lib-dynload", library.parent / archive, Path(sys.base_prefix, "DLLs"), sys.base_prefix]
    return frozenset(Path(folder).resolve() for folder in folders)


def _entries(folders: str) -> list[str]:
    return [entry.strip('"') for entry in folders.split(os.pathsep)]


def _is_absolute(entry: str) -> bool:
    return Path(entry).is_absolute()


def _clean_modules(entries: Iterable[str]) -> list[str]:
    """Entries without relative ones and without the working directory, unless epcheck itself comes from there."""
    kept = []
    for entry in entries:
        folder = Path(entry).resolve()
        if folder == HOME.resolve():
            kept.append(str(HOME))
        elif _is_absolute(entry) and folder != Path.cwd().resolve():
            kept.append(entry)
    return kept
