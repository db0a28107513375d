"""What only a real Windows shows: interruptions, open files, closed pipes. Run it in the environment of epcheck:

    python windows_check.py

It takes ten minutes at most and writes the folder `windows-check-DATE`: `result.json` has each step with what was
expected and what was found, `run-STEP` the runs, `STEP.txt` what was printed. docs/guides/windows-check.md says what
to look at, and what only a person can do.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import psutil

EPCHECK = [sys.executable, "-m", "epcheck"]
CPU = ("run", "--target", "cpu", "--baseline", "none", "--no-reference")
MANY, FEW = ("--op", "Slice"), ("--op", "Slice", "--limit", "8")
DEADLINE_S, LEFT_S = 120.0, 20.0
"""Seconds that a command may take, and in which nothing of an ended run may be left."""

EVENT = """
import ctypes, sys
kernel, pid, event = ctypes.WinDLL("kernel32", use_last_error=True), int(sys.argv[1]), sys.argv[2]
kernel.FreeConsole()
if not kernel.AttachConsole(pid):
    sys.exit(f"AttachConsole: error {ctypes.get_last_error()}")
kernel.SetConsoleCtrlHandler(None, True)
if event == "close":
    kernel.GetConsoleWindow.restype = ctypes.c_void_p
    window = ctypes.c_void_p(kernel.GetConsoleWindow())
    done = ctypes.WinDLL("user32").PostMessageW(window, 0x10, None, None)  # WM_CLOSE
else:
    done = kernel.GenerateConsoleCtrlEvent(int(event), 0)
sys.exit(0 if done else f"error {ctypes.get_last_error()}")
"""
"""Sends an event to the console of a process, as the keys do: 0 is Ctrl-C, 1 is Ctrl-Break."""


@dataclass(frozen=True)
class Step:
    """One thing that was tried. expected, found: fact -> value; the step is right where they are equal."""

    name: str
    expected: dict[str, object]
    found: dict[str, object]
    seconds: float

    @property
    def is_right(self) -> bool:
        return self.found == self.expected


def main() -> int:
    """0 where every step is as expected, 1 where one is not, 2 elsewhere than on Windows."""
    parser = argparse.ArgumentParser(description="What only a real Windows shows.")
    parser.add_argument("--only", nargs="+", choices=list(STEPS), default=list(STEPS), help="the steps to do")
    options = parser.parse_args()
    if sys.platform != "win32":
        print("windows_check.py: this is no Windows; run it there")
        return 2
    folder = Path(f"windows-check-{datetime.now():%Y%m%d-%H%M%S}").absolute()
    folder.mkdir()
    steps = []
    for name in options.only:
        started = time.monotonic()
        expected, found = STEPS[name](folder)
        steps.append(Step(name, expected, found, round(time.monotonic() - started, 1)))
        print(f"{'right' if steps[-1].is_right else 'WRONG'}  {name}  {steps[-1].seconds} s", flush=True)
        for fact in expected:
            if expected[fact] != found.get(fact):
                print(f"       {fact}: expected {expected[fact]!r}, found {found.get(fact)!r}", flush=True)
    document = {
        "schema": 1,
        "windows": sys.getwindowsversion()[:3],
        "python": sys.version,
        "steps": list(map(asdict, steps)),
    }
    (folder / "result.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"Send this folder: {folder}")
    return 0 if all(step.is_right for step in steps) else 1


Found = tuple[dict[str, object], dict[str, object]]
"""What is expected of a step, and what was found."""


def check_status(folder: Path) -> Found:
    """The machine's description is there within a minute, whatever its management service does."""
    started = time.monotonic()
    done = call(folder, "status", "status")
    found = {"exit code": done.returncode, "within 60 s": time.monotonic() - started < 60}
    return {"exit code": 0, "within 60 s": True}, found


def check_run(folder: Path) -> Found:
    """A run on the CPU provider ends, with every report."""
    done = call(folder, "run", *CPU, *FEW, "--root", "run-run")
    names = {path.name for path in (folder / "run-run").glob("*/*")}
    found = {"exit code": done.returncode, "reports": {"report.html", "junit.xml", "report.json"} <= names}
    return {"exit code": 0, "reports": True}, found


def check_directml(folder: Path) -> Found:
    """The same on DirectML."""
    done = call(folder, "directml", "run", "--target", "dml", "--op", "Relu", "--thin", "--root", "run-directml")
    return {"ended": True}, {"ended": done.returncode in (0, 1)}


def check_ctrl_c(folder: Path) -> Found:
    return interrupt(folder, "ctrl-c", lambda process: send_event(process, "0"), 130)


def check_ctrl_break(folder: Path) -> Found:
    return interrupt(folder, "ctrl-break", lambda process: send_event(process, "1"), 130)


def check_closed_console(folder: Path) -> Found:
    """Windows ends the process; that its records are kept is what counts."""
    return interrupt(folder, "closed-console", lambda process: send_event(process, "close"), None)


def check_killed(folder: Path) -> Found:
    return interrupt(folder, "killed", lambda process: process.kill(), 1)


def interrupt(folder: Path, name: str, end: Callable[[subprocess.Popen[bytes]], object], code: int | None) -> Found:
    """A run in a console of its own is ended in its middle: nothing of it is left, and it can be taken up again."""
    root = folder / f"run-{name}"
    with (folder / f"{name}.txt").open("wb") as printed:
        process = subprocess.Popen(
            [*EPCHECK, *CPU, *MANY, "--root", str(root)], cwd=folder, stdin=subprocess.DEVNULL, stdout=printed,
            stderr=printed, creationflags=getattr(subprocess, "CREATE_NEW_CONSOLE", 0),
        )  # fmt: skip
        has_begun = wait_for(lambda: any(path.stat().st_size for path in root.glob("*/journal.jsonl")))
        family = find_workers(process.pid)
        end(process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LEFT_S)
        has_ended = process.poll() is not None
        process.kill()
    is_clean = wait_for(lambda: not any(member.is_running() for member in family), LEFT_S)
    (run,) = root.iterdir()
    kept = len((run / "journal.jsonl").read_text(encoding="utf-8").splitlines())
    resumed = call(folder, f"{name}-resumed", "run", "--resume", str(run))
    status = json.loads((run / "run.json").read_text(encoding="utf-8"))["status"]
    found: dict[str, object] = {
        "began": has_begun, "workers": bool(family), "ended": has_ended, "nothing is left": is_clean,
        "records are kept": kept > 0, "resumed": (resumed.returncode, status),
    }  # fmt: skip
    expected = {**dict.fromkeys(found, True), "resumed": (0, "complete")}
    if code is not None:
        found["exit code"], expected["exit code"] = process.returncode, code
    return expected, found


def check_open_report(folder: Path) -> Found:
    """A report that another program has open stays, and the new one is beside it."""
    call(folder, "open-report-run", *CPU, *FEW, "--root", "run-open-report")
    (page,) = (folder / "run-open-report").glob("*/report.html")
    with page.open("rb"):
        done = call(folder, "open-report", "report", str(page.parent))
    beside = page.with_name("report.new.html")
    words = f"what was to replace it is in '{beside}'"
    found = {"exit code": done.returncode, "said": words in done.stdout, "beside": beside.exists()}
    return {"exit code": 2, "said": True, "beside": True}, found


def check_closed_pipe(folder: Path) -> Found:
    """A reader that goes away is no fault."""
    with subprocess.Popen([*EPCHECK, "list"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        errors = process.stderr.read().decode("utf-8", "replace")
        code = process.wait(DEADLINE_S)
    return {"exit code": 1, "errors": ""}, {"exit code": code, "errors": errors}


STEPS: dict[str, Callable[[Path], Found]] = {
    "status": check_status,
    "run": check_run,
    "directml": check_directml,
    "ctrl-c": check_ctrl_c,
    "ctrl-break": check_ctrl_break,
    "closed-console": check_closed_console,
    "killed": check_killed,
    "open-report": check_open_report,
    "closed-pipe": check_closed_pipe,
}


def find_workers(pid: int) -> list[psutil.Process]:
    """The Python processes below a process; what a console has of its own is none of them."""
    below = psutil.Process(pid).children(recursive=True)
    return [member for member in below if member.name().lower().startswith("python")]


def send_event(process: subprocess.Popen[bytes], event: str) -> None:
    """Have another process send an event to the console of a process."""
    subprocess.run([sys.executable, "-c", EVENT, str(process.pid), event], stdin=subprocess.DEVNULL, check=False)


def call(folder: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run epcheck in the folder; what it prints is in the folder, too."""
    done = subprocess.run(
        [*EPCHECK, *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        encoding="utf-8", errors="replace", timeout=10 * DEADLINE_S, check=False,
    )  # fmt: skip
    (folder / f"{name}.txt").write_text(done.stdout, encoding="utf-8")
    return done


def wait_for(is_so: Callable[[], bool], seconds: float = DEADLINE_S) -> bool:
    """Whether something becomes so in time."""
    until = time.monotonic() + seconds
    while not (found := is_so()) and time.monotonic() < until:
        time.sleep(0.1)
    return found


if __name__ == "__main__":
    sys.exit(main())
