"""What a program tries in a jail, from within: name of the attempt -> "" where it succeeds, the error otherwise.

python jailed_program.py OWN_FOLDER FOREIGN_FOLDER
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

OWN, FOREIGN = map(Path, sys.argv[1:3] if __name__ == "__main__" else ("own", "foreign"))
PTRACE_ATTACH, MS_BIND = 16, 4096
IO_URING_SETUP = 425


def system(name: str, *arguments: Any) -> None:
    """A function of libc that gives -1 where it fails."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def in_a_child() -> None:
    program = f"open({str(FOREIGN / 'of_a_child')!r}, 'w')"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(done.stderr.splitlines()[-1])


def mounts() -> None:
    system("mount", os.fsencode(OWN), os.fsencode(FOREIGN), None, MS_BIND, None)


ATTEMPTS: dict[str, Callable[[], Any]] = {
    "write its own file": lambda: (OWN / "own").write_text("x"),
    "write a temporary file": lambda: os.close(tempfile.mkstemp()[0]),
    "rename its own file": lambda: (OWN / "own").rename(OWN / "renamed"),
    "remove its own file": lambda: (OWN / "renamed").unlink(),
    "write to /dev/null": lambda: Path("/dev/null").write_text("x"),
    "read a foreign file": lambda: (FOREIGN / "kept").read_text(),
    "open a pair of sockets": socket.socketpair,
    "make a foreign file": lambda: (FOREIGN / "made").write_text("x"),
    "make a foreign file in a child": in_a_child,
    "write a foreign file": lambda: (FOREIGN / "kept").write_text("x"),
    "cut a foreign file": lambda: os.truncate(FOREIGN / "kept", 0),
    "remove a foreign file": lambda: (FOREIGN / "kept").unlink(),
    "rename a foreign file": lambda: (FOREIGN / "kept").rename(OWN / "taken"),
    "link a foreign file": lambda: os.link(FOREIGN / "kept", OWN / "linked"),
    "make a foreign folder": lambda: (FOREIGN / "folder").mkdir(),
    "write through a link": lambda: ((OWN / "link").symlink_to(FOREIGN / "kept"), (OWN / "link").write_text("x")),
    "make a device": lambda: os.mknod(OWN / "disk", 0o660 | 0o060000, os.makedev(7, 0)),
    "open an IPv4 socket": lambda: socket.socket(socket.AF_INET),
    "open an IPv6 socket": lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM),
    "open a Unix socket": lambda: socket.socket(socket.AF_UNIX),
    "open a netlink socket": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "open a ring of requests": lambda: system("syscall", IO_URING_SETUP, 4, b"\0" * 120),
    "signal its parent": lambda: os.kill(os.getppid(), 0),
    "trace its parent": lambda: system("ptrace", PTRACE_ATTACH, os.getppid(), None, None),
    "mount": mounts,
}


def facts() -> dict[str, Any]:
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return {
        "no new privileges": status["NoNewPrivs"],
        "capabilities": [int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb")],
        "core": resource.getrlimit(resource.RLIMIT_CORE),
    }


def tried(attempt: Callable[[], Any]) -> str:
    try:
        attempt()
    except OSError as error:
        return error.strerror or str(error)
    return ""


if __name__ == "__main__":
    print(json.dumps({"attempts": {name: tried(attempt) for name, attempt in ATTEMPTS.items()}, **facts()}))
