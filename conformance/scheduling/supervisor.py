"""A supervisor: sessions one after the other through a worker of one target; it survives whatever the worker does."""

from __future__ import annotations

import queue
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from epcheck.conformance.preparation import directml_program, pack
from epcheck.conformance.preparation.prepared_case import Prepared
from epcheck.conformance.records.outcome import CRASHED, DONE, FAILED, PLACED, TIMED_OUT, Outcome
from epcheck.conformance.targets.target import MEBIBYTE, Target
from epcheck.conformance.workers.device_claims import with_documented
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import (
    Event,
    FrameReceived,
    MalformedFrame,
    ProcessExited,
    WorkerProcess,
    describe_exit,
)
from epcheck.conformance.workers.program import protocol
from epcheck.generators.error import EpcheckError

BATCH = 16
"""Sessions that are sent together while there are enough before the worker."""

LOW_WATER = 8
"""A worker with no more sessions before it than this gets the next one at once."""

PACKS_AHEAD = 8
"""Packs before a worker: one that runs, and what keeps it busy while the runner takes in the next cases."""

WORN = 0.6
"""The share of the memory bound from which on a worker gets no further sessions: it is replaced before the next one is
blamed for what others left behind."""

STARTS = 3
"""How often in a row a worker may fail to start before the target is given up."""

DEVICE_LOST = re.compile(r"887A00(?:05|06|07|20)|DXGI_ERROR_DEVICE_(?:REMOVED|HUNG|RESET)", re.IGNORECASE)
"""How a provider says that the device is gone: every later session of the process fails, too."""


OUT_OF_MEMORY = re.compile(r"8007000E|bad[ _]alloc|Failed to allocate memory", re.IGNORECASE)
"""How a provider says that there is no memory left."""


class TargetDown(EpcheckError, RuntimeError):  # noqa: N818  (it is a state of the target, named as its user sees it)
    """A target's worker cannot be started; the message holds what it said."""


class Job(NamedTuple):
    """One case to run once; `finished` takes the outcome.

    group: it may share its session with others of this group; empty for a session of its own. place: only ask on
    which provider its node goes. split: it was in a session that failed.
    """

    prepared: Prepared
    finished: Callable[[Outcome], None]
    group: bytes = b""
    place: bool = False
    split: bool = False


class Source(Protocol):
    """Where a supervisor gets its jobs: the pool it belongs to."""

    sizing: Any

    def next(self, room: int, idle: bool) -> tuple[Job, ...]: ...
    def split(self, jobs: tuple[Job, ...], why: str, too_much: bool = False) -> None: ...
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
        idle_workers: IdleWorkers,
        alone: bool = False,
    ) -> None:
        self.target = target
        self.facts: Mapping[str, str] = {}
        self.alone = alone
        self._events = events
        self._source = source
        self._idle_workers = idle_workers
        self._worker: WorkerProcess | None = None
        self._ready = False
        self._failed_starts = 0
        self._sent: deque[tuple[Job, ...]] = deque()
        self._under_way = 0
        self._head_since = 0.0
        self._unsent = 0
        self._is_worn = False
        self._is_overtaxed = False

    @property
    def is_busy(self) -> bool:
        """Whether it has something to do, or is about to have a worker. One whose worker ended waits for jobs, too."""
        return bool(self._sent) or (self._worker is not None and not self._ready)

    def start(self) -> None:
        """Start the worker ahead of the first job. Raises TargetDown."""
        if self._worker is None:
            try:
                self._worker = self._idle_workers.take(self.target, self._events)
            except (OSError, ValueError) as error:
                raise TargetDown(f"target '{self.target.name}': its interpreter cannot be started: {error}") from error
            self._ready = self._is_worn = self._is_overtaxed = False

    def advance(self) -> None:
        """Send as many sessions as the worker may have before it. Raises TargetDown when it cannot be started."""
        if self._is_worn and not self._sent and self._ready:
            self._retire()
        while (
            not self._is_worn
            and (self._worker is None or self._ready)
            and (jobs := self._source.next(self._room(), not self._sent))
        ):
            if self._worker is None:
                self._source.give_back([jobs])
                self.start()
                return
            if not self._sent:
                self._head_since = time.monotonic()
            self._sent.append(jobs)
            self._under_way += len(jobs)
            self._worker.send(_request(jobs, self.target))
            self._unsent += 1
            if len(self._sent) <= LOW_WATER or self._unsent >= BATCH:
                self._flush()

    def owns(self, event: Event) -> bool:
        """Whether the event comes from this supervisor's present worker."""
        return event.source is self._worker

    def handle(self, event: Event) -> None:
        """Take an event of the present worker. Raises TargetDown when workers keep failing to start."""
        match event:
            case FrameReceived(header={"op": "hello", **rest}):
                self._greeted(rest)
            case FrameReceived(header=header, body=body, at=at):
                self._answered(header, body, at)
            case MalformedFrame(error=error):
                self._lost(f"its worker wrote {error} to stdout")
            case ProcessExited(source=source, returncode=returncode):
                self._lost(source.killed_because or f"the worker process ended: {describe_exit(returncode)}")

    def watch(self, now: float) -> None:
        """Enforce the deadline and the memory bound; `now` is time.monotonic()."""
        process = self._worker
        if process is None:
            return
        if not self._ready and now - process.started > self.target.startup_s:
            process.kill(f"no answer within {self.target.startup_s:g} s of starting")
        elif self._sent and now - self._head_since > self.target.deadline_s:
            self._is_overtaxed = True
            process.kill(f"no answer within the deadline of {self.target.deadline_s:g} s")
            self._lost(process.killed_because, TIMED_OUT)
        elif (resident := process.resident_bytes()) > self.target.memory_bytes:
            bound = self.target.memory_bytes // MEBIBYTE
            self._is_overtaxed = True
            process.kill(f"the worker took {resident // MEBIBYTE} MiB of memory; the bound is {bound} MiB")
        elif resident > WORN * self.target.memory_bytes and not self.alone:
            self._is_worn = True

    def listen(self, wanted: bool) -> None:
        """Before and after waiting for events: send what was left to be sent together, and let answers come in."""
        if self._worker is not None:
            self._flush()
            self._worker.listen(wanted or not self._ready)

    def close(self) -> None:
        """Let go of the worker, which stays warm when it is idle; jobs without an outcome are dropped."""
        if self._worker is not None:
            if self._ready and not self._sent and not self.alone:
                self._idle_workers.give(self._worker)
            else:
                self._worker.close()
            self._worker = None
        self._sent.clear()

    def kill(self) -> None:
        """End the worker at once."""
        if self._worker is not None:
            self._worker.kill("the run was interrupted")
            self._worker.process.wait()
            self._worker = None

    def _room(self) -> int:
        """Cases that may be sent ahead of the answers."""
        if self.alone:
            return 1 - len(self._sent)
        if self._is_worn:
            return 0
        size: int = self._source.sizing.best
        return (self.target.window if size == 1 else PACKS_AHEAD * size) - self._under_way

    def _greeted(self, answer: Mapping[str, object]) -> None:
        version, facts = answer.get("protocol"), answer.get("facts")
        if version != protocol.PROTOCOL:
            raise TargetDown(
                f"target '{self.target.name}': its worker speaks protocol {str(version)[:80]}, "
                f"this epcheck {protocol.PROTOCOL}"
            )
        if self._ready or not isinstance(facts, dict) or not facts:
            self._lost("its worker sent a malformed handshake")
            return
        provider, offered = self.target.provider, str(facts.get("providers", ""))
        if provider and offered and provider not in offered.split(", "):
            raise TargetDown(f"target '{self.target.name}': its onnxruntime has no {provider}; it has {offered}")
        self.facts = with_documented({str(name): str(value) for name, value in facts.items()})
        self._ready, self._failed_starts = True, 0
        self._head_since = time.monotonic()

    def _answered(self, header: Mapping[str, Any], body: bytes, at: float) -> None:
        if not self._sent or header.get("id") != _name(self._sent[0]):
            self._lost(f"its worker answered what nobody asked: {str(header.get('id'))[:80]!r}")
            return
        jobs = self._sent[0]
        try:
            outcome, busy_s = _outcome(header)
            failed_together = len(jobs) > 1 and outcome.kind not in (DONE, PLACED)
            answer = pack.Answer(header["tensors"], body, header.get("assignment"))
            each = [] if failed_together else list(pack.unpack([job.prepared for job in jobs], outcome, answer))
        except (KeyError, TypeError, ValueError, OverflowError, MemoryError) as error:
            self._lost(f"its worker sent a malformed answer: {error!r}")
            return
        if outcome.kind == FAILED and DEVICE_LOST.search(outcome.message):
            self._lost(f"the device was lost: {outcome.message}")
            return
        self._sent.popleft()
        self._under_way -= len(jobs)
        self._head_since = at
        if self.alone:
            self._retire()
        if failed_together:
            self._source.split(jobs, outcome.message, OUT_OF_MEMORY.search(outcome.message) is not None)
            return
        if jobs[0].group and not jobs[0].place:
            self._source.sizing.measured(len(jobs), busy_s)
        for job, own in zip(jobs, each, strict=True):
            job.finished(own)

    def _flush(self) -> None:
        assert self._worker is not None
        self._unsent = 0
        self._worker.flush()

    def _lost(self, why: str, kind: str = CRASHED) -> None:
        """The worker is gone: the first session that was sent is the culprit, the others are run by the next worker."""
        process, self._worker = self._worker, None
        assert process is not None
        was_ready, self._ready, self._is_worn = self._ready, False, False
        process.kill(why)
        log = process.log_tail()
        if self._sent:
            culprit, *others = self._sent
            self._sent.clear()
            self._under_way = 0
            self._source.give_back(others)
            if len(culprit) > 1:
                self._source.split(culprit, why, self._is_overtaxed)
            else:
                culprit[0].finished(Outcome(kind, message=why, log_tail=log))
        elif not was_ready:
            self._failed_starts += 1
            if self._failed_starts >= STARTS:
                said = f"; it said: {log.splitlines()[-1]}" if log else ""
                raise TargetDown(f"target '{self.target.name}': its worker does not start: {why}{said}")
            self.start()

    def _retire(self) -> None:
        assert self._worker is not None
        self._worker.close()
        self._worker, self._ready, self._is_worn = None, False, False


def _name(jobs: tuple[Job, ...]) -> str:
    """What a session is called in requests and answers."""
    first = jobs[0].prepared.case.id
    return first if len(jobs) == 1 else f"{first} and {len(jobs) - 1} more"


def _request(jobs: tuple[Job, ...], target: Target) -> list[bytes]:
    cases = [job.prepared for job in jobs]
    named = list(zip(pack.prefixes(cases), cases, strict=True))
    if target.direct:
        called = directml_program.of(cases[0])
        model, feeds = called.text, list(called.feeds)
    else:
        model = pack.model(cases)
        feeds = [
            (prefix + name, dtype, shape, data) for prefix, case in named for name, dtype, shape, data in case.feeds
        ]
    header = {
        "op": "run",
        "id": _name(jobs),
        "providers": [[target.provider, dict(target.options)]] if target.provider else [],
        "config": dict(target.config),
        "device": target.device,
        "place": jobs[0].place,
        "outputs": [prefix + name for prefix, case in named for name in case.outputs],
    }
    described = [("", "uint8", (len(model),)), *(feed[:3] for feed in feeds)]
    return protocol.frame(header, described, [model, *(data for _, _, _, data in feeds)])


def _outcome(answer: Mapping[str, Any]) -> tuple[Outcome, float]:
    """An answer as an outcome, but for its outputs and nodes, and the seconds that the worker was busy with it.

    Raises KeyError, TypeError or ValueError when it is none.
    """
    kind = {"done": DONE, "placed": PLACED}.get(answer["stage"], FAILED)
    outcome = Outcome(
        kind,
        stage=str(answer["stage"]) if kind == FAILED else "",
        message="" if kind != FAILED else " ".join(str(answer["message"]).split()) or str(answer["error"]),
        unwritten=_names(answer.get("unwritten")),
        repeat_differs=_names(answer.get("repeat_differs")),
        create_s=_seconds(answer.get("create_s")),
        run_s=_seconds(answer.get("run_s")),
    )
    return outcome, float(answer.get("busy_s") or 0.0)


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | None):
        raise TypeError(f"{str(value)[:80]!r} is no list of names")
    return tuple(str(name) for name in value or ())


def _seconds(value: Any) -> float | None:
    return None if value is None else float(value)
