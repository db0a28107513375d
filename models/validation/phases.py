"""The steps of a validation: how long each took, and which are left out once the budget is spent."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

TRUTH, JUDGING, NODES = "computing the truth", "judging", "judging the nodes"
REFERENCE, SEARCH, SPEED = "comparing with the reference", "searching for the wrong node", "measuring the speed"
GENERATION = "decoding with the cache"
ADVICE, NODE_ADVICE = "trying changes that place nodes", "trying changes of refused nodes"

DECIDING_NOTHING = frozenset((NODES, SEARCH, SPEED, ADVICE, NODE_ADVICE))
"""Steps whose result does not decide whether the outputs are right."""


class Phases:
    """Reports each step as it begins and keeps how long it took. planned: steps that have not ended."""

    def __init__(self, report: Callable[[str], None], budget_s: float | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self.planned: list[str] = []
        self._report = report
        self._until = math.inf if budget_s is None else time.monotonic() + budget_s

    @property
    def remaining_s(self) -> float:
        """Seconds of the budget that are left; infinite without one."""
        return max(self._until - time.monotonic(), 0.0)

    @property
    def is_spent(self) -> bool:
        """Whether no step may begin any more."""
        return self.remaining_s <= 0

    def plan(self, steps: Sequence[str]) -> None:
        """Add steps that are left out unless they are run."""
        self.planned += (step for step in steps if step not in self.planned)

    def drop(self, *steps: str) -> None:
        """These steps are done, or there is nothing to do in them."""
        self.planned[:] = (step for step in self.planned if step not in steps)

    @contextmanager
    def time_phase(self, step: str) -> Iterator[None]:
        """A step, which is planned no more when it has ended."""
        self._report(step)
        started = time.monotonic()
        try:
            yield
            self.drop(step)
        finally:
            self.seconds[step] = self.seconds.get(step, 0.0) + time.monotonic() - started
