"""Where a worker may write, and whom it may talk to: what `program/jail.py` has the system enforce; on
Windows what `job_object.py` has.

A worker of ONNX Runtime is bound by default, for a model may exploit a bug of its provider; a callable is not: it is
the user's own program, and may well ask another machine. `jail` and `writable` of a target change both.
"""

from __future__ import annotations

import compileall
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import platformdirs
import psutil

from epcheck.conformance.records import file_lock
from epcheck.conformance.start_process import run_process
from epcheck.conformance.targets.target import WORKER, Target
from epcheck.conformance.workers import at_end, wine_server
from epcheck.conformance.workers.job_object import EnclosedProcess
from epcheck.conformance.workers.program import jail

SWITCH = jail.SWITCH

PROBE_S = 10.0
"""How long it may take to find out what the system can hold, in seconds."""

UNLOCKED_S = 0.5
"""How long a folder for temporary files may be there before its process has locked it."""

ON_CUDA = ("CUDAExecutionProvider", "TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider")
"""Providers on CUDA, whose driver listens on a Unix socket (`@cuda-uvmfd-...`) and names its threads in /proc/self; it
fails with error 304 where it may not."""

OWN_PROC = "/proc/self"

DRIVERS = {
    "/dev/dri": ("mesa_shader_cache", "mesa_shader_cache_db", "neo_compiler_cache"),
    "/dev/nvidiactl": ("nvidia",),
    "/dev/kfd": ("comgr", "miopen"),
}
"""A device -> where its driver keeps compiled shaders, in the user's cache folder."""

CACHE_VARIABLES = ("MESA_SHADER_CACHE_DIR", "CUDA_CACHE_PATH", "__GL_SHADER_DISK_CACHE_PATH", "NEO_CACHE_DIR")


def policy(target: Target) -> dict[str, Any] | None:
    """What a worker of the target may do, as `jail.enter` takes it; None where nothing bounds it."""
    if sys.platform != "linux" or not target.is_jailed or is_off():
        return None
    _compile_program()
    allowed = [*map(str, _driver_caches()), *(str(Path(name).absolute()) for name in target.writable)]
    for name, value in {**target.options, **target.config}.items():
        if "cache" in name.lower() and value and (os.sep in value or not value.isalnum()):
            allowed.append(_make_folder(Path(value).absolute()))
    if target.in_lab:
        copied = wine_server.folders(target.environment, target.writable)
        kept = [folder for folder in allowed if folder not in copied]
        return {**_most(), "writable": kept, "copied": copied, "local_sockets": True, "locks": True}
    if target.provider in ON_CUDA:
        further = {"local_sockets": True, "locks": True}
        return {**_most_on_cuda(), "writable": [*allowed, OWN_PROC], "temp": temp(), **further}
    return {**_most(), "writable": allowed, "temp": temp(), "locks": bool(allowed)}


def _most() -> dict[str, Any]:
    """The highest level that the user wants."""
    return {"level": jail.LANDLOCK} if os.environ.get(SWITCH) == jail.LANDLOCK else {}


def _most_on_cuda() -> dict[str, Any]:
    """The same; Landlock where the system lets nobody mount on OWN_PROC, as Linux 6.18 does."""
    is_mounted = find_level(os.environ.get(SWITCH, ""), OWN_PROC).startswith(jail.NAMESPACES)
    return _most() if is_mounted else {"level": jail.LANDLOCK}


def strict_policy() -> dict[str, Any] | None:
    """What a process may do that reads a stranger's files and starts nothing; None where nothing bounds it."""
    if sys.platform != "linux" or is_off():
        return None
    return {**_most(), "writable": [], "temp": temp(), "strict": True}


def launcher(bounds: Mapping[str, Any]) -> tuple[str, ...]:
    """What stands before a command that is executed within these bounds."""
    return sys.executable, "-I", "-S", str(WORKER), "--within", json.dumps(bounds)


def start_confined(command: Sequence[str], *, is_bound: bool = True, **options: Any) -> subprocess.Popen[bytes]:
    """A process; on Windows it does not hear Ctrl-C, which is ours to hear, and is in a job object, unless it shall not
    be bound. options: of Popen. Raises OSError or ValueError."""
    if sys.platform == "win32":
        options["creationflags"] = options.get("creationflags", 0) | subprocess.CREATE_NEW_PROCESS_GROUP
        if is_bound and not is_off():
            return EnclosedProcess(command, psutil.virtual_memory().total, **options)
    process: subprocess.Popen[bytes] = subprocess.Popen(command, **options)
    return process


def is_off() -> bool:
    """Whether the user wants no jail at all."""
    return os.environ.get(SWITCH, "") == "off"


@cache
def find_level(most: str, *writable: str) -> str:
    """What the system holds of a process: `jail.describe_level` in one that was bound. most: the value of SWITCH.
    writable: where it may write."""
    bounds = {
        "writable": list(writable),
        "local_sockets": True,
        **({"level": jail.LANDLOCK} if most == jail.LANDLOCK else {}),
    }
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return run_process(launcher(bounds), timeout=PROBE_S).stdout.strip() or jail.NONE
    return jail.NONE


def has_namespaces() -> bool:
    """Whether workers that are bound are in namespaces of their own on this system."""
    if sys.platform != "linux" or is_off():
        return False
    return find_level(os.environ.get(SWITCH, "")).startswith(jail.NAMESPACES)


def describe_jail() -> str:
    """What this system keeps workers from, and what it cannot."""
    if is_off():
        return f"off: {SWITCH} is 'off'"
    if sys.platform == "win32":
        return ("workers end with the runner, with all that they start, and commit no more memory than the machine has "
                "(job objects); nothing bounds files and network")  # fmt: skip
    if sys.platform != "linux":
        return "none: this system has no namespaces, no Landlock and no seccomp"
    found = find_level(os.environ.get(SWITCH, ""))
    has = found.partition("without")[0]
    holds, lacks = ["gain no privileges"], ["what they read", "that a program cannot be written while they run it"]
    if jail.NAMESPACES in has:
        holds += ["write only to folders of their own", "reach no other process, socket or terminal"]
        lacks += [] if "seccomp" in has else ["system calls"]
    else:
        holds += ["write only to folders of their own"] if "Landlock" in has else []
        holds += ["open no socket"] if "seccomp" in has else []
        lacks += [] if "Landlock" in has else ["where they write"]
        lacks += [] if "seccomp" in has else ["sockets and system calls"]
        lacks += ["what they see of other processes", "files in /dev/shm"]
        lacks += ["sockets that CUDA's and the lab's workers reach"] if "seccomp" in has else []
    return f"workers {', '.join(holds)} ({found}); not bounded: {', '.join(lacks)}"


def _driver_caches() -> Iterator[Path]:
    """Where the drivers of this machine's devices keep compiled shaders: without them each worker compiles anew."""
    user = platformdirs.user_cache_path()
    for device, names in DRIVERS.items():
        if Path(device).exists():
            yield from (Path(_make_folder(user / name)) for name in names)
    if Path("/dev/nvidiactl").exists():
        yield Path(_make_folder(Path.home() / ".nv"))
    yield from (Path(os.environ[name]) for name in CACHE_VARIABLES if os.environ.get(name))


def _make_folder(folder: Path) -> str:
    """A folder that can be allowed: the system knows only those that exist."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


_own: list[tuple[Path, int]] = []
"""The folder for temporary files of workers that this process has made, and its id."""

_shared: list[str] = []
"""The folder for temporary files of workers that this process was given."""


def share_temp(folder: str) -> None:
    """Have this process use the folder of the one that has started it, which removes it: it may be killed."""
    _shared[:] = [folder]


def temp() -> str:
    """Where workers of this process keep temporary files."""
    return _shared[0] if _shared else _temp()


@cache
def _temp() -> str:
    """Where workers of this process keep temporary files: a folder of its own in the user's cache, which goes when the
    process ends; the system's folder where there can be none. What a runtime writes there and leaves (1.30 a log of
    its telemetry for each worker), and what a worker was killed over, goes with it."""
    place = platformdirs.user_cache_path("epcheck") / "workers"
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        _remove_left(place)
        folder = Path(tempfile.mkdtemp(prefix="of-", dir=place))
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return tempfile.gettempdir()
    with contextlib.suppress(OSError):
        file_lock.try_exclusive(descriptor)  # as long as this process lives, or one that it has forked
    _own.append((folder, os.getpid()))
    return str(folder)


def _remove_left(place: Path) -> None:
    """Remove the folders of processes that were killed: nobody holds their locks. One that is a moment old may not be
    locked yet."""
    for entry in place.iterdir():
        with contextlib.suppress(OSError):
            if not entry.is_dir() or entry.is_symlink():
                entry.unlink()
            elif time.time() - entry.stat().st_mtime > UNLOCKED_S:
                descriptor = os.open(entry, os.O_RDONLY)
                try:
                    if file_lock.try_exclusive(descriptor):
                        shutil.rmtree(entry)
                finally:
                    os.close(descriptor)


@at_end.register
def remove_temp() -> None:
    """Remove the temporary files of this process' workers; who ends it without ado calls this before."""
    while _own:
        folder, owner = _own.pop()
        if os.getpid() == owner:  # and no fork of it
            shutil.rmtree(folder, ignore_errors=True)


@cache
def _compile_program() -> None:
    """The worker program, for this interpreter: a worker in its jail cannot keep what it compiled."""
    if not sys.dont_write_bytecode:
        compileall.compile_dir(WORKER.parent, quiet=2)
