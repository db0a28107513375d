import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from epcheck.conformance.lab import LabError, Progress
from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.process import Say, run
from epcheck.conformance.lab.steps import Step, lock_lab, perform, read_stamp, stamp_path, valid_stamps


class Recorder:
    """Steps that note that they were done, and fail on demand."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.failing = ""

    def step(self, name: str, inputs: object = 1, needs: tuple[str, ...] = ()) -> Step:
        def work(_say: Say) -> tuple[str, dict[str, str]]:
            if name == self.failing:
                raise KeyboardInterrupt
            self.done.append(name)
            return f"{name} is there", {"from": name}

        return Step(name, inputs, work, needs)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "lab")


def test_a_finished_step_is_not_done_again(layout: Layout) -> None:
    made = Recorder()
    for _ in range(2):
        perform(layout, [made.step("wine"), made.step("python", needs=("wine",))], None)
    assert made.done == ["wine", "python"]


def test_an_interrupted_step_is_done_again_and_the_ones_before_it_are_not(layout: Layout) -> None:
    made = Recorder()
    steps = [made.step("wine"), made.step("prefix", needs=("wine",)), made.step("python", needs=("prefix",))]
    made.failing = "prefix"
    with pytest.raises(KeyboardInterrupt):
        perform(layout, steps, None)
    assert list(valid_stamps(layout, steps)) == ["wine"]
    made.failing = ""
    perform(layout, steps, None)
    assert made.done == ["wine", "prefix", "python"]


def test_a_step_is_done_again_with_the_step_that_it_needs(layout: Layout) -> None:
    made = Recorder()
    steps = [made.step("wine"), made.step("prefix", needs=("wine",)), made.step("python")]
    perform(layout, steps, None)
    stamp_path(layout, "wine").unlink()
    made.failing = "wine"
    with pytest.raises(KeyboardInterrupt):
        perform(layout, steps, None)
    assert list(valid_stamps(layout, steps)) == ["python"]
    made.failing = ""
    perform(layout, steps, None)
    assert [name for name in made.done if name != "python"] == ["wine", "prefix", "wine", "prefix"]
    assert made.done.count("python") == 1


def test_a_step_that_is_redone_and_interrupted_counts_as_not_done(layout: Layout) -> None:
    made = Recorder()
    perform(layout, [made.step("wine", inputs="old")], None)
    made.failing = "wine"
    with pytest.raises(KeyboardInterrupt):
        perform(layout, [made.step("wine", inputs="new")], None)
    assert read_stamp(layout, "wine") is None


def test_changed_inputs_redo_a_step_and_those_that_need_it_only(layout: Layout) -> None:
    made = Recorder()

    def steps(version: int) -> list[Step]:
        return [made.step("wine", version), made.step("prefix", needs=("wine",)), made.step("python")]

    perform(layout, steps(1), None)
    made.done.clear()
    perform(layout, steps(2), None)
    assert made.done == ["wine", "prefix"]


def test_a_stamp_that_was_half_written_is_no_stamp(layout: Layout) -> None:
    made = Recorder()
    perform(layout, [made.step("wine")], None)
    whole = stamp_path(layout, "wine").read_text()
    stamp_path(layout, "wine").write_text(whole[: len(whole) // 2])
    assert read_stamp(layout, "wine") is None


def test_the_stamp_keeps_what_the_step_found_out(layout: Layout) -> None:
    perform(layout, [Recorder().step("wine")], None)
    stamp = read_stamp(layout, "wine")
    assert stamp is not None
    assert (stamp.detail, stamp.facts) == ("wine is there", {"from": "wine"})
    assert set(json.loads(stamp_path(layout, "wine").read_text())) == {"inputs", "detail", "facts", "seconds"}


def test_progress_counts_steps_and_names_what_is_done_before(layout: Layout) -> None:
    made, reports = Recorder(), list[Progress]()
    perform(layout, [made.step("wine")], None)
    perform(layout, [made.step("wine"), made.step("python")], reports.append)
    assert reports[0] == Progress("wine", 1, 2, "done before", ended=True)
    assert {(r.step, r.index, r.total) for r in reports[1:]} == {("python", 2, 2)}
    assert [r.ended for r in reports] == [True, False, True]
    assert reports[-1].message == "python is there (0.0 s)"


def test_steps_that_do_not_need_each_other_are_done_at_the_same_time(layout: Layout) -> None:
    """Each of the two waits for the other; the third begins when the one that it needs has ended."""
    meeting, order = threading.Barrier(2, timeout=20), list[str]()

    def work(say: Say) -> tuple[str, dict[str, str]]:
        say("waiting", None, None)
        meeting.wait()
        return "met", {}

    def after(_say: Say) -> tuple[str, dict[str, str]]:
        assert read_stamp(layout, "wine") is not None
        order.append("prefix")
        return "made", {}

    threads = set[int]()

    def report(_progress: Progress) -> None:
        threads.add(threading.get_ident())

    steps = [Step("wine", 1, work), Step("prefix", 1, after, ("wine",)), Step("dxil", 1, work)]
    perform(layout, steps, report)
    assert list(valid_stamps(layout, steps)) == ["wine", "prefix", "dxil"]
    assert (order, threads) == (["prefix"], {threading.get_ident()})


@pytest.mark.skipif(sys.platform == "win32", reason="no lab there")
def test_a_step_that_fails_ends_the_programs_of_the_others_and_its_reason_is_the_one_that_is_raised(
    layout: Layout, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"

    def compiling(_say: Say) -> tuple[str, dict[str, str]]:
        run(["sh", "-c", f"touch {begun}; sleep 60"], what="compiling")
        return "compiled", {}

    def failing(_say: Say) -> tuple[str, dict[str, str]]:
        until = time.monotonic() + 20
        while not begun.exists() and time.monotonic() < until:
            time.sleep(0.01)
        raise LabError("no space left")

    made = Recorder()
    steps = [
        made.step("python"),
        Step("dxil", 1, compiling),
        Step("wine", 1, failing),
        made.step("prefix", 1, ("wine",)),
    ]
    began = time.monotonic()
    with pytest.raises(LabError, match=r"^no space left$"):
        perform(layout, steps, None)
    assert time.monotonic() - began < 20
    assert made.done == ["python"]
    assert list(valid_stamps(layout, steps)) == ["python"]


@pytest.mark.skipif(sys.platform == "win32", reason="no lab there")
def test_ctrl_c_ends_the_programs_of_all_steps_before_the_install_returns(layout: Layout, tmp_path: Path) -> None:
    """Who is interrupted is the thread that reports: the steps are at work in others."""
    pids = [tmp_path / "first", tmp_path / "second"]

    def step(path: Path) -> Step:
        def work(say: Say) -> tuple[str, dict[str, str]]:
            say("at work", None, None)
            run(["sh", "-c", f"echo $$ > {path}; exec sleep 60"], what="sleeping")
            return "slept", {}

        return Step(path.name, 1, work)

    def report(progress: Progress) -> None:
        until = time.monotonic() + 20
        while progress.message and not all(p.exists() and p.read_text() for p in pids) and time.monotonic() < until:
            time.sleep(0.01)
        if progress.message:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perform(layout, [step(path) for path in pids], report)
    assert [psutil.pid_exists(int(path.read_text())) for path in pids] == [False, False]
    assert valid_stamps(layout, [step(path) for path in pids]) == {}


@pytest.mark.skipif(sys.platform == "win32", reason="locks are POSIX's")
def test_a_second_install_is_refused_while_one_is_at_work(layout: Layout) -> None:
    refusal = rf"another install \(process {os.getpid()}\) is at work in .*; wait until it ends"
    with lock_lab(layout), pytest.raises(LabError, match=refusal), lock_lab(layout):
        pass
    with lock_lab(layout):
        pass


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="locks are POSIX's")
def test_what_a_killed_install_left_running_is_waited_for(layout: Layout) -> None:
    """The lock is held by a download whose install, a process that has ended, wrote its number into it."""
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, encoding="utf-8"
    ).stdout
    with lock_lab(layout) as descriptor:
        download = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1)"], pass_fds=[descriptor])
        layout.lock.write_text(ended)
    with lock_lab(layout):
        assert download.wait(5) == 0
