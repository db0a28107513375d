"""Running other programs: quietly, with progress, and with the reason in one sentence when they fail."""

from __future__ import annotations

import contextlib
import contextvars
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import size
from epcheck.conformance.start_process import start_process

Say = Callable[[str, int | None, int | None], None]
"""What a step reports through: a message, the bytes done, the bytes in all (None where unknown)."""


@dataclass(frozen=True)
class Progress:
    """One report of an install.

    index counts the steps from 1 to total; steps that do not need each other are done at the same time. bytes are those
    of the download or work at hand, None where unknown. ended: this is the step's last report.
    """

    step: str
    index: int
    total: int
    message: str
    bytes_done: int | None = None
    bytes_total: int | None = None
    ended: bool = False


@dataclass(frozen=True)
class Watch:
    """What is reported while a program runs: how much a folder has grown, of `total` bytes.

    folder, total: None where unknown.
    """

    say: Say
    folder: Path | None = None
    total: int | None = None

    def report(self, what: str, before: int) -> None:
        """Say how far it is. before: the size of the folder in bytes when the program was started."""
        if self.folder is None:
            self.say(what, None, self.total)
            return
        written = size(self.folder) - before
        at_most = self.total or written  # pip unpacks into the folder that it downloads to
        self.say(what, min(written, at_most), self.total)


_PERIOD = 0.2  # seconds between two looks at what a program has written so far

_STOPS: contextvars.ContextVar[tuple[threading.Event, ...]] = contextvars.ContextVar("stops", default=())
"""Any of these ends the programs that are run here."""

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


def run(
    command: Sequence[str | Path],
    *,
    what: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    watch: Watch | None = None,
    keep_open: int | None = None,
    timeout: float = 1800,
) -> str:
    """Run a program to its end and return its standard output.

    what: names the action in reports and errors. watch: what is reported meanwhile.
    keep_open: a file descriptor (the install's lock) for the program to hold as well. timeout: seconds.
    In work that `submit` handed over, the program is ended once the work is to stop.
    Raises LabError with the program's last line when it is missing, fails or does not end. What it has started is ended
    with it, unless it ends by itself.
    """
    _refuse_stopped(what)
    before = size(watch.folder) if watch and watch.folder else 0
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = start_process(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=env,
                cwd=cwd,
                pass_fds=() if keep_open is None else (keep_open,),
                process_group=None if sys.platform == "win32" else 0,
            )
        except FileNotFoundError:
            raise LabError(f"{what} needs the program {Path(command[0]).name}, which this machine lacks") from None
        try:
            waited = 0.0
            while True:
                try:
                    process.wait(_PERIOD)
                    break
                except subprocess.TimeoutExpired:
                    waited += _PERIOD
                    _refuse_stopped(what)
                    if waited > timeout:
                        raise LabError(f"{what} did not end within {timeout:.0f} s; run the install again") from None
                    if watch:
                        watch.report(what, before)
        finally:
            if process.poll() is None:
                _kill(process)
        out.seek(0)
        err.seek(0)
        printed, complained = out.read().decode(errors="replace"), err.read().decode(errors="replace")
    if process.returncode:
        if process.returncode < 0:
            _kill(process)  # what it had started may wait for it
        raise LabError(f"{what} failed: {_reason(complained or printed) or _describe_end(process.returncode)}")
    return printed


def _refuse_stopped(what: str) -> None:
    if any(stop.is_set() for stop in _STOPS.get()):
        raise LabError(f"{what} was ended")


def submit(
    pool: ThreadPoolExecutor, stop: threading.Event, work: Callable[P, R], *arguments: P.args, **named: P.kwargs
) -> Future[R]:
    """Have a thread do the work. Once `stop` is set, the program that the work runs is ended, and so is every further
    one."""
    context = contextvars.copy_context()
    context.run(_STOPS.set, (*_STOPS.get(), stop))
    return pool.submit(lambda: context.run(work, *arguments, **named))


def in_threads(work: Callable[[T], object], items: Sequence[T]) -> Generator[T, None, None]:
    """Do the work of each item, as many at once as there are cores; yields an item when it is done.

    When one fails, or whoever waits is interrupted, those that have not begun are left undone, and the programs that
    the others `run` are ended.
    """
    stop = threading.Event()
    with ThreadPoolExecutor(cores()) as pool:
        jobs = {submit(pool, stop, work, item): item for item in items}
        try:
            for job in as_completed(jobs):
                job.result()
                yield jobs[job]
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a program with what it has started."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _describe_end(code: int) -> str:
    return f"signal {-code} ended it; run the install again" if code < 0 else f"exit status {code}"


def _reason(text: str) -> str:
    """The line that says why: the first error line, else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("ERROR", "E:", "error")) or " error: " in line]
    return (errors or lines[-1:] or [""])[0][:1000]


def cores() -> int:
    return os.cpu_count() or 1
