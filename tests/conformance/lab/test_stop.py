"""The end of a lab's programs, with programs that are called like Wine's: no lab is needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from epcheck.conformance.lab import wine
from epcheck.conformance.lab.folder import Config, Layout

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the lab is on Linux")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as resources:
        yield resources


def test_programs_without_their_server_are_ended_and_no_others(tmp_path: Path, stack: ExitStack) -> None:
    layout = Layout(tmp_path / "lab")
    layout.prefix.mkdir(parents=True)
    server, loader = tmp_path / "wineserver", tmp_path / "wine64"
    server.write_text("#!/bin/sh\nexit 0\n")
    server.chmod(0o755)
    sleep = shutil.which("sleep")
    assert sleep is not None
    shutil.copy(sleep, loader)

    def started(program: Path, prefix: Path) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "WINEPREFIX": str(prefix)}
        process = subprocess.Popen([program, "60"], env=environment)
        stack.callback(process.wait)
        stack.callback(process.kill)
        return process

    left = started(loader, layout.prefix)
    of_another_prefix, no_wine = started(loader, tmp_path / "other"), started(Path(sleep), layout.prefix)
    wine.stop(layout, Config(wine_loader=str(loader), wine_server=str(server)))
    assert left.wait(timeout=10) == -9
    assert [process.poll() for process in (of_another_prefix, no_wine)] == [None, None]
