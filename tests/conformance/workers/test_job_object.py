"""Windows' job objects, under Wine: a worker and what it has started end with a runner that is killed."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from pathlib import Path

import pytest

from epcheck.conformance import lab
from epcheck.conformance.workers import job_object
from tests.conformance import enclosed_program

PROGRAM = Path(enclosed_program.__file__)


@pytest.mark.parametrize(("how", "survive"), [("enclosed", False), ("free", True)])
def test_a_worker_ends_with_a_runner_that_is_killed(
    installed_lab: None,  # noqa: ARG001
    tmp_path: Path,
    how: str,
    survive: bool,
) -> None:
    launch = lab.python_launch()
    code = Path(job_object.__file__).parent
    places = [lab.windows_path(path) for path in (PROGRAM, code, tmp_path)]
    command = [*launch.argv, places[0], "runner", *places[1:], how]
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    subprocess.run(command, env=launch.env, timeout=60, check=False, **streams)  # type: ignore[call-overload]
    assert (tmp_path / "runner").read_text() == "killed"
    expected = {"worker": survive, "child": survive}
    until = time.monotonic() + 20
    while (found := beating(tmp_path)) != expected and time.monotonic() < until:
        pass
    assert found == expected
    if survive:
        end(tmp_path)


def beating(folder: Path) -> dict[str, bool]:
    """Which of them still write, watched for a second."""
    before = beats(folder)
    time.sleep(1)
    return {name: text != before[name] for name, text in beats(folder).items()}


def beats(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text() for name in ("worker", "child")}


def end(folder: Path) -> None:
    """Processes that nothing ends any more cannot write to their files, and end."""
    for name in ("worker", "child"):
        while not (folder / name).is_dir():  # they may write between the two
            (folder / name).unlink(missing_ok=True)
            with contextlib.suppress(FileExistsError):
                (folder / name).mkdir()


@pytest.mark.skipif(sys.platform == "win32", reason="there it is in a job")
def test_elsewhere_the_process_is_an_ordinary_one() -> None:
    with job_object.EnclosedProcess([sys.executable, "-c", "print(1)"], 0, stdout=subprocess.PIPE) as process:
        assert process.communicate() == (b"1\n", None)
    assert process.job is None
    job = job_object.JobObject()
    job.add(process.pid)
    job.close()
