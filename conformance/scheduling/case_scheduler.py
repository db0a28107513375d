"""A session of cases: it moves messages between preparers, the life of each case, the workers' pools, and the sink.

What happens to a case, and in which order, is decided in `case_lifecycle`; which cases share a session of a worker, in
`grouping`; when a worker gets the next one, in `pool`.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import queue
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from types import TracebackType
from typing import Self

from threadpoolctl import threadpool_limits

from epcheck.conformance import lab
from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.judging import claim
from epcheck.conformance.judging.opinion import UNPLACED, SharedOpinions
from epcheck.conformance.judging.verdict import unbuilt
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.preparation.preparer_pool import PreparerPool
from epcheck.conformance.records import terms
from epcheck.conformance.records.outcome import PLACED, Outcome
from epcheck.conformance.records.record import Record
from epcheck.conformance.scheduling import run_history
from epcheck.conformance.scheduling.case_lifecycle import (
    Action,
    CaseLifecycle,
    Conclude,
    Declined,
    Failed,
    Note,
    Ran,
    Remember,
    Run,
    Where,
)
from epcheck.conformance.scheduling.grouping import PLACE_ONLY, Grouping
from epcheck.conformance.scheduling.passed_alone import PassedAlone
from epcheck.conformance.scheduling.plan import Facts, Plan, Sink
from epcheck.conformance.scheduling.pools.pool import TICK_S
from epcheck.conformance.scheduling.pools.pools import Pools
from epcheck.conformance.scheduling.pools.supervisor import Job
from epcheck.conformance.scheduling.trace import (
    JUDGING,
    MEASURING,
    PREPARING,
    SENDING,
    TAKING_IN,
    WAITING,
    PhaseClock,
    Trace,
)
from epcheck.conformance.targets import claim_file
from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers import heartbeat
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import Event
from epcheck.generators.case import Case

IN_PROGRESS, MOST_IN_PROGRESS = 3072, 16_384
"""Cases between their submission and their verdict, for each two workers of a target, and at most. Bounds memory;
leaves room for packs that fill up and for failures that wait for their confirmation."""

AT_ONCE = 256
"""Cases that are taken in together once there is room for them: many small steps would make small packs, large ones let
workers idle meanwhile."""

COLLECT_AFTER = 50_000
"""New objects after which Python looks for cycles of garbage during a run."""


class CaseScheduler:
    """Workers of candidates, baseline and reference that take one case after the other.

    Nothing happens but in `turn`, in the caller's thread. As a context manager it starts the workers, and ends them
    at once when it is left by an exception.
    """

    def __init__(
        self,
        plan: Plan,
        sink: Sink,
        cache: Cache | None = None,
        idle_workers: IdleWorkers | None = None,
        trace: Trace | None = None,
    ) -> None:
        """plan: its cases are the caller's to submit. The others as in `run`."""
        cache, idle_workers = cache or Cache(None), idle_workers or IdleWorkers()
        self._clock = trace.clock if trace else PhaseClock()
        cores = os.cpu_count() or 1
        self.under_way = 0
        self._plan = plan
        self._sink = sink
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._pools = Pools(plan, cache, self._events, idle_workers, trace)
        self.in_progress = self._most_under_way()
        self._preparers = PreparerPool(cache, self._events, idle_workers, min(plan.jobs or cores, cores))
        self._remembered = run_history.RememberedOpinions(plan, cache)
        self._statuses = run_history.Statuses(cache, plan.candidates)
        self._opinions = SharedOpinions()
        self._grouping, self._passed_alone = Grouping(), PassedAlone(cache)
        self._failing: defaultdict[str, set[str]] = defaultdict(set)
        self._notes: list[str] = []
        self._resources = contextlib.ExitStack()
        self._resources.callback(idle_workers.end_run)
        self._resources.callback(self._remembered.write)
        self._resources.callback(self._passed_alone.write)

    def __enter__(self) -> Self:
        """Start the first worker of each target. Raises TargetDown."""
        self._resources.enter_context(_process_settings())
        if any(not target.owns_group for target in self._pools.targets):
            self._resources.enter_context(lab.in_use())
        try:
            self._pools.start()
        except BaseException:
            self._kill()
            self._resources.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._resources:
            if kind is None:
                self._pools.close()
                self._preparers.close()
                self._statuses.write()
                self._pools.keep_pack_sizes()
            else:
                self._kill()

    @property
    def facts(self) -> Facts:
        """What each target's worker reports of itself."""
        return self._pools.facts

    @property
    def ready(self) -> bool:
        """Whether every target has answered its handshake."""
        return self._pools.ready

    def notes(self) -> Iterator[str]:
        """What happened that belongs to no case, in words."""
        yield from self._notes
        yield from self._pools.apart
        for target in self._plan.candidates:
            if why := claim_file.explain_unused(target, self.facts.get(target.name, {})):
                yield why
        for target, incident in self._pools.incidents():
            if self._failing[target.name].isdisjoint(incident.cases):
                count, first = len(incident.cases), incident.cases[0]
                yield (
                    f"{target.name}: a session of {count} cases failed, but no case fails alone "
                    f"({first} and {count - 1} more): {incident.why}"
                )

    def choose_workers(self, say: Callable[[str], None]) -> None:
        """As `Pools.choose_workers` and `Pools.choose_packing`, when the targets have just become ready."""
        self._clock.enter(MEASURING)
        self._pools.choose_workers(say)
        self._pools.choose_packing(say, self._passed_alone)
        self.in_progress = self._most_under_way()

    def has_room(self) -> bool:
        """Whether another case may be submitted without piling up."""
        return self.under_way < self.in_progress

    def submit(self, case: Case) -> None:
        """Take a case in, unless every candidate has recorded it; one that cannot be built is `skipped`."""
        if self._plan.remaining(case):
            self.under_way += 1
            self._preparers.add(case)

    def turn(self, more: bool = False, wait: bool = True) -> None:
        """Do what can be done now, wait for what happens next, and act on it.

        more: further cases will be submitted before anything is waited for, so a pack may wait for them.
        wait: False to act only on what has happened already.
        Raises TargetDown when a target goes down for good.
        """
        enter = self._clock.enter
        enter(PREPARING)
        if not more:
            self._preparers.look_up()
        self._preparers.advance()
        enter(SENDING)
        self._begin()
        none_left = not (self._preparers.is_busy or self._preparers.ready)
        self._pools.advance(last=none_left and not more, more=not none_left)
        if none_left and more:
            self._use_idle_workers()
        if not self._handle_events(wait and not (self._preparers.has_work or self._can_begin)):
            enter(PREPARING)
            self._preparers.prepare_some()
        enter(TAKING_IN)
        self._pools.watch()
        self._preparers.watch()

    def _most_under_way(self) -> int:
        """How many cases may be under way: `in_progress`, which is asked for with every case."""
        return min(MOST_IN_PROGRESS, IN_PROGRESS * math.ceil(self._pools.workers / 2))

    def _use_idle_workers(self) -> None:
        """Have pools that do nothing take what they have: no more can come before something of this is done."""
        self._preparers.look_up()
        while self._can_begin:
            self._begin()
        self._pools.advance_idle()

    @cached_property
    def _narrowed_plan(self) -> Plan:
        """The plan with the expectations that apply here; it is asked for once every target has answered."""
        return self._plan.narrow_to(self.facts)

    @property
    def _can_begin(self) -> bool:
        """Whether `_begin` would do anything."""
        return bool(self._preparers.ready) and self.ready

    def _begin(self) -> None:
        """Begin the life of some prepared cases, with what is remembered of them, once all targets have answered."""
        if not self._can_begin:
            return
        ready = self._preparers.ready
        batch = [ready.popleft() for _ in range(min(AT_ONCE, len(ready)))]
        self._remembered.read([case for case in batch if isinstance(case, PreparedCase)], self.facts)
        for case in batch:
            if isinstance(case, PreparedCase):
                life = CaseLifecycle(self._narrowed_plan, case, self._opinions.opinion)
                self._carry_out(life, life.begin(self._remembered.of(case)))
                continue
            for target in self._plan.remaining(case.case):
                self._sink(unbuilt(case, target))
            self.under_way -= 1
        self._pools.begun(case.case for case in batch)

    def _ran(self, life: CaseLifecycle, target: Target, where: Where, outcome: Outcome) -> None:
        self._carry_out(life, life.handle(Ran(target, where, outcome)))

    def _carry_out(self, life: CaseLifecycle, actions: list[Action]) -> None:
        for action in actions:
            if type(action) is Run:  # a match would ask for the class of each of them ten thousand times a second
                self._submit(life, action)
            elif type(action) is Conclude:
                self.under_way -= 1
                self._conclude(life, action.records)
            else:
                self._note_statuses(life.prepared, action)

    def _note_statuses(self, prepared: PreparedCase, action: Action) -> None:
        match action:
            case Remember(target, settled):
                self._remembered.put(prepared, target, settled)
            case Declined(target, dtype):
                self._grouping.note_declined(prepared, target, dtype)
            case Failed(target):
                self._failing[target.name].add(prepared.case.id)
            case Note(text):
                self._notes.append(text)

    def _submit(self, life: CaseLifecycle, action: Run) -> None:
        """Have the case run; one that hung in the last run goes last, where no other waits for it."""
        target, where, prepared = action.target, action.where, life.prepared
        pool = self._pools.pool(target, where)
        job = Job(prepared, partial(self._ran, life, target, where))
        if target.variant or where is not Where.SHARED:
            return pool.submit(job._replace(target=target) if target.variant else job)
        status = self._statuses.of(target, prepared.case.id)
        if status == terms.TIMEOUT:
            return self._pools.pool(target, Where.OWN_PROCESS).defer(job)
        group = self._grouping.group(prepared, target, status or action.predicted, pool.facts)
        if group.startswith(PLACE_ONLY):
            job = job._replace(place=True, finished=partial(self._handle_placement, life, target))
        is_packed = self._passed_alone.may_be_packed(prepared, target)
        return pool.submit(job._replace(group=group if is_packed else b""))

    def _handle_placement(self, life: CaseLifecycle, target: Target, outcome: Outcome) -> None:
        """A case was only placed; or the CPU provider, which may take it there, refused it, which says nothing."""
        if outcome.kind == PLACED or (UNPLACED.search(outcome.message) and claim.find_unclaimed(life.prepared, target)):
            return self._ran(life, target, Where.SHARED, outcome)
        return self._submit(life, Run(target, Where.OWN_SESSION))

    def _conclude(self, life: CaseLifecycle, records: tuple[Record, ...]) -> None:
        """Hand the records on; store each candidate's status unless it is the default."""
        self._pools.note_concluded(life.prepared.case)
        for target, made in zip(life.candidates, records, strict=True):
            can_be_guessed = made.status == terms.PASS and made.claimed is not False
            self._statuses.put(target, life.prepared.case.id, "" if can_be_guessed else made.status)
            self._passed_alone.put(life.prepared, target, made.candidate)
            self._sink(made)

    def _handle_events(self, wait: bool) -> bool:
        """Act on what has happened; whether anything had. wait: until something does, or a tick has passed."""
        self._pools.listen(True)
        self._preparers.listen(True)
        self._clock.enter(WAITING)
        event = self._next_event(wait)
        self._clock.enter(JUDGING)
        self._pools.listen(self._preparers.is_slow)  # a large answer does not fit into the pipe until the next turn
        self._preparers.listen(False)
        happened = event is not None
        while event is not None:
            if self._preparers.owns(event):
                self._preparers.handle(event)
            else:
                self._pools.handle(event)
            event = self._next_event(wait=False)
        return happened

    def _next_event(self, wait: bool) -> Event | None:
        if wait:
            heartbeat.beat()
        with contextlib.suppress(queue.Empty):
            return self._events.get(timeout=TICK_S) if wait else self._events.get_nowait()
        return None

    def _kill(self) -> None:
        self._pools.kill()
        self._preparers.kill()


@contextlib.contextmanager
def _process_settings() -> Iterator[None]:
    """Collect garbage rarely: cases and records hold no cycles, and looking for some among all that is under way, every
    few cases, finds none. One thread for numpy's BLAS: the others spin for 16 ms after each product."""
    before = gc.get_threshold()
    gc.set_threshold(max(COLLECT_AFTER, before[0]), *before[1:])
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        gc.set_threshold(*before)
