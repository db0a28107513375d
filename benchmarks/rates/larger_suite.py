"""The thin suite many times over: its cases again under names of their own, so with ids and random data of their own.

The thin suite has every operator version and dtype, and few cases of each: a sample of all that a run consists of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from epcheck.generators import suite
from epcheck.generators.case import Case


def cases(rounds: int, only: Collection[str] | None = None) -> list[Case]:
    """The thin suite `rounds` times over. only: ids of its cases that are wanted, None for all."""
    return list(repeated((case for case in suite.cases(thin=True) if only is None or case.id in only), rounds))


def exactly(count: int) -> list[Case]:
    """So many cases, evenly spread over as many rounds of the thin suite as they need."""
    once = list(suite.cases(thin=True))
    every = list(repeated(once, -(-count // len(once))))
    return [every[index * len(every) // count] for index in range(count)]


def repeated(once: Iterable[Case], rounds: int) -> Iterator[Case]:
    """The cases `rounds` times over, the later ones as SAMPLE_again2, SAMPLE_again3, ...

    Their order is that of a suite with so many more samples: what has one operator version and dtype stays together.
    """
    for _, group in groupby(once, lambda case: (case.domain, case.operator, case.since_version, case.dtype)):
        same = list(group)
        yield from same
        for number in range(2, rounds + 1):
            yield from (replace(case, sample=f"{case.sample}_again{number}") for case in same)
