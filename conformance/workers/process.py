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
from epcheck.conformance.workers import confinement, wine_server
from epcheck.conformance.workers.broker import BrokeredWorker, current_broker
from epcheck.conformance.workers.fork_server import BUFFER, Child, ForkedWorker, ForkServer, start_piped
from epcheck.conformance.workers.program import protocol
from epcheck.conformance.workers.program.namespaces import GUARD, INIT
from epcheck.conformance.workers.program.watch import children_of
from epcheck.conformance.workers.session_options import session_options

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

LOG_LINES = 40
"""How much of a worker's stderr is kept."""

LINE_BYTES = 1 << 16
"""Where a line of stderr that does not end is broken."""

PATIENCE_S = 1.0
"""How long the pipes of a process that ended, or the end of one that closed them, are waited for, in seconds."""

DYING_S = 10.0
"""How long a process that was killed may take to give its memory back, in seconds."""

MEASURE_AFTER_S = 0.1
"""How old a measurement of memory may be, in seconds: for each the system is asked for children."""

FAMILY_AFTER_S = 0.5
"""How old the list of what a worker has started may be, in seconds, where the system is asked for all processes."""

NOISE = ("fixme:", ":message:dxil")
"""What Wine's graphics stack writes to stderr in healthy runs."""

OF_PYTEST = "PYTEST_CURRENT_TEST"
"""An environment variable that changes from test to test and means nothing to a protocol."""


@dataclass(frozen=True)
class FrameReceived:
    """The worker sent a frame. at: when, on time.monotonic's clock, in seconds."""

    source: WorkerProcess
    header: Mapping[str, Any]
    body: bytes
    at: float


@dataclass(frozen=True)
class MalformedFrame:
    """The worker wrote bytes that are no frame to its stdout."""

    source: WorkerProcess
    error: protocol.NotAFrame


@dataclass(frozen=True)
class ProcessExited:
    """The process has ended; everything it wrote before has been read."""

    source: WorkerProcess
    returncode: int


Event = FrameReceived | MalformedFrame | ProcessExited


class _GatedPipe(io.RawIOBase):
    """A pipe of which no answer is read while its gate is closed.

    A thread that wakes for every answer takes the interpreter from the thread that judges them, again and again; so
    answers gather in the pipe while there is other work, and arrive together. An answer that has begun is read to its
    end: a pipe holds 64 KiB, and a worker that waits to write the rest of 16 MiB would look like one that hangs.
    """

    def __init__(self, pipe: io.RawIOBase) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self._pipe = pipe
        self._buffer = io.BufferedReader(self, BUFFER)
        self._is_within = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        if not self._is_within:
            self.gate.wait()
        return self._pipe.readinto(buffer)

    def read_frame(self) -> tuple[dict[str, Any], bytes] | None:
        """As `protocol.read_frame`."""
        self._is_within = False
        self._buffer.peek(1)
        self._is_within = True
        return protocol.read_frame(self._buffer)


class WorkerProcess:
    """One running process of the worker program. What it does arrives as events in a queue; `send` never blocks."""

    def __init__(
        self,
        target: Target,
        events: queue.SimpleQueue[Event],
        fork_server: ForkServer | None = None,
        canary: bool = False,
        facts: bool = True,
    ) -> None:
        """Start it, or let the fork server fork it, and begin the handshake; its answer arrives as an event. canary,
        facts: as in `begin_handshake`.

        Raises OSError or ValueError.
        """
        self.started_as = make_start_key(target)
        self.process = _start_process(target, fork_server)
        self.target = target
        self.killed_because = ""
        self._events = events
        self._outbox: queue.SimpleQueue[list[bytes] | None] = queue.SimpleQueue()
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        assert self.process.stdout is not None
        self._answers = _GatedPipe(cast(io.RawIOBase, self.process.stdout.raw))  # type: ignore[attr-defined]
        self._ended = {self._read: threading.Event(), self._read_log: threading.Event()}
        self._observed: psutil.Process | None = None
        self._own = self._guarded = self._resident_bytes = 0
        self._measured_at = self._family_found_at = 0.0
        self._family: list[psutil.Process] = []
        for serve in (self._write, self._read, self._read_log, self._reap):
            threading.Thread(target=serve, name=f"{target.name} {serve.__name__}", daemon=True).start()
        self._unsent: list[bytes] = []
        self.begin_handshake(events, canary, facts)

    def begin_handshake(self, events: queue.SimpleQueue[Event], canary: bool = False, facts: bool = True) -> None:
        """Send what happens from now on to `events`; the answer to the handshake is the first. canary: the worker tries
        one session, and says in its answer why the target's provider cannot be used. facts: it says what it runs on."""
        self._events = events
        self.started = time.monotonic()
        self.listen(True)
        sessions = session_options(self.target)
        about = {"canary": sessions if canary else None, "facts": facts, "providers": sessions["providers"]}
        self.send(protocol.encode({"op": "hello", **about}, {}))
        self.flush()

    def send(self, chunks: list[bytes]) -> None:
        """Queue a frame; it leaves with the next `flush`."""
        self._unsent.extend(chunks)

    def flush(self) -> None:
        """Hand queued frames to the thread that writes. Waking it costs more than a frame: send many, flush once."""
        if self._unsent:
            self._outbox.put(self._unsent)
            self._unsent = []

    def listen(self, wanted: bool) -> None:
        """Whether answers become events as they arrive, as they do at first, or wait in the pipe."""
        if wanted:
            self._answers.gate.set()
        else:
            self._answers.gate.clear()

    def log_tail(self) -> str:
        """The end of what the worker wrote to stderr."""
        return "\n".join(self._log)

    def take_pid(self, stated: object) -> None:
        """Take the process id that the worker states: what was started may be a launcher, as `Scripts\\python.exe`
        of a virtual environment on Windows is, which starts the interpreter (PEP 405).

        A stranger's word: it counts where it names a descendant of what was started. On Linux it does not count: a
        jail has process ids of its own, and whom a guard guards is known (`find_guarded_worker`).
        """
        if sys.platform == "linux" or not isinstance(stated, int) or isinstance(self.process, BrokeredWorker):
            return
        started = self.process.pid
        descendants = {member.pid for member in _find_descendants(started)}
        self._own = stated if stated != started and stated in descendants else 0

    @property
    def pid(self) -> int:
        """The process id of the worker, as far as it is known; otherwise of what was started."""
        return self._own or self.process.pid

    def resident_bytes(self, wait_s: float = 0.0) -> int:
        """Resident memory of the process that was started and of all that it has started, whatever the worker says of
        itself; 0 when it is gone. It is measured anew after MEASURE_AFTER_S. wait_s: seconds for which the first report
        about a worker of the process outside is waited for."""
        if self.process.poll() is not None:
            return 0
        if isinstance(self.process, BrokeredWorker):
            return self.process.wait_for_memory(wait_s)
        now = time.monotonic()
        if now - self._measured_at > MEASURE_AFTER_S or not self._resident_bytes:  # it may not have been forked yet
            self._measured_at, self._resident_bytes = now, self._measure(now)
        return self._resident_bytes

    def cpu_seconds(self, children: bool) -> float:
        """CPU time that the process has used; 0 when it is gone. children: and its children, which costs more."""
        if isinstance(self.process, BrokeredWorker):
            return self.process.cpu_seconds
        try:
            process = self._psutil()
            family = [process, *(process.children(recursive=True) if children else ())]
        except psutil.Error:
            return 0.0
        return sum(map(_cpu_seconds, family))

    def _worker_id(self) -> int:
        """The process id of the worker itself: that of what was started may be its guard's."""
        pid = self.pid
        if isinstance(self.process, ForkedWorker):
            return pid
        if not self._guarded:
            found = find_guarded_worker(pid)
            self._guarded = 0 if found == pid else found
        return self._guarded or pid

    def _measure(self, now: float) -> int:
        """Resident memory of the family, whatever the worker states. Elsewhere than on Linux the system is asked for
        all processes to find it."""
        if sys.platform == "linux":
            return resident_bytes(self._worker_id())
        if now - self._family_found_at > FAMILY_AFTER_S:
            self._family_found_at, self._family = now, _find_descendants(self.process.pid)
        return own_resident_bytes(self.process.pid) + sum(map(_measure_member, self._family))

    def _psutil(self) -> psutil.Process:
        """Raises psutil.Error when it has ended: Windows forgets such a process."""
        pid = self._worker_id()
        if self._observed is None or self._observed.pid != pid:
            self._observed = psutil.Process(pid)
        return self._observed

    def kill(self, because: str) -> None:
        """End the process and its children at once; `because` becomes part of the outcome."""
        self.killed_because = self.killed_because or because
        self.listen(True)
        if self.process.poll() is not None:
            return
        end_process(self.process, self.target)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(PATIENCE_S)

    def wait(self) -> None:
        """Until a process that was killed has ended. One that was forked ends with its fork server, if that does not
        report its end in time."""
        try:
            self.process.wait(DYING_S)
        except subprocess.TimeoutExpired:
            if isinstance(self.process, ForkedWorker):
                self.process.give_up()
            self.process.wait()

    def close(self, patience_s: float = 2.0) -> None:
        """Let the process end by itself, or kill it after `patience_s` seconds."""
        self.send(protocol.encode({"op": "exit"}, {}))
        self.flush()
        self._outbox.put(None)
        try:
            self.process.wait(patience_s)
            end_group(self.process, self.target)  # `_reap` does, later: our own process may end now
        except subprocess.TimeoutExpired:
            self.kill("it did not end when asked to")
            self.wait()

    def _write(self) -> None:
        assert self.process.stdin is not None
        try:
            with self.process.stdin as pipe:
                while (chunks := self._outbox.get()) is not None:
                    protocol.write_frame(pipe, chunks)
        except OSError:
            return  # the process has ended; `_reap` reports it

    def _read(self) -> None:
        assert self.process.stdout is not None
        try:
            with self.process.stdout:
                while (frame := self._answers.read_frame()) is not None:
                    self._events.put(FrameReceived(self, *frame, time.monotonic()))
            self._ended[self._read].set()
            self.process.wait(PATIENCE_S)
        except protocol.NotAFrame as error:
            self._events.put(MalformedFrame(self, error))
        except (OSError, MemoryError) as error:
            self.kill(f"its stdout cannot be read: {error!r}")
        except subprocess.TimeoutExpired:
            self.kill("it closed its stdout and went on")
        finally:
            self._ended[self._read].set()

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as pipe:
            while line := pipe.readline(LINE_BYTES):
                text = line.decode("utf-8", "replace").rstrip()
                if text and not any(noise in text for noise in NOISE):
                    self._log.append(text[:500])
        self._ended[self._read_log].set()

    def _reap(self) -> None:
        """Report the end of the process after all that it wrote. Whoever it left with its pipes is ended, too."""
        returncode = self.process.wait()
        self._outbox.put(None)
        self.listen(True)
        end_group(self.process, self.target)
        for ended in self._ended.values():
            ended.wait(PATIENCE_S)
        self._events.put(ProcessExited(self, returncode))


def _start_process(target: Target, fork_server: ForkServer | None) -> Child:
    broker = current_broker()
    if broker is not None:
        return broker.start(target)
    return start_piped(target) if fork_server is None else fork_server.fork()


def end_process(process: Child, target: Target) -> None:
    """End a worker and what it has started at once."""
    if isinstance(process, BrokeredWorker):
        process.kill()
        return
    is_guarded = find_guarded_worker(process.pid) != process.pid
    try:
        family = psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        family = []
    for member in family:
        with contextlib.suppress(psutil.Error):
            member.kill()
    if is_guarded:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_S)  # its guard ends after all that it guards
    end_group(process, target)
    process.kill()
    if target.in_lab:
        wine_server.continue_stopped(target.environment)


def end_group(process: Child, target: Target) -> None:
    """End what a worker that has ended left in its process group."""
    if target.owns_group and sys.platform != "win32" and not isinstance(process, BrokeredWorker):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def measure_process(process: Child) -> tuple[int, float]:
    """Resident memory of a worker and what it has started, in bytes, and the seconds of CPU time that it has used."""
    worker = find_guarded_worker(process.pid)
    try:
        return resident_bytes(worker), _cpu_seconds(psutil.Process(worker))
    except psutil.Error:
        return 0, 0.0


def find_guarded_worker(pid: int) -> int:
    """The worker that a process guards, as `program/namespaces.py` has it; the process itself where it is no guard, or
    has no worker yet."""
    if sys.platform != "linux" or _name(pid) != GUARD:
        return pid
    for child in children_of(pid):
        if _name(child) != INIT:
            return child
        return next(iter(children_of(child)), pid)
    return pid


def find_interpreter(pid: int) -> int:
    """The interpreter behind a process that was started as `sys.executable`: on Windows that of a virtual environment
    is a launcher, whose first child the interpreter is (PEP 405)."""
    if sys.platform != "win32" or sys.prefix == sys.base_prefix:
        return pid
    try:
        children = psutil.Process(pid).children()
        return min(children, key=psutil.Process.create_time).pid if children else pid
    except psutil.Error:
        return pid


def _find_descendants(pid: int) -> list[psutil.Process]:
    """What a process has started, and what that has started."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _measure_member(process: psutil.Process) -> int:
    """Resident memory of a process; 0 when it has ended, also where another has its number now."""
    try:
        return int(process.memory_info().rss) if process.is_running() else 0
    except psutil.Error:
        return 0


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def resident_bytes(pid: int) -> int:
    """Resident memory of a worker and of what it has started, all together; 0 when it is gone. What several of them
    share counts once, where the system tells."""
    family, counted = [pid], 0
    if sys.platform == "linux":
        for member in family:
            family += children_of(member)
    else:
        family += [member.pid for member in _find_descendants(pid)]
    if len(family) == 1:
        return own_resident_bytes(pid)
    for member in family:
        try:
            lines = Path(f"/proc/{member}/smaps_rollup").read_text(encoding="ascii", errors="replace").splitlines()
            counted += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) << 10
        except OSError:
            counted += own_resident_bytes(member)
    return counted


def own_resident_bytes(pid: int) -> int:
    """Resident memory of a process alone; 0 when it is gone."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def _cpu_seconds(process: psutil.Process) -> float:
    try:
        used = process.cpu_times()
    except psutil.Error:
        return 0.0
    return used.user + used.system


def make_start_key(target: Target) -> tuple[object, ...]:
    """What a worker that is started now depends on. It can serve every target of which that is the same: providers and
    options travel with each request."""
    environment = dict(os.environ if target.environment is None else target.environment)
    environment.pop(OF_PYTEST, None)
    bounds = repr(confinement.policy(target))
    return target.command, target.worker, target.arguments, environment, str(Path.cwd()), bounds


def describe_exit(returncode: int) -> str:
    """An exit code in words: the signal on POSIX, the NTSTATUS on Windows and under Wine."""
    if returncode < 0 and os.name == "posix":
        try:
            return f"killed by {signal.Signals(-returncode).name}"
        except ValueError:
            return f"killed by signal {-returncode}"
    unsigned = returncode & 0xFFFFFFFF
    return f"exit code {unsigned:#010x}" if unsigned > 0xFFFF else f"exit code {returncode}"
