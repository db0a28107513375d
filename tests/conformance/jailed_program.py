"""What a program tries in a jail, from within: name of the attempt -> "" where it succeeds, the error otherwise.

python jailed_program.py OWN_FOLDER FOREIGN_FOLDER [VICTIM]

VICTIM: what there is outside, as JSON: `process`, its id; `terminal`, a path; `memory`, `semaphores` and `messages`,
ids of System V; `queue`, the name of a queue of POSIX; `stream` and `datagrams`, paths of sockets.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

if sys.platform != "win32":
    import fcntl
    import resource
    import termios

OWN, FOREIGN = map(Path, sys.argv[1:3] if __name__ == "__main__" else ("own", "foreign"))
VICTIM: dict[str, Any] = json.loads(sys.argv[3]) if __name__ == "__main__" and len(sys.argv) > 3 else {}
PTRACE_ATTACH, MS_BIND, NEW_USER, USER_KEYRING, IPC_RMID = 16, 4096, 0x10000000, -4, 0
IO_URING_SETUP, PIDFD_OPEN, PIDFD_GETFD = 425, 434, 438
IS_ARM = sys.platform != "win32" and os.uname().machine == "aarch64"
IOPRIO_SET, ADD_KEY, BPF, PERF_EVENT_OPEN, USERFAULTFD, KCMP, PROCESS_VM_READV, NAME_TO_HANDLE = (
    (30, 217, 280, 241, 282, 272, 270, 264) if IS_ARM else (251, 248, 321, 298, 323, 312, 310, 303)
)


def system(name: str, *arguments: Any) -> int:
    """A function of libc that gives -1 where it fails."""
    result = getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(result)


def call(number: int, *arguments: Any) -> int:
    """A system call that is no function of libc."""
    return system("syscall", number, *arguments)


def in_a_child() -> None:
    program = f"open({str(FOREIGN / 'of_a_child')!r}, 'w')"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode:
        raise OSError(done.stderr.splitlines()[-1])


def mounts() -> None:
    system("mount", os.fsencode(OWN), os.fsencode(FOREIGN), None, MS_BIND, None)


def queue_of_posix() -> None:
    system("mq_unlink", VICTIM["queue"].encode())


def limits_time() -> None:
    resource.prlimit(VICTIM["process"], resource.RLIMIT_CPU, (1, 1))


def sends_a_datagram() -> None:
    sender, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    sender.sendto(b"x", VICTIM["datagrams"])


def types_into_a_terminal() -> None:
    """Also into one that it made itself."""
    try:
        terminal = os.open(VICTIM["terminal"], os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        terminal, _ = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSTI, b"x")


def locks_as_posix() -> None:
    with (FOREIGN / "kept").open("rb") as file:
        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


def locks() -> None:
    with (FOREIGN / "kept").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def takes_a_descriptor() -> None:
    call(PIDFD_GETFD, call(PIDFD_OPEN, VICTIM["process"], 0), 0, 0)


def reads_memory() -> None:
    call(PROCESS_VM_READV, VICTIM["process"], None, 0, None, 0, 0)


def has_signals_sent() -> None:
    watched, _ = socket.socketpair()
    fcntl.fcntl(watched, fcntl.F_SETOWN, VICTIM["process"])


def connects() -> None:
    """As CUDA's driver and Wine's programs may open a socket, also of another type."""
    with socket.socket(socket.AF_UNIX) as opened:
        opened.connect(VICTIM["stream"])


ATTEMPTS: dict[str, Callable[[], Any]] = {
    "write its own file": lambda: (OWN / "own").write_text("x"),
    "write a temporary file": lambda: os.close(tempfile.mkstemp()[0]),
    "rename its own file": lambda: (OWN / "own").rename(OWN / "renamed"),
    "remove its own file": lambda: (OWN / "renamed").unlink(),
    "write to /dev/null": lambda: Path("/dev/null").write_text("x"),
    "read a foreign file": lambda: (FOREIGN / "kept").read_text(),
    "open a pair of sockets": socket.socketpair,
    "start a program": lambda: subprocess.run(["true"], check=True),
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
    "open a ring of requests": lambda: call(IO_URING_SETUP, 4, b"\0" * 120),
    "mount": mounts,
}

OF_OTHERS: dict[str, Callable[[], Any]] = {
    "change the mode of a foreign file": lambda: (FOREIGN / "kept").chmod(0o600),
    "change the owner of a foreign file": lambda: os.chown(FOREIGN / "kept", os.getuid(), os.getgid()),
    "change the times of a foreign file": lambda: os.utime(FOREIGN / "kept", (0, 0)),
    "label a foreign file": lambda: os.setxattr(FOREIGN / "kept", "user.epcheck", b"x"),
    "lock a foreign file": locks,
    "lock a part of a foreign file": locks_as_posix,
    "signal another": lambda: os.kill(VICTIM["process"], 0),
    "have signals sent to another": has_signals_sent,
    "trace another": lambda: system("ptrace", PTRACE_ATTACH, VICTIM["process"], None, None),
    "read another's memory": reads_memory,
    "take a descriptor of another": takes_a_descriptor,
    "compare with another": lambda: call(KCMP, VICTIM["process"], os.getpid(), 0, 0, 0),
    "limit another's time": limits_time,
    "pin another": lambda: os.sched_setaffinity(VICTIM["process"], {0}),
    "schedule another": lambda: os.sched_setscheduler(VICTIM["process"], os.SCHED_BATCH, os.sched_param(0)),
    "slow another": lambda: os.setpriority(os.PRIO_PROCESS, VICTIM["process"], 19),
    "slow another's disk": lambda: call(IOPRIO_SET, 1, VICTIM["process"], 3 << 13),
    "attach foreign memory": lambda: system("shmat", VICTIM["memory"], None, 0),
    "remove foreign memory": lambda: system("shmctl", VICTIM["memory"], IPC_RMID, None),
    "remove foreign semaphores": lambda: system("semctl", VICTIM["semaphores"], 0, IPC_RMID, 0),
    "remove foreign messages": lambda: system("msgctl", VICTIM["messages"], IPC_RMID, None),
    "remove a foreign queue": queue_of_posix,
    "keep a key": lambda: call(ADD_KEY, b"user", b"epcheck", b"x", ctypes.c_size_t(1), USER_KEYRING),
    "send a datagram": sends_a_datagram,
    "write to a foreign terminal": lambda: os.close(os.open(VICTIM["terminal"], os.O_WRONLY | os.O_NOCTTY)),
    "type into a terminal": types_into_a_terminal,
    "make a namespace": lambda: system("unshare", NEW_USER),
    "load a program into the kernel": lambda: call(BPF, 0, b"\0" * 72, 72),
    "count events": lambda: call(PERF_EVENT_OPEN, struct.pack("=II", 1, 112) + b"\0" * 104, 0, -1, -1, 0),
    "handle faults": lambda: call(USERFAULTFD, 1),
    "name a file by a handle": lambda: call(NAME_TO_HANDLE, -100, b"/", b"\0" * 16, b"\0" * 4, 0),
    "connect to a foreign socket": connects,
}
"""What is done to others; needs VICTIM."""


def leave_processes(name: str) -> None:
    """Three that outlive this one, if nobody ends them: in a session of its own, without a parent, and both."""
    for forks, has_session in ((1, True), (2, False), (2, True)):
        if os.fork():
            continue
        if has_session:
            os.setsid()
        if forks == 2 and os.fork():
            os._exit(0)
        os.closerange(0, 3)
        os.execlp(sys.executable, sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)", name)
    time.sleep(1)


def facts() -> dict[str, Any]:
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return {
        "no new privileges": status["NoNewPrivs"],
        "capabilities": [int(status[name], 16) for name in ("CapPrm", "CapEff", "CapInh", "CapAmb", "CapBnd")],
        "core": resource.getrlimit(resource.RLIMIT_CORE),
        "level": os.environ.get("EPCHECK_JAILED", ""),
        "process": os.getpid(),
    }


def tried(attempt: Callable[[], Any]) -> str:
    try:
        attempt()
    except OSError as error:
        return error.strerror or str(error)
    return ""


if __name__ == "__main__":
    if FOREIGN.name == "leave":
        leave_processes(OWN.name)
        sys.exit(3)
    attempts = {**ATTEMPTS, **(OF_OTHERS if VICTIM else {})}
    print(json.dumps({"attempts": {name: tried(attempt) for name, attempt in attempts.items()}, **facts()}))
