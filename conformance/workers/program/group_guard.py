"""The end of what workers start: one process that waits for the end of each worker of a fork server."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
import sys

from .watch import is_detached

PID = struct.Struct("<q")


class GroupGuard:
    """Ends the process group of each worker with it, also where the worker and the fork server are killed: the programs
    that a callable has started. A guard of each worker's own would be two more forks of a process that has imported
    everything."""

    def __init__(self) -> None:
        """Start the process, which is nobody's child and ends after the fork server and the last worker. Call it while
        there is one thread. Raises OSError where the kernel has no descriptors of processes (Linux before 5.3)."""
        self._start()

    def watch(self, pid: int) -> None:
        """Take a worker, which leads a group of its own before it starts anything."""
        try:
            os.write(self._pids, PID.pack(pid))
        except BrokenPipeError:  # somebody has killed the guard
            os.close(self._pids)
            self._start()
            os.write(self._pids, PID.pack(pid))

    def leave(self) -> None:
        """In a worker: only the fork server keeps the guard."""
        os.close(self._pids)

    def _start(self) -> None:
        os.close(_descriptor(os.getpid()))
        pids, self._pids = os.pipe()
        if is_detached():
            _guard(pids)
        os.close(pids)


def can_guard() -> bool:
    """Whether Python knows descriptors of processes here."""
    return sys.platform == "linux" and hasattr(os, "pidfd_open")


def _descriptor(pid: int) -> int:
    """A file that can be read once the process has ended. Raises OSError."""
    descriptor: int = os.pidfd_open(pid)  # type: ignore[attr-defined,unused-ignore]  # Linux alone has it
    return descriptor


def _guard(pids: int) -> None:
    """What the process does until it ends. pids: from which the process ids of workers are read."""
    try:
        os.setsid()  # whoever ends the group of the fork server lets this one do its work
        os.dup2(pids, 0)
        os.closerange(1, 1 << 16)
        ends, workers, more_may_come = select.poll(), dict[int, int](), True
        ends.register(0, select.POLLIN)
        while more_may_come or workers:
            for descriptor, _ in ends.poll():
                if descriptor:
                    ends.unregister(descriptor)
                    os.close(descriptor)
                    _end(workers.pop(descriptor))
                elif data := os.read(0, PID.size):
                    (pid,) = PID.unpack(data)
                    try:
                        opened = _descriptor(pid)
                    except ProcessLookupError:
                        _end(pid)
                    else:
                        workers[opened] = pid
                        ends.register(opened, select.POLLIN)
                else:
                    ends.unregister(0)
                    more_may_come = False
    finally:
        os._exit(0)


def _end(group: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(group, signal.SIGKILL)
