"""A process beside this one that makes the reports of a large run that are no page, while this one makes the page."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from epcheck.conformance.start_process import module_environment, start_process
from epcheck.reports.runs.run_folder import JOURNAL

LARGE_BYTES = 32 << 20
"""Of a journal: about 20,000 records, of which the reports take longer than the process takes to start."""

PROGRAM = "epcheck.reports.data_program"


class DataProcess:
    """The process, which ends when the reports are made."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def problems(self) -> str | None:
        """Wait for its end: a sentence about reports that it could not make, empty for none; None where it did not get
        as far as to say so, and the reports are still to be made."""
        output, _ = self._process.communicate()
        return output.strip() if self._process.returncode == 0 else None


@contextmanager
def start_data_process(folder: Path) -> Iterator[DataProcess | None]:
    """The process for a run's folder; None for a run that is not large, and where no process can be started."""
    process = _start(folder) if _is_large(folder) else None
    if process is None:
        yield None
        return
    with process:
        try:
            yield DataProcess(process)
        finally:
            process.kill()  # one that has ended is left as it is


def _is_large(folder: Path) -> bool:
    try:
        return (folder / JOURNAL).stat().st_size >= LARGE_BYTES
    except OSError:
        return False


def _start(folder: Path) -> subprocess.Popen[str] | None:
    try:
        return start_process(
            [sys.executable, "-m", PROGRAM, str(folder)],
            env=module_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            errors="surrogateescape",
        )
    except OSError:
        return None
