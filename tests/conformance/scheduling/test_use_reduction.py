"""A use that differs is reduced to the least that does: without a process, by what each extent gives."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.records.outcome import CRASHED, DONE, FAILED, Outcome
from epcheck.conformance.scheduling import use_reduction
from epcheck.conformance.scheduling.use_reduction import Reduction, reduce_use, whole_extent
from epcheck.conformance.targets.target import Target
from epcheck.conformance.targets.variants import variant_of
from epcheck.conformance.workers.program.backends.uses import FOUND, Extent
from tests.conformance.small_cases import identity

CANDIDATE = Target("candidate", ("python",), ("onnxruntime",))
CASE = prepared_case.of(identity("a").build())
RIGHT = Outcome(DONE, outputs={"y": np.array([-1.0, 0.0], np.float32)})
WRONG = Outcome(DONE, outputs={"y": np.array([-1.0, 5.0], np.float32)})
CRASH = Outcome(CRASHED, message="killed by SIGSEGV")


def found(words: str) -> Outcome:
    return Outcome(FAILED, "run", FOUND + words)


def reduced(use: str, give: Callable[[Extent], Outcome], plain: Outcome = RIGHT, seconds: float = 60.0) -> Reduction:
    """give: what a run of an extent of the use gives."""

    def run(target: Target) -> Outcome:
        if not target.variant:
            return plain
        return give(replace(whole_extent(use), **target.request_defaults["extent"]))

    return reduce_use(CASE, variant_of(CANDIDATE, use), CANDIDATE, run, seconds)


def test_threads_sessions_runs_and_large_feeds_that_it_does_not_need_are_left_out() -> None:
    outcomes = itertools.cycle([CRASH, WRONG, found("4 threads at once: other feeds give other values")])
    result = reduced("threads=4", lambda extent: next(outcomes) if extent.threads >= 2 else RIGHT)
    assert result.least.extent == Extent(threads=2)
    assert result.describe()[1:] == (
        "reduced to 2 threads, 1 session, 1 run, its own feeds: wrong in 10 of 10 runs",
        "with 1 thread: wrong in 0 of 5 runs",
    )
    assert result.describe()[0].startswith(
        "4 threads, 2 sessions, 8 runs, its own and large feeds, other values: wrong in 5 of 5 runs: "
    )
    applied = result.apply(variant_of(CANDIDATE, "threads=4")).request_defaults
    assert applied == {
        "way": "use",
        "use": "threads=4",
        "extent": {"threads": 2, "sessions": 1, "runs": 1, "others": False, "large": False, "own": True},
    }


def test_large_feeds_alone_and_other_values_stay_where_they_are_needed() -> None:
    result = reduced("threads=2", lambda e: WRONG if e.large and e.others and e.runs >= 5 and e.threads > 1 else RIGHT)
    assert result.least.extent == Extent(threads=2, runs=5, others=True, own=False, large=True)
    assert result.describe()[1:] == (
        "reduced to 2 threads, 1 session, 5 runs, large feeds, other values: wrong in 10 of 10 runs",
        "with 1 thread: wrong in 0 of 5 runs",
        "with 4 runs: wrong in 0 of 5 runs",
        "with the same values in all runs: wrong in 0 of 5 runs",
        "with its own feeds alone: wrong in 0 of 5 runs",
    )


def test_of_many_sizes_the_two_that_collide_are_left() -> None:
    ran = itertools.count()

    def give(extent: Extent) -> Outcome:
        next(ran)
        return WRONG if {7, 40} <= {*extent.sizes} else RIGHT

    result = reduced("reruns=sizes", give)
    assert result.least.extent == Extent(sizes=(7, 40))
    assert result.describe()[1] == "reduced to 2 other sizes: wrong in 10 of 10 runs"
    assert next(ran) < 150


def test_a_number_is_halved_until_the_least_is_known() -> None:
    tried: list[int] = []

    def give(extent: Extent) -> Outcome:
        tried.append(extent.sessions)
        return found(f"{extent.sessions} sessions are too many") if extent.sessions >= 24 else RIGHT

    result = reduced("lifecycle=failed", give)
    assert result.describe()[1:] == (
        "reduced to 30 sessions: wrong in 10 of 10 runs",
        "with 24 sessions: wrong in 10 of 10 runs",
        "with 23 sessions: wrong in 0 of 5 runs",
    )
    assert len(set(tried)) < 10


def test_what_is_left_behind_must_stay_the_same() -> None:
    """A few sessions leave memory also where nothing is at fault; what is looked for are the handles."""

    def give(extent: Extent) -> Outcome:
        what = "handles" if extent.sessions >= 8 else "bytes of memory"
        return found(f"{extent.sessions} sessions that were released leave 1,000 {what}")

    result = reduced("lifecycle=repeated", give)
    assert (result.least.extent.sessions, result.smaller[0].extent.sessions) == (10, 8)


@pytest.mark.parametrize(
    ("wrong", "full", "least"),
    [(0, (0, 5), (0, 5)), (2, (4, 10), (4, 10)), (3, (6, 10), (6, 10)), (4, (8, 10), (8, 10))],
)
def test_what_is_wrong_now_and_then_is_reduced_only_if_it_mostly_is(
    wrong: int, full: tuple[int, int], least: tuple[int, int]
) -> None:
    """wrong: of five runs of every extent."""
    outcomes: dict[Extent, Iterator[Outcome]] = {}

    def give(extent: Extent) -> Outcome:
        return next(outcomes.setdefault(extent, itertools.cycle([RIGHT] * (5 - wrong) + [WRONG] * wrong)))

    result = reduced("threads=first", give)
    assert (result.full.wrong, result.full.runs) == full
    assert (result.least.wrong, result.least.runs) == least
    assert (result.least.extent == Extent()) == (wrong > 2)
    assert result.why == ("" if wrong > 2 else "not reduced: no more than half of the runs of the whole use are wrong")


def test_nothing_is_reduced_after_its_time_or_where_the_plain_run_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    now = itertools.count(0.0, 10.0)
    monkeypatch.setattr(use_reduction.time, "monotonic", lambda: next(now))
    late = reduced("threads=4", lambda _extent: WRONG, seconds=100.0)
    assert late.full.count == "wrong in 5 of 5 runs"
    assert late.least.extent != Extent()
    assert late.describe()[-1] == "not reduced further: 100 s are over"
    wrong = reduced("threads=4", lambda _extent: WRONG, plain=WRONG)
    assert wrong.describe()[-1] == "not reduced: the plain run is not right (mismatch)"
    assert wrong.least.extent == whole_extent("threads=4")


def test_a_use_without_parts_is_run_and_stays_as_it_is() -> None:
    result = reduced("lifecycle=order", lambda _extent: CRASH)
    assert result.describe() == ("nothing of it can be left out: wrong in 5 of 5 runs: crash: killed by SIGSEGV",)
    assert result.apply(variant_of(CANDIDATE, "lifecycle=order")).request_defaults["extent"] == {}


def test_what_was_wrong_by_chance_is_taken_back() -> None:
    """One thread alone is wrong five times, and then no more."""
    ran = itertools.count()

    def give(extent: Extent) -> Outcome:
        return WRONG if extent.threads > 1 or next(ran) < 5 else RIGHT

    result = reduced("threads=first", give)
    assert result.least.extent == Extent(threads=2)
    assert result.describe()[1:] == (
        "reduced to 2 threads, 1 session: wrong in 10 of 10 runs",
        "with 1 thread: wrong in 5 of 10 runs",
    )


def test_beside_the_creation_of_others_its_own_feeds_stand_for_large_ones() -> None:
    result = reduced("threads=creation", lambda _extent: WRONG)
    assert result.least.extent == Extent()
    assert [sentence.partition(":")[0] for sentence in result.describe()] == [
        "32 runs, large feeds", "reduced to 1 run, its own feeds",
    ]  # fmt: skip
