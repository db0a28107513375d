"""A supervisor: sessions one after the other through a worker of one target; it survives whatever the worker does."""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records.outcome import TIMED_OUT, Outcome
from epcheck.conformance.scheduling.pools import session_request
from epcheck.conformance.scheduling.pools.session_times import Limits, SessionTimes
from epcheck.conformance.targets.target import Target
from epcheck.conformance.targets.variants import is_use
from epcheck.conformance.workers.client import WorkerClient, WorkerLost
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import Event, FrameReceived
from epcheck.conformance.workers.program.backends.declined import DECLINED
from epcheck.conformance.workers.session_result import session_result

BATCH = 16
"""Sessions that are sent together while there are enough before the worker."""

LOW_WATER = 8
"""A worker with no more sessions before it than this gets the next one at once."""

PACKS_AHEAD = 8
"""Packs before a worker: one that runs, and what keeps it busy while the runner takes in the next cases."""


class Job(NamedTuple):
    """One case to run once; `finished` takes the outcome.

    group: it may share its session with others of this group; empty for a session of its own. place: only ask on
    which provider its node goes. split: it was in a session that failed. target: the variant of the worker's target
    that its session is of, where it is of one.
    """

    prepared: PreparedCase
    finished: Callable[[Outcome], None]
    group: bytes = b""
    place: bool = False
    split: bool = False
    target: Target | None = None


class Source(Protocol):
    """Where a supervisor gets its jobs: the pool it belongs to."""

    sizing: Any
    times: SessionTimes

    def next(self, room: int, idle: bool) -> tuple[Job, ...]: ...
    def split(self, jobs: tuple[Job, ...], why: str, too_much: bool = False, hung: bool = False) -> None: ...
    def give_back(self, parcels: list[tuple[Job, ...]]) -> None: ...


class Supervisor:
    """One worker, started when needed and replaced when it dies, hangs or eats memory.

    alone: every session gets a process of its own. A pack that fails goes back to be split. Everything happens in the
    thread that calls; `events` is the queue that it reads and hands to `handle`.
    """

    def __init__(
        self,
        target: Target,
        events: queue.SimpleQueue[Event],
        source: Source,
        idle: IdleWorkers,
        alone: bool = False,
    ) -> None:
        self.target = target
        self.alone = alone
        self.is_aside = False
        self._source = source
        self._client = WorkerClient(target, events, idle)
        self._sent: deque[tuple[Job, ...]] = deque()
        self._worker, self._busy_since = 0, 0.0
        self._under_way = 0
        self._unsent = 0

    @property
    def facts(self) -> Mapping[str, str]:
        """What its worker says of itself; empty until the first one has answered."""
        return self._client.facts

    @property
    def is_busy(self) -> bool:
        """Whether it has something to do, or is about to have a worker. One whose worker ended waits for jobs, too."""
        return bool(self._sent) or self._client.is_starting

    @property
    def is_spent(self) -> bool:
        """Whether it was set aside and its session has ended since: it gets no further ones."""
        return self.is_aside and not self._sent

    def is_suspect(self, now: float) -> bool:
        """Whether its session takes so long that others should not wait for it."""
        limits = self._limits()
        return (
            bool(self._sent)
            and self._client.is_ready
            and (self._client.busy_s(now) > limits.overdue_s or self._client.idle_s(now) > limits.suspect_s)
        )

    def resident_bytes(self) -> int:
        """Resident memory of its worker."""
        return self._client.resident_bytes()

    def set_aside(self) -> None:
        """Leave the worker alone with the session that it runs; what else it was sent is run by others."""
        self.is_aside = True
        while len(self._sent) > 1:
            jobs = self._sent.pop()
            self._under_way -= len(jobs)
            self._source.give_back([jobs])

    def start(self) -> WorkerClient:
        """Start the worker, unless there is one, ahead of the first job. Raises TargetDown."""
        self._client.start()
        return self._client

    def advance(self) -> None:
        """Send as many sessions as the worker may have before it. Raises TargetDown when it cannot be started."""
        client = self._client
        if self._is_worn and client.is_ready and not self._sent:
            client.retire()
        while not (self._is_worn or client.is_starting) and (jobs := self._source.next(self._room(), not self._sent)):
            if not client.is_ready:
                self._source.give_back([jobs])
                client.start()
                return
            self._sent.append(jobs)
            self._under_way += len(jobs)
            cases = [job.prepared for job in jobs]
            name = session_request.name_of(cases)
            client.send(name, session_request.encode(name, cases, jobs[0].target or self.target, jobs[0].place))
            self._unsent += 1
            if len(self._sent) <= LOW_WATER or self._unsent >= BATCH:
                self._flush()

    def owns(self, event: Event) -> bool:
        """Whether the event comes from its present worker."""
        return self._client.owns(event)

    def handle(self, event: Event) -> None:
        """Take an event of the present worker. Raises TargetDown when workers keep failing to start."""
        client, was_ready = self._client, self._client.is_ready
        self._worker, self._busy_since = client.pid, client.busy_since
        answer_or_loss = client.handle(event)
        if client.is_ready and not was_ready:
            self._source.times.trace_start(client.pid, client.started, time.monotonic())
        match answer_or_loss:
            case FrameReceived() as answer:
                self._handle_answer(answer)
            case WorkerLost() as lost:
                self._lost(lost)

    def watch(self, now: float) -> None:
        """Enforce deadlines and the memory bound; `now` is time.monotonic()."""
        limits, client = self._limits(), self._client
        client.deadline_s, client.stalled_s = limits.deadline_s, limits.stalled_s
        self._worker, self._busy_since = client.pid, client.busy_since
        if (lost := client.watch(now)) is not None:
            self._lost(lost)

    def listen(self, wanted: bool) -> None:
        """Before and after waiting for events: send what was left to be sent together, and let answers come in."""
        self._unsent = 0
        self._client.listen(wanted)

    def close(self) -> None:
        """Let go of the worker, which may be kept when it is idle; jobs without an outcome are dropped."""
        if self.alone:
            self._client.retire()
        else:
            self._client.release()
        self._sent.clear()

    def kill(self) -> None:
        """End the worker at once."""
        self._client.kill("the run was interrupted")

    @property
    def _is_worn(self) -> bool:
        """Whether the worker gets no further sessions, because what is left of its memory may not be enough."""
        return self._client.is_worn and not self.alone

    def _limits(self) -> Limits:
        """Those of the session that it runs."""
        if not self._sent:
            return self._source.times.limits(0)
        variant = self._sent[0][0].target
        return self._source.times.limits(len(self._sent[0]), variant is not None and is_use(variant.variant))

    def _room(self) -> int:
        """Cases that may be sent ahead of the answers."""
        if self.is_aside:
            return 0
        if self.alone:
            return 1 - len(self._sent)
        size: int = self._source.sizing.best
        return (self.target.window if size == 1 else PACKS_AHEAD * size) - self._under_way

    def _handle_answer(self, answer: FrameReceived) -> None:
        """The session that was sent first has ended."""
        jobs = self._sent[0]
        try:
            result = session_result(answer.header)
            cases, target = [job.prepared for job in jobs], jobs[0].target or self.target
            outcomes = session_request.outcomes(cases, result, answer, target)
        except (KeyError, TypeError, ValueError, OverflowError, MemoryError) as error:
            lost = self._client.lose(f"its worker sent a malformed response: {error!r}")
            assert lost is not None
            self._lost(lost)
            return
        self._sent.popleft()
        self._under_way -= len(jobs)
        times = self._source.times
        times.add_session(result.busy_s, self._client.stood_still_s, len(jobs))
        times.trace_session(self._worker, str(answer.header["id"]), answer.at, result.busy_s, len(jobs))
        if self.alone:
            self._client.retire()
        elif self.is_aside:
            self._client.kill("others run what it was sent")
        elif result.failed and is_use(target.variant) and not result.message.startswith(DECLINED):
            self._replace_worker("a use of its sessions failed, and may have left something behind")
        if not outcomes:
            self._source.split(jobs, result.message, result.ran_out_of_memory)
            return
        if jobs[0].group and not jobs[0].place:
            self._source.sizing.add_session(len(jobs), result.cost_s(self.target.on_cpu))
        for job, outcome in zip(jobs, outcomes, strict=True):
            job.finished(outcome)

    def _flush(self) -> None:
        self._unsent = 0
        self._client.flush()

    def _replace_worker(self, because: str) -> None:
        """End the worker; the next one runs what was sent to it."""
        others = [*self._sent]
        self._sent.clear()
        self._under_way = 0
        self._client.kill(because)
        self._source.give_back(others)

    def _lost(self, lost: WorkerLost) -> None:
        """The worker is gone: the first session that was sent is the culprit, the others are run by the next worker."""
        if not self._sent:
            return
        culprit, *others = self._sent
        name = f"{session_request.name_of([job.prepared for job in culprit])}: {lost.why}"
        self._source.times.lost(self._worker, name, self._busy_since, time.monotonic(), len(culprit))
        self._sent.clear()
        self._under_way = 0
        self._source.give_back(others)
        if len(culprit) > 1:
            hung = lost.kind == TIMED_OUT and not lost.overtaxed
            self._source.split(culprit, lost.why, lost.overtaxed, hung)
        else:
            culprit[0].finished(Outcome(lost.kind, message=lost.why, log_tail=lost.log_tail))
