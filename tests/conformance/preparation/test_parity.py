"""However a run is made faster, its records are the same: cold and warm cache, one worker or two, packed or not."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.records import record, terms
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.record import Record
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.generators.case import Case
from tests.whole_suite import whole_suite

pytestmark = pytest.mark.slow  # each test is a run of hundreds of cases

CPU = replace(resolve("cpu"), expectations=())
"""With nothing to predict what fails: that has to be found."""


@cache
def cases() -> tuple[Case, ...]:
    """Some of everything."""
    return tuple(case for case in whole_suite() if zlib.crc32(case.id.encode()) % 137 == 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parity")


@pytest.fixture(scope="module")
def idle_workers() -> Iterator[IdleWorkers]:
    with closing(IdleWorkers(keep=8)) as workers:
        yield workers


def run(cache: Path | None, idle_workers: IdleWorkers, **further: Any) -> dict[str, Record]:
    """Case id -> record."""
    taken: list[Record] = []
    plan = Plan(cases(), (CPU,), resolve("reference"), resolve("reference"), **further)
    with closing(Cache(cache)) as kept:
        run_plan(plan, taken.append, cache=kept, idle_workers=idle_workers)
    assert len(taken) == len(cases())
    return {r.case_id: r for r in taken}


def timeless(opinion: Opinion) -> Opinion:
    """Without what varies with the machine's load, with where a buffer lies, which moves the last bits of sums, and
    with what a session was shared. Nodes that a function becomes are merged or not by what stands beside them, so of
    the assignment it is told which operators went to which provider."""
    assignment = opinion.assignment and tuple(sorted(set(opinion.assignment)))
    return replace(
        opinion, create_s=None, run_s=None, shared=1, remembered=False, accuracy=None, attempts=1, assignment=assignment
    )


def as_told(found: dict[str, Record]) -> dict[str, str]:
    """The records as they are stored, without the times and with whom a session was shared."""
    return {
        case_id: record.encode(
            replace(r, candidate=timeless(r.candidate), baseline=r.baseline and timeless(r.baseline))
        )
        for case_id, r in found.items()
    }


@pytest.fixture(scope="module")
def cold(folder: Path, idle_workers: IdleWorkers) -> dict[str, Record]:
    """The run that the others are compared with: one worker, packed, nothing in the cache."""
    return run(folder / "cache.sqlite", idle_workers, jobs=1)


def test_the_run_is_worth_comparing(cold: dict[str, Record]) -> None:
    assert len(cold) > 500
    assert {r.status for r in cold.values()} >= {terms.PASS, terms.MISMATCH, terms.UNPLACED}
    assert {r.candidate.attempts for r in cold.values()} >= {1, 2}
    assert sum(r.candidate.shared > 1 for r in cold.values()) > 300
    asked = [r for r in cold.values() if r.status != terms.UNPLACED]
    assert not any(r.baseline is None or r.baseline.remembered for r in asked)


def test_a_warm_cache_changes_no_record(folder: Path, idle_workers: IdleWorkers, cold: dict[str, Record]) -> None:
    again = run(folder / "cache.sqlite", idle_workers, jobs=1)
    assert as_told(again) == as_told(cold)
    steady = [r.baseline.remembered for r in again.values() if r.baseline is not None]
    assert sum(steady) > 0.99 * len(steady)


def test_no_cache_changes_no_record(idle_workers: IdleWorkers, cold: dict[str, Record]) -> None:
    assert as_told(run(None, idle_workers, jobs=1)) == as_told(cold)


def test_two_workers_change_no_record(folder: Path, idle_workers: IdleWorkers, cold: dict[str, Record]) -> None:
    assert as_told(run(folder / "two.sqlite", idle_workers, jobs=2)) == as_told(cold)


def test_sessions_of_one_case_change_no_record(
    folder: Path, idle_workers: IdleWorkers, cold: dict[str, Record]
) -> None:
    apart = run(folder / "apart.sqlite", idle_workers, jobs=1, pack=False)
    assert as_told(apart) == as_told(cold)
    assert {r.candidate.shared for r in apart.values()} == {1}


def test_all_of_it_together_changes_no_record(folder: Path, idle_workers: IdleWorkers, cold: dict[str, Record]) -> None:
    assert as_told(run(folder / "cache.sqlite", idle_workers, jobs=2)) == as_told(cold)
