"""Exit codes in words, and what `close` and `kill` leave: nothing."""

from __future__ import annotations

import queue
import subprocess
import sys
import time
from types import SimpleNamespace

import psutil
import pytest

from epcheck.conformance.workers import process
from epcheck.conformance.workers.process import Event, FrameReceived, ProcessExited, WorkerProcess, describe_exit
from tests.conformance.small_cases import backend


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_signals_have_names() -> None:
    assert describe_exit(-11) == "killed by SIGSEGV"
    assert describe_exit(-63) == "killed by signal 63"


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "exit code 0"), (3, "exit code 3"), (0xC0000005, "exit code 0xc0000005"), (66000, "exit code 0x000101d0")],
)
def test_exit_codes_are_written_as_their_system_does(code: int, words: str) -> None:
    assert describe_exit(code) == words


def started(function: str) -> tuple[WorkerProcess, queue.SimpleQueue[Event]]:
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    process = WorkerProcess(backend(function), events)
    assert isinstance(events.get(timeout=20), FrameReceived)
    return process, events


def test_closing_lets_it_end_by_itself() -> None:
    process, events = started("right")
    assert process.resident_bytes() > 10_000_000
    process.close()
    assert events.get(timeout=5) == ProcessExited(process, 0)
    assert (process.killed_because, process.resident_bytes()) == ("", 0)


@pytest.mark.slow
def test_closing_one_that_does_not_end_kills_it_after_a_while() -> None:
    import numpy as np

    from epcheck.conformance.workers.program import protocol
    from tests.conformance.faulty_backends import FAULTS

    process, events = started("faulty")
    x = np.array([list(FAULTS).index("hang"), 0], np.float32)
    process.send(protocol.encode({"op": "run", "id": "a", "outputs": []}, {"": np.empty(0, np.uint8), "x": x}))
    time.sleep(0.3)
    process.close(patience_s=0.3)
    assert isinstance(ended := events.get(timeout=5), ProcessExited)
    assert (ended.returncode != 0, process.killed_because) == (True, "it did not end when asked to")


def test_killing_twice_keeps_the_first_reason() -> None:
    process, events = started("right")
    process.kill("because")
    process.kill("again")
    assert isinstance(events.get(timeout=5), ProcessExited)
    assert process.killed_because == "because"


def test_an_answer_that_has_begun_is_read_to_its_end() -> None:
    """In turns of 0.03 s 16 MiB in pieces of 64 KiB took longer than a worker may stand still."""
    import numpy as np

    from epcheck.conformance.workers.program import protocol

    process, events = started("right")
    process.listen(False)
    x = np.zeros(1 << 22, np.float32)
    process.send(protocol.encode({"op": "run", "id": "a", "outputs": []}, {"": np.empty(0, np.uint8), "x": x}))
    process.flush()
    turns = 0
    while events.empty():
        process.listen(True)
        time.sleep(1e-3)
        process.listen(False)
        time.sleep(0.03)
        turns += 1
        assert turns < 20
    received = events.get()
    assert isinstance(received, FrameReceived)
    assert len(received.body) == x.nbytes
    process.kill("done")


@pytest.mark.skipif(sys.platform == "win32", reason="needs sh, which stands for the launcher")
def test_the_interpreter_behind_the_launcher_of_a_virtual_environment_is_its_child(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with subprocess.Popen(["sh", "-c", "sleep 30 & wait"]) as launcher:
        deadline = time.monotonic() + 10
        while not (children := psutil.Process(launcher.pid).children()) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert process.find_interpreter(launcher.pid) == launcher.pid
        windows = SimpleNamespace(platform="win32", prefix="C:\\venv", base_prefix="C:\\Python")
        monkeypatch.setattr(process, "sys", windows)
        assert process.find_interpreter(launcher.pid) == children[0].pid
        windows.prefix = windows.base_prefix
        assert process.find_interpreter(launcher.pid) == launcher.pid
        children[0].kill()
