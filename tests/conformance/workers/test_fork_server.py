"""Workers that a fork server forks: they are as good as new ones, and the fork server is nobody's problem."""

from __future__ import annotations

import os
import queue
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import psutil
import pytest

from epcheck.conformance.records.record import Record
from epcheck.conformance.records.terms import PASS
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.workers import confinement
from epcheck.conformance.workers import process as worker_process
from epcheck.conformance.workers.client import TargetDown
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import Event, FrameReceived, ProcessExited, WorkerProcess
from tests.conformance.small_cases import backend, identities, own_workers, records_of

pytestmark = [pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork"), pytest.mark.slow]

RIGHT = backend("right")


@pytest.fixture
def idle_workers() -> Iterator[IdleWorkers]:
    with closing(IdleWorkers(keep=4)) as workers:
        yield workers


def ready(idle_workers: IdleWorkers) -> tuple[WorkerProcess, queue.SimpleQueue[Event]]:
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    process = idle_workers.take(RIGHT, events)
    assert isinstance(events.get(timeout=20), FrameReceived)
    while not process.process.is_forked:  # the fork server reports it at its leisure
        time.sleep(0.01)
    return process, events


def parent_of(process: WorkerProcess) -> psutil.Process:
    parent = psutil.Process(process.process.pid).parent()
    assert parent is not None
    return parent


def test_the_workers_of_a_target_come_from_one_fork_server(idle_workers: IdleWorkers) -> None:
    (first, _), (second, _) = ready(idle_workers), ready(idle_workers)
    assert first.process.pid != second.process.pid
    assert parent_of(first) == parent_of(second)
    assert parent_of(first).parent() == psutil.Process()
    for process in (first, second):
        process.close()


def test_one_that_is_killed_says_how_it_ended_and_the_next_is_its_sibling(idle_workers: IdleWorkers) -> None:
    process, events = ready(idle_workers)
    fork_server = parent_of(process)
    psutil.Process(process.process.pid).kill()
    assert events.get(timeout=10) == ProcessExited(process, -9)
    another, _ = ready(idle_workers)
    assert parent_of(another) == fork_server
    another.close()


def test_workers_end_with_their_fork_server_and_another_takes_its_place(idle_workers: IdleWorkers) -> None:
    process, events = ready(idle_workers)
    fork_server = parent_of(process)
    fork_server.kill()
    ended = events.get(timeout=10)
    assert isinstance(ended, ProcessExited)
    another, _ = ready(idle_workers)
    assert parent_of(another) != fork_server
    another.close()


def test_a_fork_server_that_is_stopped_is_ended_all_the_same(
    idle_workers: IdleWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "DYING_S", 1.0)
    process, _ = ready(idle_workers)
    server = parent_of(process)
    server.suspend()
    process.kill("it is a test")  # its end is reported by nobody
    process.wait()
    assert not server.is_running()
    assert own_workers() == []


def test_closing_does_not_wait_for_a_fork_server_that_is_stopped() -> None:
    with closing(IdleWorkers(keep=4)) as workers:
        process, _ = ready(workers)
        server = parent_of(process)
        process.close()
        server.suspend()
        began = time.monotonic()
    assert time.monotonic() - began < 10
    assert not server.is_running()


def test_a_target_that_does_not_fork_is_started_from_scratch(idle_workers: IdleWorkers) -> None:
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    process = idle_workers.take(replace(RIGHT, forks=False), events)
    assert isinstance(events.get(timeout=20), FrameReceived)
    assert parent_of(process) == psutil.Process()
    process.close()


@pytest.mark.skipif(sys.platform != "linux", reason="Linux adopts orphans")
@pytest.mark.parametrize("level", ["", "landlock"])
def test_what_a_worker_leaves_ends_with_it_and_its_fork_server_goes_on(
    idle_workers: IdleWorkers, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    name = f"left-by-a-worker-{os.getpid()}-{level}"
    monkeypatch.setenv("NAME_OF_A_TEST", name)
    monkeypatch.setenv(confinement.SWITCH, level)
    target = backend("leaves_processes", jail=True)
    found: list[Record] = []
    run_plan(Plan(identities(1), (target,)), found.append, idle_workers=idle_workers)
    assert [record.status for record in found] == [PASS]
    (worker,) = own_workers()
    fork_server = worker.parent()
    assert fork_server is not None
    left = [process for process in psutil.process_iter(["cmdline"]) if name in (process.info["cmdline"] or ())]
    assert len(left) > 1
    worker.kill()
    gone, alive = psutil.wait_procs(left, timeout=5)
    assert (len(gone), alive) == (len(left), [])
    assert fork_server.is_running()


def test_what_fails_to_import_is_reported_as_ever() -> None:
    with pytest.raises(TargetDown, match="it said: ModuleNotFoundError: No module named 'no_such_backend'"):
        records_of(identities(1), replace(RIGHT, arguments=("python:no_such_backend:right",)))


def test_a_module_that_runs_threads_is_not_forked() -> None:
    threaded = backend("right", "threaded_backend", jobs=2, deadline_s=10.0)
    found: list[Record] = []
    run_plan(Plan(identities(200), (threaded,), jobs=2), found.append)
    assert [record.status for record in found] == [PASS] * 200


def test_forked_workers_of_the_cpu_provider_run_their_sessions() -> None:
    cases = [replace(case) for case in identities(3)]
    assert {record.status for record in records_of(cases, resolve("cpu")).values()} == {PASS}
    assert own_workers() == []


def test_closing_leaves_nothing_behind() -> None:
    with closing(IdleWorkers(keep=2)) as workers:
        process, _ = ready(workers)
        fork_server = parent_of(process)
        workers.give(process)
    deadline = time.monotonic() + 5
    while fork_server.is_running() and fork_server.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not fork_server.is_running() or fork_server.status() == psutil.STATUS_ZOMBIE
    assert own_workers() == []


def test_an_interpreter_that_ends_at_once_is_said_in_words() -> None:
    target = replace(RIGHT, command=("/bin/false",))
    for _ in range(20):  # whether its end is heard before or after the first worker is asked for is chance
        with pytest.raises(TargetDown, match="exit code 1"):
            run_plan(Plan(identities(1), (target,)), lambda _record: None)
