"""What the system keeps a process from, and whatever it starts, until it ends: Linux's Landlock, seccomp and limits.

    python -I -S jail.py POLICY COMMAND...

executes a command within it. Where the system lacks a part, it does so without: `available` says which there are.
This file needs nothing but Python 3.9.

The numbers are those of Linux's headers: landlock.h, seccomp.h, filter.h, prctl.h, capability.h, audit.h.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import signal
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 24, 38

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""System calls of Landlock; on every architecture the same."""

VERSION, PATH_BENEATH = 1, 1

WRITE_FILE, REFER, TRUNCATE = 1 << 1, 1 << 13, 1 << 14
OF_FOLDERS = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12
"""Remove a folder or a file; make a folder, file, socket, pipe, symbolic link."""

DEVICE_NODES = 1 << 6 | 1 << 11
"""Make a node of a character or block device: nobody may."""

OF_TCP, OF_SIGNALS_AND_SOCKETS = 0b11, 0b11
"""Bind and connect; abstract Unix sockets of others, and signals to them."""

DEVICES = (
    "null", "zero", "full", "random", "urandom", "tty", "shm", "dri", "nvidia*", "kfd", "accel", "dxg", "fastrpc*",
    "adsprpc*", "mali*", "udmabuf", "dma_heap", "apex*", "hailo*", "davinci*",
)  # fmt: skip
"""What is in /dev that programs write to: the devices of GPUs and NPUs among it."""

SECCOMP_SET_MODE_FILTER, SECCOMP_GET_ACTION_AVAIL = 1, 2
RET_ERRNO, RET_ALLOW, EACCES = 0x00050000, 0x7FFF0000, 13
LOAD, EQUALS, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
AF_UNIX = 1

CALLS = {"x86_64": (0xC000003E, 317, 41, 425), "aarch64": (0xC00000B7, 277, 198, 425)}
"""Machine -> its AUDIT_ARCH, and its system calls seccomp, socket and io_uring_setup; a ring can open sockets, too."""

I386, I386_CALLS, X32 = 0x40000003, (102, 359, 425), 0x40000000
"""What an x86_64 kernel runs besides: socketcall, socket and io_uring_setup of 32-bit programs, and x32's bit."""

CAPABILITY_VERSION, CAP_DAC_OVERRIDE, CAPABILITIES = 0x20080522, 1, 64
"""Of root's capabilities the one that lets it open files of others stays: Landlock bounds what it may write."""


entered: list[dict[str, Any]] = []
"""The policies that bound this process."""


def enter(policy: dict[str, Any]) -> None:
    """Bound this process for good: before it has threads, for the system bounds a thread and what that starts.

    policy: writable: folders and files below which it may write; temp: where temporary files go; local_sockets: whether
    it may talk to processes that it did not start, through Unix sockets; end_with_parent.
    """
    if sys.platform != "linux":
        return
    library = _library()
    if policy.get("end_with_parent"):
        library.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if "writable" not in policy:
        return
    entered.append(policy)
    if policy.get("temp"):
        os.environ["TMPDIR"] = tempfile.tempdir = policy["temp"]
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    library.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    local = bool(policy.get("local_sockets"))
    _landlock(library, [*policy["writable"], policy.get("temp") or ""], local)
    _drop_capabilities(library)
    _seccomp(library, local)


def available() -> dict[str, int]:
    """Which parts this system has: landlock, its version; seccomp, 1; 0 for what it lacks."""
    if sys.platform != "linux":
        return {"landlock": 0, "seccomp": 0}
    library = _library()
    landlock = max(0, library.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION))
    calls = CALLS.get(platform.machine())
    action = ctypes.c_uint32(RET_ERRNO)
    seccomp = calls is not None and not library.syscall(calls[1], SECCOMP_GET_ACTION_AVAIL, 0, ctypes.byref(action))
    return {"landlock": landlock, "seccomp": int(seccomp)}


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _landlock(library: ctypes.CDLL, writable: list[str], local_sockets: bool) -> None:
    version = available()["landlock"]
    if not version:
        return
    folders = WRITE_FILE | OF_FOLDERS | (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)
    files = folders & (WRITE_FILE | TRUNCATE)
    attributes = struct.pack("=Q", folders | DEVICE_NODES)
    if version >= 4:
        attributes += struct.pack("=Q", OF_TCP)
    if version >= 6:
        attributes += struct.pack("=Q", 0 if local_sockets else OF_SIGNALS_AND_SOCKETS)
    ruleset = library.syscall(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        return
    devices = [found for pattern in DEVICES for found in Path("/dev").glob(pattern)]
    for path in [*devices, *map(Path, filter(None, writable))]:
        with contextlib.suppress(OSError):
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
            allowed = folders if path.is_dir() else files
            library.syscall(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", allowed, opened), 0)
            os.close(opened)
    library.syscall(RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _drop_capabilities(library: ctypes.CDLL) -> None:
    """Root's: to load modules, mount, trace, configure the network."""
    if os.geteuid():
        return
    for capability in set(range(CAPABILITIES)) - {CAP_DAC_OVERRIDE}:
        library.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    kept = 1 << CAP_DAC_OVERRIDE
    header, sets = struct.pack("=Ii", CAPABILITY_VERSION, 0), struct.pack("=6I", kept, kept, 0, 0, 0, 0)
    library.capset(header, sets)


def _seccomp(library: ctypes.CDLL, local_sockets: bool) -> None:
    """No socket is opened: none at all, or none but Unix's. A pair of them, or a pipe, reaches nobody else."""
    machine = platform.machine()
    if machine not in CALLS or struct.calcsize("P") != 8:
        return
    architecture, seccomp, socket, ring = CALLS[machine]
    program = _filter(architecture, socket, ring, local_sockets, machine == "x86_64")
    instructions = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(instructions, len(instructions))
    described = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    library.syscall(seccomp, SECCOMP_SET_MODE_FILTER, 0, described)


def _filter(architecture: int, socket: int, ring: int, local_sockets: bool, is_x86: bool) -> list[tuple[int, ...]]:
    """A program for the kernel: (code, to skip if true, to skip if false, value) each."""
    deny, allow = (RETURN, 0, 0, RET_ERRNO | EACCES), (RETURN, 0, 0, RET_ALLOW)
    call, first_argument = (LOAD, 0, 0, 0), (LOAD, 0, 0, 16)
    foreign: list[tuple[int, ...]] = [deny]
    if is_x86:
        tests = [(EQUALS, len(I386_CALLS) - at, 0, number) for at, number in enumerate(I386_CALLS)]
        foreign = [(EQUALS, 0, len(tests) + 2, I386), call, *tests, allow, deny]
    own: list[tuple[int, ...]] = [call]
    if is_x86:
        own += [(AT_LEAST, 0, 1, X32), deny]
    own += [(EQUALS, 0, 1, ring), deny, (EQUALS, 1, 0, socket), allow]
    own += [first_argument, (EQUALS, 0, 1, AF_UNIX), allow, deny] if local_sockets else [deny]
    return [(LOAD, 0, 0, 4), (EQUALS, len(foreign), 0, architecture), *foreign, *own]


def main(arguments: list[str]) -> None:
    """Enter the jail of a policy, as JSON, and execute the command."""
    policy, *command = arguments
    enter(json.loads(policy))
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
