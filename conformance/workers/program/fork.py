"""The fork server's process: it has imported what a backend needs, and forks a worker for each request on a socket.

Both sides send MESSAGE: what it says, the number that the client gave the worker, and a value. A worker itself says
that it is forked: the credentials of that message hold its process id as the client sees it, which in a pid namespace
is another than its own.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import struct
import threading
from collections.abc import Callable

from .watch import adopt_orphans, children_of, end_children

MESSAGE = struct.Struct("<BQq")
"""What it says, the number of a worker, a value."""

FORK, FORKED, EXITED, BECAME = 1, 2, 3, 4
"""What a message says: fork this worker, whose stdin, stdout and stderr come along; it is forked, and has this process
id; it ended with this exit code; the fork server is this worker itself from now on."""


def fork_workers(
    descriptor: int, before_second: Callable[[], None] | None = None, ends_what_is_left: bool = True
) -> bool:
    """Fork a worker for each request on the socket. True in a worker, False when the requests have ended.

    Where something that was imported runs threads, which a fork loses, the process becomes its first worker itself.
    before_second: called once a second worker is asked for; it imports what one worker alone may never need.
    ends_what_is_left: processes that a worker leaves when it ends are ended, however they have left its session; not
    where one serves the next worker, too.
    """
    control = socket.socket(fileno=descriptor)
    if ends_what_is_left:
        adopt_orphans()
    ours = set(children_of(os.getpid()))
    can_fork = threading.active_count() == 1
    wake, awake = os.pipe()
    os.set_blocking(awake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(awake, warn_on_full_buffer=False)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 2)  # its first worker alone has that stderr
    workers: dict[int, int] = {}
    workers_forked = 0
    gc.freeze()
    while True:
        ready, _, _ = select.select([control.fileno(), wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            ended = report_exits(control, workers)
            if ended and ends_what_is_left:
                end_children({*ours, *workers})
        if control.fileno() not in ready:
            continue
        message, streams, _, _ = socket.recv_fds(control, MESSAGE.size, 3)
        if len(message) < MESSAGE.size or len(streams) < 3:
            return False
        _, number, _ = MESSAGE.unpack(message)
        if before_second and workers_forked == 1:
            before_second()
            gc.freeze()
        pid = os.fork() if can_fork else 0
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if can_fork:
                os.setsid()
            if ends_what_is_left:
                adopt_orphans()
            control.sendall(MESSAGE.pack(FORKED if can_fork else BECAME, number, os.getpid()))
            control.close()
            for place, stream in enumerate(streams):
                os.dup2(stream, place)
            for opened in (wake, awake, nothing, *streams):
                os.close(opened)
            return True
        workers[pid] = number
        workers_forked += 1
        for stream in streams:
            os.close(stream)


def report_exits(control: socket.socket, workers: dict[int, int]) -> bool:
    """Report which workers have ended, and how; whether one has. workers: process id -> number."""
    before = len(workers)
    for pid in list(workers):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            control.sendall(MESSAGE.pack(EXITED, workers.pop(pid), code))
    return len(workers) < before
