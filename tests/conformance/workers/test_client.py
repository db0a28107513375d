"""The client of a worker as a value: events and time go in, answers and losses come out. No process is started."""

from __future__ import annotations

import queue
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from epcheck.conformance.records.outcome import CRASHED, TIMED_OUT
from epcheck.conformance.targets.target import MEBIBYTE, Target
from epcheck.conformance.workers.client import STARTS, WORN, TargetDown, WorkerClient, WorkerLost
from epcheck.conformance.workers.process import (
    Event,
    FrameReceived,
    MalformedFrame,
    ProcessExited,
    WorkerProcess,
)
from epcheck.conformance.workers.program.protocol import PROTOCOL, NotAFrame
from epcheck.conformance.workers.session_result import LOSSES, describe_loss

TARGET = Target("fake", (), (), deadline_s=20.0, startup_s=60.0, memory_bytes=100 * MEBIBYTE)
HANDSHAKE = {"op": "hello", "protocol": PROTOCOL, "pid": 42, "facts": {"os": "none"}}

NOW = 1000.0
"""When processes start and requests are sent; the times of events and of watching are counted from there."""


@pytest.fixture(autouse=True)
def fixed_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long the machine has been up changes nothing."""
    monkeypatch.setattr("epcheck.conformance.workers.client.time", SimpleNamespace(monotonic=lambda: NOW))


class FakeProcess:
    """A process that does nothing by itself and remembers what was done to it."""

    def __init__(self) -> None:
        self.started = NOW
        self.killed_because = ""
        self.resident = 0
        self.sent: list[list[bytes]] = []
        self.closed = False
        self.returncode: int | None = None
        self.process = self
        self.pid = 7
        self.stated: object = None

    def take_pid(self, stated: object) -> None:
        self.stated = stated

    def send(self, frame: list[bytes]) -> None:
        self.sent.append(frame)

    def flush(self) -> None:
        self.sent.append([b"flush"])

    def listen(self, wanted: bool) -> None:
        self.listening = wanted

    def poll(self) -> int | None:
        return self.returncode

    def wait(self) -> int:
        return 0

    def kill(self, because: str) -> None:
        self.killed_because = self.killed_because or because

    def close(self) -> None:
        self.closed = True

    def log_tail(self) -> str:
        return "first line\nlast line"

    def resident_bytes(self) -> int:
        return self.resident


class FakeProcesses:
    """Hands out fake processes, and takes the idle ones back."""

    def __init__(self) -> None:
        self.taken: list[FakeProcess] = []
        self.kept: list[FakeProcess] = []
        self.proved: list[str] = []
        self.known: Mapping[str, str] = {}

    def take(self, _target: Target, _events: queue.SimpleQueue[Event]) -> WorkerProcess:
        self.taken.append(FakeProcess())
        return cast(WorkerProcess, self.taken[-1])

    def give(self, process: WorkerProcess) -> None:
        self.kept.append(cast(FakeProcess, process))

    def note_start(self, target: Target, facts: Mapping[str, str]) -> None:
        self.proved.append(target.name)
        self.known = facts

    def facts(self, _target: Target) -> Mapping[str, str]:
        return self.known


class Driven:
    """A client with fake processes, and the events of its present one."""

    def __init__(self, target: Target = TARGET, deadline_s: float | None = None) -> None:
        self.processes = FakeProcesses()
        self.client = WorkerClient(target, queue.SimpleQueue(), self.processes, deadline_s)
        self.client.start()

    @property
    def process(self) -> FakeProcess:
        return self.processes.taken[-1]

    def frame(self, at: float = 1001.0, **header: Any) -> FrameReceived | WorkerLost | None:
        return self.client.handle(FrameReceived(cast(WorkerProcess, self.process), header, b"", at))

    def exit(self, returncode: int) -> FrameReceived | WorkerLost | None:
        return self.client.handle(ProcessExited(cast(WorkerProcess, self.process), returncode))

    def ready(self) -> Driven:
        assert self.frame(**HANDSHAKE) is None
        assert self.client.is_ready
        return self


def lost(result: object) -> WorkerLost:
    assert isinstance(result, WorkerLost)
    return result


def test_a_handshake_makes_it_ready_with_the_worker_s_facts() -> None:
    driven = Driven()
    assert (driven.client.is_starting, driven.client.is_ready, driven.client.facts) == (True, False, {})
    driven.ready()
    assert (driven.client.is_starting, driven.client.facts) == (False, {"os": "none"})


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"protocol": PROTOCOL + 1, "facts": {"a": "b"}}, r"its worker speaks protocol 4, this epcheck 3"),
        ({"facts": {"a": "b"}}, r"its worker speaks protocol None, this epcheck 3"),
    ],
)
def test_another_protocol_takes_the_target_down_at_once(header: dict[str, Any], message: str) -> None:
    with pytest.raises(TargetDown, match=message):
        Driven().frame(op="hello", **header)


def test_a_runtime_without_the_provider_takes_the_target_down_at_once() -> None:
    driven = Driven(Target("fake", (), (), provider="DmlExecutionProvider"))
    with pytest.raises(TargetDown, match="its onnxruntime has no DmlExecutionProvider; it has CPUExecutionProvider"):
        driven.frame(op="hello", protocol=PROTOCOL, facts={"providers": "CPUExecutionProvider"})


def test_a_worker_that_fails_to_start_is_started_again_and_given_up_after_a_few() -> None:
    driven = Driven()
    for _ in range(STARTS - 1):
        assert driven.frame(op="hello", protocol=PROTOCOL, facts=[]) is None
        assert driven.client.is_starting
    with pytest.raises(TargetDown, match=r"does not start: the worker process ended: exit code 5; it said: last line"):
        driven.exit(5)
    assert len(driven.processes.taken) == STARTS


def test_answers_come_back_in_the_order_of_their_requests() -> None:
    driven = Driven().ready()
    driven.client.send("a", [b"1"])
    driven.client.send("b", [b"2"])
    for name in "ab":
        answer = driven.frame(op="done", id=name, stage="done")
        assert isinstance(answer, FrameReceived)
        assert answer.header["id"] == name


def test_an_answer_that_nobody_asked_for_is_the_loss_of_the_worker() -> None:
    driven = Driven().ready()
    driven.client.send("a", [])
    assert lost(driven.frame(op="done", id="b", stage="done")).why == "its worker sent an unexpected response: 'b'"
    driven = Driven().ready()
    assert lost(driven.frame(op="done", id="a", stage="done")).why == "its worker sent an unexpected response: 'a'"


def test_a_worker_begins_each_step_of_a_request_once() -> None:
    """Each step has the whole deadline: a worker that began one for ever would have no deadline at all."""
    for steps, last in ((("create", "run", "run"), "run"), (("create", "x" * 200), "x" * 80)):
        driven = Driven().ready()
        driven.client.send("a", [])
        *before, odd = [driven.frame(op="at", id="a", stage=step) for step in steps]
        assert before == [None] * (len(steps) - 1)
        assert lost(odd).why == f"its worker started an unexpected step: {last!r}"


def test_the_next_request_has_steps_of_its_own() -> None:
    driven = Driven().ready()
    for name in "ab":
        driven.client.send(name, [])
        assert driven.frame(op="at", id=name, stage="run") is None
        assert isinstance(driven.frame(op="done", id=name, stage="done"), FrameReceived)


def test_a_second_handshake_and_bytes_that_are_no_frame_are_its_loss() -> None:
    driven = Driven().ready()
    assert lost(driven.frame(**HANDSHAKE)).why == "its worker sent a malformed handshake"
    driven = Driven().ready()
    event = MalformedFrame(cast(WorkerProcess, driven.process), NotAFrame(b"hello"))
    assert lost(driven.client.handle(event)).why == "its worker wrote 5 bytes that are no frame: b'hello' to stdout"


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("887A0005: The GPU device instance has been suspended.", "removed: unplugged"),
        ("ID3D12Fence answered 887a0006", "hung: it did not respond"),
        ("DXGI_ERROR_DEVICE_RESET", "reset by the system"),
        ("answered DXGI_ERROR_DRIVER_INTERNAL_ERROR", "given up by its driver"),
        ("Close answered 887A0005; GetDeviceRemovedReason answered 887A0006 DXGI_ERROR_DEVICE_HUNG", "hung: "),
        ("CUDA failure 719: launch", ""),
    ],
)
def test_why_a_device_is_gone_is_told_in_words(message: str, why: str) -> None:
    found = describe_loss(message)
    assert found.startswith(why)
    assert bool(found) == bool(why)


def test_a_provider_that_cannot_start_on_a_lost_device_says_why_it_is_lost() -> None:
    driven = Driven()
    with pytest.raises(TargetDown, match="cannot start: 887A0005; the device is removed: unplugged"):
        driven.frame(**HANDSHAKE, trouble="DmlExecutionProvider cannot start: 887A0005")


def test_the_process_id_that_a_worker_states_is_handed_on() -> None:
    assert Driven().ready().process.stated == 42


@pytest.mark.parametrize("code", ["887A0005", "CUDA failure 700: an illegal memory access", "CUDA failure 719: launch"])
def test_a_device_that_is_gone_is_the_loss_of_its_worker(code: str) -> None:
    driven = Driven().ready()
    driven.client.send("a", [])
    message = f"Non-zero status\n code: {code}"
    found = lost(driven.frame(op="done", id="a", stage="run", error="Fail", message=message))
    words = LOSSES.get(code, "")
    expected = f"the device was lost{f' ({words})' if words else ''}: Non-zero status code: {code}"
    assert (found.why, found.kind) == (expected, CRASHED)
    assert driven.process.killed_because == found.why


def test_an_argument_that_cuda_refuses_is_no_loss_of_the_device() -> None:
    driven = Driven().ready()
    driven.client.send("a", [])
    message = "CUDA failure 1: invalid argument; CUDA failure 7000"
    assert isinstance(driven.frame(op="done", id="a", stage="run", error="Fail", message=message), FrameReceived)


def test_a_session_that_succeeds_may_mention_a_lost_device() -> None:
    driven = Driven().ready()
    driven.client.send("a", [])
    assert isinstance(driven.frame(op="done", id="a", stage="done", message="887A0005"), FrameReceived)


def test_a_process_that_ended_is_described_with_its_log_and_its_step() -> None:
    driven = Driven().ready()
    driven.client.send("a", [])
    assert driven.frame(op="at", id="a", stage="create") is None
    found = lost(driven.exit(0xC0000005))
    assert found == WorkerLost(
        "the worker process ended: exit code 0xc0000005", CRASHED, "first line\nlast line", "create", False
    )
    assert not driven.client.is_ready


def test_events_of_an_earlier_worker_mean_nothing() -> None:
    driven = Driven().ready()
    earlier = ProcessExited(cast(WorkerProcess, driven.process), 1)
    driven.exit(1)
    driven.client.start()
    assert not driven.client.owns(earlier)


@pytest.mark.parametrize(("deadline_s", "bound"), [(None, 20.0), (300.0, 300.0)])
def test_the_deadline_runs_from_the_answer_before_and_kills(deadline_s: float | None, bound: float) -> None:
    driven = Driven(deadline_s=deadline_s).ready()
    driven.client.send("a", [])
    driven.client.send("b", [])
    driven.frame(op="done", id="a", stage="done", at=2000.0)
    assert driven.client.watch(2000.0 + bound) is None
    found = lost(driven.client.watch(2000.1 + bound))
    assert (found.why, found.kind) == (f"no response within the deadline of {bound:g} s", TIMED_OUT)
    assert found.overtaxed


def test_each_step_of_a_request_has_the_whole_deadline() -> None:
    driven = Driven().ready()
    driven.client.send("a", [])
    driven.frame(op="at", id="a", stage="create", at=2000.0)
    driven.frame(op="at", id="a", stage="run", at=2019.0)
    assert driven.client.watch(2038.0) is None
    assert lost(driven.client.watch(2039.1)).step == "run"


def test_an_idle_worker_has_no_deadline() -> None:
    assert Driven().ready().client.watch(1e9) is None


def test_a_worker_that_does_not_start_in_time_is_killed_and_its_exit_counts() -> None:
    driven = Driven()
    assert driven.client.watch(1060.0) is None
    assert driven.process.killed_because == ""
    driven.client.watch(1060.1)
    killed = driven.process
    assert killed.killed_because == "no response within 60 s of starting"
    driven.exit(-9)
    assert driven.client.is_starting
    assert driven.process is not killed


def test_a_worker_above_its_memory_bound_is_killed_and_what_it_answered_before_counts() -> None:
    driven = Driven().ready()
    driven.client.send("a", [])
    driven.client.send("b", [])
    driven.process.resident = 101 * MEBIBYTE
    assert driven.client.watch(1001.0) is None
    assert isinstance(driven.frame(op="done", id="a", stage="done"), FrameReceived)
    found = lost(driven.exit(-9))
    assert (found.why, found.overtaxed) == ("the worker used 101 MiB of memory; the limit is 100 MiB", True)


def test_a_worker_that_nears_its_memory_bound_is_worn() -> None:
    driven = Driven().ready()
    driven.process.resident = int(WORN * 100 * MEBIBYTE)
    driven.client.watch(1001.0)
    assert not driven.client.is_worn
    driven.process.resident += 1
    driven.client.watch(1001.0)
    assert driven.client.is_worn
    driven.client.retire()
    assert not driven.client.is_worn


def test_only_an_idle_worker_is_kept_for_others() -> None:
    idle, busy = Driven().ready(), Driven().ready()
    busy.client.send("a", [])
    for driven in (idle, busy):
        driven.client.release()
    assert (idle.processes.kept, idle.process.closed) == ([idle.process], False)
    assert (busy.processes.kept, busy.process.closed) == ([], True)


def test_starting_replaces_an_idle_worker_that_has_ended_unseen() -> None:
    driven = Driven().ready()
    assert not driven.client.start()
    driven.process.returncode = -9
    assert driven.client.start()
    assert len(driven.processes.taken) == 2


def test_an_interpreter_that_cannot_be_started_takes_the_target_down() -> None:
    class Broken(FakeProcesses):
        def take(self, _target: Target, _events: queue.SimpleQueue[Event]) -> WorkerProcess:
            raise OSError("no such file")

    with pytest.raises(TargetDown, match="target 'fake': its interpreter does not start: no such file"):
        WorkerClient(TARGET, queue.SimpleQueue(), Broken()).start()
