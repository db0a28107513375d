"""A use of sessions that differs, reduced to the least that still does: fewer threads, sessions, runs and sizes.

Each extent runs in processes in which nothing ran before. A whole use of which half of the runs are right is not
reduced: what a smaller one gives could be chance. A smaller one is kept where SURE of so many runs are wrong, or
STEADY of ATTEMPTS, or the share of them that is wrong of the whole use where that is less. What is left in the end runs
ATTEMPTS times; where too few of these are wrong, what was kept before it is taken. What a use says besides wrong
values, as that handles are left behind, a smaller one must say as well.

Where many sessions or runs are needed, a quarter more are left: a worker and `run.py` begin with other sessions, and
what runs out in the one need not in the other.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from epcheck.conformance.judging import variants
from epcheck.conformance.judging.opinion import opinion
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.outcome import Outcome
from epcheck.conformance.records.record import VariantResult
from epcheck.conformance.scheduling.variant_runs import Way, name_bits
from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.program.backends.uses import FOUND, USES, Extent

ATTEMPTS, STEADY, SURE = 10, 9, 5
"""Runs of an extent at most; how many of them are wrong where it is kept; and runs after which it is, where all are:
so many have the whole use, unless some are right, and what is a step smaller than what is left."""

MANY = 8
"""Sessions or runs from which on a quarter more are left."""

COUNTS = {"threads": "thread", "sessions": "session", "runs": "run", "sizes": "other size", "weighed": "weighed size"}
"""Field of an Extent that is a number, or a list of them -> what is counted."""

LEFT_OUT: tuple[dict[str, Any], ...] = (
    {"large": False, "own": True}, {"own": False}, {"others": False}, {"weighed": 0}, {"sizes": ()},
)  # fmt: skip
"""What is left out as a whole, where that still fails."""

VALUES = re.compile(r"\bvalues\b")
"""What a use says of other values has this word."""

Run = Callable[[Target], Outcome]
"""Runs the case once on the target, or a variant of it, in a new process. Raises TargetDown."""


@dataclass(frozen=True)
class Tried:
    """What came of an extent. wrong: of its runs. reason: of the last that was wrong."""

    extent: Extent
    wrong: int = 0
    runs: int = 0
    reason: str = ""

    @property
    def count(self) -> str:
        """As `wrong in 5 of 5 runs`."""
        return f"wrong in {self.wrong} of {self.runs} runs"


@dataclass(frozen=True)
class Reduction:
    """What a use was reduced to.

    full: the whole use. least: what is left. smaller: what fails with a quarter less, where a quarter more is left, and
    extents that are a step smaller, and not wrong as often. why: why it was not reduced, or not to the end; empty where
    it was.
    """

    full: Tried
    least: Tried
    smaller: tuple[Tried, ...] = ()
    why: str = ""

    def apply(self, target: Target) -> Target:
        """The variant, with what is left of its use."""
        return apply_extent(target, self.least.extent)

    def describe(self) -> tuple[str, ...]:
        """What was measured, as sentences."""
        whole = describe_extent(self.full.extent, self.full.extent)
        reason = f": {self.full.reason}" if self.full.reason else ""
        found = [f"{whole}: {self.full.count}{reason}"]
        if self.least.extent != self.full.extent:
            found.append(f"reduced to {describe_extent(self.least.extent, self.full.extent)}: {self.least.count}")
        found += [f"with {describe_step(each.extent, self.least.extent)}: {each.count}" for each in self.smaller]
        return tuple(dict.fromkeys((*found, *([self.why] if self.why else []))))


def reduce_use(prepared: PreparedCase, target: Target, candidate: Target, run: Run, seconds: float) -> Reduction:
    """Look for the least of a use with which the case still differs, for so many seconds. target: the use, as a variant
    of the candidate. Raises TargetDown."""
    extent = whole_extent(target.variant)
    ordinary = run(candidate)
    way = Way(opinion(prepared, candidate, ordinary), name_bits(prepared, ordinary))
    if way.opinion.status != terms.PASS:
        full = Tried(extent)
        return Reduction(full, full, why=f"not reduced: the plain run is not right ({way.opinion.status})")
    search = _Search(prepared, target, way, run, time.monotonic() + seconds)
    full = search.try_extent(extent, SURE)
    if full.wrong not in (0, SURE):
        full = search.try_extent(extent, ATTEMPTS)
    if 2 * full.wrong <= full.runs:
        return Reduction(full, full, why="not reduced: no more than half of the runs of the whole use are wrong")
    least, smaller = search.reduce(full)
    why = "" if time.monotonic() < search.until else f"not reduced further: {seconds:g} s are over"
    return Reduction(full, least, smaller, why)


class _Search:
    """The extents that were tried. until: when time is over, on time.monotonic's clock."""

    def __init__(self, prepared: PreparedCase, target: Target, ordinary: Way, run: Run, until: float) -> None:
        self.until = until
        self._prepared, self._target, self._ordinary, self._run = prepared, target, ordinary, run
        self._tried: dict[Extent, Tried] = {}
        self._kinds: set[str] = set()
        self._kept: list[Extent] = []
        self._steady = 0

    def try_extent(self, extent: Extent, runs: int) -> Tried:
        """Run an extent until there are so many runs, or time is over. What the first one says is what is looked
        for."""
        tried = self._tried.get(extent, Tried(extent))
        while tried.runs < runs and (not tried.runs or time.monotonic() < self.until):
            result = self._run_once(extent)
            kind = name_kind(result)
            if result.state == terms.DIFFERS and not self._steady:
                self._kinds.add(kind)
            is_wrong = result.state == terms.DIFFERS and kind in self._kinds
            reason = result.reason if is_wrong else tried.reason
            tried = Tried(extent, tried.wrong + is_wrong, tried.runs + 1, reason)
            self._tried[extent] = tried
        return tried

    def _run_once(self, extent: Extent) -> VariantResult:
        target = apply_extent(self._target, extent)
        outcome = self._run(target)
        judged = variants.judge(self._prepared, target, outcome)
        bits = name_bits(self._prepared, outcome)
        return variants.compare(target, self._ordinary.opinion, self._ordinary.answer, outcome, judged, bits)

    def _is_kept(self, extent: Extent) -> bool:
        """Whether an extent is steady, as far as it takes to know that; it is then what may be left."""
        tried = self._tried.get(extent, Tried(extent))
        while time.monotonic() < self.until:
            if tried.wrong == tried.runs >= SURE or tried.wrong >= self._steady:
                self._kept.append(extent)
                return True
            if tried.runs - tried.wrong > ATTEMPTS - self._steady:
                return False
            tried = self.try_extent(extent, tried.runs + 1)
        return False

    def reduce(self, full: Tried) -> tuple[Tried, tuple[Tried, ...]]:
        """The least extent, and those that are a step smaller."""
        self._steady = min(STEADY, math.ceil(ATTEMPTS * full.wrong / full.runs))
        self._kept = [full.extent]
        extent = full.extent
        while True:
            self._shrink(extent)
            while len(self._kept) > 1 and not self._is_confirmed(self._kept[-1]):
                self._kept.pop()
            extent = self._kept[-1]
            steps = list(list_steps(extent))
            if not any(map(self._is_kept, steps)):
                break
            extent = self._kept[-1]
        tried = [self.try_extent(step, SURE) for step in steps if time.monotonic() < self.until]
        if (roomy := add_quarter(extent, full.extent)) != extent and self._is_confirmed(roomy):
            return self._tried[roomy], (self._tried[extent], *tried)
        return self._tried[extent], tuple(tried)

    def _is_confirmed(self, extent: Extent) -> bool:
        tried = self.try_extent(extent, ATTEMPTS)
        return tried.wrong >= self._steady or tried.runs < ATTEMPTS  # time is over

    def _shrink(self, extent: Extent) -> None:
        """Leave out of the extent what it does not need."""
        for change in LEFT_OUT:
            smaller = replace(extent, **change)
            if smaller != extent and (smaller.own or smaller.large) and self._is_kept(smaller):
                extent = smaller
        extent = self._leave_out_sizes(extent)
        for name in ("sessions", "threads", "runs"):
            extent = self._lower(extent, name)

    def _lower(self, extent: Extent, name: str) -> Extent:
        """The extent with the least number with which it fails, by halving."""
        low, high = 1, getattr(extent, name)
        if high <= low:
            return extent
        if self._is_kept(change_count(extent, name, low)):
            return change_count(extent, name, low)
        while high - low > 1:
            middle = (low + high) // 2
            if self._is_kept(change_count(extent, name, middle)):
                high = middle
            else:
                low = middle
        return change_count(extent, name, high)

    def _leave_out_sizes(self, extent: Extent) -> Extent:
        """The extent without the sizes that it does not need: a half at a time, then a quarter, ..., then one."""
        part = max(len(extent.sizes) // 2, 1)
        while extent.sizes:
            start = 0
            while start < len(extent.sizes):
                fewer = replace(extent, sizes=(*extent.sizes[:start], *extent.sizes[start + part :]))
                if (fewer.sizes or fewer.weighed) and self._is_kept(fewer):
                    extent = fewer
                else:
                    start += part
            if part == 1:
                break
            part = max(part // 2, 1)
        return extent


def name_kind(result: VariantResult) -> str:
    """What a use says besides wrong values, without its numbers; empty for wrong values, errors and ends of processes,
    of which the same fault may give any."""
    message = result.opinion.message if result.opinion else ""
    words = message.partition(FOUND)[2]
    return "" if VALUES.search(words) else re.sub(r"[\d,.]+", "", words)


def whole_extent(use: str) -> Extent:
    """That of the whole use."""
    extent = USES[use].extent
    return replace(extent, sizes=tuple(extent.sizes))


def apply_extent(target: Target, extent: Extent) -> Target:
    """The variant that is a use, of this extent."""
    of_use, least = whole_extent(target.variant), Extent()
    names = [field.name for field in fields(Extent) if getattr(of_use, field.name) != getattr(least, field.name)]
    changes = {name: getattr(extent, name) for name in (*names, *(["own"] if of_use.large else []))}
    return replace(target, request_defaults={**target.request_defaults, "extent": changes})


def change_count(extent: Extent, name: str, count: int) -> Extent:
    """The extent with another number of threads, sessions or runs."""
    changes: dict[str, Any] = {name: count}
    return replace(extent, **changes)


def add_quarter(extent: Extent, full: Extent) -> Extent:
    """The extent with a quarter more sessions and runs, where it has MANY; not more than the whole use."""
    for name in ("sessions", "runs"):
        if (count := getattr(extent, name)) >= MANY:
            extent = change_count(extent, name, min(count + math.ceil(count / 4), getattr(full, name)))
    return extent


def list_steps(extent: Extent) -> Iterator[Extent]:
    """The extents that are one step smaller: a thread less, a session, a run, a size, other values, large feeds."""
    for name in ("threads", "sessions", "runs"):
        if (count := getattr(extent, name)) > 1:
            yield change_count(extent, name, count - 1)
    if len(extent.sizes) > 1 or (extent.sizes and extent.weighed):
        for at in range(len(extent.sizes)):
            yield replace(extent, sizes=(*extent.sizes[:at], *extent.sizes[at + 1 :]))
    if extent.others:
        yield replace(extent, others=False)
    if extent.large:
        yield replace(extent, large=False, own=True)


def describe_extent(extent: Extent, full: Extent) -> str:
    """An extent in words, as `2 threads, 1 session, 1 run`. full: that of the whole use, of which it has the parts."""
    words = [
        count_words(extent, name)
        for name in COUNTS
        if getattr(full, name) != getattr(Extent(), name) and getattr(extent, name)
    ]
    if full.large:
        words.append(
            "large feeds" if not extent.own else "its own and large feeds" if extent.large else "its own feeds"
        )
    if full.others and extent.others:
        words.append("other values")
    return ", ".join(words) or "nothing of it can be left out"


def describe_step(extent: Extent, least: Extent) -> str:
    """In what an extent is smaller than another, in words."""
    for name in COUNTS:
        if getattr(extent, name) != getattr(least, name):
            return count_words(extent, name)
    return "its own feeds alone" if extent.large != least.large else "the same values in all runs"


def count_words(extent: Extent, name: str) -> str:
    """As `2 threads`."""
    value = getattr(extent, name)
    count = value if isinstance(value, int) else len(value)
    return f"{count} {COUNTS[name]}{'' if count == 1 else 's'}"
