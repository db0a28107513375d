"""A command that is attacked: a fork of this process, which has imported epcheck, in a folder of its own."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.attacks.scenes import Scene

IMPORTED = ("epcheck.cli.main", "epcheck.cli.commands.suite.run", "epcheck.cli.commands.models.validate", "pyarrow",
            "epcheck.cli.commands.runs.store", "epcheck.cli.commands.suite.nightly", "onnx.reference")  # fmt: skip
MARK = "EPCHECK_HOOK_ATTACK"
"""Environment variable by which all processes of an attack are known. The lab hands on those of this beginning."""

HANG_S, GRACE_S = 240.0, 15.0
"""After what a command hangs, and how long its processes may take to end after it."""

OF_COMMAND = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGSTOP)
OF_OTHERS = (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGSTOP)
INTERRUPTED = 130


class InChild(BaseException):
    """Raised in the fork that becomes the command, so that it ends as a program does."""


@dataclass(frozen=True)
class Ended:
    """code: exit code, or minus the signal. printed: on stdout and stderr."""

    code: int
    printed: str
    left: tuple[str, ...]


class Attacked:
    """A command that runs in a folder. mark: of its processes."""

    def __init__(self, arguments: tuple[str, ...], folder: Path, cache: Path) -> None:
        self.mark = uuid.uuid4().hex
        self._folder = folder
        self.pid = os.fork()
        if self.pid:
            return
        os.setsid()
        os.chdir(folder)
        for number in OF_COMMAND[:3]:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(os.open(folder / "printed", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.dup2(1, 2)
        (folder / "tmp").mkdir(exist_ok=True)
        os.environ.update({MARK: self.mark, "TMPDIR": str(folder / "tmp"), "EPCHECK_CACHE": str(cache),
                           "XDG_CACHE_HOME": str(folder / "user"), "COLUMNS": "200"})  # fmt: skip
        tempfile.tempdir = None
        sys.argv = ["epcheck", *arguments]
        raise InChild

    def others(self) -> list[psutil.Process]:
        """The processes that it has started."""
        try:
            return psutil.Process(self.pid).children(recursive=True)
        except psutil.Error:
            return []

    def ended(self) -> Ended:
        """Wait for its end, which a stopped one does not come to: it is killed after a while."""
        until = time.monotonic() + HANG_S
        code: int | None = None
        while code is None and time.monotonic() < until:
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if pid and os.WIFSTOPPED(status):
                time.sleep(0.3)
                os.kill(self.pid, signal.SIGCONT)
            elif pid:
                code = os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        hangs = code is None
        if hangs:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        left = self._left()
        printed = (self._folder / "printed").read_text(encoding="utf-8", errors="replace")
        return Ended(-1000 if code is None else code, printed, left)

    def _left(self) -> tuple[str, ...]:
        """Processes of this command that run after a while; they are ended."""
        until = time.monotonic() + GRACE_S
        while (found := marked(self.mark)) and time.monotonic() < until:
            time.sleep(0.1)
        words = tuple(" ".join(_command(process))[-200:] for process in found)
        for process in found:
            process.kill()
        return words


def marked(mark: str) -> list[psutil.Process]:
    """The processes of an attack that run."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == mark:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def faults(words: str, ended: Ended) -> list[str]:
    """What is wrong with how an attacked command ended."""
    found = []
    if ended.code == -1000:
        found.append("hangs")
    if "Traceback" in ended.printed or "please report it" in ended.printed:
        found.append(f"traceback: {ended.printed[-600:]}")
    if ended.left:
        found.append(f"processes are left: {ended.left}")
    wanted = (0, 1, 2) if "process" in words or "STOP" in words or "nothing" in words else (INTERRUPTED, -9, 0, 1, 2)
    if ended.code not in wanted and ended.code != -1000:
        found.append(f"exit code {ended.code}: {ended.printed[-300:]}")
    return found


def temporary_files(folder: Path) -> list[str]:
    """Of the command and its processes."""
    found = [*(folder / "tmp").rglob("*"), *(folder / "user" / "epcheck" / "workers").glob("*")]
    found += [path for path in folder.rglob("*") if path.name.endswith((".tmp", ".part"))]
    return sorted({str(path.relative_to(folder)) for path in found})


def do_again(scene: Scene, folder: Path, cache: Path, kept: dict[str, str], truth: Any) -> list[str]:
    """Go on with a command that was disturbed, or do it again; what is wrong then. kept: what it had recorded."""
    done = Attacked(scene.again(folder), folder, scene.cache(folder, cache)).ended()
    found = [f"again: {fault}" for fault in faults("nothing", done)]
    if left := temporary_files(folder):
        found.append(f"temporary files: {left[:4]}")
    try:
        result, now = scene.result(folder), scene.kept(folder)
    except Exception as error:
        return [*found, f"no result: {error!r}; {done.printed[-300:]}"]
    if lost := {name for name, status in kept.items() if now.get(name) != status}:
        found.append(f"{len(lost)} recorded outcomes are lost or others: {sorted(lost)[:2]}")
    if result != truth:
        found.append(f"another result: {difference(truth, result)}; {done.printed[-300:]}")
    return found


def difference(truth: Any, result: Any) -> str:
    """Where two results differ, shortly."""
    if isinstance(truth, tuple) and truth and isinstance(truth[0], dict):
        cases = {name for name in truth[0].keys() | result[0].keys() if truth[0].get(name) != result[0].get(name)}
        some = [(name, truth[0].get(name), result[0].get(name)) for name in sorted(cases)[:2]]
        return f"{len(cases)} cases, {some}; {result[1:]} in place of {truth[1:]}"
    return f"{result} in place of {truth}"


def undisturbed(scene: Scene, folder: Path, cache: Path) -> tuple[Any, float]:
    """The result of a command that nobody attacks, and the seconds that it takes when the cache is warm."""
    for number in range(2):
        place = folder / f"{scene.name} {number}"
        place.mkdir(parents=True)
        scene.prepare(place)
        began = time.monotonic()
        ended = Attacked(scene.command, place, scene.cache(place, cache)).ended()
        seconds = time.monotonic() - began
        if (found := faults("nothing", ended)) or ended.code == 2:
            raise SystemExit(f"{scene.name}, undisturbed: {found} {ended.printed[-600:]}")
    return scene.result(place), seconds


def program(main: Callable[[], int]) -> int:
    """Do `main`, an attack, whose forks become the commands; the exit code."""
    for name in IMPORTED:
        importlib.import_module(name)
    try:
        return main()
    except InChild:
        from epcheck.cli.start import main as epcheck

        epcheck()
        return 0
