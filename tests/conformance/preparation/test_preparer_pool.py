"""Cases on their way to being prepared come out the same, whoever prepares them and whatever happens to a preparer."""

from __future__ import annotations

import contextlib
import pickle
import queue
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.cache.row_groups import RowGroups, group_of
from epcheck.conformance.preparation import prepared_case, preparer_pool
from epcheck.conformance.preparation.prepared_case import PreparedCase, PreparedRow, UnbuiltCase
from epcheck.conformance.preparation.preparer_pool import PreparerPool
from epcheck.conformance.records.record import Record
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.targets.target import MEBIBYTE
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import Event
from epcheck.generators import registry, suite
from epcheck.generators.array import Array
from epcheck.generators.case import Case
from epcheck.generators.harvested.harvested_node import HarvestedInput, HarvestedNode
from epcheck.generators.sources.harvested import case_of
from tests.conformance.small_cases import backend, identities, identity, own_workers

CHUNK, WORTH_PREPARERS = 16, 64
"""Smaller than they are, so that a few cases will do."""

pytestmark = pytest.mark.slow

OWN = list(suite.cases(["Slice"], limit=WORTH_PREPARERS + 2 * CHUNK))
UNBUILDABLE = [replace(case, dtype="float33") for case in OWN]
"""The suite's own cases, as if ONNX had a dtype that numpy has not."""

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")


class Driver:
    """A pool and the loop around it. Nothing is prepared here while a preparer could do it."""

    def __init__(self, cache: Cache, preparers: int, idle_workers: IdleWorkers) -> None:
        self.event_s = 60.0
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.pool = PreparerPool(cache, self.events, idle_workers, preparers)

    def run(
        self, cases: Collection[Case], meanwhile: Callable[[], None] = lambda: None
    ) -> dict[str, PreparedCase | UnbuiltCase]:
        """Case id -> what came out. meanwhile: what happens before each event."""
        for case in cases:
            self.pool.add(case)
        self.pool.look_up()
        while len(self.pool.ready) < len(cases):
            self.pool.advance()
            if not self.pool._preparers:
                assert self.pool.has_work, "cases were lost"
                self.pool.prepare_some()
                continue
            meanwhile()
            self.pool.listen(True)
            with contextlib.suppress(queue.Empty):
                event = self.events.get(timeout=self.event_s)
                if self.pool.owns(event):
                    self.pool.handle(event)
        assert not self.pool.has_work
        return {case.case.id: case for case in self.pool.ready}


@contextmanager
def driver(preparers: int = 1, path: Path | None = None) -> Iterator[Driver]:
    with closing(Cache(path)) as cache, closing(IdleWorkers()) as idle_workers:
        running = Driver(cache, preparers, idle_workers)
        yield running
        running.pool.close()
    assert own_workers() == []


@pytest.fixture(autouse=True)
def _a_few_cases_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparer_pool, "CHUNK", CHUNK)
    monkeypatch.setattr(preparer_pool, "WORTH_PREPARERS", WORTH_PREPARERS)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the cases that are prepared in this process."""
    ids: list[str] = []
    original = prepared_case.prepare

    def noted(case: Case) -> PreparedCase | UnbuiltCase:
        ids.append(case.id)
        return original(case)

    monkeypatch.setattr(prepared_case, "prepare", noted)
    return ids


@pytest.fixture(scope="module")
def expected() -> dict[str, PreparedCase | UnbuiltCase]:
    return {case.id: prepared_case.prepare(case) for case in OWN}


def op_types(pool: PreparerPool) -> list[str]:
    """Of the cases that are ready and could be built."""
    return [case.op_type for case in pool.ready if isinstance(case, PreparedCase)]


@pytest.mark.parametrize("preparers", [1, 2])
def test_preparers_give_the_same_as_here(
    preparers: int, expected: dict[str, PreparedCase | UnbuiltCase], here: list[str]
) -> None:
    with driver(preparers) as running:
        assert running.run(OWN) == expected
    assert len(here) <= CHUNK


def test_a_few_cases_are_not_worth_a_preparer(here: list[str]) -> None:
    few = OWN[: WORTH_PREPARERS - 1]
    with driver() as running:
        assert running.run(few).keys() == {case.id for case in few}
    assert len(here) == len(few)


@posix
def test_a_preparer_that_dies_costs_nothing(expected: dict[str, PreparedCase | UnbuiltCase]) -> None:
    killed: list[int] = []

    def kill_the_first() -> None:
        if not killed:
            while not (preparers := own_workers()):
                time.sleep(0.01)
            killed.append(preparers[0].pid)
            preparers[0].kill()

    with driver() as running:
        assert running.run(OWN, kill_the_first) == expected
    assert len(killed) == 1


@posix
def test_a_preparer_that_dies_while_another_works_costs_nothing(
    expected: dict[str, PreparedCase | UnbuiltCase],
) -> None:
    killed: list[int] = []

    def kill_one_of_two() -> None:
        if not killed and len(own_workers()) == 2:
            killed.append(own_workers()[0].pid)
            own_workers()[0].kill()

    with driver(preparers=2) as running:
        assert running.run(OWN, kill_one_of_two) == expected
    assert len(killed) == 1


@posix
def test_preparers_that_die_after_an_answer_leave_their_work_to_this_process(
    expected: dict[str, PreparedCase | UnbuiltCase],
) -> None:
    killed: list[int] = []

    def kill_all_after_an_answer() -> None:
        if running.pool.ready and not killed:
            assert not running.pool.has_work  # the preparers have it
            for preparer in own_workers():
                killed.append(preparer.pid)
                preparer.kill()

    with driver(preparers=2) as running:
        assert running.run(OWN, kill_all_after_an_answer) == expected
    assert killed


@posix
def test_a_preparer_that_is_stopped_costs_its_deadline(
    expected: dict[str, PreparedCase | UnbuiltCase], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparer_pool, "DEADLINE_S", 3.0)
    stopped: list[int] = []

    def stop_all() -> None:
        if not stopped:
            while not (preparers := own_workers()):
                time.sleep(0.01)
            for preparer in preparers:
                stopped.append(preparer.pid)
                preparer.suspend()
        running.pool.watch()

    with driver() as running:
        running.event_s = 0.2
        assert running.run(OWN, stop_all) == expected
    assert stopped


def test_a_preparer_that_cannot_start_costs_nothing(
    expected: dict[str, PreparedCase | UnbuiltCase], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparer_pool, "PREPARER", replace(preparer_pool.PREPARER, arguments=("python:nothing:here",)))
    with driver() as running:
        assert running.run(OWN) == expected


def test_a_preparer_whose_answer_is_no_row_is_asked_no_more_of_those_cases(
    expected: dict[str, PreparedCase | UnbuiltCase], here: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    original, refused = prepared_case.from_row, list[str]()

    def not_the_first(case: Case, row: bytes) -> PreparedCase:
        if len(refused) < CHUNK:
            refused.append(case.id)
            raise ValueError("not a prepared case")
        return original(case, row)

    monkeypatch.setattr(prepared_case, "from_row", not_the_first)
    with driver() as running:
        assert running.run(OWN) == expected
    assert set(refused) <= set(here)
    assert len(here) == len(set(here))


def test_a_generator_that_raises_in_a_preparer_gives_the_same_words(here: list[str]) -> None:
    with driver() as running:
        prepared = running.run(UNBUILDABLE)
    by_preparer = next(case for case in UNBUILDABLE if case.id not in here)
    found = prepared[by_preparer.id]
    assert isinstance(found, UnbuiltCase)
    assert found.why == "the case cannot be built: TypeError: data type 'float33' not understood"
    assert "in _build" in found.log
    assert found == prepared_case.prepare(by_preparer)


def test_cases_that_are_not_the_suite_s_stay_here_and_are_not_kept(tmp_path: Path, here: list[str]) -> None:
    """They may be made by code that changes without a change of their names."""
    foreign = identities(WORTH_PREPARERS + CHUNK)
    with driver(path=tmp_path / "cache.sqlite") as running:
        running.run(foreign, lambda: pytest.fail("a preparer was asked"))
    assert len(here) == len(foreign)
    with closing(Cache(tmp_path / "cache.sqlite")) as kept:
        assert kept.entries() == 0


def test_preparers_are_sent_the_suite_s_own_cases_among_others(
    tmp_path: Path, here: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, original = list[Case](), preparer_pool._request

    def noted(chunk: tuple[Case, ...]) -> list[bytes]:
        sent.extend(chunk)
        return original(chunk)

    monkeypatch.setattr(preparer_pool, "_request", noted)
    mixed = [case for pair in zip(OWN, identities(len(OWN)), strict=True) for case in pair]
    with driver(path=tmp_path / "cache.sqlite") as running:
        assert len(running.run(mixed)) == len(mixed)
    assert sent
    assert {case.operator for case in sent} == {"Slice"}
    assert sorted([case.id for case in sent] + here) == sorted(case.id for case in mixed)
    with closing(Cache(tmp_path / "cache.sqlite")) as kept:
        groups = RowGroups(kept, "prepared", str, PreparedRow).of({group_of(case) for case in mixed})
    assert sorted(case_id for rows in groups.values() for case_id in rows) == sorted(case.id for case in OWN)


def test_a_case_of_the_suite_s_name_that_somebody_else_builds_is_not_taken_from_the_cache(tmp_path: Path) -> None:
    own = OWN[0]
    other = replace(own, builder=lambda case: replace(identity("other").build(), case=case))
    with driver(0, tmp_path / "cache.sqlite") as running:
        running.run([own])
    with driver(0, tmp_path / "cache.sqlite") as running:
        for case in (own, other):
            running.pool.add(case)
        running.pool.look_up()
        assert op_types(running.pool) == ["Slice"]
        running.pool.prepare_some()
        assert op_types(running.pool) == [
            "Slice",
            "Identity",
        ]


def test_an_operator_with_samples_of_somebody_else_is_not_the_suite_s() -> None:
    operator = registry.all_operators()["Slice"]
    assert suite.is_own(next(operator.cases()))
    assert not suite.is_own(next(replace(operator, samples=lambda: operator.samples()).cases()))


def test_cases_that_cannot_be_sent_are_prepared_here(here: list[str]) -> None:
    """As of an operator that is made of lambdas."""
    operator = registry.all_operators()["Slice"]
    truth = lambda node: operator.truth(node)  # noqa: E731
    truth.__module__ = operator.truth.__module__
    cases = list(replace(operator, truth=truth).cases())[: WORTH_PREPARERS + CHUNK]
    assert suite.is_own(cases[0])
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(cases[0])
    with driver() as running:
        assert len(running.run(cases)) == len(cases)
    assert len(here) == len(cases)


def test_what_was_prepared_is_found_the_next_time(
    tmp_path: Path, expected: dict[str, PreparedCase | UnbuiltCase], here: list[str]
) -> None:
    for prepared_here in (True, False):
        here.clear()
        with driver(path=tmp_path / "cache.sqlite") as running:
            assert running.run(OWN) == expected
        assert bool(here) == prepared_here


@pytest.mark.parametrize("damaged", [b"garbage", ((), "", ()), None])
def test_the_group_of_a_damaged_row_is_prepared_again_and_replaced(
    tmp_path: Path, here: list[str], damaged: Any
) -> None:
    path, (first, second) = tmp_path / "cache.sqlite", OWN[:2]
    right = {case.id: prepared_case.to_row(prepared_case.of(case.build())) for case in (first, second)}
    with closing(Cache(path)) as kept:
        rows = RowGroups(kept, "prepared", str, PreparedRow)
        for case in (first, second):
            rows.put(group_of(case), case.id, damaged if case is first else right[case.id])
        rows.write()
    with driver(path=path) as running:
        assert running.run([first, second])[first.id] == prepared_case.of(first.build())
    assert sorted(here) == sorted([first.id, second.id])
    with closing(Cache(path)) as kept:
        assert RowGroups(kept, "prepared", str, PreparedRow).of([group_of(first)]) == {group_of(first): right}


def test_preparers_stay_warm_with_the_other_workers() -> None:
    with closing(IdleWorkers(keep=2)) as idle_workers, closing(Cache(None)) as cache:
        pids = []
        for _ in range(2):
            running = Driver(cache, 1, idle_workers)
            running.run(OWN)
            running.pool.close()
            pids.append([child.pid for child in own_workers()])
    assert pids[0] == pids[1] != []


def test_a_run_that_fails_ends_its_preparers_at_work_and_idle() -> None:
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    with closing(IdleWorkers(keep=2)) as idle_workers:
        preparing = PreparerPool(Cache(None), events, idle_workers, 2)
        for case in OWN:
            preparing.add(case)
        preparing.look_up()
        preparing.advance()
        preparing.advance()
        while not preparing._idle:
            preparing.handle(events.get(timeout=60))
        assert (len(preparing._idle), len(preparing._preparers), len(own_workers())) == (1, 1, 2)
        preparing.kill()
        assert own_workers() == []


def test_a_sink_that_fails_leaves_no_preparer() -> None:
    def full(_record: Record) -> None:
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        run_plan(Plan(OWN, (backend("right"),), jobs=3), full)
    assert own_workers() == []


def test_cases_that_take_long_are_prepared_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = PreparerPool(Cache(None), queue.SimpleQueue(), IdleWorkers(), 0)
    for case in OWN[:9]:
        pool.add(case)
    pool.look_up()
    quick = prepared_case.prepare

    def slow(case: Case) -> PreparedCase | UnbuiltCase:
        time.sleep(2 * preparer_pool.SLOW_S)
        return quick(case)

    monkeypatch.setattr(prepared_case, "prepare", slow)
    monkeypatch.setattr(preparer_pool, "SLICE_S", preparer_pool.SLOW_S)
    pool.prepare_some()
    assert (len(pool.ready), pool.is_slow) == (1, True)
    monkeypatch.setattr(prepared_case, "prepare", quick)
    monkeypatch.setattr(preparer_pool, "SLICE_S", 60.0)
    monkeypatch.setattr(preparer_pool, "SLOW_S", 60.0)
    pool.prepare_some()
    assert (len(pool.ready), pool.is_slow) == (9, False)


def harvested(op_type: str, version: int, output: str, **values: Array) -> Case:
    """A case of a folder of harvested nodes."""
    inputs = tuple(HarvestedInput(name, "int64", value.shape, value, True) for name, value in values.items())
    node = HarvestedNode(op_type, "", version, ("int64",), inputs, (output,), {}, {"a.onnx": 1})
    return case_of(node, registry.all_operators()[op_type], Path("harvested"))


RANGE = harvested("Range", 11, "output", start=np.array(0), limit=np.array(1 << 62), delta=np.array(1))
"""Its output would have 2^62 elements."""
EXPAND = harvested("Expand", 13, "output", input=np.array([1]), shape=np.array([1 << 28]))
"""Its output has 2 GiB, and nothing of it is quick."""
ADD = harvested("Add", 14, "C", A=np.array([1]), B=np.array([2]))


def test_a_stranger_s_case_that_takes_too_much_memory_costs_itself_alone(
    here: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is prepared in a jailed process; ours does not grow."""
    monkeypatch.setattr(preparer_pool, "PREPARER", replace(preparer_pool.PREPARER, memory_bytes=700 * MEBIBYTE))
    most = psutil.Process().memory_info().rss + 200 * MEBIBYTE
    with driver(path=tmp_path / "cache.sqlite") as running:
        running.event_s = 0.02

        def watch() -> None:
            running.pool.watch()
            assert psutil.Process().memory_info().rss < most

        prepared = running.run([ADD, EXPAND], watch)
    lost = prepared[EXPAND.id]
    assert isinstance(lost, UnbuiltCase)
    assert lost.why == "the case cannot be built: it took more than 700 MiB of memory"
    assert prepared[ADD.id] == prepared_case.of(ADD.build())
    assert here == []
    with closing(Cache(tmp_path / "cache.sqlite")) as kept:
        assert kept.entries() == 0
    assert preparer_pool.PREPARER.is_jailed


@posix
def test_a_stranger_s_case_that_takes_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparer_pool, "DEADLINE_S", 3.0)
    with driver() as running:
        running.event_s = 0.1
        (lost,) = running.run([RANGE], running.pool.watch).values()
    assert isinstance(lost, UnbuiltCase)
    assert lost.why in ("the case cannot be built: it took more than 3 s",
                        "the case cannot be built: it took more than 2,048 MiB of memory")  # fmt: skip
