"""The progress of a run where there is no terminal for a bar, as in the log of a CI job: a line every half minute."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from epcheck.conformance.records.terms import FAILURE

INTERVAL_S = 30.0
"""Between two lines, and before the first, in seconds. A run that is shorter has none."""

Say = Callable[[str], None]
"""Takes a line."""


class ProgressLog:
    """How far a run is. `take` is called in the thread of the run, `say_lines` in another, so that a run in which
    nothing happens has its lines as well."""

    def __init__(self, planned: int, done: int, clock: Callable[[], float] = time.monotonic) -> None:
        """planned: records of the complete run. done: those that an earlier run left. clock: seconds."""
        self._planned = planned
        self._done = done
        self._clock = clock
        self._started = clock()
        self._new = 0
        self._failures = 0

    def take(self, reading: str) -> None:
        """Count a new record."""
        self._new += 1
        if reading == FAILURE:
            self._failures += 1

    def line(self) -> str:
        """`12,345 of 62,053 cases, 412 cases/s, 3 failures, about 2 min left`. The rate is that of this run so far, and
        the failures are those that it found."""
        done, failures = self._done + self._new, f"{self._failures:,} failure{'' if self._failures == 1 else 's'}"
        counted = f"{done:,} of {self._planned:,} cases"
        left = self._planned - done
        if left <= 0:
            return f"{counted}, {failures}; writing reports"
        elapsed = self._clock() - self._started
        rate = self._new / elapsed if elapsed > 0 else 0.0
        speed = f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
        remaining = f"about {duration(left / rate)} left" if rate else "time left unknown"
        return f"{counted}, {speed} cases/s, {failures}, {remaining}"

    def say_lines(self, wait: Callable[[float], bool], say: Say) -> None:
        """Say a line every INTERVAL_S. wait: waits so many seconds; True when the run is over."""
        with suppress(OSError):  # a log that takes no more ends the lines, and not the run
            while not wait(INTERVAL_S):
                say(self.line())


def duration(seconds: float) -> str:
    """`40 s`, `12 min` or `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


@contextmanager
def lines_of(planned: int, done: int, say: Say) -> Iterator[Callable[[str], None]]:
    """Say lines until the run is over; what is entered takes the reading of each new record."""
    log, over = ProgressLog(planned, done), threading.Event()
    thread = threading.Thread(target=log.say_lines, args=(over.wait, say), name="progress log", daemon=True)
    thread.start()
    try:
        yield log.take
    finally:
        over.set()
        thread.join()
