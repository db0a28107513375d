"""A worker process: started, fed, read and ended. Its pipes are served by threads; what happens arrives as events."""

from __future__ import annotations

import contextlib
import io
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import psutil

from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.fork_server import BUFFER, Child, Template, can_fork, piped
from epcheck.conformance.workers.program import protocol

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

LOG_LINES = 40
"""How much of a worker's stderr is kept."""

LINE_BYTES = 1 << 16
"""Where a line of stderr that does not end is broken."""

PATIENCE_S = 1.0
"""How long the pipes of a process that ended, or the end of one that closed them, are waited for, in seconds."""

NOISE = ("fixme:", ":message:dxil")
"""What Wine's graphics stack says on stderr of healthy runs."""


OF_PYTEST = "PYTEST_CURRENT_TEST"
"""An environment variable that changes from test to test and means nothing to a worker."""


@dataclass(frozen=True)
class Answer:
    """A frame came. at: when, on time.monotonic's clock."""

    source: WorkerProcess
    header: Mapping[str, Any]
    body: bytes
    at: float


@dataclass(frozen=True)
class Rubbish:
    """Bytes that are no frame came on the worker's stdout."""

    source: WorkerProcess
    error: protocol.NotAFrame


@dataclass(frozen=True)
class Ended:
    """The process is gone."""

    source: WorkerProcess
    returncode: int


Event = Answer | Rubbish | Ended


class _Patient(io.RawIOBase):
    """A pipe that is read only while somebody listens.

    A thread that wakes for every answer takes the interpreter from the one that judges them, again and again; so
    answers gather in the pipe while there is other work, and come in together.
    """

    def __init__(self, pipe: io.RawIOBase) -> None:
        self.listening = threading.Event()
        self.listening.set()
        self._pipe = pipe

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        self.listening.wait()
        return self._pipe.readinto(buffer)


class WorkerProcess:
    """One running worker. Events go to the queue that it was given; `send` never blocks."""

    def __init__(self, target: Target, events: queue.SimpleQueue[Event], template: Template | None = None) -> None:
        """Start it, or let the template fork it, and greet it; the answer to the greeting arrives as an event.

        Raises OSError or ValueError.
        """
        self.started_as = _started_as(target)
        self.process: Child = piped(target) if template is None else template.fork()
        self.target = target
        self.killed_because = ""
        self._events = events
        self._outbox: queue.SimpleQueue[list[bytes] | None] = queue.SimpleQueue()
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        assert self.process.stdout is not None
        self._answers = _Patient(cast(io.RawIOBase, self.process.stdout.raw))  # type: ignore[attr-defined]
        self._ended = {self._read: threading.Event(), self._listen: threading.Event()}
        self._observed: psutil.Process | None = None
        for serve in (self._write, self._read, self._listen, self._reap):
            threading.Thread(target=serve, name=f"{target.name} {serve.__name__}", daemon=True).start()
        self._unsent: list[bytes] = []
        self.greet(events)

    def greet(self, events: queue.SimpleQueue[Event]) -> None:
        """Send what happens from now on to `events`; the answer to the greeting is the first."""
        self._events = events
        self.started = time.monotonic()
        self.listen(True)
        self.send(protocol.encode({"op": "hello"}, {}))
        self.flush()

    def send(self, chunks: list[bytes]) -> None:
        """Queue a frame; it leaves with the next `flush`."""
        self._unsent.extend(chunks)

    def flush(self) -> None:
        """Hand what was queued to the thread that writes. Waking it costs more than a frame: send many, flush once."""
        if self._unsent:
            self._outbox.put(self._unsent)
            self._unsent = []

    def listen(self, wanted: bool) -> None:
        """Whether answers become events as they come, as they do from the start, or wait in the pipe."""
        if wanted:
            self._answers.listening.set()
        else:
            self._answers.listening.clear()

    def log_tail(self) -> str:
        """The end of what the worker wrote to stderr."""
        return "\n".join(self._log)

    def resident_bytes(self) -> int:
        """Resident memory of the process; 0 when it is gone."""
        try:
            return int(self._psutil().memory_info().rss)
        except psutil.Error:
            return 0

    def _psutil(self) -> psutil.Process:
        """Raises psutil.Error when it has ended: Windows forgets such a process."""
        if self._observed is None or self._observed.pid != self.process.pid:
            self._observed = psutil.Process(self.process.pid)
        return self._observed

    def kill(self, because: str) -> None:
        """End the process and its children at once; `because` becomes part of the outcome."""
        self.killed_because = self.killed_because or because
        self.listen(True)
        if self.process.poll() is not None:
            return
        try:
            family = self._psutil().children(recursive=True)
        except psutil.Error:
            family = []
        for member in family:
            try:
                member.kill()
            except psutil.Error:
                continue
        self._kill_group()
        self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(PATIENCE_S)

    def close(self, patience_s: float = 2.0) -> None:
        """Let the process end by itself, or kill it after `patience_s` seconds."""
        self.send(protocol.encode({"op": "exit"}, {}))
        self.flush()
        self._outbox.put(None)
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.kill("it did not end when asked to")
            self.process.wait()

    def _write(self) -> None:
        assert self.process.stdin is not None
        try:
            with self.process.stdin as pipe:
                while (chunks := self._outbox.get()) is not None:
                    protocol.write_frame(pipe, chunks)
        except OSError:
            return  # the process ended; the reader reports it

    def _read(self) -> None:
        assert self.process.stdout is not None
        pipe = io.BufferedReader(self._answers, BUFFER)
        try:
            with self.process.stdout:
                while (frame := protocol.read_frame(pipe)) is not None:
                    self._events.put(Answer(self, *frame, time.monotonic()))
            self._ended[self._read].set()
            self.process.wait(PATIENCE_S)
        except protocol.NotAFrame as error:
            self._events.put(Rubbish(self, error))
        except (OSError, MemoryError) as error:
            self.kill(f"its stdout cannot be read: {error!r}")
        except subprocess.TimeoutExpired:
            self.kill("it closed its stdout and went on")
        finally:
            self._ended[self._read].set()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as pipe:
            while line := pipe.readline(LINE_BYTES):
                text = line.decode("utf-8", "replace").rstrip()
                if text and not any(noise in text for noise in NOISE):
                    self._log.append(text[:500])
        self._ended[self._listen].set()

    def _reap(self) -> None:
        """Report the end of the process, after all that it said; whoever it left behind with its pipes goes, too."""
        returncode = self.process.wait()
        self._outbox.put(None)
        self.listen(True)
        self._kill_group()
        for ended in self._ended.values():
            ended.wait(PATIENCE_S)
        self._events.put(Ended(self, returncode))

    def _kill_group(self) -> None:
        if self.target.owns_group and sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)


class WarmWorkers:
    """Where a run takes its workers from: idle ones that outlive it, for the next one on the same target, and new ones,
    forked by a template where that can be. Idle ones are not kept by default: `keep` is 0."""

    def __init__(self, keep: int = 0) -> None:
        """keep: workers at most, of all targets together."""
        self._keep = keep
        self._idle: list[WorkerProcess] = []
        self._templates: list[tuple[tuple[object, ...], Template]] = []

    def take(self, target: Target, events: queue.SimpleQueue[Event]) -> WorkerProcess:
        """A worker of the target, warm or new; it has been greeted. Raises OSError or ValueError."""
        wanted = _started_as(target)
        self._idle = [process for process in self._idle if process.process.poll() is None]
        for process in self._idle:
            if process.started_as == wanted:
                self._idle.remove(process)
                process.greet(events)
                return process
        return WorkerProcess(target, events, self._template(target, wanted) if can_fork(target) else None)

    def give(self, process: WorkerProcess) -> None:
        """Keep an idle worker, or end it."""
        if len(self._idle) < self._keep:
            self._idle.append(process)
        else:
            process.close()

    def rest(self) -> None:
        """A run is over: where no workers are kept, no templates are."""
        while self._templates and not self._keep:
            self._templates.pop()[1].close()

    def close(self) -> None:
        """End all that are kept."""
        self._keep = 0
        while self._idle:
            self._idle.pop().close()
        self.rest()

    def _template(self, target: Target, wanted: tuple[object, ...]) -> Template:
        self._templates = [(made, one) for made, one in self._templates if not one.is_spent]
        for made, template in self._templates:
            if made == wanted:
                return template
        template = Template(target)
        self._templates.append((wanted, template))
        return template


def _started_as(target: Target) -> tuple[object, ...]:
    """What a worker that is started now is made of, so that it can serve every target of which the same is true:
    providers and options travel with each request."""
    environment = dict(os.environ if target.environment is None else target.environment)
    environment.pop(OF_PYTEST, None)
    return target.command, target.worker, target.arguments, environment, str(Path.cwd())


def describe_exit(returncode: int) -> str:
    """An exit code in words: the signal on POSIX, the NTSTATUS on Windows and under Wine."""
    if returncode < 0 and os.name == "posix":
        try:
            return f"killed by {signal.Signals(-returncode).name}"
        except ValueError:
            return f"killed by signal {-returncode}"
    unsigned = returncode & 0xFFFFFFFF
    return f"exit code {unsigned:#010x}" if unsigned > 0xFFFF else f"exit code {returncode}"
