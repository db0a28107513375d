"""A pool: the workers of one target, and the jobs that they take from one queue.

Jobs that probably end alike wait in bins until a pack of them is full; how large a pack is worth being is measured as
the run goes. At the end, when nothing more comes, what is left in the bins is shared out, so that no worker idles.
"""

from __future__ import annotations

import math
import queue
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import psutil

from epcheck.conformance.scheduling.pools.pack_sizing import PackSizing
from epcheck.conformance.scheduling.pools.session_times import SessionTimes
from epcheck.conformance.scheduling.pools.supervisor import Job, Supervisor
from epcheck.conformance.targets.target import MEBIBYTE, Target
from epcheck.conformance.workers.client import WorkerClient
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import Event

TICK_S = 0.05
"""How often deadlines and memory bounds are looked at, in seconds."""

PACK_BYTES = 16 * MEBIBYTE
"""Models, feeds and outputs of a pack: at most so much, or one case."""

PARTS = 4
"""Into how many sessions one that failed is split: by halving, a crash among 128 cases takes twice as many workers."""

PER_SUPERVISOR = 64
"""Jobs that wait for each worker before another one is started."""

ASIDE = 32
"""Workers that are set aside at most: they do nothing, but have their memory."""

MEMORY_SHARE = 0.25
"""Of the memory that is free, and no more than that, one that is set aside may have."""


@dataclass(frozen=True)
class Incident:
    """A session of several cases that failed. why: in words. cases: their ids."""

    why: str
    cases: tuple[str, ...]


class Pool:
    """The workers of a target. alone: every job gets a process of its own, in which nothing ran before."""

    def __init__(
        self,
        target: Target,
        events: queue.SimpleQueue[Event],
        idle_workers: IdleWorkers,
        jobs: int = 1,
        pack: int = 1,
        alone: bool = False,
        size: int = 0,
        times: SessionTimes | None = None,
    ) -> None:
        """jobs: workers at most. pack: cases in a session at most. size: the best number in the last run, if known.
        times: what sessions of the target take, where other pools of it measure them, too."""
        self.target = target
        self.alone = alone
        self.times = times or SessionTimes(target)
        self.sizing = PackSizing(pack, size)
        self.incidents: list[Incident] = []
        self._jobs = jobs
        self._per_supervisor = 1 if alone else PER_SUPERVISOR
        self._waiting: deque[tuple[Job, ...]] = deque()
        self._bins: dict[bytes, deque[Job]] = {}
        self._binned = 0
        self._fitting: dict[tuple[str, str], int] = {}
        self._deferred: deque[Job] = deque()
        self._facts: Mapping[str, str] = {}
        self._last: bool = False
        self._new_supervisor: Callable[[], Supervisor] = lambda: Supervisor(target, events, self, idle_workers, alone)
        self.supervisors: list[Supervisor] = []

    @property
    def facts(self) -> Mapping[str, str]:
        """What the first worker says of itself; empty until it has answered."""
        if not self._facts and self.supervisors:
            self._facts = self.supervisors[0].facts
        return self._facts

    @property
    def backlog(self) -> int:
        """Jobs that no worker has been sent, but for those that are deferred."""
        return sum(map(len, self._waiting)) + self._binned

    @property
    def is_busy(self) -> bool:
        """Whether most of the workers that others wait for have something to do."""
        active = self._active()
        return 2 * sum(supervisor.is_busy for supervisor in active) > len(active)

    def start(self) -> None:
        """Start the first worker ahead of the first job. Raises TargetDown."""
        self.grow(1)

    def grow(self, workers: int) -> list[WorkerClient]:
        """Start so many workers ahead of the first job, those included that have started. Raises TargetDown."""
        while len(self.supervisors) < workers:
            self.supervisors.append(self._new_supervisor())
        return [supervisor.start() for supervisor in self.supervisors[:workers]]

    def limit(self, workers: int) -> None:
        """Have so many workers at most from now on; those that are too many, and have nothing to do, are let go."""
        self._jobs = workers
        for supervisor in self.supervisors[workers:]:
            supervisor.close()
        del self.supervisors[workers:]

    def submit(self, job: Job) -> None:
        """Queue a job; it is sent by the next `advance`."""
        if job.group and self.sizing.largest > 1:
            self._bins.setdefault(job.group, deque()).append(job)
            self._binned += 1
        else:
            self._waiting.append((job,))

    def send_bins(self) -> None:
        """Have what is in bins sent without waiting for more, before all that is submitted later."""
        while self._bins:
            name = next(iter(self._bins))
            self._waiting.append(tuple(self._fill(name, self.sizing.best)))

    def defer(self, job: Job) -> None:
        """Queue a job that will probably hang: such jobs are sent when nothing else is left, all of them together."""
        self._deferred.append(job)

    def advance(self, last: bool) -> None:
        """Send what can be sent. last: nothing more will be submitted before something is answered.

        Raises TargetDown when no worker can be started.
        """
        self._last = last
        if last and self._deferred and not self.backlog:
            self._waiting.extend((job,) for job in self._deferred)
            self._deferred.clear()
        self.supervisors = [supervisor for supervisor in self.supervisors if not supervisor.is_spent]
        if self.backlog and len(self._active()) < self._count_wanted():
            self.supervisors.append(self._new_supervisor())
        for supervisor in self.supervisors:
            supervisor.advance()

    def watch(self, now: float) -> None:
        """Enforce deadlines and memory bounds, and set aside those whose session takes too long."""
        for supervisor in self.supervisors:
            supervisor.watch(now)
            if not supervisor.is_aside and supervisor.is_suspect(now) and self._may_set_aside(supervisor):
                supervisor.set_aside()

    def next(self, room: int, idle: bool) -> tuple[Job, ...]:
        """What a worker runs next in one session; nothing while a pack is worth waiting for.

        room: cases that it can be sent. idle: it has nothing to do.
        """
        if room <= 0:
            return ()
        if self._waiting and (idle or len(self._waiting[0]) <= room):
            return self._cut(self._waiting.popleft())
        if not self._bins:
            return ()
        fullest = max(self._bins, key=lambda name: len(self._bins[name]))
        waiting = len(self._bins[fullest])
        best = self.sizing.best
        if waiting >= best and (idle or best <= room):
            return tuple(self._fill(fullest, self.sizing.next(waiting)))
        if idle and self._last:
            return tuple(self._fill(fullest, min(best, math.ceil(self._binned / len(self._active())))))
        return ()

    def split(self, jobs: tuple[Job, ...], why: str, too_much: bool = False, hung: bool = False) -> None:
        """Put the parts of a pack that failed before everything that waits; a job that is left alone stays alone.

        Where the runtime names a node of a pack that is only placed (no provider has a kernel for it), the cases of
        that operator version and dtypes get sessions of their own, since they fail alike, and the others one together.

        too_much: it took more memory or time than a worker has, so further sessions of these operators are smaller.
        hung: each of its cases gets a session of its own at once, since every further pack would hang as well.
        """
        if not jobs[0].split:
            self.incidents.append(Incident(why, tuple(job.prepared.case.id for job in jobs)))
        jobs = tuple(job._replace(split=True) for job in jobs)
        size = 1 if hung else math.ceil(len(jobs) / PARTS)
        if too_much:
            self._fitting |= dict.fromkeys(map(_operator, jobs), size)
        kinds = {_kind(job) for job in jobs if job.place and job.prepared.prefix in why}
        if kinds:
            others = tuple(job for job in jobs if _kind(job) not in kinds)
            parts = [(job,) for job in jobs if _kind(job) in kinds] + ([others] if others else [])
        else:
            parts = [jobs[start : start + size] for start in range(0, len(jobs), size)]
        self._waiting.extendleft(map(_part, reversed(parts)))

    def give_back(self, parcels: list[tuple[Job, ...]]) -> None:
        """Take back what a lost worker was sent and had not begun, in order."""
        self._waiting.extendleft(reversed(parcels))

    def owner(self, event: Event) -> Supervisor | None:
        """The worker that an event comes from, if it is one of this pool's."""
        return next((supervisor for supervisor in self.supervisors if supervisor.owns(event)), None)

    def close(self) -> None:
        """End the workers, or keep them for the next run; jobs without an outcome are dropped."""
        for supervisor in self.supervisors:
            supervisor.close()

    def kill(self) -> None:
        """End the workers at once."""
        for supervisor in self.supervisors:
            supervisor.kill()

    def _active(self) -> list[Supervisor]:
        """The workers that are not set aside."""
        return [supervisor for supervisor in self.supervisors if not supervisor.is_aside]

    def _may_set_aside(self, supervisor: Supervisor) -> bool:
        """Whether there is room for one more worker that does nothing."""
        aside = len(self.supervisors) - len(self._active())
        return aside < ASIDE and supervisor.resident_bytes() < MEMORY_SHARE * psutil.virtual_memory().available

    def _count_wanted(self) -> int:
        return max(1, min(self._jobs, math.ceil(self.backlog / self._per_supervisor)))

    def _cut(self, jobs: tuple[Job, ...]) -> tuple[Job, ...]:
        """As many of these jobs as fit a worker; the others go on waiting."""
        fitting = min(self._fitting.get(_operator(job), len(jobs)) for job in jobs)
        if len(jobs) > fitting:
            self._waiting.appendleft(_part(jobs[fitting:]))
            return _part(jobs[:fitting])
        return jobs

    def _fill(self, name: bytes, size: int) -> Iterator[Job]:
        """Jobs from one bin: `size` of them, or as many as PACK_BYTES allow and fit a worker, but one."""
        jobs, taken = self._bins[name], 0
        for number in range(size):
            if not jobs:
                break
            taken += jobs[0].prepared.size_bytes
            if self._fitting:
                size = min(size, self._fitting.get(_operator(jobs[0]), size))
            if number and (taken > PACK_BYTES or number >= size):
                break
            self._binned -= 1
            yield jobs.popleft()
        if not jobs:
            del self._bins[name]


def _operator(job: Job) -> tuple[str, str]:
    return job.prepared.case.domain, job.prepared.case.operator


def _kind(job: Job) -> tuple[str, str, int, str]:
    """Cases of one kind are of the same operator version and dtypes."""
    case = job.prepared.case
    return case.domain, case.operator, case.since_version, case.dtype


def _part(jobs: tuple[Job, ...]) -> tuple[Job, ...]:
    """Jobs of a pack that failed, as a pack of their own; one alone is in no group."""
    return jobs if len(jobs) > 1 else (jobs[0]._replace(group=b""),)
