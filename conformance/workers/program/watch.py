"""The end of a worker whose parent has ended."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Container
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

_guarding: list[bool] = []
"""Not empty while the process is forked that outlives this one."""


class ParentWatch:
    """Ends the process with its parent: a runner that was killed cannot end a worker that hangs, and a worker that
    hangs does not see its input end. Does nothing on Windows, where a process keeps the id of its parent for ever."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        if sys.platform != "win32":  # where Wine cannot tell the parent, either
            self._parent = os.getppid()
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the watch: a process that has threads must not fork."""
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while os.getppid() == self._parent:
            if self._stopped.wait(1):
                return
        os._exit(1)


def end_with_parent() -> None:
    """Have the system kill this process when the thread that started it ends: one that is busy in native code and holds
    Python's lock sees nothing else. Does nothing where the system cannot (it is Linux's prctl)."""
    if sys.platform != "linux":
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def adopt_orphans() -> None:
    """Have processes whose parent has ended, among what this one starts, become its children: it is measured with them,
    and who ends its family finds them. Does nothing where the system cannot (it is Linux's prctl)."""
    if sys.platform != "linux":
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children_of(pid: int) -> list[int]:
    """The children of a process of ours that is one thread, or of all its threads; none where it has ended, or the
    system has no /proc."""
    found: list[int] = []
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    except OSError:  # it has ended, or the kernel keeps no such list
        return [] if Path("/proc/self/task", str(os.getpid()), "children").exists() else _with_parent(pid)
    return found


def _with_parent(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(entry.read_text(errors="replace").rpartition(")")[2].split()[1]) == pid:
                found.append(int(entry.parent.name))
    return found


def end_children(kept: Container[int] = ()) -> None:
    """End all children but those, and what becomes a child while they end: who adopts orphans ends what they left."""
    while left := [pid for pid in children_of(os.getpid()) if pid not in kept]:
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for pid in left:
            with contextlib.suppress(OSError):
                os.waitpid(pid, 0)


def end_group_with_us() -> None:
    """Have what this process starts end with it, also if it is killed: programs, of which `end_forks_with_us` knows
    nothing. A process that is nobody's child waits for our end, and ends the group; call it while there is one thread.
    Does nothing where the system has no process groups, and where this process does not lead its own."""
    if sys.platform == "win32" or os.getpgid(0) != os.getpid():
        return
    ended, _ = os.pipe()  # whose other end is closed when this process, and each fork of it, has ended
    _guarding.append(True)
    child = os.fork()
    if child:
        _guarding.clear()
        os.waitpid(child, 0)
        os.close(ended)
        return
    try:
        if os.fork():
            os._exit(0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.dup2(ended, 0)
        os.closerange(1, 1 << 16)
        os.read(0, 1)
        os.killpg(0, signal.SIGKILL)
    finally:
        os._exit(0)


def end_forks_with_us() -> None:
    """Have the system kill what this process forks when it ends: a callable may leave processes behind, in sessions of
    their own. Only what its main thread forks, since the system looks at the thread."""
    if sys.platform != "linux":
        return
    forking = []
    os.register_at_fork(
        before=lambda: forking.append(threading.current_thread() is threading.main_thread()),
        after_in_parent=forking.pop,
        after_in_child=lambda: end_with_parent() if forking.pop() and not _guarding else None,
    )
