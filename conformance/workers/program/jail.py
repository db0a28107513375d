"""What the system keeps a process from, and whatever it starts, until it ends: Linux's namespaces, Landlock, seccomp.

    python -I -S worker.py --within POLICY [--fork-server SOCKET] COMMAND...

executes a command within it; with a fork server, a command for each request on that file descriptor, all of them in one
container. Where the system lacks a part, it does so without: `describe_level` says what holds. This needs nothing but
Python 3.9.

The numbers are those of Linux's headers: landlock.h, prctl.h.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import struct
import sys
from pathlib import Path
from typing import Any

from . import namespaces, seccomp
from .watch import PR_SET_PDEATHSIG, adopt_orphans

PR_SET_NO_NEW_PRIVS = 38

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""System calls of Landlock; on every architecture the same."""

VERSION, PATH_BENEATH = 1, 1

WRITE_FILE, REFER, TRUNCATE, IOCTL_DEV = 1 << 1, 1 << 13, 1 << 14, 1 << 15
OF_FOLDERS = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12
"""Remove a folder or a file; make a folder, file, socket, pipe, symbolic link."""

DEVICE_NODES = 1 << 6 | 1 << 11
"""Make a node of a character or block device: nobody may."""

OF_TCP, OF_SIGNALS_AND_SOCKETS = 0b11, 0b11
"""Bind and connect; abstract Unix sockets of others, and signals to them."""

DEVICES = (
    "null", "zero", "full", "random", "urandom", "dri", "nvidia*", "kfd", "accel", "dxg", "fastrpc*", "adsprpc*",
    "mali*", "udmabuf", "dma_heap", "apex*", "hailo*", "davinci*",
)  # fmt: skip
"""What is in /dev that programs write to: the devices of GPUs and NPUs among it."""

OWN_DEVICES = ("shm", "pts", "ptmx")
"""What in a container is its own."""

LEVELS = NAMESPACES, LANDLOCK, NONE = "namespaces", "landlock", "none"
"""How much the system can hold: a container; without one Landlock, seccomp and a guard; nothing."""

IN_FORCE = "EPCHECK_JAILED"
"""Environment variable of a process in a jail: `describe_level` there, which programs in Wine cannot ask for."""

entered: list[dict[str, Any]] = []
"""The policies that bound this process."""


def enter(policy: dict[str, Any]) -> None:
    """Bound this process for good: before it has threads, for the system bounds a thread and what that starts.

    It goes on in a child, or in a child of that; what called stays as its guard, and never returns.

    policy: writable: folders and files below which it may write; temp: where temporary files go; copied: folders of
    which it writes to a copy, or where there are no namespaces to themselves; local_sockets: whether it may open Unix
    sockets, which in namespaces reach nobody outside; locks: whether it may lock files, and change their modes; strict:
    whether it starts no process and opens no socket at all; level: the highest of LEVELS that is tried; group_bytes:
    memory of all processes of a container together, where there can be a control group; end_with_parent. Only with
    `writable` it is bound.
    """
    if sys.platform != "linux":
        return
    library = _library()
    if policy.get("end_with_parent"):
        library.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if "writable" not in policy:
        return
    entered.append(policy)
    _prepare(policy)
    is_inside = IN_FORCE in os.environ
    refused = "" if is_inside else _contain(library, policy)
    inside = is_inside or not refused
    if not policy.get("copied"):
        adopt_orphans()
    library.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    own = [*policy["writable"], policy.get("temp") or "", *policy.get("copied", ())]
    if not refused and not is_inside and policy.get("copied"):
        own += namespaces.TEMPORARY
    _landlock(library, own, inside, bool(policy.get("local_sockets")))
    namespaces.drop_capabilities(library)
    os.environ.setdefault(IN_FORCE, _in_words(refused))
    seccomp.enter(library, policy, inside)


def _prepare(policy: dict[str, Any]) -> None:
    if policy.get("temp"):
        os.environ["TMPDIR"] = policy["temp"]
        if loaded := sys.modules.get("tempfile"):
            loaded.tempdir = policy["temp"]  # type: ignore[attr-defined]
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _contain(library: ctypes.CDLL, policy: dict[str, Any]) -> str:
    """Go on in a container, or, where the system refuses one and says why, below a guard."""
    refused = f"at most {LANDLOCK!r} is wanted"
    if policy.get("level", NAMESPACES) == NAMESPACES:
        refused = namespaces.contain(library, policy, map(str, _devices()))
    if refused and not policy.get("copied"):  # Wine's server outlives the worker that has started it
        namespaces.guard_children(library)
    return refused


def level() -> str:
    """Which of LEVELS is in force in this process."""
    words = os.environ.get(IN_FORCE, "")
    if words.startswith(NAMESPACES):
        return NAMESPACES
    return LANDLOCK if words else NONE


def describe_level() -> str:
    """What is in force in this process, and what the system lacks: `namespaces, Landlock 7, seccomp`."""
    return os.environ.get(IN_FORCE) or NONE


def _in_words(refused: str) -> str:
    parts = available()
    found = [NAMESPACES] if not refused else []
    found += [f"Landlock {parts['landlock']}"] if parts["landlock"] else []
    found += ["seccomp"] if parts["seccomp"] else []
    lacks = [name for name, value in (("Landlock", parts["landlock"]), ("seccomp", parts["seccomp"])) if not value]
    lacks = [f"{NAMESPACES} ({refused})", *lacks] if refused else lacks
    return ", ".join(found) + (f"{'; ' if found else ''}without {', '.join(lacks)}" if lacks else "")


def available() -> dict[str, int]:
    """Which parts this kernel has: landlock, its version; seccomp, 1; 0 for what it lacks."""
    if sys.platform != "linux":
        return {"landlock": 0, "seccomp": 0}
    library = _library()
    landlock = max(0, library.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION))
    return {"landlock": landlock, "seccomp": int(seccomp.is_available(library))}


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _devices() -> list[Path]:
    return [found for pattern in DEVICES for found in Path("/dev").glob(pattern)]


def _landlock(library: ctypes.CDLL, writable: list[str], inside: bool, local_sockets: bool) -> None:
    version = available()["landlock"]
    if not version:
        return
    folders = WRITE_FILE | OF_FOLDERS | (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)
    to_devices = IOCTL_DEV if version >= 5 else 0
    attributes = struct.pack("=Q", folders | DEVICE_NODES | to_devices)
    if version >= 4:
        attributes += struct.pack("=Q", OF_TCP)
    if version >= 6:
        attributes += struct.pack("=Q", 0 if local_sockets else OF_SIGNALS_AND_SOCKETS)
    ruleset = library.syscall(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        return
    devices = [*_devices(), *(Path("/dev", name) for name in (OWN_DEVICES if inside else ("shm",)))]
    places = [*((path, to_devices) for path in devices), *((Path(path), 0) for path in writable if path)]
    for path, further in places:
        with contextlib.suppress(OSError):
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
            allowed = folders if path.is_dir() else folders & (WRITE_FILE | TRUNCATE)
            library.syscall(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", allowed | further, opened), 0)
            os.close(opened)
    library.syscall(RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def main(arguments: list[str]) -> None:
    """Enter the jail of a policy, as JSON, and execute the command; without one, write which level is in force."""
    policy, *command = arguments
    enter(json.loads(policy))
    if command[:1] == ["--fork-server"]:
        from .fork import fork_workers

        descriptor, *command = command[1:]
        if not fork_workers(int(descriptor), ends_what_is_left=False):
            return
    if not command:
        print(describe_level())
        sys.stdout.flush()
        return
    os.execvp(command[0], command)
