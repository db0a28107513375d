"""A Wine server that is stopped goes on when a worker was given up; servers of others stay as they are."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from epcheck.conformance.workers import wine_server

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")


@pytest.mark.parametrize(("prefix", "goes_on"), [("mine", True), ("theirs", False)])
def test_a_stopped_server_of_the_prefix_goes_on(tmp_path: Path, prefix: str, goes_on: bool) -> None:
    """Any program of that name: what is found, and signalled, is a process."""
    program = tmp_path / "wineserver64"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    environment = {**os.environ, wine_server.PREFIX: str(tmp_path / "mine")}
    with subprocess.Popen([program, "30"], env=environment) as server:
        process = psutil.Process(server.pid)
        server.send_signal(signal.SIGSTOP)
        wait_for(process, psutil.STATUS_STOPPED)
        assert wine_server.continue_stopped({wine_server.PREFIX: str(tmp_path / prefix)}) is goes_on
        wait_for(process, psutil.STATUS_SLEEPING if goes_on else psutil.STATUS_STOPPED)
        server.kill()


def wait_for(process: psutil.Process, status: str) -> None:
    until = time.monotonic() + 10
    while process.status() != status:
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("environment", [None, {}, {wine_server.PREFIX: ""}])
def test_a_worker_without_a_prefix_has_no_server(environment: dict[str, str] | None) -> None:
    assert wine_server.continue_stopped(environment) is False
