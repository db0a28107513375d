"""A pool of its own, without a session's other pools: whoever waits for its jobs takes its events."""

from __future__ import annotations

import contextlib
import queue
import time

from epcheck.conformance.scheduling.pools.pool import TICK_S, Pool
from epcheck.conformance.workers import heartbeat
from epcheck.conformance.workers.process import Event


def turn(pool: Pool, events: queue.SimpleQueue[Event], last: bool = True, wait: bool = True) -> None:
    """Have workers take jobs, take the events that are there, and enforce deadlines and memory bounds.

    last: no more jobs come. wait: for an event, TICK_S at most, where there is none. Raises TargetDown.
    """
    heartbeat.beat()
    pool.advance(last)
    for supervisor in pool.supervisors:
        supervisor.listen(True)
    with contextlib.suppress(queue.Empty):
        event = events.get(timeout=TICK_S) if wait else events.get_nowait()
        while True:
            if owner := pool.owner(event):
                owner.handle(event)
            event = events.get_nowait()
    pool.watch(time.monotonic())
