"""A run: the cases of a plan through a session, and one case through one target."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Iterator
from itertools import islice

from epcheck.conformance import lab
from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records.outcome import Outcome
from epcheck.conformance.scheduling.case_scheduler import AT_ONCE, CaseScheduler
from epcheck.conformance.scheduling.plan import Facts, Plan, Sink
from epcheck.conformance.scheduling.pools.pool import Pool
from epcheck.conformance.scheduling.pools.supervisor import Job
from epcheck.conformance.scheduling.pools.turn import turn
from epcheck.conformance.scheduling.trace import Trace
from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import Event

AT_START = 8192
"""Cases that are taken in until every target has answered its handshake: there is nothing else to do meanwhile."""


def run_plan(
    plan: Plan,
    sink: Sink,
    on_facts: Callable[[Facts], None] | None = None,
    cache: Cache | None = None,
    idle_workers: IdleWorkers | None = None,
    trace: Trace | None = None,
    say: Callable[[str], None] | None = None,
) -> tuple[str, ...]:
    """Run the plan; `sink` takes each record as soon as it is final, in no particular order. Returns, in words, what
    happened that belongs to no case: sessions of several that failed, though none of their cases does alone.

    on_facts: takes target name -> facts once every worker has started. cache: where prepared cases and opinions are
    kept from run to run. idle_workers: where workers are kept for the next run; otherwise none outlives the call.
    trace: takes where the time went. say: takes how many workers a target has, where that was measured, in words.
    Raises TargetDown when a target cannot be started; what was recorded until then stands. Whatever the sink raises
    ends the run as well.
    """
    cases = iter(plan.cases)
    with CaseScheduler(plan, sink, cache, idle_workers, trace) as session:
        for case in islice(cases, session.in_progress):
            session.submit(case)
        while not session.ready:
            ahead = tuple(islice(cases, AT_ONCE)) if session.under_way < AT_START else ()
            for case in ahead:
                session.submit(case)
            session.turn(more=True, wait=not ahead)
        session.choose_workers(say or _silent)
        if on_facts:
            on_facts(session.facts)
        for case in cases:
            if not session.has_room():
                while session.under_way > session.in_progress - AT_ONCE:
                    session.turn(more=True)
            session.submit(case)
        while session.under_way:
            session.turn()
        return tuple(session.notes())


def _silent(_sentence: str) -> None:
    """For who does not want to know."""


def ask(target: Target, prepared: PreparedCase) -> Outcome:
    """What a target does with one case, once, in a process of its own; nobody judges it. Raises TargetDown."""
    with asking(target, prepared) as run:
        return run(target)


@contextlib.contextmanager
def asking(target: Target, prepared: PreparedCase) -> Iterator[Callable[[Target], Outcome]]:
    """What runs a case once on the target, or on a variant of it, in a process of its own each time; nobody judges it.
    That raises TargetDown."""
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    with (
        contextlib.nullcontext() if target.owns_group else lab.in_use(),
        contextlib.closing(IdleWorkers()) as idle_workers,
    ):
        pool = Pool(target, events, idle_workers, alone=True)

        def run(varied: Target) -> Outcome:
            outcomes: list[Outcome] = []
            pool.submit(Job(prepared, outcomes.append, target=varied))
            while not outcomes:
                turn(pool, events)
            return outcomes[0]

        try:
            yield run
        finally:
            pool.kill()
