"""Programs that an installation runs: they end, whatever happens to them or to what they have started."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from epcheck.conformance.lab import process
from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.process import in_threads, run, submit

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no lab there")

STARTS_SLEEP = "sleep 30 & echo $! > {0}; kill -{1} $$; wait"
"""A program that starts another one, and is then sent a signal."""


def is_alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def ends(pid: int) -> bool:
    """Whether a process that nobody may wait for has ended, or does at once."""
    until = time.monotonic() + 5
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not is_alive(pid)


def test_a_program_that_a_signal_ended_leaves_nothing_running(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"^unpacking failed: signal 11 ended it; run the install again$"):
        run(["sh", "-c", STARTS_SLEEP.format(tmp_path / "pid", "SEGV")], what="unpacking")
    assert ends(int((tmp_path / "pid").read_text()))


def test_a_program_whose_child_is_stopped_costs_its_time(tmp_path: Path) -> None:
    program = f"sleep 30 & echo $! > {tmp_path / 'pid'}; kill -STOP $!; wait"
    with pytest.raises(LabError, match=r"^unpacking did not end within 0 s; run the install again$"):
        run(["sh", "-c", program], what="unpacking", timeout=0.3)
    assert ends(int((tmp_path / "pid").read_text()))


def test_a_program_that_fails_is_named_by_its_last_line() -> None:
    with pytest.raises(LabError, match=r"^unpacking failed: no space$"):
        run(["sh", "-c", "echo no space >&2; exit 2"], what="unpacking")
    with pytest.raises(LabError, match=r"^unpacking failed: exit status 2$"):
        run(["sh", "-c", "exit 2"], what="unpacking")


@pytest.fixture
def two_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(process, "cores", lambda: 2)
    return


@pytest.mark.usefixtures("two_at_once")
def test_one_program_that_fails_ends_those_beside_it_and_none_begins_after_it() -> None:
    """dpkg-deb that died by a signal was followed by a hundred others before anybody heard of it."""
    begun: list[str] = []

    def work(program: str) -> None:
        begun.append(program)
        run(["sh", "-c", program], what="unpacking")

    began = time.monotonic()
    with pytest.raises(LabError, match="signal 11"):
        list(in_threads(work, ["kill -SEGV $$", "sleep 30", *["sleep 20"] * 9]))
    assert time.monotonic() - began < 10
    assert len(begun) < 5


@pytest.mark.usefixtures("two_at_once")
def test_whoever_stops_waiting_ends_the_programs() -> None:
    def work(program: str) -> None:
        run(["sh", "-c", program], what="unpacking")

    began = time.monotonic()
    waiting = in_threads(work, ["true", *["sleep 30"] * 5])
    assert next(waiting) == "true"
    with pytest.raises(KeyboardInterrupt):
        waiting.throw(KeyboardInterrupt())
    assert time.monotonic() - began < 10


def test_all_work_is_done_and_each_item_comes_back_once() -> None:
    done: list[int] = []
    assert sorted(in_threads(done.append, range(20))) == list(range(20))
    assert sorted(done) == list(range(20))


@pytest.mark.usefixtures("two_at_once")
def test_work_that_is_to_stop_ends_the_programs_of_its_threads_and_runs_no_further_one() -> None:
    """A step that unpacks packages in threads of its own, beside another step that fails."""
    stop, begun = threading.Event(), threading.Event()

    def unpack(seconds: int) -> None:
        begun.set()
        run(["sleep", str(seconds)], what=f"sleeping {seconds} s")

    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        job = submit(pool, stop, lambda: list(in_threads(unpack, [30, 30, 0])))
        assert begun.wait(5)
        stop.set()
        with pytest.raises(LabError, match=r"^sleeping 30 s was ended$"):
            job.result()
        with pytest.raises(LabError, match=r"^unpacking was ended$"):
            submit(pool, stop, run, ["true"], what="unpacking").result()
        assert run(["echo", "here"], what="another install") == "here\n"
    assert time.monotonic() - began < 10
