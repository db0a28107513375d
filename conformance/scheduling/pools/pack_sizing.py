"""Pack sizing: how many cases share a session, measured as the run goes."""

from __future__ import annotations

from collections import deque

PACK_SIZES = (1, 8, 32, 128)
"""Cases in a session: the sizes to choose from."""

START = 32
"""The size to begin with: every provider measured so far gains by it."""

RECENT = 16
"""Sessions of each size whose time counts; the quickest quarter of them decides, since noise only ever adds."""

ENOUGH = 4
"""Sessions of a size before it is judged."""

SESSION_S = 0.0003
"""What a session costs the runner, beside its cases and beside what it costs the worker, in seconds."""

EXPLORE = 24
"""Every so many sessions another size than the best one is tried again."""


class PackSizing:
    """How many cases share a session: the one of PACK_SIZES at which a case takes least of a worker's time."""

    def __init__(self, largest: int, known: int = 0) -> None:
        """largest: never more than this; 1 does not pack. known: the best size of the last run, which saves trying
        them all again; 0 where there is none."""
        self.largest = largest
        sizes = [size for size in PACK_SIZES if size < largest] + [largest]
        self.best = known if known in sizes else min(START, largest)
        self._sizes = sorted(sizes, key=lambda size: (size != self.best, -size))
        self._seconds = {size: deque[float](maxlen=RECENT) for size in sizes}
        self._asked = dict.fromkeys(sizes, ENOUGH if self.best == known else 0)
        self._sessions = 0

    @property
    def is_known(self) -> bool:
        """Whether every size has been tried."""
        return self.largest > 1 and all(asked >= ENOUGH for asked in self._asked.values())

    def next(self, waiting: int) -> int:
        """How many cases the next session has, of so many that wait; more than that when more are worth waiting for.

        Every size is tried on a few sessions; then the best is taken, and now and then another: cases differ along
        the run.
        """
        possible = [size for size in self._sizes if size <= waiting]
        if self.best > waiting or len(self._sizes) == 1:
            return self.best
        self._sessions += 1
        turn, tried = divmod(self._sessions, EXPLORE)
        untried = [size for size in possible if self._asked[size] < ENOUGH]
        size = untried[0] if untried else self.best if tried else possible[turn % len(possible)]
        self._asked[size] += 1
        return size

    def add_session(self, cases: int, seconds: float) -> None:
        """A session of so many cases took a worker so many seconds."""
        if cases not in self._seconds or len(self._sizes) == 1:
            return
        self._seconds[cases].append((seconds + SESSION_S) / cases)
        known = [size for size in self._sizes if len(self._seconds[size]) >= ENOUGH]
        self.best = min(known, key=self._time, default=self.best)

    def _time(self, size: int) -> float:
        """Seconds for a case in the quickest quarter of the sessions of that size."""
        seconds = sorted(self._seconds[size])
        return seconds[len(seconds) // 4]
