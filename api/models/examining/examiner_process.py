"""The process that examines one model, seen from ours.

Where the system can fork, one process imports what an examination needs, and each examination is a fork of it:
importing takes a second, most examinations less. A fork has the strictest jail: it starts nothing, and asks us for
workers of the targets that it was given.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

import psutil

from epcheck.api.models.examining import messages
from epcheck.api.models.examining.messages import Received
from epcheck.conformance.start_process import module_environment, start_process
from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers import confinement
from epcheck.conformance.workers.broker import program_of
from epcheck.conformance.workers.broker_server import BrokerServer
from epcheck.conformance.workers.fork_server import Child, ForkedWorker, ForkServer
from epcheck.conformance.workers.process import (
    find_guarded_worker,
    find_interpreter,
    own_resident_bytes,
    resident_bytes,
)

LOG_LINES, LINE_BYTES = 20, 4096
JOIN_S = 0.1
MESSAGES = 64
"""Messages that wait at most."""

DYING_S = 10.0
"""How long a process that was killed may take to give its memory back, in seconds."""

EXAMINED = {
    "validate": "epcheck.models.validation.validate",
    "doctor": "epcheck.models.precision.doctor",
    "fix": "epcheck.models.fix.fix",
    "reduce": "epcheck.api.models.reduce",
}
"""Command that examines a model -> the module of the function that it has called there."""

NO_MATTER = frozenset(("PYTEST_CURRENT_TEST", "KMP_DUPLICATE_LIB_OK"))
"""Environment variables that change on the way and mean nothing here: pytest sets one for each test, threadpoolctl one
when it is imported."""


class ExaminerProcess:
    """The process, whose messages arrive in a queue; None is the last. It ends with the block.

    The queue is short: who sends faster than is read waits.
    """

    def __init__(
        self, function: Callable[..., Any], options: Any, started: Sequence[tuple[Target, int]], keeps: bool = False
    ) -> None:
        """keeps: whether the function takes a third argument, which sends what is known before the end. started: the
        targets whose workers it may have started, and bytes of memory that a worker of each may take. Raises
        OSError."""
        self.messages: queue.Queue[Received | None] = queue.Queue(MESSAGES)
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        self._is_over = threading.Event()
        temp = confinement.temp() if sys.platform == "linux" and not confinement.is_off() else ""
        self._process = _start_process(function.__module__)
        self._broker: BrokerServer | None = None
        programs = None
        if isinstance(self._process, ForkedWorker):
            programs = [program_of(target) for target, _ in started]
            assert self._process.stdin is not None
            control = socket.socket(fileno=os.dup(self._process.stdin.fileno()))
            self._broker = BrokerServer(control, started)
        request = pickle.dumps((confinement.strict_policy(), temp, programs, str(Path.cwd())))
        request += pickle.dumps((function, options, keeps), pickle.HIGHEST_PROTOCOL)
        self._readers = [
            threading.Thread(target=serve, args=arguments, daemon=True)
            for serve, arguments in ((self._write, (request,)), (self._read, ()), (self._read_log, ()))
        ]

    def __enter__(self) -> ExaminerProcess:
        for reader in self._readers:
            reader.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        """Also what it has started; where the system has process groups, after it has ended itself, too."""
        self._is_over.set()
        if self._broker is not None:
            self._broker.close()
        pid = self._process.pid
        with contextlib.suppress(psutil.Error):
            family = psutil.Process(pid)
            for member in (*family.children(recursive=True), family):
                with contextlib.suppress(psutil.Error):
                    member.kill()
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
        self._wait()
        for reader in self._readers:
            reader.join(JOIN_S)

    def resident_bytes(self) -> int:
        """Of it and what it has started; of it alone on Windows, where workers are among that; 0 when it is gone."""
        if sys.platform == "win32":
            return own_resident_bytes(find_interpreter(self._process.pid))
        return resident_bytes(find_guarded_worker(self._process.pid))

    def is_stopped(self) -> bool:
        """Whether it, or who is to fork it, was stopped: SIGSTOP; a debugger's stops are others."""
        try:
            return bool(psutil.Process(find_guarded_worker(self._process.pid)).status() == psutil.STATUS_STOPPED)
        except psutil.Error:
            return False

    def last_words(self) -> str:
        """How it ended, and the end of what it wrote to stderr."""
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(1)
        last = f"; {self._log[-1]}" if self._log else ""
        return f"{f'killed by signal {-code}' if code is not None and code < 0 else f'exit code {code}'}{last}"

    def _wait(self) -> None:
        """Until it has ended. A fork ends with its fork server, if that does not report its end in time."""
        try:
            self._process.wait(DYING_S)
        except subprocess.TimeoutExpired:
            if isinstance(self._process, ForkedWorker):
                self._process.give_up()
            self._process.wait()

    def _write(self, request: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError), self._process.stdin as pipe:
            pipe.write(request)

    def _read(self) -> None:
        assert self._process.stdout is not None
        pipe: IO[bytes] = self._process.stdout
        with contextlib.suppress(messages.MessageError, OSError, MemoryError), pipe:
            while (received := messages.read(pipe)) is not None:
                self._put(received)
        self._put(None)

    def _put(self, received: Received | None) -> None:
        """Wait until there is room, or nobody reads any more."""
        while not self._is_over.is_set():
            with contextlib.suppress(queue.Full):
                self.messages.put(received, timeout=JOIN_S)
                return

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        with contextlib.suppress(OSError), self._process.stderr as pipe:
            while line := pipe.readline(LINE_BYTES):
                if text := line.decode("utf-8", "replace").strip():
                    self._log.append(text)


class _Server:
    """The fork server that has imported what an examination needs, what it was started with, and a fork that nobody
    has taken yet, if there is one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: ForkServer | None = None
        self._made_for: object = None
        self._spare: ForkedWorker | None = None

    def prepare(self, module: str) -> None:
        """Have a fork ready for the next who asks. Raises OSError or ValueError."""
        with self._lock:
            server = self._find_server(module)
            self._spare = self._spare or server.fork(duplex=True)

    def fork(self, module: str) -> ForkedWorker:
        """A fork, whose stdin is a socket."""
        with self._lock:
            server = self._find_server(module)
            spare, self._spare = self._spare, None
            if spare is not None and spare.poll() is not None:
                _close_streams(spare)
                spare = None
            return spare or server.fork(duplex=True)

    def _find_server(self, module: str) -> ForkServer:
        """Another server than before where environment or path of modules have changed; the folder comes with the
        request."""
        environment = {name: value for name, value in os.environ.items() if name not in NO_MATTER}
        wanted = environment, tuple(map(os.path.abspath, sys.path))
        if self._server is None or self._server.is_spent or self._made_for != wanted:
            self._close()
            self._server, self._made_for = ForkServer("examiner", partial(_start, "--import", module)), wanted
        return self._server

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._server is not None:
            if self._spare is not None:
                self._server.kill()  # it may be importing still
                _close_streams(self._spare)
            self._server.close()
            self._server = self._spare = None


def _close_streams(worker: ForkedWorker) -> None:
    """Of one that nobody has served."""
    for stream in (worker.stdin, worker.stdout, worker.stderr):
        assert stream is not None
        stream.close()


_server = _Server()
atexit.register(_server.close)


def prepare_examiner(module: str) -> None:
    """Start the process of the next examination now, where the system can fork: it imports for a second what it needs,
    while the caller imports its own. module: what the examination will need."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError, ValueError):  # the examination says so
            _server.prepare(module)


def _start_process(module: str) -> Child:
    """A process that waits for its request. module: what it will need."""
    if sys.platform != "win32":
        return _server.fork(module)
    pipe = subprocess.PIPE
    return _start(stdin=pipe, stdout=pipe, stderr=pipe)


def _start(*arguments: str, **streams: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "epcheck.api.models.examining.examiner", *arguments]
    if threading.current_thread() is threading.main_thread():  # the system looks at the thread, which may end earlier
        command.append("--end-with-parent")
    options = {"start_new_session": sys.platform != "win32", **streams}
    return start_process(command, env=module_environment(), make=confinement.start_confined, **options)
