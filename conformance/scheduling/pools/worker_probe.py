"""Measuring how many workers pay: one small session, the same every time, on 1, 2, 4 ... workers of a pool."""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Callable, Sequence
from itertools import islice

from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.preparation.prepared_case import FULL, PreparedCase
from epcheck.conformance.scheduling.pools import session_request, worker_count
from epcheck.conformance.scheduling.pools.pool import TICK_S, Pool
from epcheck.conformance.workers.client import TargetDown, WorkerClient, WorkerLost
from epcheck.conformance.workers.process import Event
from epcheck.conformance.workers.session_result import session_result
from epcheck.generators import suite

OPERATORS, OF_EACH = ("Add", "Sub", "Mul", "Div"), 8
"""Whose cases the session has, of version 14 in float32, and how many of each: as many as a pack begins with. They
agree in their opset, and every GPU takes them."""

MEASURE_S, LONGEST_S = 1.0, 3.0
"""How long each number of workers is measured, in seconds: until every worker has ENOUGH answers, but no longer."""

ENOUGH = 3
"""Answers of a worker between which its time is measured."""

AHEAD = 2
"""Sessions before each worker, so that none waits for the runner."""

WITHIN_S, GIVEN_UP_S = 8.0, 30.0
"""From when on no further number is begun, and when the one that is measured is given up, in seconds. Most of it is the
start of workers."""


class _NotMeasuredError(Exception):
    """A worker was lost, its session failed, or it took too long."""


def probe_cases() -> list[PreparedCase]:
    """The cases of the session: small, always the same, with elements in every output."""
    found: list[PreparedCase] = []
    for operator in OPERATORS:
        cases = suite.cases([operator], ["float32"], [f"{operator}-14/float32/*[runtime]"])
        prepared = (case for case in map(prepared_case.prepare, cases) if isinstance(case, PreparedCase))
        found += islice((case for case in prepared if case.graph and case.emptiness == FULL), OF_EACH)
    return [case for case in found if case.shell == found[0].shell]


def measure(
    pool: Pool, events: queue.SimpleQueue[Event], cases: Sequence[PreparedCase], at_most: int
) -> worker_count.Rates:
    """Sessions a second with 1, 2, 4 ... workers of a pool that has answered and has nothing else to do; as far as
    they could be measured and paid. The workers stay in the pool. Other events wait in the queue until it is over.
    """
    probe = _Probe(pool, events, cases)
    rates: dict[int, float] = {}
    with contextlib.closing(probe), contextlib.suppress(_NotMeasuredError, TargetDown):
        while (number := worker_count.following(rates, at_most)) and not probe.has_taken(WITHIN_S):
            rates[number] = probe.rate(pool.grow(number))
    return rates


class _Probe:
    """The same session again and again."""

    def __init__(self, pool: Pool, events: queue.SimpleQueue[Event], cases: Sequence[PreparedCase]) -> None:
        self._pool = pool
        self._events = events
        self._name = "worker probe"
        self._frame = session_request.encode(self._name, cases, pool.target, False)
        self._under_way: dict[WorkerClient, int] = {}
        self._answers: dict[WorkerClient, list[float]] = {}
        self._others: list[Event] = []
        self._goes_on = False
        self._begun = time.monotonic()

    def has_taken(self, seconds: float) -> bool:
        """Whether it has run for longer than that."""
        return time.monotonic() - self._begun > seconds

    def rate(self, clients: Sequence[WorkerClient]) -> float:
        """Sessions a second of these workers, which are started. Each new one runs one session first, in which what it
        compiles is compiled. Raises _NotMeasuredError, TargetDown."""
        for client in clients:
            self._under_way.setdefault(client, 0)
        self._wait(lambda: all(client.is_ready for client in clients))
        self._send([client for client in clients if client not in self._answers])
        self._wait(self._is_idle)
        self._answers = {client: [] for client in clients}
        begun, self._goes_on = time.monotonic(), True
        for _ in range(AHEAD):
            self._send(clients)
        self._wait(lambda: self._has_enough(time.monotonic() - begun))
        self._goes_on = False
        answers = [tuple(times) for times in self._answers.values()]
        self._wait(self._is_idle)
        return worker_count.rate(answers)

    def close(self) -> None:
        """End the workers that have not answered, and put back what belongs to others."""
        for client, sessions in self._under_way.items():
            if sessions or client.is_starting:
                client.kill("measuring the number of workers took too long")
        for event in self._others:
            self._events.put(event)

    def _send(self, clients: Sequence[WorkerClient]) -> None:
        for client in clients:
            client.send(self._name, self._frame)
            client.listen(True)
            self._under_way[client] += 1

    def _is_idle(self) -> bool:
        return not any(self._under_way.values())

    def _has_enough(self, seconds: float) -> bool:
        return seconds >= LONGEST_S or (
            seconds >= MEASURE_S and all(len(times) >= ENOUGH for times in self._answers.values())
        )

    def _wait(self, over: Callable[[], bool]) -> None:
        """Take events until it is over."""
        for client in self._under_way:
            client.listen(True)
        while not over():
            if self.has_taken(GIVEN_UP_S):
                raise _NotMeasuredError
            with contextlib.suppress(queue.Empty):
                self._take(self._events.get(timeout=TICK_S))
            now = time.monotonic()
            if any(client.watch(now) for client in self._under_way):
                raise _NotMeasuredError

    def _take(self, event: Event) -> None:
        client = next((client for client in self._under_way if client.owns(event)), None)
        if client is None:
            self._others.append(event)
            return
        was_ready = client.is_ready
        answer = client.handle(event)
        if client.is_ready and not was_ready:
            self._pool.times.trace_start(client.pid, client.started, time.monotonic())
        if answer is None:
            return
        self._under_way[client] -= 1
        if isinstance(answer, WorkerLost):
            self._under_way[client] = 0
            raise _NotMeasuredError
        if session_result(answer.header).failed:
            raise _NotMeasuredError
        if client in self._answers:
            self._answers[client].append(answer.at)
        if self._goes_on:
            self._send([client])
