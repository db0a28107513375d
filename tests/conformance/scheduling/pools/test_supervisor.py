"""Workers that do not start, fail the handshake or speak another protocol: the target is down, with a reason."""

from __future__ import annotations

import contextlib
import queue
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.records.outcome import CRASHED, DONE, FAILED, Outcome
from epcheck.conformance.scheduling.case_scheduler import CaseScheduler
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.pools.pool import Pool
from epcheck.conformance.scheduling.pools.supervisor import Job
from epcheck.conformance.targets.target import Target
from epcheck.conformance.targets.variants import variant_of
from epcheck.conformance.workers.client import STARTS, TargetDown
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import Event
from tests.conformance.small_cases import HERE, backend, identity, processes_with


def misbehaving(mode: str, **changes: Any) -> Target:
    return Target("odd", (sys.executable,), (mode,), worker=str(HERE / "faulty_worker.py"), **changes)


@contextlib.contextmanager
def started(*targets: Target) -> Iterator[None]:
    """A session whose targets have all answered the handshake."""
    with CaseScheduler(Plan((), targets), lambda _record: None) as session:
        while not session.ready:
            session.turn(more=True)
        yield


def why_down(target: Target) -> str:
    with pytest.raises(TargetDown) as caught, started(target):
        pass
    assert processes_with("faulty_worker.py") == []
    return str(caught.value)


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("of_the_future", "its worker speaks protocol 4, this epcheck 3"),
        ("of_no_version", "its worker speaks protocol None, this epcheck 3"),
        ("without_facts", "its worker does not start: its worker sent a malformed handshake"),
        ("with_odd_facts", "its worker does not start: its worker sent a malformed handshake"),
        ("exits", "its worker does not start: the worker process ended: exit code 5; "
                  "it said: ImportError: libfoo.so is not there"),
        ("talks", "its worker does not start: "
                  "its worker wrote 16 bytes that are no frame: b'Welcome to this ' to stdout"),
        ("answers_first", "its worker does not start: its worker sent an unexpected response: 'x'"),
    ],
)  # fmt: skip
def test_a_worker_that_fails_the_handshake_takes_its_target_down(mode: str, words: str) -> None:
    assert why_down(misbehaving(mode)) == f"target 'odd': {words}"


@pytest.mark.slow
def test_a_worker_that_never_answers_the_handshake_is_given_its_time_and_no_more() -> None:
    started = time.monotonic()
    message = why_down(misbehaving("never", startup_s=0.4))
    assert message == "target 'odd': its worker does not start: no response within 0.4 s of starting"
    assert 0.4 * STARTS <= time.monotonic() - started < 0.4 * STARTS + 5


def test_a_runtime_without_the_provider_is_told_before_the_first_case() -> None:
    message = why_down(misbehaving("without_the_provider", provider="DmlExecutionProvider"))
    assert message == "target 'odd': its onnxruntime has no DmlExecutionProvider; it has CPUExecutionProvider, Other"


def test_an_interpreter_that_is_not_there_or_cannot_be_executed(tmp_path: Path) -> None:
    plain = tmp_path / "python"
    plain.write_text("no program")
    words = ("[WinError 2]", "[WinError 193]") if sys.platform == "win32" else ("No such file", "Permission denied")
    for path, reason in zip((tmp_path / "none", plain), words, strict=True):
        message = why_down(Target("odd", (str(path),), ()))
        assert message.startswith("target 'odd': its interpreter does not start: ")
        assert reason in message


def test_an_environment_that_no_system_takes_is_named() -> None:
    message = why_down(Target("odd", (sys.executable,), (), environment={"A\0B": "c"}))
    assert message.startswith("target 'odd': its interpreter does not start: embedded null ")


def test_another_target_that_does_start_is_ended() -> None:
    with pytest.raises(TargetDown), started(backend("right"), misbehaving("exits")):
        pass
    deadline = time.monotonic() + 10  # it is killed with its fork server, and nobody waits for its end
    while (left := processes_with("python:faulty_backends:right")) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left == []


class Driver:
    """A pool and the loop around it."""

    def __init__(self, target: Target, alone: bool = False) -> None:
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.idle_workers = IdleWorkers()
        self.pool = Pool(target, self.events, self.idle_workers, alone=alone)
        self.outcomes: list[Outcome] = []

    def close(self) -> None:
        self.pool.close()
        self.idle_workers.close()

    def run(self, *faults: str, target: Target | None = None) -> list[Outcome]:
        for number, fault in enumerate(faults):
            prepared = prepared_case.of(identity(f"{number}", number, fault).build())
            self.pool.submit(Job(prepared, self.outcomes.append, target=target))
        while len(self.outcomes) < len(faults):
            self.pool.advance(last=True)
            for supervisor in self.pool.supervisors:
                supervisor.listen(True)
            event = self.events.get(timeout=20)
            if supervisor := self.pool.owner(event):
                supervisor.handle(event)
        return self.outcomes

    def watch_until_it_raises(self) -> None:
        while True:
            (supervisor,) = self.pool.supervisors
            supervisor.watch(time.monotonic())
            with contextlib.suppress(queue.Empty):
                event = self.events.get(timeout=0.005)
                if supervisor.owns(event):
                    supervisor.handle(event)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_jobs_behind_a_crash_run_in_the_next_worker_in_their_order() -> None:
    driver = Driver(backend("faulty"))
    outcomes = driver.run("", "abort", "", "exit", "", "")
    driver.close()
    assert [o.kind for o in outcomes] == [DONE, CRASHED, DONE, CRASHED, DONE, DONE]
    assert [float(o.outputs["y"][1]) for o in outcomes if o.kind == DONE] == [0.0, 2.0, 4.0, 5.0]


def test_alone_means_that_nothing_ran_before() -> None:
    together, apart = Driver(backend("wrong_after_case_2")), Driver(backend("wrong_after_case_2"), alone=True)
    answers = [[float(o.outputs["y"][1]) for o in driver.run(*[""] * 6)] for driver in (together, apart)]
    together.close()
    apart.close()
    assert answers == [[0.0, 1.0, 2.0, 3.0, 4.0, 6.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]]


def test_a_worker_in_which_a_use_failed_runs_nothing_else() -> None:
    target = backend("fails_from_case_0")
    found = []
    for variant in (None, variant_of(target, "reruns=feeds")):
        driver = Driver(target)
        found.append([outcome.kind for outcome in driver.run("", "", "", target=variant)])
        driver.close()
    assert found == [[FAILED, FAILED, FAILED], [FAILED, DONE, DONE]]


def test_the_memory_bound_holds_while_a_worker_starts() -> None:
    driver = Driver(backend("right", memory_bytes=1 << 20))
    driver.pool.start()
    with pytest.raises(TargetDown, match=r"does not start: the worker used \d+ MiB of memory; the limit is 1 MiB"):
        driver.watch_until_it_raises()
    driver.close()
