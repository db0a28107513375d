"""Workers are measured where that pays, kept for the run, and the number is remembered."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.record import Record
from epcheck.conformance.scheduling import run_history
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.pools import pools as pools_module
from epcheck.conformance.scheduling.pools import worker_count, worker_probe
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.scheduling.trace import Trace
from epcheck.conformance.targets.target import MEASURED, Target
from tests.conformance.small_cases import backend, identities

pytestmark = [pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals"), pytest.mark.slow]


def probed() -> list[PreparedCase]:
    return [case for case in map(prepared_case.prepare, identities(4)) if isinstance(case, PreparedCase)]


@pytest.fixture(autouse=True)
def _small_measurements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run is long enough, the machine has room for two workers, and the session is one of these backends'."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pools_module, "WORTH_MEASURING", 0)
    monkeypatch.setattr(worker_count, "most", lambda _target: 2)
    monkeypatch.setattr(worker_probe, "probe_cases", probed)
    monkeypatch.setattr(worker_probe, "MEASURE_S", 0.4)


def measured(function: str, **changes: Any) -> Target:
    return replace(
        backend(function, module="packed_backends"), name=function, **{"pack": 8, "jobs": MEASURED, **changes}
    )


def run(target: Target, path: Path | None = None, **further: Any) -> tuple[list[str], int]:
    """What a run of 160 cases says, and how many workers it started."""
    taken: list[Record] = []
    sentences: list[str] = []
    trace = Trace()
    with closing(Cache(path)) as kept:
        plan = Plan(identities(160), (target,), **further)
        run_plan(plan, taken.append, cache=kept, trace=trace, say=sentences.append)
    assert {record.status for record in taken} == {terms.PASS}
    assert len(taken) == 160
    return sentences, trace.targets()[target.name].workers


def test_a_second_worker_that_doubles_the_rate_stays() -> None:
    (sentence,), workers = run(measured("sleeps"))
    assert sentence.startswith("sleeps: 2 workers (measured: ")
    assert sentence.endswith(" sessions/s with 1, 2)")
    assert workers == 2


def test_a_second_worker_that_gains_nothing_goes() -> None:
    (sentence,), workers = run(measured("in_each_other_s_way"))
    assert sentence.startswith("in_each_other_s_way: 1 worker (measured: ")
    assert workers == 2


def test_a_second_worker_that_cannot_live_costs_the_run_nothing() -> None:
    (sentence,), _ = run(measured("alone_on_the_device"))
    assert sentence.startswith("alone_on_the_device: 1 worker (measured: ")
    assert sentence.endswith(" sessions/s with 1)")


def test_a_session_that_fails_measures_nothing_and_is_not_remembered(tmp_path: Path) -> None:
    target, path = measured("refuses_3_and_9"), tmp_path / "cache.sqlite"
    taken: list[Record] = []
    with closing(Cache(path)) as kept:
        run_plan(Plan(identities(3), (target,)), taken.append, cache=kept, say=pytest.fail)
        assert run_history.worker_rates(kept, target, worker_count.describe_machine({})) == {}
    assert [record.status for record in taken] == [terms.PASS] * 3


def refuse(*_arguments: object) -> Any:
    pytest.fail("workers were measured")


def test_the_number_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cache.sqlite"
    first, _ = run(measured("sleeps"), path)
    monkeypatch.setattr(worker_probe, "measure", refuse)
    monkeypatch.setattr(pools_module, "WORTH_MEASURING", 1_000)
    assert run(measured("sleeps"), path) == (first, 2)


def of_a_short_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools_module, "WORTH_MEASURING", 161)


def of_a_small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_count, "most", lambda _target: 1)


@pytest.mark.parametrize("reason", [of_a_short_run, of_a_small_machine])
def test_where_measuring_does_not_pay_there_is_one_worker(
    reason: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_probe, "measure", refuse)
    reason(monkeypatch)
    assert run(measured("sleeps")) == ([], 1)


def test_a_software_adapter_has_two_workers_unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_probe, "measure", refuse)
    monkeypatch.setattr(worker_count, "is_software", lambda _facts: True)
    assert run(measured("sleeps")) == ([], worker_count.ON_SOFTWARE)


@pytest.mark.parametrize(("own", "of_the_run"), [(2, None), (MEASURED, 2)])
def test_a_number_that_the_user_names_is_not_measured(
    own: int, of_the_run: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_probe, "measure", refuse)
    assert run(measured("sleeps", jobs=own), jobs=of_the_run) == ([], 2)


def test_rates_that_cannot_be_read_are_none(tmp_path: Path) -> None:
    target, machine = measured("sleeps"), {"adapter": "NVIDIA H200", "cores": "16"}
    with closing(Cache(tmp_path / "cache.sqlite")) as kept:
        for row in (b"garbage", b"7", b"[[1]]", b'[["a", 2]]'):
            kept.put({run_history._worker_rates_key(target, machine): row})
            assert run_history.worker_rates(kept, target, machine) == {}
        run_history.keep_worker_rates(kept, target, machine, {1: 374.0, 2: 492.0})
        assert list(run_history.worker_rates(kept, target, machine).items()) == [(1, 374.0), (2, 492.0)]
        assert run_history.worker_rates(kept, target, {**machine, "cores": "8"}) == {}
        assert run_history.worker_rates(kept, replace(target, provider="another"), machine) == {}


def test_the_session_that_is_measured_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    cases = worker_probe.probe_cases()
    assert len(cases) == len(worker_probe.OPERATORS) * worker_probe.OF_EACH
    assert sum(case.size_bytes for case in cases) < 1 << 20
    assert [case.case.id for case in worker_probe.probe_cases()] == [case.case.id for case in cases]
