"""Templates: a process that has imported what the workers of a target need, and forks one whenever it is asked to.

Importing numpy and onnxruntime costs a hundred times what a fork does, so a worker that crashed is soon replaced. Only
where the system can fork: elsewhere, and for a target that a fork may not suit, every worker is started from scratch.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import IO, Any, Protocol, cast

from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.program.fork import FORK, FORKED, MESSAGE

BUFFER = 1 << 18
"""Bytes. Many frames travel in one system call: each one costs a thread its turn at the interpreter."""

UNBORN = 1
"""The exit code of a worker whose template cannot fork it: it is started again."""


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
    """Whether workers of the target may be forks."""
    return target.forks and sys.platform != "win32"


def start(target: Target, *further: str, **streams: Any) -> subprocess.Popen[bytes]:
    """A process of its own that runs the worker file. Raises OSError or ValueError."""
    options: dict[str, Any] = {"start_new_session": True, **streams}
    if sys.platform == "win32":
        options = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP, **streams}
    command = [*target.command, target.worker, *target.arguments, *further]
    environment = None if target.environment is None else dict(target.environment)
    process: subprocess.Popen[bytes] = subprocess.Popen(command, bufsize=BUFFER, env=environment, **options)
    return process


class Forked:
    """A worker that a template forked: its ends of the pipes, and the end of the process once the template tells it."""

    def __init__(self, template: Template, stdin: int, stdout: int, stderr: int) -> None:
        """stdin, stdout, stderr: file descriptors of this side."""
        self.stdin: IO[bytes] | None = open(stdin, "wb", BUFFER)  # noqa: SIM115  (closed by who serves it)
        self.stdout: IO[bytes] | None = cast(IO[bytes], open(stdout, "rb", BUFFER))  # noqa: SIM115
        self.stderr: IO[bytes] | None = open(stderr, "rb", BUFFER)  # noqa: SIM115
        self.returncode: int | None = None
        self._template = template
        self._pid = 0
        self._born, self._ended = threading.Event(), threading.Event()

    @property
    def is_born(self) -> bool:
        """Whether the template has forked it."""
        return self._born.is_set()

    @property
    def pid(self) -> int:
        """Its process id; that of the template while it is not there yet."""
        return self._pid if self.is_born else self._template.process.pid

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code as Popen has it. Raises subprocess.TimeoutExpired after so many seconds."""
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired("a forked worker", timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        """End it; while it is not there yet, its template, which hangs."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def born(self, pid: int) -> None:
        self._pid = pid
        self._born.set()

    def over(self, returncode: int) -> None:
        self.returncode = returncode
        self._ended.set()


class Template:
    """A running template. `fork` never blocks; a thread takes down what it tells of its workers."""

    def __init__(self, target: Target) -> None:
        """Nothing is started before the first worker is asked for."""
        self.process: subprocess.Popen[bytes]
        self._target = target
        self._control: socket.socket | None = None
        self._workers: dict[int, Forked] = {}
        self._asked = 0
        self._lock = threading.Lock()

    @property
    def is_spent(self) -> bool:
        """Whether it has ended, or turned into a worker itself, and another one is needed."""
        return self._asked > 0 and self._control is None

    def fork(self) -> Forked:
        """A new worker, which greets once it is there. Raises OSError or ValueError."""
        pipes = [os.pipe() for _ in range(3)]
        (stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr) = pipes
        theirs = [stdin, stdout, stderr]
        try:
            if self._control is None:
                self._start(stderr)
            child = Forked(self, to_stdin, from_stdout, from_stderr)
            with self._lock:
                self._asked += 1
                self._workers[self._asked] = child
            assert self._control is not None
            with contextlib.suppress(OSError):  # it has ended: the thread says so
                socket.send_fds(self._control, [MESSAGE.pack(FORK, self._asked, 0)], theirs)
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        return child

    def close(self) -> None:
        """Let it end; its workers have been ended before."""
        if self._control is not None:
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_RDWR)
            self.process.wait()

    def _start(self, stderr: int) -> None:
        """What it says before it has imported everything is said by its first worker."""
        ours, theirs = socket.socketpair()
        with theirs:
            nothing = subprocess.DEVNULL
            number = theirs.fileno()
            self.process = start(
                self._target,
                "--fork-server",
                str(number),
                pass_fds=[number],
                stdin=nothing,
                stdout=nothing,
                stderr=stderr,
            )
        self._control = ours
        threading.Thread(target=self._hear, args=(ours,), name=f"{self._target.name} template", daemon=True).start()

    def _hear(self, control: socket.socket) -> None:
        with control, contextlib.suppress(OSError), control.makefile("rb") as told:
            while len(message := told.read(MESSAGE.size)) == MESSAGE.size:
                what, number, value = MESSAGE.unpack(message)
                with self._lock:
                    child = self._workers.get(number) if what == FORKED else self._workers.pop(number, None)
                if child is not None:
                    child.born(value) if what == FORKED else child.over(value)
        self._control = None
        with self._lock:
            left = list(self._workers.values())
            self._workers.clear()
        self._gone(left)

    def _gone(self, left: list[Forked]) -> None:
        """It has ended, and with it who could tell of the end of its workers; or it is its first worker itself."""
        itself = [child for child in left if child.is_born and child.pid == self.process.pid]
        for child in left:
            if child.is_born and child not in itself:
                child.kill()
            if itself and child not in itself:
                child.over(UNBORN)
        returncode = self.process.wait()
        for child in itself or left:
            child.over(returncode)


def piped(target: Target) -> subprocess.Popen[bytes]:
    """A worker that is started from scratch. Raises OSError or ValueError."""
    return start(target, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
