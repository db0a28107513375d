"""A pool's choices: how many cases share a session, who gets the last ones, and who is found when a session fails."""

from __future__ import annotations

import math
import queue
import random
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, cast

import pytest

from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records.outcome import CRASHED, DONE, Outcome
from epcheck.conformance.scheduling.pools import pool as pool_module
from epcheck.conformance.scheduling.pools.pack_sizing import PACK_SIZES, START, PackSizing
from epcheck.conformance.scheduling.pools.pool import ASIDE, PACK_BYTES, PER_SUPERVISOR, Pool
from epcheck.conformance.scheduling.pools.supervisor import Job
from epcheck.conformance.targets.target import MEBIBYTE, Target
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.generators.case import BuiltCase, Case

Cost = Callable[[int], float]
"""Cases in a session -> seconds that it takes."""

COSTS: dict[str, tuple[int, Cost]] = {
    "next_to_nothing": (1, lambda cases: 0.01 + 1.0 * cases + 0.1 * cases**2),
    "as_much_as_4_cases": (8, lambda cases: 4.0 + 1.0 * cases + 0.06 * cases**2),
    "as_much_as_20_cases": (32, lambda cases: 20.0 + 1.0 * cases + 0.02 * cases**2),
    "far_more_than_a_case": (128, lambda cases: 600.0 + 1.0 * cases),
}
"""What making a session costs: the size at which a case is cheapest, and the cost of a session."""


def sizes_in_turn(sizing: PackSizing, cost: Cost, sessions: int, seed: int) -> list[int]:
    """The sizes that are chosen one after the other, on a machine that is at times up to three times as slow."""
    noise, chosen = random.Random(seed), []
    for _ in range(sessions):
        size = sizing.next(waiting=1000)
        chosen.append(size)
        sizing.add_session(size, cost(size) * (1 + 2 * noise.random() ** 2))
    return chosen


@pytest.mark.parametrize("session_costs", COSTS)
def test_the_size_settles_where_a_case_is_cheapest(session_costs: str) -> None:
    best, cost = COSTS[session_costs]
    assert min(PACK_SIZES, key=lambda cases: cost(cases) / cases) == best
    for seed in range(10):
        later = sizes_in_turn(PackSizing(128), cost, 300, seed)[100:]
        assert later.count(best) > 0.75 * len(later)


def test_the_size_follows_cases_of_another_kind() -> None:
    sizing = PackSizing(128)
    sizes_in_turn(sizing, COSTS["far_more_than_a_case"][1], 200, seed=1)
    later = sizes_in_turn(sizing, COSTS["as_much_as_4_cases"][1], 1500, seed=2)[1000:]
    assert later.count(8) > 0.9 * len(later)


def test_every_size_is_tried_now_and_then() -> None:
    sizes = sizes_in_turn(PackSizing(128), COSTS["as_much_as_20_cases"][1], 500, seed=3)
    assert set(sizes[100:]) == set(PACK_SIZES)


def test_the_size_of_the_last_run_is_not_tried_for_again() -> None:
    cost = COSTS["far_more_than_a_case"][1]
    first = PackSizing(128)
    assert not first.is_known
    sizes_in_turn(first, cost, 100, seed=5)
    assert first.is_known
    again = sizes_in_turn(PackSizing(128, known=first.best), cost, 20, seed=6)
    assert again == [first.best] * 20


def test_a_size_that_no_longer_exists_is_no_size() -> None:
    assert PackSizing(64, known=128).best == START


def test_a_size_is_not_tried_before_so_many_cases_wait() -> None:
    sizing = PackSizing(128)
    assert {sizing.next(waiting=40) for _ in range(100)} == {1, 8, 32}
    assert sizing.next(waiting=31) == START


@pytest.mark.parametrize("largest", [1, 2, 7, 8, 9, 31, 33, 100, 128, 500])
def test_no_size_exceeds_the_largest(largest: int) -> None:
    for _, cost in COSTS.values():
        assert max(sizes_in_turn(PackSizing(largest), cost, 200, seed=4)) <= largest


def test_sessions_of_odd_sizes_change_nothing() -> None:
    """The last ones of a run, and what PACK_BYTES cut short."""
    sizing = PackSizing(128)
    for _ in range(100):
        sizing.add_session(31, 1e-9)
        sizing.add_session(5, 1e9)
    assert sizing.best == START


class Settled(PackSizing):
    """A size that nothing changes."""

    def next(self, waiting: int) -> int:  # noqa: ARG002
        return self.largest


@dataclass(frozen=True)
class Weight:
    """What a pool looks at in a prepared case."""

    case: Case
    size_bytes: int
    prefix: str = ""


class SimulatedSupervisor:
    """A worker that is always ready and takes one session at a time; the simulation says when it is done."""

    def __init__(
        self, _target: Target, _events: object, source: Pool, _idle_workers: IdleWorkers, _alone: bool
    ) -> None:
        self.jobs: tuple[Job, ...] = ()
        self.is_aside = self.is_spent = self.suspect = False
        self._source = source

    def advance(self) -> None:
        if not self.jobs and not self.is_aside:
            self.jobs = self._source.next(room=10_000, idle=True)

    def watch(self, now: float) -> None:
        pass

    def is_suspect(self, _now: float) -> bool:
        return self.suspect

    def set_aside(self) -> None:
        self.is_aside = True

    def resident_bytes(self) -> int:
        return MEBIBYTE


class Simulation:
    """A pool whose sessions cost what `cost` says, by a clock of its own, and crash when a culprit is among them or
    when they have more than `bound` large cases, whose operator is Conv.

    sessions: numbers of the jobs of each, in the order in which they ended. outcomes: number -> kinds.
    """

    def __init__(
        self,
        culprits: Collection[int] = (),
        cost: Cost = lambda cases: 5.0 + cases,
        bound: int | None = None,
        **pool: Any,
    ) -> None:
        self.pool = Pool(Target("simulated", (), ()), queue.SimpleQueue(), IdleWorkers(), **{"pack": 128, **pool})
        self.sessions: list[tuple[int, ...]] = []
        self.outcomes: dict[int, list[str]] = defaultdict(list)
        self._culprits = culprits
        self._bound = bound
        self._cost = cost

    def submit(
        self, numbers: Collection[int], group: bytes = b"good", size_bytes: int = 100, operator: str = "Identity"
    ) -> None:
        def build(case: Case) -> BuiltCase:
            raise AssertionError(case)

        for number in numbers:
            prepared = Weight(Case(operator, "", 16, "float32", str(number), "runtime", build), size_bytes)
            self.pool.submit(Job(cast(PreparedCase, prepared), partial(self._take, number), group))

    def run(self) -> float:
        """Until nothing is left; how long that took. No worker is ever idle while a job waits."""
        busy: dict[SimulatedSupervisor, float] = {}
        now = 0.0
        while True:
            self.pool.advance(last=True)
            supervisors = cast(list[SimulatedSupervisor], self.pool.supervisors)
            assert all(supervisor.jobs for supervisor in supervisors) or not self.pool.backlog
            for supervisor in supervisors:
                if supervisor.jobs and supervisor not in busy:
                    busy[supervisor] = now + self._cost(len(supervisor.jobs))
            if not busy:
                return now
            supervisor, now = min(busy.items(), key=itemgetter(1))
            del busy[supervisor]
            jobs, supervisor.jobs = supervisor.jobs, ()
            self._end(jobs)

    def sizes(self) -> list[int]:
        return [len(session) for session in self.sessions]

    def _end(self, jobs: tuple[Job, ...]) -> None:
        numbers = tuple(int(job.prepared.case.sample) for job in jobs)
        self.sessions.append(numbers)
        crashed = not set(numbers).isdisjoint(self._culprits)
        if crashed and len(jobs) > 1:
            self.pool.split(jobs, "it crashed")
            return
        if self._bound is not None and sum(job.prepared.case.operator == "Conv" for job in jobs) > self._bound:
            self.pool.split(jobs, "it took 5000 MiB", too_much=True)
            return
        self.pool.sizing.add_session(len(jobs), self._cost(len(jobs)))
        for job in jobs:
            job.finished(Outcome(CRASHED if crashed else DONE))

    def _take(self, number: int, outcome: Outcome) -> None:
        self.outcomes[number].append(outcome.kind)


@pytest.fixture(autouse=True)
def _simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "Supervisor", SimulatedSupervisor)


def test_cases_of_one_group_share_sessions_and_others_do_not() -> None:
    simulation = Simulation()
    simulation.submit(range(100), b"good")
    simulation.submit(range(100, 200), b"bad")
    simulation.submit(range(200, 210), b"")
    simulation.run()
    groups = [{number // 100 for number in session} for session in simulation.sessions]
    assert all(len(group) == 1 for group in groups)
    assert {len(session) for session, group in zip(simulation.sessions, groups, strict=True) if group == {2}} == {1}
    assert sorted(number for session in simulation.sessions for number in session) == list(range(210))


def test_without_packs_every_case_has_a_session_of_its_own() -> None:
    simulation = Simulation(pack=1)
    simulation.submit(range(50))
    simulation.run()
    assert simulation.sizes() == [1] * 50


def test_a_pack_waits_for_more_cases_while_more_may_come() -> None:
    simulation = Simulation()
    simulation.submit(range(START - 1))
    pool = cast(Any, simulation.pool)
    pool.advance(last=False)
    assert (pool.supervisors[0].jobs, pool.backlog) == ((), START - 1)
    simulation.submit([99])
    pool.advance(last=False)
    assert (len(pool.supervisors[0].jobs), pool.backlog) == (START, 0)


def test_what_waits_for_its_pack_can_be_sent_before_all_that_comes_later() -> None:
    simulation = Simulation()
    simulation.submit(range(3), b"rare")
    simulation.submit(range(3, 43))
    simulation.pool.send_bins()
    simulation.submit(range(43, 200))
    simulation.run()
    assert set(map(frozenset, simulation.sessions[:3])) == {
        frozenset(range(3)),
        frozenset(range(3, 3 + START)),
        frozenset(range(3 + START, 43)),
    }
    assert sorted(number for session in simulation.sessions for number in session) == list(range(200))


def test_a_pack_holds_so_many_bytes_and_no_more() -> None:
    simulation = Simulation()
    simulation.submit(range(20), size_bytes=3 * MEBIBYTE)
    simulation.run()
    assert PACK_BYTES == 16 * MEBIBYTE
    assert simulation.sizes() == [5, 5, 5, 5]


def test_a_case_that_is_larger_than_a_pack_runs_alone_and_lets_others_pass() -> None:
    simulation = Simulation()
    simulation.submit(range(10), size_bytes=MEBIBYTE)
    simulation.submit([10], size_bytes=100 * MEBIBYTE)
    simulation.submit(range(11, 20), size_bytes=MEBIBYTE)
    simulation.run()
    assert simulation.sessions == [tuple(range(10)), (10,), tuple(range(11, 20))]


@pytest.mark.parametrize("jobs", [1, 2, 3, 8])
@pytest.mark.parametrize("cases", [1, 2, 63, 64, 65, 130, 1000])
def test_every_case_is_run_once_by_however_many_workers(jobs: int, cases: int) -> None:
    simulation = Simulation(jobs=jobs)
    for number in range(cases):
        simulation.submit([number], b"%d" % (number % 3))
    simulation.run()
    assert simulation.outcomes == {number: [DONE] for number in range(cases)}
    assert 1 <= len(simulation.pool.supervisors) <= jobs


def test_there_are_as_many_workers_as_have_enough_to_do() -> None:
    simulation = Simulation(jobs=8)
    simulation.submit(range(200), b"")
    for _ in range(10):
        simulation.pool.advance(last=True)
    assert len(simulation.pool.supervisors) == math.ceil(200 / PER_SUPERVISOR) == 4


def test_two_workers_take_half_the_time() -> None:
    alone, two = Simulation(jobs=1), Simulation(jobs=2)
    for simulation in (alone, two):
        simulation.submit(range(2000))
    assert two.run() < 0.55 * alone.run()


def test_what_is_left_at_the_end_is_shared_out() -> None:
    """The last cases, fewer than a pack, go to two workers: a half to the first, a half of the rest to the second."""
    simulation = Simulation(jobs=2, cost=lambda cases: cases)
    simulation.submit(range(3 * 32 + 20))
    simulation.run()
    assert simulation.sizes()[:3] == [32] * 3
    assert sorted(simulation.sizes()[3:], reverse=True) == [10, 5, 3, 1, 1]


def test_a_few_cases_share_a_session_however_many_cores_there_are() -> None:
    simulation = Simulation(jobs=64)
    simulation.submit(range(40))
    simulation.run()
    assert simulation.sizes() == [32, 8]


@pytest.mark.parametrize("culprits", [{0}, {127}, {50}, {50, 51}, {3, 120}, {0, 40, 41, 90}])
def test_culprits_are_found_by_quartering(culprits: set[int]) -> None:
    """Each ends a worker for the whole, a part of 32, of 8, of 2, and alone."""
    simulation = Simulation(culprits)
    simulation.pool.sizing = Settled(128)
    simulation.submit(range(128))
    simulation.run()
    assert {number for number, kinds in simulation.outcomes.items() if kinds == [CRASHED]} == culprits
    assert {number for number, kinds in simulation.outcomes.items() if kinds == [DONE]} == set(range(128)) - culprits
    ended = [session for session in simulation.sessions if not culprits.isdisjoint(session)]
    assert len(ended) <= 1 + 4 * len(culprits)
    assert len(simulation.sessions) <= 1 + (4 + 4 + 4 + 2) * len(culprits)


def test_a_pack_of_nothing_but_culprits_is_taken_apart_and_no_more_than_that() -> None:
    simulation = Simulation(range(128))
    simulation.pool.sizing = Settled(128)
    simulation.submit(range(128))
    simulation.run()
    assert simulation.outcomes == {number: [CRASHED] for number in range(128)}
    assert len(simulation.sessions) == 1 + 4 + 16 + 64 + 128


def test_a_pack_that_failed_is_one_incident_however_often_it_is_split() -> None:
    simulation = Simulation({7})
    simulation.submit(range(40))
    simulation.run()
    (incident,) = simulation.pool.incidents
    assert incident.why == "it crashed"
    assert incident.cases == tuple(f"Identity-16/float32/{number}[runtime]" for number in range(32))


def test_the_parts_of_a_failed_pack_run_before_anything_else_and_a_culprit_shares_no_session_again() -> None:
    simulation = Simulation({0})
    simulation.submit(range(96))
    simulation.run()
    parts = [tuple(range(size)) for size in (32, 8, 2, 1)]
    assert simulation.sessions[:4] == parts
    assert [session for session in simulation.sessions if 0 in session] == parts


def test_what_a_lost_worker_had_not_begun_is_run_next_and_in_its_order() -> None:
    simulation = Simulation()
    simulation.submit(range(100), b"")
    pool = simulation.pool
    parcels = [pool.next(room=1, idle=True) for _ in range(5)]
    pool.give_back(parcels[1:])
    simulation.run()
    assert simulation.sessions == [(number,) for number in range(1, 100)]


def test_what_was_too_much_for_a_worker_comes_in_smaller_sessions_from_then_on() -> None:
    simulation = Simulation(bound=4)
    simulation.pool.sizing = Settled(128)
    simulation.submit(range(1000), operator="Conv")
    simulation.submit(range(1000, 1500), b"others")
    simulation.run()
    assert simulation.outcomes == {number: [DONE] for number in range(1500)}
    of_conv = [len(session) for session in simulation.sessions if session[0] < 1000]
    assert of_conv == [128, 32, 8, *[2] * 500]
    assert max(len(session) for session in simulation.sessions if session[0] >= 1000) == 128
    assert len(simulation.pool.incidents) == 1


def test_other_operators_of_a_session_that_is_made_smaller_have_their_own_size() -> None:
    simulation = Simulation(bound=4)
    simulation.pool.sizing = Settled(128)
    simulation.submit(range(100, 200))
    simulation.submit(range(28), operator="Conv")
    simulation.submit(range(200, 584), operator="Relu")
    simulation.run()
    assert sorted(number for session in simulation.sessions[-3:] for number in session) == list(range(200, 584))
    assert simulation.outcomes.keys() == {*range(28), *range(100, 584)}


def test_a_pack_that_hangs_is_taken_apart_at_once() -> None:
    simulation = Simulation()
    simulation.submit(range(START))
    pool = cast(Any, simulation.pool)
    pool.advance(last=True)
    (supervisor,) = pool.supervisors
    jobs, supervisor.jobs = supervisor.jobs, ()
    pool.split(jobs, "it hangs", hung=True)
    simulation.run()
    assert simulation.sizes() == [1] * START


def placed(number: int, operator: str) -> Job:
    """A job that is only placed; its prefix is its number."""

    def build(case: Case) -> BuiltCase:
        raise AssertionError(case)

    weight = Weight(Case(operator, "", 16, "float32", str(number), "runtime", build), 100, f"{number}/")
    return Job(cast(PreparedCase, weight), lambda _: None, b"placed", place=True)


def test_a_node_that_the_runtime_names_takes_the_cases_of_its_kind_out_of_the_pack() -> None:
    simulation = Simulation()
    jobs = tuple(placed(number, "Gemm" if number % 3 else "Relu") for number in range(1000, 1009))
    simulation.pool.split(jobs, "Provider type for Gemm node with name '1004/node' is not set.")
    parts = [simulation.pool.next(room=100, idle=True) for _ in range(7)]
    numbers = [tuple(int(job.prepared.case.sample) for job in part) for part in parts]
    assert numbers == [(1000,), (1001,), (1003,), (1004,), (1006,), (1007,), (1002, 1005, 1008)]
    assert [part[0].group for part in parts] == [b""] * 6 + [b"placed"]
    assert all(job.split and job.place for part in parts for job in part)


def test_a_pack_that_is_run_is_split_whatever_its_message_names() -> None:
    simulation = Simulation()
    jobs = tuple(placed(number, "Gemm")._replace(place=False) for number in range(1000, 1008))
    simulation.pool.split(jobs, "Non-zero status code returned while running Gemm node. Name:'1004/node'")
    assert [len(simulation.pool.next(room=100, idle=True)) for _ in range(4)] == [2, 2, 2, 2]


def test_others_do_not_wait_for_a_worker_that_is_set_aside() -> None:
    simulation = Simulation(pack=1, jobs=1)
    simulation.submit(range(3))
    pool = cast(Any, simulation.pool)
    pool.advance(last=True)
    first = pool.supervisors[0]
    pool.watch(1.0)
    assert not first.is_aside
    first.suspect = True
    pool.watch(2.0)
    pool.advance(last=True)
    assert first.is_aside
    assert [len(supervisor.jobs) for supervisor in pool.supervisors] == [1, 1]
    first.is_spent = True
    pool.advance(last=True)
    assert first not in pool.supervisors


def test_so_many_workers_are_set_aside_and_no_more() -> None:
    simulation = Simulation(pack=1, jobs=1)
    simulation.submit(range(ASIDE + 2))
    pool = cast(Any, simulation.pool)
    for _ in range(ASIDE + 2):
        pool.advance(last=True)
        for supervisor in pool.supervisors:
            supervisor.suspect = True
        pool.watch(1.0)
    assert sum(supervisor.is_aside for supervisor in pool.supervisors) == ASIDE
    assert len(pool.supervisors) == ASIDE + 1


def test_a_job_that_will_probably_hang_is_sent_when_nothing_else_is_left() -> None:
    simulation = Simulation(pack=1, jobs=1)
    pool = cast(Any, simulation.pool)
    simulation.submit([0])
    pool.defer(pool._waiting.popleft()[0])
    simulation.submit([1, 2])
    pool.advance(last=False)
    assert simulation.run() > 0
    assert simulation.sessions == [(1,), (2,), (0,)]


def test_a_deferred_job_waits_while_more_may_come() -> None:
    simulation = Simulation(pack=1)
    pool = cast(Any, simulation.pool)
    simulation.submit([0])
    pool.defer(pool._waiting.popleft()[0])
    pool.advance(last=False)
    assert (pool.backlog, pool.supervisors) == (0, [])
