"""Fork servers: a process that has imported what the workers of a target need, and forks one at each request.

Importing numpy and onnxruntime costs a hundred times what a fork does, so a worker that crashed is soon replaced. Only
where the system can fork: elsewhere, and for a target that a fork may not suit, every worker is started from scratch.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import IO, Any, Protocol, cast

from epcheck.conformance.start_process import start_process
from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers import confinement
from epcheck.conformance.workers.program.fork import BECAME, EXITED, FORK, FORKED, MESSAGE

BUFFER = 1 << 18
"""Bytes. Many frames travel in one system call: each one costs a thread its turn at the interpreter."""

PATIENCE_S = 2.0
"""How long a fork server that was told to end may take, in seconds: one that is stopped never would."""

CREDENTIALS = getattr(socket, "SO_PASSCRED", 0)
"""The option of a socket with which the kernel says who has sent a message; 0 where it has none."""

SENDER = struct.Struct("=3i")
"""What it says: process, user, group."""

SPARE = 1.5
"""How much more a container may take than its workers, with the files that the system keeps for it."""

NEVER_FORKED = 1
"""The exit code of a worker that its fork server could not fork: it is started again."""


class Child(Protocol):
    """A process and its pipes, as subprocess.Popen has them."""

    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def kill(self) -> None: ...


def can_fork(target: Target) -> bool:
    """Whether workers of the target may be forks, or are started by a process in one container for all of them."""
    return (target.forks and sys.platform != "win32") or _shares_container(target)


def _shares_container(target: Target) -> bool:
    """Whether its workers are programs in one container: those of the lab, with a server of Wine for all of them."""
    return target.in_lab and confinement.policy(target) is not None and confinement.has_namespaces()


def start(target: Target, *further: str, **streams: Any) -> subprocess.Popen[bytes]:
    """A process of its own that runs the worker program. Raises OSError or ValueError."""
    options: dict[str, Any] = {"start_new_session": sys.platform != "win32", **streams}
    command = [*target.command, target.worker, *target.arguments]
    bounds = dict(confinement.policy(target) or {})
    if threading.current_thread() is threading.main_thread():  # the system looks at the thread, which may end earlier
        bounds["end_with_parent"] = True
    if "writable" in bounds:
        bounds["group_bytes"] = _group_bytes(target, workers=(os.cpu_count() or 1) if further else 1)
    if further and _shares_container(target):
        command = [*confinement.launcher(bounds), *further, *command]
    elif bounds and sys.platform == "linux":
        within = ["--jail", json.dumps(bounds)]
        command = [*command, *further, *within] if target.owns_group else [*confinement.launcher(bounds), *command]
    else:
        command += further
    make = partial(confinement.start_confined, is_bound=target.is_jailed)
    return start_process(command, env=target.environment, make=make, bufsize=BUFFER, **options)


def _group_bytes(target: Target, workers: int) -> int:
    """Memory that a container may take: more than the runner lets its workers take, which it ends with a reason."""
    return int(workers * SPARE * target.memory_bytes)


class ForkedWorker:
    """A worker that a fork server forks: our ends of its pipes, and its exit once the fork server reports it."""

    def __init__(self, server: ForkServer, *streams: int) -> None:
        """streams: file descriptors of this side of stdin, stdout and stderr, where it is served from here."""
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self.stderr: IO[bytes] | None = None
        if streams:  # files are closed by who serves them
            stdin, stdout, stderr = streams
            self.stdin = open(stdin, "wb", BUFFER)  # noqa: PTH123, SIM115
            self.stdout = cast(IO[bytes], open(stdout, "rb", BUFFER))  # noqa: PTH123, SIM115
            self.stderr = open(stderr, "rb", BUFFER)  # noqa: PTH123, SIM115
        self.returncode: int | None = None
        self._server = server
        self._pid = 0
        self.is_server = False
        self._forked, self._exited = threading.Event(), threading.Event()

    @property
    def is_forked(self) -> bool:
        """Whether the fork server has forked it."""
        return self._forked.is_set()

    @property
    def pid(self) -> int:
        """Its process id; that of the fork server until it is forked."""
        return self._pid if self.is_forked else self._server.process.pid

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code as Popen has it. Raises subprocess.TimeoutExpired after so many seconds."""
        if not self._exited.wait(timeout):
            raise subprocess.TimeoutExpired("a forked worker", timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        """End it; until it is forked, the fork server, which hangs."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def give_up(self) -> None:
        """It was ended, and its fork server does not report that: the server is stopped or hangs."""
        self._server.kill()

    def set_forked(self, pid: int, is_server: bool) -> None:
        """It reports its process id itself. is_server: it is its fork server, which had threads and could not fork."""
        self._pid, self.is_server = pid, is_server
        self._forked.set()

    def set_exited(self, returncode: int) -> None:
        """The fork server reports its exit, or has ended itself."""
        self.returncode = returncode
        self._exited.set()


class ForkServer:
    """A fork server. `fork` never blocks; a thread reads what it reports of its workers."""

    def __init__(self, name: str, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        """name: of its thread. start: called with `--fork-server`, a file descriptor, and options of Popen, when the
        first worker is asked for."""
        self.process: subprocess.Popen[bytes]
        self._name, self._start_process = name, start
        self._control: socket.socket | None = None
        self._workers: dict[int, ForkedWorker] = {}
        self._requests = 0
        self._lock = threading.Lock()
        self._group_ended = False

    @property
    def is_spent(self) -> bool:
        """Whether it has ended, or turned into a worker itself, and another is needed."""
        return self._requests > 0 and self._control is None

    def fork(self, duplex: bool = False) -> ForkedWorker:
        """A new worker, which is forked as soon as the server gets to it. duplex: its stdin is a socket, by which
        it can answer, too. Raises OSError or ValueError."""
        stdin, to_stdin = _socket_pair() if duplex else os.pipe()
        (from_stdout, stdout), (from_stderr, stderr) = os.pipe(), os.pipe()
        child = ForkedWorker(self, to_stdin, from_stdout, from_stderr)
        theirs = [stdin, stdout, stderr]
        try:
            return self._fork(child, theirs)
        finally:
            for descriptor in theirs:
                os.close(descriptor)

    def fork_with(self, streams: Sequence[int]) -> ForkedWorker:
        """The same, with these file descriptors as stdin, stdout and stderr; they stay the caller's, too."""
        return self._fork(ForkedWorker(self), streams)

    def _fork(self, child: ForkedWorker, streams: Sequence[int]) -> ForkedWorker:
        if self._control is None:
            self._start(streams[2])
        with self._lock:
            self._requests += 1
            control = self._control
            if control is not None:
                self._workers[self._requests] = child
        if control is None:  # it has ended at once, and the thread has reported all that it knew of
            child.set_exited(self.process.wait())
            return child
        with contextlib.suppress(OSError):  # it has ended: the thread reports it
            socket.send_fds(control, [MESSAGE.pack(FORK, self._requests, 0)], streams)
        return child

    def close(self) -> None:
        """Let it end; its workers have been ended before."""
        if self._control is not None:
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_RDWR)
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
            self._end_group()

    def kill(self) -> None:
        """End it at once, and with it its workers: their exits are reported."""
        self.process.kill()
        self._end_group()

    def _end_group(self) -> None:
        """Wait for its end, and end what a module that it imported has started."""
        self.process.wait()
        with self._lock:
            is_first, self._group_ended = not self._group_ended, True
        if sys.platform != "win32" and is_first:  # later its number may be another's
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def _start(self, stderr: int) -> None:
        """What it writes to stderr until it has imported everything is in the log of its first worker."""
        ours, theirs = socket.socketpair()
        with theirs:
            nothing = subprocess.DEVNULL
            number = theirs.fileno()
            streams = {"stdin": nothing, "stdout": nothing, "stderr": stderr}
            self.process = self._start_process("--fork-server", str(number), pass_fds=[number], **streams)
        if CREDENTIALS:
            ours.setsockopt(socket.SOL_SOCKET, CREDENTIALS, 1)
        self._control = ours
        threading.Thread(target=self._read, args=(ours,), name=f"{self._name} fork server", daemon=True).start()

    def _read(self, control: socket.socket) -> None:
        with control, contextlib.suppress(OSError):
            while (report := _receive(control)) is not None:
                kind, number, value = report
                is_forked = kind in (FORKED, BECAME)
                with self._lock:
                    child = self._workers.get(number) if is_forked else self._workers.pop(number, None)
                if child is not None and is_forked:
                    child.set_forked(value, kind == BECAME)
                elif child is not None and kind == EXITED:
                    child.set_exited(value)
        with self._lock:
            self._control = None
            left = list(self._workers.values())
            self._workers.clear()
        self._end_workers(left)

    def _end_workers(self, left: list[ForkedWorker]) -> None:
        """The fork server has ended, and nobody reports the exits of its workers; or it is its first worker itself."""
        itself = [child for child in left if child.is_server]
        for child in left:
            if child.is_forked and child not in itself:
                child.kill()
            if itself and child not in itself:
                child.set_exited(NEVER_FORKED)
        self._end_group()
        returncode = self.process.returncode
        for child in itself or left:
            child.set_exited(returncode)


def _socket_pair() -> tuple[int, int]:
    theirs, ours = socket.socketpair()
    return theirs.detach(), ours.detach()


def _receive(control: socket.socket) -> tuple[int, int, int] | None:
    """The next message, with the sender's process id as this process sees it in the place of that which it has itself;
    None where there are no more."""
    message, sent, _, _ = control.recvmsg(MESSAGE.size, socket.CMSG_SPACE(SENDER.size))
    if len(message) < MESSAGE.size:  # one arrives whole: it was sent whole
        return None
    kind, number, value = MESSAGE.unpack(message)
    if kind in (FORKED, BECAME) and sent:
        value = SENDER.unpack(sent[0][2][: SENDER.size])[0]
    return kind, number, value


def start_piped(target: Target) -> subprocess.Popen[bytes]:
    """A worker that is started from scratch. Raises OSError or ValueError."""
    return start(target, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
