"""A lane: cases one after the other through a worker of one target; it survives whatever the worker does."""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from epcheck.conformance import worker
from epcheck.conformance.outcome import CRASHED, DONE, FAILED, TIMED_OUT, Outcome
from epcheck.conformance.pack import Pack, fit_together, pack, unpack
from epcheck.conformance.process import Answer, Ended, Event, Rubbish, WorkerProcess, describe_exit
from epcheck.conformance.target import MEBIBYTE, Target
from epcheck.generators.case import BuiltCase

BATCH = 16
"""Cases that are sent together while there are enough before the worker."""

LOW_WATER = 8
"""A worker with no more cases before it than this gets the next one at once."""

PACKS_AHEAD = 2
"""Packs before a worker: one that runs, one that it takes up at once."""

STARTS = 3
"""How often in a row a worker may fail to start before the target is given up."""


class TargetDown(RuntimeError):  # noqa: N818  (it is a state of the target, named as its user sees it)
    """A target's worker cannot be started; the message holds what it said."""


@dataclass(frozen=True)
class Job:
    """One case to run once; `finished` takes the outcome. packable: it may share its session with others."""

    built: BuiltCase
    finished: Callable[[Outcome], None]
    packable: bool = False


@dataclass(frozen=True)
class _Parcel:
    """What is sent at once: one session for one job, or for a pack of them."""

    jobs: tuple[Job, ...]
    pack: Pack

    @property
    def name(self) -> str:
        return (
            f"{self.jobs[0].built.case.id} and {len(self.jobs) - 1} more"
            if len(self.jobs) > 1
            else (self.jobs[0].built.case.id)
        )


class Lane:
    """Runs jobs in order on a worker that is started when needed and replaced when it dies, hangs or eats memory.

    alone: every job gets a process of its own, in which nothing ran before. Where the target packs, jobs that may be
    packed share sessions; a pack that fails is split until the culprit stands alone.
    Everything happens in the thread that calls; `events` is the queue that it reads and hands to `handle`.
    """

    def __init__(self, target: Target, events: queue.SimpleQueue[Event], alone: bool = False) -> None:
        self.target = target
        self.facts: Mapping[str, str] = {}
        self.alone = alone
        self._events = events
        self._worker: WorkerProcess | None = None
        self._ready = False
        self._failed_starts = 0
        self._sent: deque[_Parcel] = deque()
        self._waiting: deque[tuple[Job, ...]] = deque()
        self._head_since = 0.0
        self._unsent = 0

    @property
    def backlog(self) -> int:
        """Jobs that have no outcome yet."""
        return sum(len(parcel.jobs) for parcel in self._sent) + sum(map(len, self._waiting))

    @property
    def window(self) -> int:
        """Sessions that may be sent ahead of the answers."""
        return 1 if self.alone else PACKS_AHEAD if self.target.pack > 1 else self.target.window

    def submit(self, job: Job) -> None:
        """Queue a job. Raises TargetDown when no worker can be started."""
        self._waiting.append((job,))
        self._advance()

    def start(self) -> None:
        """Start the worker ahead of the first job. Raises TargetDown."""
        if self._worker is None:
            try:
                self._worker = WorkerProcess(self.target, self._events)
            except (OSError, ValueError) as error:
                raise TargetDown(f"target '{self.target.name}': its interpreter cannot be started: {error}") from error
            self._ready = False

    def owns(self, event: Event) -> bool:
        """Whether the event comes from this lane's present worker."""
        return event.source is self._worker

    def handle(self, event: Event) -> None:
        """Take an event of the present worker. Raises TargetDown when workers keep failing to start."""
        match event:
            case Answer(header={"op": "hello", **rest}):
                self._greeted(rest)
            case Answer(header=header, body=body, at=at):
                self._answered(header, body, at)
            case Rubbish(error=error):
                self._lost(f"its worker wrote {error} to stdout")
            case Ended(source=source, returncode=returncode):
                self._lost(source.killed_because or f"the worker process ended: {describe_exit(returncode)}")
        self._advance()

    def watch(self, now: float) -> None:
        """Enforce the deadline and the memory bound; `now` is time.monotonic()."""
        process = self._worker
        if process is None:
            return
        if not self._ready and now - process.started > self.target.startup_s:
            process.kill(f"no answer within {self.target.startup_s:g} s of starting")
        elif self._sent and now - self._head_since > self.target.deadline_s:
            process.kill(f"no answer within the deadline of {self.target.deadline_s:g} s")
            self._lost(process.killed_because, TIMED_OUT)
            self._advance()
        elif (resident := process.resident_bytes()) > self.target.memory_bytes:
            bound = self.target.memory_bytes // MEBIBYTE
            process.kill(f"the worker took {resident // MEBIBYTE} MiB of memory; the bound is {bound} MiB")

    def close(self) -> None:
        """End the worker; jobs without an outcome are dropped."""
        self._sent.clear()
        self._waiting.clear()
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def kill(self) -> None:
        """End the worker at once."""
        if self._worker is not None:
            self._worker.kill("the run was interrupted")
            self._worker.process.wait()
            self._worker = None

    def _greeted(self, answer: Mapping[str, object]) -> None:
        protocol, facts = answer.get("protocol"), answer.get("facts")
        if protocol != worker.PROTOCOL:
            raise TargetDown(
                f"target '{self.target.name}': its worker speaks protocol {str(protocol)[:80]}, "
                f"this epcheck {worker.PROTOCOL}"
            )
        if self._ready or not isinstance(facts, dict) or not facts:
            self._lost("its worker sent a malformed greeting")
            return
        provider, offered = self.target.provider, str(facts.get("providers", ""))
        if provider and offered and provider not in offered.split(", "):
            raise TargetDown(f"target '{self.target.name}': its onnxruntime has no {provider}; it has {offered}")
        self.facts = {str(name): str(value) for name, value in facts.items()}
        self._ready, self._failed_starts = True, 0
        self._head_since = time.monotonic()

    def _answered(self, header: Mapping[str, object], body: bytes, at: float) -> None:
        if not self._sent or header.get("id") != self._sent[0].name:
            self._lost(f"its worker answered what nobody asked: {str(header.get('id'))[:80]!r}")
            return
        try:
            outcome, nodes = _outcome(header, body)
        except (KeyError, TypeError, ValueError, OverflowError, MemoryError) as error:
            self._lost(f"its worker sent a malformed answer: {error!r}")
            return
        parcel = self._sent.popleft()
        self._head_since = at
        if self.alone:
            self._retire()
        if outcome.kind != DONE and len(parcel.jobs) > 1:
            self._split(parcel)
            return
        for job, own in zip(parcel.jobs, unpack(parcel.pack, outcome, nodes), strict=True):
            job.finished(own)

    def _split(self, parcel: _Parcel) -> None:
        """Put the halves of a failed pack before everything that waits; a job that is left alone stays alone."""
        middle = len(parcel.jobs) // 2
        for half in (parcel.jobs[middle:], parcel.jobs[:middle]):
            self._waiting.appendleft(half if len(half) > 1 else (replace(half[0], packable=False),))

    def _advance(self) -> None:
        if self._waiting and self._worker is None:
            self.start()
        while self._worker is not None and self._ready and len(self._sent) < self.window and self._worth_sending():
            jobs = self._next()
            parcel = _Parcel(jobs, pack([job.built for job in jobs]))
            if not self._sent:
                self._head_since = time.monotonic()
            self._sent.append(parcel)
            self._worker.send(_request(parcel, self.target))
            self._unsent += 1
            if len(self._sent) <= LOW_WATER or self._unsent >= BATCH:
                self._flush()

    def _worth_sending(self) -> bool:
        """Whether something waits, and a pack need not wait for more to join it while the worker is busy."""
        if not self._waiting:
            return False
        growing = len(self._waiting[0]) == 1 and self._waiting[0][0].packable and self.target.pack > 1
        return not (growing and self._sent and len(self._waiting) < self.target.pack)

    def _next(self) -> tuple[Job, ...]:
        """The next job, with as many after it as may share its session; halves of a failed pack stay as they are."""
        jobs = self._waiting.popleft()
        if len(jobs) > 1 or not jobs[0].packable or self.alone:
            return jobs
        while (
            len(jobs) < self.target.pack
            and self._waiting
            and len(following := self._waiting[0]) == 1
            and following[0].packable
            and fit_together(jobs[0].built, following[0].built)
        ):
            jobs += self._waiting.popleft()
        return jobs

    def listen(self, wanted: bool) -> None:
        """Before and after waiting for events: send what was left to be sent together, and let answers come in."""
        if self._worker is not None:
            self._flush()
            self._worker.listen(wanted or not self._ready)

    def _flush(self) -> None:
        assert self._worker is not None
        self._unsent = 0
        self._worker.flush()

    def _lost(self, why: str, kind: str = CRASHED) -> None:
        """The worker is gone: the first job that was sent is the culprit, the others are run by the next worker."""
        process, self._worker = self._worker, None
        assert process is not None
        was_ready, self._ready = self._ready, False
        process.kill(why)
        log = process.log_tail()
        if self._sent:
            culprit, *others = self._sent
            self._sent.clear()
            self._waiting.extendleft(parcel.jobs for parcel in reversed(others))
            if len(culprit.jobs) > 1:
                self._split(culprit)
            else:
                culprit.jobs[0].finished(Outcome(kind, message=why, log_tail=log))
        elif not was_ready:
            self._failed_starts += 1
            if self._failed_starts >= STARTS:
                said = f"; it said: {log.splitlines()[-1]}" if log else ""
                raise TargetDown(f"target '{self.target.name}': its worker does not start: {why}{said}")
            self.start()

    def _retire(self) -> None:
        assert self._worker is not None
        self._worker.close()
        self._worker, self._ready = None, False


def _request(parcel: _Parcel, target: Target) -> list[bytes]:
    header = {
        "op": "run",
        "id": parcel.name,
        "providers": [[target.provider, dict(target.options)]] if target.provider else [],
        "config": dict(target.config),
        "device": target.device,
        "outputs": [{"name": name} for name in parcel.pack.outputs],
    }
    return worker.encode(header, dict(parcel.pack.feeds), parcel.pack.model)


_Nodes = tuple[tuple[str, str, str], ...]
"""(provider, operator, node name) of each node that was assigned."""


def _outcome(answer: Mapping[str, Any], body: bytes) -> tuple[Outcome, _Nodes | None]:
    """An answer as an outcome, and its assigned nodes. Raises KeyError, TypeError or ValueError when it is none."""
    kind = DONE if answer["stage"] == "done" else FAILED
    assignment = answer.get("assignment")
    nodes = None if assignment is None else tuple((str(p), str(op), str(name)) for p, op, name in assignment)
    outcome = Outcome(
        kind,
        stage="" if kind == DONE else str(answer["stage"]),
        message="" if kind == DONE else " ".join(str(answer["message"]).split()) or str(answer["error"]),
        outputs=dict(worker.decode(answer, body)),
        assignment=None if nodes is None else tuple((provider, op) for provider, op, _ in nodes),
        unwritten=_names(answer.get("unwritten")),
        repeat_differs=_names(answer.get("repeat_differs")),
        create_s=_seconds(answer.get("create_s")),
        run_s=_seconds(answer.get("run_s")),
    )
    return outcome, nodes


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | None):
        raise TypeError(f"{str(value)[:80]!r} is no list of names")
    return tuple(str(name) for name in value or ())


def _seconds(value: Any) -> float | None:
    return None if value is None else float(value)
