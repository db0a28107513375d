"""Asking a target about many cases where their node goes: sessions are created and not run."""

from __future__ import annotations

import contextlib
import os
import queue
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from epcheck.conformance import lab
from epcheck.conformance.judging.device_limit import feature_of
from epcheck.conformance.judging.opinion import UNPLACED, condense, placement_gap
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records.outcome import DONE, FAILED, PLACED, Outcome
from epcheck.conformance.scheduling.grouping import PLACE_ONLY
from epcheck.conformance.scheduling.pools.pool import Pool
from epcheck.conformance.scheduling.pools.supervisor import Job
from epcheck.conformance.scheduling.pools.turn import turn
from epcheck.conformance.targets.target import MEASURED, Target, TargetError
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import Event

AHEAD = 1024
"""Cases under way at most."""

PlacementAnswer = Callable[[PreparedCase, str, bool], None]
"""Takes a case, why the provider does not take its node, in words, empty where it does; and whether that is no refusal
to take it, but a session or a process that failed."""


def ask_placements(
    target: Target,
    cases: Iterable[PreparedCase],
    answered: PlacementAnswer,
    jobs: int | None = None,
    packed: bool = True,
) -> Mapping[str, str]:
    """Create a session for the cases and have each answered with where the record of the session puts its node.

    jobs: workers at most; None for the target's own number. packed: many cases in one session. Returns what the
    target's worker reports of itself. Raises TargetDown, and TargetError where the runtime keeps no such record.
    """
    if target.provider is None:
        raise TargetError(f"target '{target.name}' has no execution provider; name one that has")
    own = 1 if target.jobs == MEASURED else target.jobs
    with (
        contextlib.nullcontext() if target.owns_group else lab.in_use(),
        contextlib.closing(IdleWorkers()) as idle_workers,
    ):
        asked = _Asked(target, idle_workers, jobs or own or os.cpu_count() or 1, target.pack if packed else 1, answered)
        try:
            return asked.all(iter(cases))
        finally:
            asked.pool.kill()


class _Asked:
    """The cases under way, and the pool that they are in."""

    def __init__(self, target: Target, idle: IdleWorkers, jobs: int, pack: int, answered: PlacementAnswer) -> None:
        self._target = target
        self._answered = answered
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._under_way = 0
        self.pool = Pool(target, self._events, idle, jobs, pack)

    def all(self, cases: Iterator[PreparedCase]) -> Mapping[str, str]:
        """Ask about every case; what the worker reports of itself."""
        self.pool.start()
        while not self.pool.facts:
            self._turn(False)
        if self.pool.facts.get("assignment") != "recorded":
            raise TargetError(
                f"target '{self._target.name}': its runtime ({self.pool.facts.get('onnxruntime', 'unknown')}) does not "
                f"record node placement, so it cannot be probed; use onnxruntime 1.24 or later"
            )
        for prepared in cases:
            self._submit(prepared, PLACE_ONLY + prepared.shell if prepared.graph else b"")
            while self._under_way >= AHEAD:
                self._turn(False)
            if self._under_way % 64 == 0:
                self._turn(False, wait=False)
        while self._under_way:
            self._turn(True)
        return self.pool.facts

    def _submit(self, prepared: PreparedCase, group: bytes) -> None:
        self._under_way += 1
        self.pool.submit(Job(prepared, partial(self._handle_outcome, prepared), group, place=True))

    def _run(self, prepared: PreparedCase) -> None:
        """Run a case whose node was taken apart, or stands beside one that others take: a session that may not fall
        back is refused then. Of a function, the record may lack parts that run on the CPU between casts to float32
        (docs/targets.md)."""
        self._under_way += 1
        self.pool.submit(Job(prepared, partial(self._handle_outcome, prepared)))

    def _handle_outcome(self, prepared: PreparedCase, outcome: Outcome) -> None:
        self._under_way -= 1
        if outcome.kind == PLACED and outcome.shared > 1 and not outcome.assignment:
            self._submit(prepared, b"")  # functions were inlined: alone it shows whose nodes these are
            return
        if outcome.kind == PLACED:
            provider, nodes = self._target.provider or "", outcome.assignment or ()
            gap = placement_gap(prepared, provider, outcome)
            is_apart = all(operator != prepared.op_type for _, operator in nodes)
            if not gap and (is_apart or any(name != provider for name, _ in nodes)):
                self._run(prepared)
            else:
                self._answered(prepared, gap, False)
            return
        if outcome.kind == DONE:
            self._answered(prepared, placement_gap(prepared, self._target.provider or "", outcome), False)
            return
        if outcome.kind == FAILED and feature_of(outcome.message):
            self._answered(prepared, "", False)  # it takes the node, and this machine's device cannot run it
            return
        message = condense(outcome.message) or outcome.kind
        self._answered(prepared, message, outcome.kind != FAILED or not UNPLACED.search(message))

    def _turn(self, last: bool, wait: bool = True) -> None:
        turn(self.pool, self._events, last, wait)
