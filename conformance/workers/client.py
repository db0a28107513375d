"""Our side of a worker, whoever talks to it: cases, whole models, DirectML called directly.

A client keeps the rules of one worker in one place: it starts the process, checks the handshake, knows which requests
are under way, enforces the deadline and the memory bound, and recognises a process that ended, a device that was lost
and an answer that nobody asked for. It never waits: events go in through `handle`, time goes in through `watch`, and
what comes out is an answer, a WorkerLost, or nothing. `request.py` waits for the answer of one request.
"""

from __future__ import annotations

import queue
import shlex
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from epcheck.conformance.records.outcome import CRASHED, TIMED_OUT
from epcheck.conformance.targets.target import MEBIBYTE, Target
from epcheck.conformance.workers.broker import current_broker
from epcheck.conformance.workers.cpu_idle import CpuIdle
from epcheck.conformance.workers.device_claims import with_documented
from epcheck.conformance.workers.process import (
    Event,
    FrameReceived,
    MalformedFrame,
    ProcessExited,
    WorkerProcess,
    describe_exit,
)
from epcheck.conformance.workers.program import protocol
from epcheck.conformance.workers.session_result import STEPS, device_loss, explain_loss
from epcheck.generators.error import EpcheckError

STARTS = 3
"""How often in a row a worker may fail to start before the target is given up."""

WORN = 0.6
"""The share of the memory bound from which on a worker gets no further sessions: it is replaced before the next one is
blamed for what others left behind."""


LOOK_AFTER_S = 0.05
"""From when on the CPU time of a worker is looked at, in seconds of its request: most have been answered by then."""

CHILDREN_AFTER_S, CHILDREN_EVERY_S = 1.0, 0.5
"""That of its children is, once it has stood still for so long itself, and so often, in seconds: the system has to be
asked for all processes."""


class TargetDown(EpcheckError, RuntimeError):  # noqa: N818  (it is a state of the target, named as its user sees it)
    """A target's worker cannot be started; the message holds what it wrote, and is one line whatever that was."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class WorkerLost(NamedTuple):
    """A worker is gone, with every request under way. The first of them is the culprit.

    why: in words. kind: CRASHED or TIMED_OUT. log_tail: the end of what it wrote to stderr. step: of a whole model, the
    last that it began; otherwise empty. overtaxed: it took more memory or time than a worker has, and did not just
    stand still.
    """

    why: str
    kind: str
    log_tail: str
    step: str
    overtaxed: bool


class Processes(Protocol):
    """Where a client gets its processes: `idle_workers.IdleWorkers`."""

    def take(self, target: Target, events: queue.SimpleQueue[Event]) -> WorkerProcess: ...
    def give(self, process: WorkerProcess) -> None: ...
    def note_start(self, target: Target, facts: Mapping[str, str]) -> None: ...
    def facts(self, target: Target) -> Mapping[str, str]: ...


class WorkerClient:
    """One worker of a target at a time, started when asked to; a new one after it was lost.

    Everything happens in the thread that calls. `events` is the queue that it reads and hands to `handle`.
    """

    def __init__(
        self,
        target: Target,
        events: queue.SimpleQueue[Event],
        processes: Processes,
        deadline_s: float | None = None,
    ) -> None:
        """deadline_s: seconds for each request, or for each of its steps; None for the target's."""
        self.target = target
        self.events = events
        self.facts: Mapping[str, str] = {}
        self.memory_bytes = target.memory_bytes
        self.deadline_s = target.deadline_s if deadline_s is None else deadline_s
        self.stalled_s = self.deadline_s
        self.busy_since = 0.0
        self.stood_still_s = 0.0
        self._processes = processes
        self._process: WorkerProcess | None = None
        self._failed_starts = 0
        self._reset()

    def _reset(self) -> None:
        """There is no worker, or one that has done nothing yet."""
        self.is_ready = self.is_worn = self._overtaxed = False
        self._under_way: deque[str] = deque()
        self.busy_since = 0.0
        self._activity: CpuIdle | None = None
        self._look_again = self._still_s = 0.0
        self._steps: tuple[str, ...] = ()

    @property
    def is_starting(self) -> bool:
        """Whether there is a worker that has not answered the handshake."""
        return self._process is not None and not self.is_ready

    def start(self) -> bool:
        """Start a worker unless there is one; whether it was started. Raises TargetDown."""
        if self.is_ready and not self._under_way and not self._is_running:
            self._forget()
        if self._process is not None:
            return False
        try:
            self._process = self._processes.take(self.target, self.events)
        except (OSError, ValueError) as error:
            raise TargetDown(f"target '{self.target.name}': its interpreter does not start: {error}") from error
        return True

    def send(self, name: str, frame: list[bytes]) -> None:
        """Queue a request; it leaves with the next `flush`. name: its `id`. The worker is ready."""
        assert self._process is not None
        if not self._under_way:
            self._busy_from(time.monotonic())
            self._steps = ()
        self._under_way.append(name)
        self._process.send(frame)

    def flush(self) -> None:
        """Send what is queued."""
        if self._process is not None:
            self._process.flush()

    def listen(self, wanted: bool) -> None:
        """Send what is queued; whether answers become events as they arrive, or wait in the pipe."""
        if self._process is not None:
            self._process.flush()
            self._process.listen(wanted or not self.is_ready)

    @property
    def pid(self) -> int:
        """The process id of the worker; 0 where there is none."""
        return 0 if self._process is None else self._process.pid

    @property
    def started(self) -> float:
        """When its handshake began, on time.monotonic's clock; 0 where there is no worker."""
        return 0.0 if self._process is None else self._process.started

    def resident_bytes(self, wait_s: float = 0.0) -> int:
        """Resident memory of the worker; 0 where there is none. wait_s: as of a WorkerProcess."""
        return 0 if self._process is None else self._process.resident_bytes(wait_s)

    def owns(self, event: Event) -> bool:
        """Whether the event comes from the present worker; those of earlier ones mean nothing."""
        return event.source is self._process

    def handle(self, event: Event) -> FrameReceived | WorkerLost | None:
        """Take an event of the present worker: the answer of the request that was sent first, or its loss.

        A worker that is lost before it is ready is started again. Raises TargetDown when that keeps failing, or the
        worker is none for this epcheck or this target.
        """
        match event:
            case FrameReceived():
                return self._handle_frame(event)
            case MalformedFrame(error=error):
                return self.lose(f"its worker wrote {error} to stdout")
            case ProcessExited(source=source, returncode=returncode):
                return self.lose(source.killed_because or f"the worker process ended: {describe_exit(returncode)}")

    def busy_s(self, now: float) -> float:
        """For how many seconds the request that was sent first, or its present step, has been under way."""
        return now - self.busy_since if self._under_way else 0.0

    def idle_s(self, now: float) -> float:
        """For how many seconds of that time, until now, the worker has used no CPU time."""
        process = self._process
        if process is None or self.busy_s(now) < LOOK_AFTER_S:
            return 0.0
        if self._activity is None:
            self._activity = CpuIdle(now, process.cpu_seconds(children=False))
        children = self._activity.longest_s >= CHILDREN_AFTER_S
        if not children or now >= self._look_again:
            self._look_again = now + CHILDREN_EVERY_S
            self._still_s = self._activity.idle_s(now, process.cpu_seconds(children))
        return self._still_s

    def watch(self, now: float) -> WorkerLost | None:
        """Enforce the deadline and the memory bound; `now` is time.monotonic(). A worker that stands still for
        `stalled_s` is given up before its deadline.

        Where the worker took too long to start, or too much memory, it is killed, and its exit arrives as an event:
        what it answered before is not lost.
        """
        process = self._process
        if process is None:
            return None
        if not self.is_ready and now - process.started > self.target.startup_s:
            process.kill(f"no response within {self.target.startup_s:g} s of starting")
        elif self.busy_s(now) > self.deadline_s:
            self._overtaxed = True
            process.kill(f"no response within the deadline of {self.deadline_s:g} s")
            return self.lose(process.killed_because, TIMED_OUT)
        elif self.stalled_s < self.deadline_s and self.idle_s(now) > self.stalled_s:
            process.kill(f"no response, and no CPU time used for {self.stalled_s:g} s")
            return self.lose(process.killed_because, TIMED_OUT)
        elif (resident := process.resident_bytes()) > self.memory_bytes:
            self._overtaxed = True
            took, bound = resident // MEBIBYTE, self.memory_bytes // MEBIBYTE
            process.kill(f"the worker used {took} MiB of memory; the limit is {bound} MiB")
        elif resident > WORN * self.memory_bytes:
            self.is_worn = True
        return None

    def lose(self, why: str, kind: str = CRASHED) -> WorkerLost | None:
        """End a worker that cannot be used any more; None where it was not ready, and is started again.

        Raises TargetDown when workers keep failing to start.
        """
        process, was_ready = self._process, self.is_ready
        assert process is not None
        process.kill(why)
        lost = WorkerLost(why, kind, process.log_tail(), self._steps[-1] if self._steps else "", self._overtaxed)
        self._forget()
        if was_ready:
            return lost
        self._failed_starts += 1
        if self._failed_starts >= STARTS:
            self._failed_starts = 0
            last_words = f"; it said: {lost.log_tail.splitlines()[-1]}" if lost.log_tail else ""
            is_inside = current_broker() is not None  # where no program may be started
            reason = self.target.unavailable_reason() if self.target.unavailable_reason and not is_inside else ""
            reasons = "; ".join(filter(None, (f"{why}{last_words}", reason or _advise(self.target))))
            raise TargetDown(f"target '{self.target.name}': its worker does not start: {reasons}")
        self.start()
        return None

    def retire(self) -> None:
        """Let the worker end by itself, if there is one; requests under way are dropped."""
        if self._process is not None:
            self._process.close()
        self._forget()

    def release(self) -> None:
        """Let go of the worker: an idle one may be kept for others."""
        if self.is_ready and not self._under_way and self._process is not None:
            self._processes.give(self._process)
            self._forget()
        else:
            self.retire()

    def kill(self, because: str) -> None:
        """End the worker at once."""
        if self._process is not None:
            self._process.kill(because)
            self._process.wait()
        self._forget()

    @property
    def _is_running(self) -> bool:
        return self._process is not None and self._process.process.poll() is None

    def _forget(self) -> None:
        self._process = None
        self._reset()

    def _shake_hands(self, header: Mapping[str, Any]) -> WorkerLost | None:
        """Check protocol, facts and provider of a worker that has started."""
        version, facts = header.get("protocol"), header.get("facts")
        if version != protocol.PROTOCOL:
            raise TargetDown(
                f"target '{self.target.name}': its worker speaks protocol {str(version)[:80]}, "
                f"this epcheck {protocol.PROTOCOL}"
            )
        facts = facts or self._processes.facts(self.target)  # a worker is not asked for what is known
        if self.is_ready or not isinstance(facts, dict) or not facts:
            return self.lose("its worker sent a malformed handshake")
        provider, offered = self.target.provider, str(facts.get("providers", ""))
        if provider and offered and not self.target.is_plugin and provider not in offered.split(", "):
            raise TargetDown(f"target '{self.target.name}': its onnxruntime has no {provider}; it has {offered}")
        if trouble := header.get("trouble"):
            raise TargetDown(f"target '{self.target.name}': {explain_loss(str(trouble))}")
        stated = {str(name): str(value) for name, value in facts.items()}
        self.facts = with_documented({**stated, **self.target.stated_facts()})
        self.is_ready, self._failed_starts = True, 0
        assert self._process is not None
        self._process.take_pid(header.get("pid"))
        self._processes.note_start(self.target, stated)
        return None

    def _handle_frame(self, event: FrameReceived) -> FrameReceived | WorkerLost | None:
        header = event.header
        op = header.get("op")
        if op == "hello":
            return self._shake_hands(header)
        if op == "at" and self._under_way:
            step = str(header.get("stage"))
            if step not in STEPS or step in self._steps:  # each step has the whole deadline
                return self.lose(f"its worker started an unexpected step: {step[:80]!r}")
            self._steps = (*self._steps, step)
            self._busy_from(event.at)
            return None
        if not self._under_way or header.get("id") != self._under_way[0]:
            return self.lose(f"its worker sent an unexpected response: {str(header.get('id'))[:80]!r}")
        if message := device_loss(header):
            return self.lose(message)
        self._under_way.popleft()
        self._steps = ()
        self.stood_still_s = self._activity.longest_s if self._activity else 0.0
        self._busy_from(event.at)
        return event

    def _busy_from(self, now: float) -> None:
        """A request, or one of its steps, begins."""
        self.busy_since, self._activity = now, None


def _advise(target: Target) -> str:
    """What to try where the worker of a target does not start; empty where the target does not say it."""
    program = target.arguments[0] if target.arguments else ""
    if program.startswith("python:"):
        _, module, name = program.split(":")
        return f"check that 'from {module} import {name.partition('.')[0]}' works in this folder"
    if program == "onnxruntime" and not target.in_lab:
        return f"""check that {shlex.join(target.command)} -c "import onnxruntime" works"""
    return "see: epcheck lab status" if target.in_lab else ""
