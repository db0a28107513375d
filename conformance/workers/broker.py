"""Workers of a jailed process: it may start nothing, so the process outside starts them, each in its own jail.

Both sides send MESSAGE over a pair of sockets, as a fork server and its client do: what it says, the number of a
worker, a value. With START come the worker's stdin, stdout and stderr; frames then pass between the two jails directly.
The side inside names a target by its place in a list that both have: it chooses no program, no argument and no path.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import IO, cast

from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.fork_server import BUFFER
from epcheck.conformance.workers.program.fork import MESSAGE

START, KILL, STARTED, EXITED, MEMORY, CPU = range(10, 16)
"""What a message says. To the process outside: start a worker of the target at this place of the list; end it. To that
inside: the worker has this process id; it ended with this exit code; it has so many bytes of resident memory; it has
used so many microseconds of CPU time."""

NEVER_STARTED = 1
"""The exit code of a worker that could not be started; why is on its stderr."""


Program = tuple[tuple[str, ...], str, tuple[str, ...], Mapping[str, str] | None]
"""Command, worker file, arguments and environment."""


def program_of(target: Target) -> Program:
    """What a worker depends on when it is started; providers and options travel with each request."""
    return target.command, target.worker, target.arguments, target.environment


class BrokeredWorker:
    """A worker that the process outside has started: our ends of its pipes, and what is reported of it."""

    def __init__(self, broker: BrokerClient, number: int, stdin: int, stdout: int, stderr: int) -> None:
        """stdin, stdout, stderr: file descriptors of this side."""
        self.stdin: IO[bytes] | None = open(stdin, "wb", BUFFER)  # noqa: SIM115  (closed by who serves it)
        self.stdout: IO[bytes] | None = cast(IO[bytes], open(stdout, "rb", BUFFER))  # noqa: SIM115
        self.stderr: IO[bytes] | None = open(stderr, "rb", BUFFER)  # noqa: SIM115
        self.pid, self.resident_bytes, self.cpu_seconds = 0, 0, 0.0
        self.returncode: int | None = None
        self._broker, self._number = broker, number
        self._exited, self._measured = threading.Event(), threading.Event()

    def wait_for_memory(self, seconds: float) -> int:
        """Its resident memory in bytes; where nothing was reported of it so far, what is within so many seconds."""
        self._measured.wait(seconds)
        return self.resident_bytes

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code as Popen has it. Raises subprocess.TimeoutExpired after so many seconds."""
        if not self._exited.wait(timeout):
            raise subprocess.TimeoutExpired("a worker", timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        """Have it ended, with all that it has started."""
        if self.returncode is None:
            self._broker.send(KILL, self._number)

    def take(self, kind: int, value: int) -> None:
        """Take what the process outside says of it."""
        if kind == STARTED:
            self.pid = value
        elif kind == MEMORY:
            self.resident_bytes = value
            self._measured.set()
        elif kind == CPU:
            self.cpu_seconds = value / 1e6
        elif kind == EXITED:
            self.returncode, self.resident_bytes = value, 0
            self._measured.set()
            self._exited.set()


class BrokerClient:
    """The side inside."""

    def __init__(self, control: socket.socket, programs: Sequence[Program]) -> None:
        """programs: of the targets of the other side, in its order."""
        self._control, self._programs = control, programs
        self._workers: dict[int, BrokeredWorker] = {}
        self._lock = threading.Lock()
        self._numbers = 0
        threading.Thread(target=self._read, name="broker", daemon=True).start()

    def start(self, target: Target) -> BrokeredWorker:
        """Have a worker of the target started. Raises OSError, and ValueError where the list has no such target."""
        if program_of(target) not in self._programs:
            raise ValueError("it is none of those that the process outside starts")
        place = self._programs.index(program_of(target))
        (stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr) = (os.pipe() for _ in range(3))
        with self._lock:
            self._numbers += 1
            number = self._numbers
            worker = self._workers[number] = BrokeredWorker(self, number, to_stdin, from_stdout, from_stderr)
            try:
                socket.send_fds(self._control, [MESSAGE.pack(START, number, place)], [stdin, stdout, stderr])
            finally:
                for descriptor in (stdin, stdout, stderr):
                    os.close(descriptor)
        return worker

    def send(self, kind: int, number: int) -> None:
        with contextlib.suppress(OSError), self._lock:
            self._control.sendall(MESSAGE.pack(kind, number, 0))

    def _read(self) -> None:
        with contextlib.suppress(OSError), self._control.makefile("rb") as reports:
            while len(message := reports.read(MESSAGE.size)) == MESSAGE.size:
                kind, number, value = MESSAGE.unpack(message)
                with self._lock:
                    worker = self._workers.pop(number, None) if kind == EXITED else self._workers.get(number)
                if worker is not None:
                    worker.take(kind, value)
        with self._lock:
            left = [*self._workers.values()]
        for worker in left:
            worker.take(EXITED, NEVER_STARTED)


_current: list[BrokerClient] = []


def use_broker(control: socket.socket, programs: Sequence[Program]) -> None:
    """From now on have the process at the other end start the workers of this process, of these programs alone."""
    _current[:] = [BrokerClient(control, programs)]


def current_broker() -> BrokerClient | None:
    """Whom this process asks for workers; None where it starts them itself."""
    return _current[0] if _current else None
