"""Shards: a selection cut into parts that machines run apart, as a CI matrix does; `epcheck merge` joins them again.

The cut is a pure function of the cases, the number of shards and what the cases cost: every machine makes the same one.
Neighbours that could share a session stay together in blocks; the blocks are dealt out like cards, so that neighbours
which are all expensive do not end in one shard.
"""

from __future__ import annotations

import hashlib
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Self

from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.terms import CRASH, TIMEOUT
from epcheck.generators.case import Case
from epcheck.generators.error import EpcheckError

BLOCK = 32
"""Neighbours that are dealt out together: about as many as one session holds where sessions are expensive."""

OTHER_S = 0.001
"""Seconds that a case costs beside the candidate's session: building, baseline, reference, judging (measured)."""

LOST_S: Mapping[str, float] = {CRASH: 1.0, TIMEOUT: 20.0}
"""Seconds of an attempt that left no time behind: a worker's start, and a target's usual deadline."""


class ShardError(EpcheckError, ValueError):
    """A shard cannot be had; the message says what was asked for and what to write."""


@dataclass(frozen=True)
class Shard:
    """One part of a selection: the `index`th of `count`, counted from 1."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The shard of a text like `3/16`. Raises ShardError."""
        found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise ShardError(f"shard '{text}' is not valid; write for example 3/16, from 1/16 to 16/16")
        return cls(int(found[1]), int(found[2]))


def cut(cases: Sequence[Case], count: int, seconds: Mapping[str, float] | None = None) -> tuple[tuple[Case, ...], ...]:
    """The cases in `count` shards, disjoint and complete, each in the order of `cases`.

    seconds: case id -> what it costs (`recorded_seconds`); a case without an entry costs the median. No shard costs
    more than its equal part and the dearest case; where nothing is known, their sizes differ by one at most.
    """
    costs = _costs(cases, seconds or {})
    total, before = sum(costs), 0
    shards: list[list[int]] = [[] for _ in range(count)]
    for position in _dealt(cases, count):
        shards[(2 * before + costs[position]) * count // (2 * total)].append(position)
        before += costs[position]
    return tuple(tuple(cases[position] for position in sorted(shard)) for shard in shards)


def recorded_seconds(records: Iterable[Record]) -> dict[str, float]:
    """Case id -> what the case cost in a run, all of its candidates and attempts together."""
    found: dict[str, float] = {}
    for record in records:
        known = _attempt_s(record.candidate)
        if known is not None:
            found[record.case_id] = found.get(record.case_id, 0.0) + known * record.candidate.attempts + OTHER_S
    return found


def digest(ids: Iterable[str]) -> str:
    """What tells a list of ids from any other: equal for equal ids in the same order."""
    return hashlib.sha256("\n".join(ids).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def digest_of_cut(shards: Sequence[Sequence[Case]]) -> str:
    """What tells a cut from any other: shards of one cut fit together."""
    return digest(f"{number} {case.id}" for number, shard in enumerate(shards, 1) for case in shard)


def _attempt_s(opinion: Opinion) -> float | None:
    if opinion.create_s is None and opinion.run_s is None:
        return LOST_S.get(opinion.status)
    return (opinion.create_s or 0.0) + (opinion.run_s or 0.0)


def _costs(cases: Sequence[Case], seconds: Mapping[str, float]) -> list[int]:
    """Microseconds of each case: whole numbers, which add up to the same sum everywhere."""
    known = [seconds.get(case.id) for case in cases]
    median = statistics.median(cost for cost in known if cost is not None) if any(known) else 0.0
    return [max(1, round(1e6 * (median if cost is None else cost))) for cost in known]


def _dealt(cases: Sequence[Case], count: int) -> Iterator[int]:
    """The positions of the cases, block by block: every `count`th block from the first, from the second, and so on."""
    blocks = list(_blocks(cases))
    for first in range(min(count, len(blocks))):
        for block in blocks[first::count]:
            yield from block


def _blocks(cases: Sequence[Case]) -> Iterator[range]:
    """Neighbours of one operator version and dtype, at most BLOCK of them."""
    start = 0
    for _, group in groupby(cases, key=lambda case: (case.domain, case.operator, case.since_version, case.dtype)):
        end = start + sum(1 for _ in group)
        yield from (range(at, min(at + BLOCK, end)) for at in range(start, end, BLOCK))
        start = end
