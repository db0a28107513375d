"""Workers that a jailed process asks for: they work as others do, and a stranger at the other end gets nothing more."""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import MEBIBYTE, Target
from epcheck.conformance.workers import broker, broker_server
from epcheck.conformance.workers.broker import EXITED, KILL, START, program_of, use_broker
from epcheck.conformance.workers.broker_server import BrokerServer
from epcheck.conformance.workers.client import TargetDown, WorkerClient, WorkerLost
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import FrameReceived, find_guarded_worker
from epcheck.conformance.workers.program.fork import MESSAGE
from epcheck.conformance.workers.request import request, run_request, wait_until_ready
from tests.conformance.small_cases import backend, identity, own_workers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="file descriptors do not travel there")

RIGHT, CPU, HANGS, FAULTY = backend("right"), resolve("cpu"), backend("hangs_always"), backend("faulty")
TARGETS = (RIGHT, CPU, HANGS, FAULTY)


@pytest.fixture
def control() -> Iterator[socket.socket]:
    """The side inside, of a server that has TARGETS."""
    ours, theirs = socket.socketpair()
    server = BrokerServer(ours, [(target, 512 * MEBIBYTE) for target in TARGETS])
    yield theirs
    server.close()
    theirs.close()
    until(lambda: own_workers() == [])


@pytest.fixture
def inside(control: socket.socket) -> Iterator[None]:
    """This process asks that server for its workers."""
    use_broker(control, [program_of(target) for target in TARGETS])
    yield
    broker._current.clear()


@contextlib.contextmanager
def client_of(target: Target) -> Iterator[WorkerClient]:
    with contextlib.closing(IdleWorkers()) as idle:
        client = WorkerClient(target, queue.SimpleQueue(), idle)
        yield client
        client.retire()


def ask(client: WorkerClient, fault: str = "") -> FrameReceived | WorkerLost:
    """What comes of a case."""
    prepared = prepared_case.of(identity("a", 7, fault).build())
    wait_until_ready(client)
    frame = run_request("a", client.target, prepared.model, prepared.feeds, prepared.outputs)
    return request(client, "a", frame)


def until(holds: Callable[[], bool]) -> None:
    """Once: what ends in between may be listed a moment longer."""
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("target", [RIGHT, CPU], ids=lambda target: target.name)
def test_a_worker_answers_is_measured_and_ends(target: Target) -> None:
    with client_of(target) as client:
        answer = ask(client)
        assert isinstance(answer, FrameReceived)
        assert (answer.header["stage"], answer.body) == ("done", np.array([-1, 7], np.float32).tobytes())
        until(lambda: client.resident_bytes() > MEBIBYTE)
        until(lambda: [client.pid] == [find_guarded_worker(worker.pid) for worker in own_workers()])
    until(lambda: own_workers() == [])


@pytest.mark.usefixtures("inside")
def test_the_first_report_of_memory_can_be_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    every_s = broker_server.MEASURE_EVERY_S
    monkeypatch.setattr(broker_server, "MEASURE_EVERY_S", 5.0)
    time.sleep(2 * every_s)  # it measures once more
    with client_of(RIGHT) as client:
        wait_until_ready(client)
        assert client.resident_bytes() == 0
        assert client.resident_bytes(20.0) > MEBIBYTE


@pytest.mark.usefixtures("inside")
def test_a_worker_that_hangs_is_ended_by_who_asked_for_it() -> None:
    with client_of(HANGS) as client:
        client.deadline_s = client.stalled_s = 1.0
        lost = ask(client)
        assert isinstance(lost, WorkerLost)
        assert lost.why == "no response within the deadline of 1 s"
        until(lambda: own_workers() == [])


@pytest.mark.usefixtures("inside")
def test_a_worker_that_takes_too_much_memory_is_ended_outside_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the side inside thinks of its bound."""
    monkeypatch.setattr(broker_server, "MEASURE_EVERY_S", 0.01)
    with client_of(FAULTY) as client:
        client.memory_bytes = 1 << 50
        lost = ask(client, "eat_memory")
        assert isinstance(lost, WorkerLost)
        assert "killed by SIGKILL" in lost.why


@pytest.mark.usefixtures("inside")
def test_no_other_program_is_started() -> None:
    with client_of(backend("right", jail=True, set_variables={})) as client:
        assert ask(client)  # it is the same program
    other = backend("aborts_always")
    with client_of(other) as client, pytest.raises(TargetDown, match="none of those that the process outside starts"):
        client.start()


def count_descriptors() -> int:
    """Of this process, where the system tells."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


class Stranger:
    """Sends what it likes."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        control.settimeout(20)

    def send(self, kind: int, number: int, value: int = 0, descriptors: int = 0) -> None:
        opened = [os.open(os.devnull, os.O_RDWR) for _ in range(descriptors)]
        socket.send_fds(self.control, [MESSAGE.pack(kind, number, value)], opened)
        for descriptor in opened:
            os.close(descriptor)

    def hears(self, kind: int) -> tuple[int, int]:
        """The number and the value of the next message of that kind."""
        while True:
            message = self.control.recv(MESSAGE.size, socket.MSG_WAITALL)
            assert len(message) == MESSAGE.size
            heard, number, value = MESSAGE.unpack(message)
            if heard == kind:
                return number, value


@pytest.mark.parametrize("place", [-1, 4, 1 << 62])
def test_a_target_that_is_not_in_the_list_is_not_started(control: socket.socket, place: int) -> None:
    stranger = Stranger(control)
    stranger.send(START, 1, place, 3)
    assert stranger.hears(EXITED) == (1, broker.NEVER_STARTED)
    assert own_workers() == []


def test_a_stranger_has_a_few_workers_at_most(control: socket.socket) -> None:
    stranger = Stranger(control)
    before = count_descriptors()
    for number in range(50):
        stranger.send(START, number, 0, 3)
        stranger.send(START, number, 0, 3)  # whose number is taken, or was
        stranger.send(START, number, 0, 1)
        stranger.send(KILL, number + 1000)
        stranger.send(77, number)
        assert len(own_workers()) <= broker_server.MOST
    stranger.send(START, 2000, -1, 3)
    until(lambda: stranger.hears(EXITED) == (2000, broker.NEVER_STARTED))  # all that was sent before is dealt with
    until(lambda: own_workers() == [])  # their stdin is at its end
    until(lambda: count_descriptors() <= before + 8)


def test_half_a_message_ends_it(control: socket.socket) -> None:
    stranger = Stranger(control)
    stranger.send(START, 1, 2, 3)
    control.sendall(b"half")
    until(lambda: own_workers() == [])
    with contextlib.suppress(ConnectionError):
        while control.recv(1 << 16):
            pass
