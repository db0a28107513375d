"""Workers that outlive a run: the next one takes them, nobody else does, and `close` ends them."""

from __future__ import annotations

import os
import queue
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from epcheck import reports
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.terms import PASS
from epcheck.conformance.scheduling.plan import Facts, Plan
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import Event, FrameReceived, WorkerProcess
from epcheck.generators import suite
from tests.conformance.small_cases import backend, identities, own_workers

pytestmark = pytest.mark.slow

RIGHT = backend("right")


@pytest.fixture
def idle_workers() -> Iterator[IdleWorkers]:
    with closing(IdleWorkers(keep=2)) as workers:
        yield workers


def children() -> set[int]:
    return {worker.pid for worker in own_workers()}


def run(idle_workers: IdleWorkers, *candidates: Target, count: int = 3) -> list[Record]:
    taken: list[Record] = []
    run_plan(Plan(identities(count), candidates), taken.append, idle_workers=idle_workers)
    assert [record.status for record in taken] == [PASS] * count * len(candidates)
    return taken


def taken(idle_workers: IdleWorkers, target: Target) -> tuple[WorkerProcess, dict[str, str]]:
    """A worker of the target, and the facts of its handshake."""
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    process = idle_workers.take(target, events)
    handshake = events.get(timeout=20)
    assert isinstance(handshake, FrameReceived)
    return process, handshake.header["facts"]


def test_the_next_run_has_the_same_workers(idle_workers: IdleWorkers) -> None:
    run(idle_workers, RIGHT)
    pids = children()
    assert len(pids) == 1
    run(idle_workers, RIGHT)
    assert children() == pids


def test_the_next_test_of_a_session_has_them_too(idle_workers: IdleWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    run(idle_workers, RIGHT)
    pids = children()
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "another (call)")
    run(idle_workers, RIGHT)
    assert children() == pids


def test_every_run_gets_the_facts(idle_workers: IdleWorkers) -> None:
    facts: list[Facts] = []
    for _ in range(2):
        run_plan(Plan(identities(1), (RIGHT,)), lambda _record: None, facts.append, idle_workers=idle_workers)
    assert facts[0] == facts[1]
    assert facts[0][RIGHT.name]["function"] == "faulty_backends:right"


def test_candidate_and_baseline_of_one_environment_share_their_workers(idle_workers: IdleWorkers) -> None:
    """Provider and options travel with every request, so a worker of the one can serve the other."""
    cases = list(suite.cases(["Slice"], ["float32"], limit=4))
    cpu = resolve("cpu")
    for plan in (Plan(cases, (cpu,)), Plan(cases, (replace(cpu, name="baseline", pack=1),))):
        run_plan(plan, lambda _record: None, idle_workers=idle_workers)
    assert len(children()) == 1


def test_without_them_no_worker_outlives_its_run() -> None:
    run(IdleWorkers(), RIGHT)
    assert children() == set()


def test_closing_ends_all_of_them(idle_workers: IdleWorkers) -> None:
    run(idle_workers, RIGHT, replace(RIGHT, name="another"))
    assert len(children()) == 2
    idle_workers.close()
    assert children() == set()


def test_no_more_are_kept_than_was_asked_for() -> None:
    with closing(IdleWorkers(keep=1)) as idle_workers:
        run(idle_workers, RIGHT, replace(RIGHT, name="another"))
        assert len(children()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_one_that_died_is_replaced_and_takes_nobody_s_place() -> None:
    with closing(IdleWorkers(keep=1)) as idle_workers:
        run(idle_workers, RIGHT)
        (dead,) = own_workers()
        dead.kill()
        psutil.wait_procs([dead], timeout=10)
        run(idle_workers, RIGHT)
        pids = children()
        assert len(pids) == 1
        assert dead.pid not in pids
        run(idle_workers, RIGHT)
        assert children() == pids


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_one_that_crashed_or_hangs_is_not_kept(idle_workers: IdleWorkers) -> None:
    aborts = backend("aborts_always")
    found: list[Record] = []
    run_plan(Plan(identities(1), (aborts,)), found.append, idle_workers=idle_workers)
    assert [record.status for record in found] == ["crash"]
    assert children() == set()


def test_none_is_kept_of_a_run_that_fails(idle_workers: IdleWorkers) -> None:
    def full(_record: Record) -> None:
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        run_plan(Plan(identities(3), (RIGHT,)), full, idle_workers=idle_workers)
    assert children() == set()


@pytest.mark.parametrize("other", ["arguments", "environment", "interpreter", "worker program"])
def test_a_worker_serves_no_other_target(idle_workers: IdleWorkers, other: str, tmp_path: Path) -> None:
    copy = shutil.copytree(Path(RIGHT.worker).parent, tmp_path / "program") / "worker.py"
    others = {
        "arguments": replace(RIGHT, arguments=(*RIGHT.arguments, "--path", str(tmp_path))),
        "environment": replace(RIGHT, environment={**os.environ, "OMP_NUM_THREADS": "3"}),
        "interpreter": replace(RIGHT, command=(*RIGHT.command, "-B")),
        "worker program": replace(RIGHT, worker=str(copy)),
    }
    process, _ = taken(idle_workers, RIGHT)
    idle_workers.give(process)
    another = idle_workers.take(others[other], queue.SimpleQueue())
    assert another is not process
    another.close()
    again, _ = taken(idle_workers, RIGHT)
    assert again is process
    idle_workers.give(again)


@pytest.mark.parametrize("change", ["environment", "folder"])
def test_a_worker_serves_no_run_whose_own_surroundings_are_others(
    idle_workers: IdleWorkers, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A target without an environment has that of this process, as it is when the worker is started."""
    process, _ = taken(idle_workers, RIGHT)
    idle_workers.give(process)
    if change == "environment":
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
    else:
        monkeypatch.chdir(tmp_path)
    another, _ = taken(idle_workers, RIGHT)
    assert another is not process
    another.close()


def test_the_example_of_the_documentation_runs_twice_on_the_same_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pids: list[int] = []
    started = WorkerProcess.__init__

    def noted(process: WorkerProcess, *arguments: Any) -> None:
        started(process, *arguments)
        pids.append(process.process.pid)

    monkeypatch.setattr(WorkerProcess, "__init__", noted)
    text = (Path(__file__).parents[3] / "docs" / "speed.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(example, {})
    runs = [reports.read_run(folder) for folder in (tmp_path / "epcheck-runs").iterdir() if folder.is_dir()]
    assert [run.status for run in runs] == ["complete", "complete"]
    assert (
        len(pids) <= 3
    )  # cpu, the reference, and a second cpu that confirms what fails; without idle workers twice that
    assert children() == set()
