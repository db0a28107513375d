"""What is left of a run whose runner was killed: nothing, whatever its workers are busy with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.command_line import ENVIRONMENT, START

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="Linux's prctl"), pytest.mark.slow]

CALLABLES = """
import ctypes, os, subprocess, time
from pathlib import Path

def write_down(pid):
    part = Path(f"{pid}.part")
    part.write_text(str(pid))
    part.rename(f"{pid}.pid")

def holds_the_lock(model, feeds):
    write_down(os.getpid())
    ctypes.PyDLL(None).sleep(60)

def is_in_native_code(model, feeds):
    write_down(os.getpid())
    ctypes.CDLL(None).sleep(60)

def forks(model, feeds):
    if os.fork() == 0:
        os.setsid()
        write_down(os.getpid())
        time.sleep(60)
        os._exit(0)
    time.sleep(60)

def starts_a_program(model, feeds):
    write_down(subprocess.Popen(["sleep", "60"]).pid)
    time.sleep(60)
"""


def gone(pid: int, within_s: float = 10.0) -> bool:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("name", ["holds_the_lock", "is_in_native_code", "forks", "starts_a_program"])
def test_nothing_outlives_a_runner_that_is_killed(tmp_path: Path, name: str) -> None:
    (tmp_path / "callables.py").write_text(CALLABLES)
    command = [*START, "run", "-t", f"python:callables:{name}", "--baseline", "none", "--op", "Identity"]
    environment = {**ENVIRONMENT, "PYTHONPATH": str(tmp_path), "EPCHECK_CACHE": str(tmp_path / "cache")}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL) as runner:
        end = time.monotonic() + 60
        while not (pids := [int(path.stem) for path in tmp_path.glob("*.pid")]) and time.monotonic() < end:
            time.sleep(0.05)
        os.kill(runner.pid, signal.SIGKILL)
    assert pids
    assert all(map(gone, pids))
