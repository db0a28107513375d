"""What a program in a jail tries to touch: a process, and what it has made. Each line of stdin is answered with the
state of it all; the first line that it writes is `VICTIM` of `jailed_program.py`.

python victim_program.py FOLDER
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import socket
import sys
from pathlib import Path
from typing import Any

CREATE, MODE, IPC_STAT = 0o1000, 0o666, 2


def make(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is named to the program, and what the state is found from."""
    libc = ctypes.CDLL(None, use_errno=True)
    main, terminal = os.openpty()
    stream, datagrams = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    stream.bind(str(folder / "stream"))
    stream.listen(5)
    datagrams.bind(str(folder / "datagrams"))
    queue = f"/epcheck-{os.getpid()}"
    descriptor = libc.mq_open(queue.encode(), os.O_CREAT | os.O_RDWR, MODE, None)
    named = {
        "process": os.getpid(),
        "terminal": os.ttyname(terminal),
        "memory": libc.shmget(0, 4096, CREATE | MODE),
        "semaphores": libc.semget(0, 1, CREATE | MODE),
        "messages": libc.msgget(0, CREATE | MODE),
        "queue": queue,
        "stream": str(folder / "stream"),
        "datagrams": str(folder / "datagrams"),
    }
    return named, {"libc": libc, "heard": [main, stream.fileno(), datagrams.fileno()], "open": [stream, datagrams],
                   "queue": descriptor, "terminal": terminal}  # fmt: skip


def state(named: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    libc, buffer = made["libc"], ctypes.create_string_buffer(512)
    queue = libc.mq_open(named["queue"].encode(), os.O_RDWR)
    ours, theirs = (libc.syscall(252 if os.uname().machine == "x86_64" else 31, 1, who) for who in (0, os.getppid()))
    return {
        "scheduled": os.sched_getscheduler(0),
        "runs on": sorted(os.sched_getaffinity(0)),
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "disk": ours == theirs,
        "time": resource.getrlimit(resource.RLIMIT_CPU),
        "memory": libc.shmctl(named["memory"], IPC_STAT, buffer),
        "semaphores": libc.semctl(named["semaphores"], 0, IPC_STAT, buffer),
        "messages": libc.msgctl(named["messages"], IPC_STAT, buffer),
        "queue": queue >= 0 and libc.mq_close(queue),
        "heard": select.select(made["heard"], [], [], 0)[0],
    }


def remove(named: dict[str, Any], made: dict[str, Any]) -> None:
    libc = made["libc"]
    libc.shmctl(named["memory"], 0, None)
    libc.semctl(named["semaphores"], 0, 0)
    libc.msgctl(named["messages"], 0, None)
    libc.mq_unlink(named["queue"].encode())


if __name__ == "__main__":
    victim, kept = make(Path(sys.argv[1]))
    print(json.dumps(victim), flush=True)
    for _ in sys.stdin:
        print(json.dumps(state(victim, kept)), flush=True)
    remove(victim, kept)
