"""The first verdict of a run of the whole suite: a few cases of every operator version and dtype come first.

They are the cases of a thin run, so a new user knows within minutes how a provider stands, and what the rest costs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence

from epcheck.api.progress import Progress
from epcheck.conformance.records.record import decode
from epcheck.conformance.records.run import Run
from epcheck.conformance.scheduling.plan import AWAITED
from epcheck.generators import suite
from epcheck.generators.case import Case
from epcheck.reports import target_headline
from epcheck.reports.runs.summary import Tally


def thin_first(cases: Iterable[Case]) -> tuple[list[Case], frozenset[str]]:
    """The cases with those of a thin run first, else in their order, and the ids of these."""
    cases = tuple(cases)
    thin = frozenset(case.id for case in suite.thin_cases(cases))
    return sorted(cases, key=lambda case: case.id not in thin), thin


class FirstVerdict:
    """Waits for the records of nearly all thin cases on every candidate, and prints a summary."""

    def __init__(
        self, run: Run, thin: frozenset[str], progress: Progress, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """run: the whole run. thin: ids of its first cases; none: nothing is said. clock: seconds."""
        self._run = run
        self._thin = thin
        self._of_all = len(thin) * len(run.candidates)
        self._left = math.ceil(self._of_all * AWAITED)
        self._recorded = 0
        self._progress = progress
        self._clock = clock
        self._started = clock()
        self._tally = Tally()

    def take(self, line: str) -> None:
        """Take a record as its line of the journal, in any order."""
        if not self._left:
            return
        self._recorded += 1
        record = decode(line)
        if record.case_id not in self._thin:
            return
        self._tally.add(record)
        self._left -= 1
        if not self._left:
            for sentence in self._sentences():
                self._progress.say(sentence)

    def _sentences(self) -> Sequence[str]:
        elapsed, rest = self._clock() - self._started, self._run.planned - self._recorded
        summary = self._tally.summary(self._run)
        cost = _in_words(elapsed * rest / self._recorded)
        return [
            f"First verdict after {_in_words(elapsed)}, from a few cases of each operator version and dtype:",
            *(f"  {target_headline(target)}" for target in summary.targets),
            f"The other {rest:,} of {self._run.planned:,} cases take about {cost}; Ctrl-C ends the run and keeps what "
            f"is recorded, and epcheck run --resume latest goes on.",
        ]


def _in_words(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{round(seconds / 60)} min"
