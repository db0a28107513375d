import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from epcheck.conformance.lab import LabError, Progress
from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.process import Say
from epcheck.conformance.lab.steps import Step, locked, perform, read_stamp, stamp_path, valid_stamps


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
        perform(layout, [made.step("wine"), made.step("python")], None)
    assert made.done == ["wine", "python"]


def test_an_interrupted_step_is_done_again_and_the_ones_before_it_are_not(layout: Layout) -> None:
    made = Recorder()
    steps = [made.step("wine"), made.step("prefix"), made.step("python")]
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
    assert made.done == ["wine", "prefix", "python", "wine", "prefix"]


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
    assert reports[0] == Progress("wine", 1, 2, "done before")
    assert {(r.step, r.index, r.total) for r in reports[1:]} == {("python", 2, 2)}


@pytest.mark.skipif(sys.platform == "win32", reason="locks are POSIX's")
def test_a_second_install_is_refused_while_one_is_at_work(layout: Layout) -> None:
    refusal = rf"another install \(process {os.getpid()}\) is at work in .*; wait until it ends"
    with locked(layout), pytest.raises(LabError, match=refusal), locked(layout):
        pass
    with locked(layout):
        pass


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="locks are POSIX's")
def test_what_a_killed_install_left_running_is_waited_for(layout: Layout) -> None:
    """The lock is held by a download whose install, a process that has ended, wrote its number into it."""
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True
    ).stdout
    with locked(layout) as descriptor:
        download = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1)"], pass_fds=[descriptor])
        layout.lock.write_text(ended)
    with locked(layout):
        assert download.wait(5) == 0
