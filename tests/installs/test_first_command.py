"""README's first command by a Windows Python without any package, in an empty prefix of Wine: it installs the wheel,
runs cases on native DirectML and writes the reports.

`pytest -s tests/installs/test_first_command.py` prints the times beside those of Linux.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from epcheck import reports
from epcheck.conformance import lab
from epcheck.conformance.lab.packages.wheels import FOR_WINDOWS
from tests.installs.test_windows import REQUIREMENTS

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the lab is for Linux"),
    pytest.mark.slow,
]

RUN = ("run", "--target", "dml", "--op", "Slice", "--thin", "--root", "runs")
REPORTS = {"report.html", "report.json", "junit.xml", "outcomes.parquet", "run.json", "journal.jsonl"}

NO_DISPLAY = {"Drivers": ("Graphics", "null"), "Direct3D": ("renderer", "no3d")}
"""Keys of Wine in the registry: what the lab's own prefix says of a machine without a display."""

OF_THE_LAB = ("PYTHONPATH", "PYTHONPYCACHEPREFIX", "EPCHECK_MODULE_STORE")
"""Variables by which the lab's Python finds its packages."""


@dataclass(frozen=True)
class Timed:
    """A run. run: its folder. first_s, all_s: seconds until its first record, and until it had ended."""

    run: Path
    printed: str
    first_s: float
    all_s: float


@dataclass(frozen=True)
class EmptyWindows:
    """A Windows that has Python and nothing else. python: a program. argv: what starts a program of Windows."""

    python: Path
    argv: tuple[str, ...]
    environment: Mapping[str, str]

    @classmethod
    def make(cls, folder: Path) -> EmptyWindows:
        launch = lab.python_launch()
        *start, program, _ = launch.argv
        kept = Path(program.removeprefix("Z:").replace("\\", "/")).parent
        python = folder / "python"
        shutil.copytree(kept, python, ignore=shutil.ignore_patterns("site-packages"))
        (folder / "prefix").mkdir()
        made = {"WINEPREFIX": str(folder / "prefix"), "EPCHECK_PRELUDE": lab.windows_path(lab.prelude())}
        environment = {name: value for name, value in launch.env.items() if name not in OF_THE_LAB} | made
        empty = cls(python / "python.exe", tuple(start), environment)
        empty.run_program("wineboot.exe", "-u")
        for key, (name, value) in NO_DISPLAY.items():
            empty.run_program("reg.exe", "add", rf"HKCU\Software\Wine\{key}", "/v", name, "/d", value, "/f")
        return empty

    def run_program(self, *command: str) -> None:
        """Run a program of Windows to its end; the test fails where it does."""
        done = subprocess.run(
            [*self.argv, *command], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
            encoding="utf-8", errors="replace", check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"


def download_wheels(epcheck: Path, folder: Path) -> Path:
    """pip, and what the wheel needs on Windows. Returns pip."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder), *FOR_WINDOWS]
    subprocess.run([*command, "pip", *REQUIREMENTS], check=True)
    shutil.copy2(epcheck, folder)
    (found,) = folder.glob("pip-*.whl")
    return found


def run_timed(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Timed:
    folder.mkdir()
    printed = folder / "printed.txt"
    started = time.monotonic()
    with printed.open("wb") as file:
        process = subprocess.Popen(
            [*command, *RUN], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file
        )
        while process.poll() is None and not any(path.stat().st_size for path in folder.glob("runs/*/journal.jsonl")):
            time.sleep(0.05)
        first_s = time.monotonic() - started
        code = process.wait()
    text = printed.read_text(encoding="utf-8", errors="replace")
    assert code == 0, text
    return Timed(reports.latest(folder / "runs"), text, first_s, time.monotonic() - started)


def test_it_installs_runs_and_reports_in_an_empty_prefix_and_says_what_linux_says(
    wheel: Path,
    installed_lab: None,  # noqa: ARG001
    tmp_path: Path,
) -> None:
    pip = download_wheels(wheel, tmp_path / "wheels")
    empty = EmptyWindows.make(tmp_path)
    started = time.monotonic()
    empty.run_program(
        lab.windows_path(empty.python), lab.windows_path(pip) + "\\pip", "install", "--no-index", "--no-compile",
        "--find-links", lab.windows_path(tmp_path / "wheels"), "epcheck", *REQUIREMENTS[:2],
    )  # fmt: skip
    install_s = time.monotonic() - started
    script = lab.windows_path(empty.python.parent / "Scripts" / "epcheck.exe")
    windows = run_timed([*empty.argv, script], tmp_path / "windows", empty.environment)
    without_cache = {**os.environ, "EPCHECK_CACHE": str(tmp_path / "cache")}
    linux = run_timed([sys.executable, "-m", "epcheck"], tmp_path / "linux", without_cache)
    for name, timed in (("Windows", windows), ("Linux", linux)):
        print(f"{name}: the first record after {timed.first_s:.0f} s, the report after {timed.all_s:.0f} s")
    print(f"Windows: pip installed it within {install_s:.0f} s")
    assert {path.name for path in windows.run.iterdir()} >= REPORTS
    assert reports.read_run(windows.run).targets["dml"]["os"].startswith("Windows")
    assert "dml: no conformance failure" in windows.printed
    statuses = [{r.case_id: r.status for r in reports.read_records(timed.run)} for timed in (windows, linux)]
    assert statuses[0] == statuses[1]
    assert len(statuses[0]) > 150
