"""The pools of a run: all workers of all targets, and the way from an event to the worker that it comes from."""

from __future__ import annotations

import math
import os
import queue
import time
from collections.abc import Callable, Iterable, Iterator

from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.scheduling import run_history
from epcheck.conformance.scheduling.case_lifecycle import Where
from epcheck.conformance.scheduling.passed_alone import PassedAlone
from epcheck.conformance.scheduling.plan import AWAITED, Facts, Plan
from epcheck.conformance.scheduling.pools import pack_parity, worker_count, worker_probe
from epcheck.conformance.scheduling.pools.pool import TICK_S, Incident, Pool
from epcheck.conformance.scheduling.pools.session_times import SessionTimes
from epcheck.conformance.scheduling.pools.supervisor import Supervisor
from epcheck.conformance.scheduling.trace import Trace
from epcheck.conformance.targets.target import MEASURED, Target
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import Event
from epcheck.generators.case import Case

ALONE_AT_ONCE, CORES_OF_ONE_ALONE = 2, 4
"""Processes for one case each, at least: one starts while the other runs. They mostly start, which takes about a
core, so where there are many cores there is one for each four of them."""

WORTH_MEASURING = 10_000
"""Cases of a run from which on the number of workers is measured: that takes about 10 s, once for each adapter, and a
second worker has saved 6.4 s of every so many on an H200."""


WORTH_COMPARING = 1000
"""Cases of a run from which on it is measured whether packs agree: that is about 500 sessions, once for each provider
and release."""


MOST_HELD = 512
"""Runs in processes of their own that wait for the first cases, at most: each is a case under way."""


class Pools:
    """Of each target a pool; as soon as a case needs it, a second worker for repeats, and processes for one case."""

    def __init__(
        self,
        plan: Plan,
        cache: Cache,
        events: queue.SimpleQueue[Event],
        idle_workers: IdleWorkers,
        trace: Trace | None = None,
    ) -> None:
        """cache: where pack sizes are kept from run to run. trace: takes what every worker does. The others as in
        `Pool`."""
        self._plan = plan
        self._cache = cache
        self._events = events
        self._idle_workers = idle_workers
        self._measured: dict[str, int] = {}
        self._times = {target.name: SessionTimes(target, trace) for target in plan.targets}
        self._pools = {target.name: self._pool(target) for target in plan.targets}
        self._second_workers: dict[str, Pool] = {}
        self._own_processes: dict[str, Pool] = {}
        self._varied: dict[str, Pool] = {}
        self._first = {case.id for case in plan.cases[: plan.first]}
        self._awaited, self._unawaited = set(self._first), math.floor(plan.first * (1 - AWAITED))
        self._more = False
        self._last_watch = 0.0
        self.apart: list[str] = []

    @property
    def facts(self) -> Facts:
        """What each target's worker reports of itself."""
        return {name: pool.facts for name, pool in self._pools.items()}

    @property
    def ready(self) -> bool:
        """Whether every target has answered its handshake."""
        return all(pool.facts for pool in self._pools.values())

    @property
    def workers(self) -> int:
        """How many workers a target has at most."""
        return max(self._jobs(target) for target in self.targets)

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets that have a pool."""
        return tuple(pool.target for pool in self._pools.values())

    def pool(self, target: Target, where: Where = Where.SHARED) -> Pool:
        """The workers that a case runs on; those of variants run nothing else."""
        is_variant, name = bool(target.variant), target.base or target.name
        own = self._pools[name].target
        if where is Where.SECOND_WORKER or (is_variant and where is Where.OWN_SESSION):
            pools = self._varied if is_variant else self._second_workers
            if name not in pools:
                pools[name] = self._further_pool(own, self._jobs(own))
            return pools[name]
        if where is not Where.OWN_PROCESS:
            return self._pools[name]
        if name not in self._own_processes:
            at_once = max(ALONE_AT_ONCE, self._jobs(own), (os.cpu_count() or 1) // CORES_OF_ONE_ALONE)
            self._own_processes[name] = self._further_pool(own, at_once, alone=True)
        return self._own_processes[name]

    def start(self) -> None:
        """Start the first worker of each target. Raises TargetDown."""
        for pool in self._pools.values():
            pool.start()

    def choose_workers(self, say: Callable[[str], None]) -> None:
        """Let each target whose number of workers is measured have as many as pay, once every target has answered and
        before any has something to do. say: takes what was measured, in words."""
        for pool in self._pools.values():
            target, facts = pool.target, pool.facts
            if self._plan.jobs or target.jobs != MEASURED:
                continue
            if (most := worker_count.most(target)) == 1:
                continue
            if worker_count.is_software(facts):
                pool.limit(min(worker_count.ON_SOFTWARE, most))
                continue
            if rates := self._worker_rates(pool, most):
                workers = min(worker_count.best(rates), most)
                self._measured[target.name] = workers
                pool.limit(workers)
                say(worker_count.in_words(target, facts, workers, rates))

    def choose_packing(self, say: Callable[[str], None], passed_alone: PassedAlone) -> None:
        """Have cases share sessions only where they end then as they do alone, when the targets have just become ready.

        say: takes why they do not, in words, which `apart` has, too. passed_alone: looks after the targets where
        a pack may change an answer, those of which nothing is known and the run is too short to measure it among them.
        """
        for pool in self._pools.values():
            target = pool.target
            if pool.sizing.largest == 1 or pack_parity.is_known(target):
                continue
            parity = run_history.pack_parity(self._cache, target, pool.facts)
            if parity is None and self._remaining >= WORTH_COMPARING:
                parity = pack_parity.measure(target, pack_parity.sample(), self._idle_workers)
                if parity is None:
                    self.apart.append(
                        f"{target.name}: each case runs in a separate session until it passes in one, because it "
                        f"could not be measured whether cases end in a pack as they do alone"
                    )
                else:
                    run_history.keep_pack_parity(self._cache, target, pool.facts, parity)
            if parity is None or parity.differences:
                passed_alone.look_after(target, self.facts)
            if parity is not None and parity.differences:
                self.apart.append(pack_parity.in_words(target, parity))
        for sentence in self.apart:
            say(sentence)

    @property
    def _remaining(self) -> int:
        """How many cases the run still has."""
        return sum(1 for case in self._plan.cases if self._plan.remaining(case))

    def _worker_rates(self, pool: Pool, most: int) -> worker_count.Rates:
        """What is known of the pool's workers, or is measured where that pays."""
        machine = worker_count.describe_machine(pool.facts)
        rates: worker_count.Rates = run_history.worker_rates(self._cache, pool.target, machine)
        if not rates and self._remaining >= WORTH_MEASURING:
            rates = worker_probe.measure(pool, self._events, worker_probe.probe_cases(), most)
            if rates:
                run_history.keep_worker_rates(self._cache, pool.target, machine, rates)
        return rates

    def advance(self, last: bool, more: bool = False) -> None:
        """Send what can be sent. last: as in `Pool.advance`. more: cases are being prepared. Raises TargetDown when a
        target goes down for good."""
        self._more = more
        for pool in self._every_pool():
            if not self._is_held(pool):
                pool.advance(last)

    def begun(self, cases: Iterable[Case]) -> None:
        """Take down that the jobs of these cases were submitted; when those that come first are among them, none of
        these waits for others any more."""
        if not self._first:
            return
        self._first.difference_update(case.id for case in cases)
        if not self._first:
            for pool in self._every_pool():
                pool.send_bins()

    def note_concluded(self, case: Case) -> None:
        """Take down that a case has its records."""
        self._awaited.discard(case.id)

    def _is_held(self, pool: Pool) -> bool:
        """Whether a pool of processes for one case each waits, because somebody waits for the first cases: to start a
        process takes as long as some hundred cases do."""
        if not pool.alone or len(self._awaited) <= self._unawaited or pool.backlog > MOST_HELD:
            return False
        shared = self._pools[pool.target.name]
        return self._more or shared.is_busy or shared.backlog > 0

    def advance_idle(self) -> None:
        """Have those of which half do nothing take what waits, as if nothing more came. Raises TargetDown."""
        for pool in self._every_pool():
            if not pool.is_busy and not self._is_held(pool):
                pool.advance(last=True)

    def listen(self, wanted: bool) -> None:
        """Whether answers of workers come in now; what was left to be sent together is sent."""
        for supervisor in self._every_supervisor():
            supervisor.listen(wanted)

    def handle(self, event: Event) -> None:
        """Take the event of a worker. Raises TargetDown when workers of its target keep failing to start."""
        for supervisor in self._every_supervisor():
            if supervisor.owns(event):
                supervisor.handle(event)
                return

    def watch(self) -> None:
        """Enforce deadlines and memory bounds, every TICK_S."""
        now = time.monotonic()
        if now - self._last_watch >= TICK_S:
            self._last_watch = now
            for pool in self._every_pool():
                pool.watch(now)

    def incidents(self) -> Iterator[tuple[Target, Incident]]:
        """The sessions of several cases that failed."""
        for pool in self._pools.values():
            for incident in pool.incidents:
                yield pool.target, incident

    def close(self) -> None:
        """End the workers, or keep them for the next run."""
        for pool in self._every_pool():
            pool.close()

    def keep_pack_sizes(self) -> None:
        """Have the next run begin with the pack sizes that were best in this one."""
        for pool in self._pools.values():
            if pool.sizing.is_known:
                run_history.keep_pack_size(self._cache, pool.target, pool.sizing.best)

    def kill(self) -> None:
        """End the workers at once."""
        for pool in self._every_pool():
            pool.kill()

    def _jobs(self, target: Target) -> int:
        own = self._measured.get(target.name, 1) if target.jobs == MEASURED else target.jobs
        return self._plan.jobs or own or os.cpu_count() or 1

    def _further_pool(self, target: Target, jobs: int, alone: bool = False) -> Pool:
        return Pool(target, self._events, self._idle_workers, jobs, alone=alone, times=self._times[target.name])

    def _pool(self, target: Target) -> Pool:
        jobs = self._jobs(target)
        if not self._plan.pack or target.pack == 1:
            return self._further_pool(target, jobs)
        size, times = run_history.pack_size(self._cache, target), self._times[target.name]
        return Pool(target, self._events, self._idle_workers, jobs, target.pack, size=size, times=times)

    def _every_pool(self) -> tuple[Pool, ...]:
        further = (self._second_workers, self._own_processes, self._varied)
        return *self._pools.values(), *(pool for pools in further for pool in pools.values())

    def _every_supervisor(self) -> Iterator[Supervisor]:
        return (supervisor for pool in self._every_pool() for supervisor in pool.supervisors)
