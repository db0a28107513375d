"""epcheck as a Windows program: the wheel in the lab's Windows Python, where `sys.platform` is win32.

Wine stands in for Windows: process and path handling, the native `dml` target, the command line and the store are the
ones that Windows users have.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from epcheck import reports
from epcheck.conformance import lab

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there the whole suite runs on Windows itself")

REQUIREMENTS = (
    "numpy==1.26.4",  # the newest that loads under Wine 10
    "pyarrow<20",  # the newest that takes numpy 1
    f"onnxruntime-directml=={lab.DEFAULT_RUNTIME}",
    *("onnx", "ml-dtypes", "pytest", "typer", "rich", "jinja2", "platformdirs", "psutil", "colorama", "duckdb"),
    *("msgspec", "filelock", "packaging", "threadpoolctl", "lazy-loader"),
)

Epcheck = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def site(wheel: Path, installed_lab: None, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001
    """A folder with everything epcheck needs on Windows, and epcheck's own wheel."""
    folder = tmp_path_factory.mktemp("site")
    lab.pip_install_windows(REQUIREMENTS, folder)
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


@pytest.fixture(scope="module")
def prefix(installed_lab: None, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001
    """A Wine prefix of our own, and so a server of our own: Wine's server opens files for its programs, and one that a
    jailed worker of another test started may write in the lab's folders only."""
    shared, own = Path(lab.python_launch().env["WINEPREFIX"]), tmp_path_factory.mktemp("prefix")
    for entry in shared.iterdir():
        if entry.name == "drive_c":
            (own / entry.name).symlink_to(entry)
        elif entry.name == "dosdevices":
            shutil.copytree(entry, own / entry.name, symlinks=True)
        elif entry.name != "wineserver":  # which names the server's folder
            shutil.copy2(entry, own)
    return own


@pytest.fixture(scope="module")
def epcheck(site: Path, prefix: Path) -> Epcheck:
    """The `epcheck` command in the lab's Windows Python: a folder to run in, and arguments."""

    def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        launch = lab.python_launch()
        script = f"import sys; sys.argv = ['epcheck', *{list(arguments)!r}]; from epcheck.cli.start import main; main()"
        environment = {
            **launch.env,
            "WINEPREFIX": str(prefix),
            "PYTHONPATH": lab.windows_path(site),
            "EPCHECK_PRELUDE": lab.windows_path(lab.prelude()),
        }
        return subprocess.run(
            [*launch.argv, "-c", script],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )

    return run


def test_the_default_target_is_native_directml_and_every_pass_is_proved(epcheck: Epcheck, tmp_path: Path) -> None:
    done = epcheck(tmp_path, "run", "--op", "Slice", "--dtype", "int64", "--limit", "40")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Candidate: dml (native DirectML)" in done.stdout
    run = reports.latest(tmp_path / "epcheck-runs")
    assert reports.read_run(run).targets["dml"]["os"].startswith("Windows")
    passes = [r.candidate.assignment for r in reports.read_records(run) if r.status == "pass"]
    assert len(passes) > 30
    assert set(passes) == {(("DmlExecutionProvider", "Slice"),)}


def test_a_crash_of_a_worker_is_contained_and_named(epcheck: Epcheck, tmp_path: Path) -> None:
    (tmp_path / "crashing.py").write_text("import os\n\ndef backend(model, feeds):\n    os.abort()\n", encoding="utf-8")
    done = epcheck(tmp_path, "run", "--target", "python:crashing:backend", "--op", "TopK", "--limit", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    records = list(reports.read_records(reports.latest(tmp_path / "epcheck-runs")))
    assert [r.status for r in records] == ["crash", "crash"], done.stdout + done.stderr


def test_bad_input_is_one_sentence_and_exit_code_2(epcheck: Epcheck, tmp_path: Path) -> None:
    done = epcheck(tmp_path, "run", "--target", "rocm")
    assert done.returncode == 2
    assert done.stderr.strip().startswith(
        "epcheck: unknown target 'rocm'. Known targets: cpu, dml, directml, reference"
    )
    assert "Traceback" not in done.stderr


def test_a_repro_folder_has_onnx_s_own_layout(epcheck: Epcheck, tmp_path: Path) -> None:
    case = "Slice-13/float32/inner_backward_by_2[initializer]"
    done = epcheck(tmp_path, "repro", case, "--out", "here")
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = (tmp_path / "here").iterdir()
    assert sorted(path.name for path in (folder / "test_data_set_0").iterdir()) == ["input_0.pb", "output_0.pb"]


def test_the_runner_writes_windows_paths_and_utf_8(epcheck: Epcheck, tmp_path: Path) -> None:
    folder = tmp_path / "Prüfung"
    os.mkdir(folder)  # noqa: PTH102
    done = epcheck(folder, "run", "--target", "cpu", "--op", "Slice", "--limit", "5", "--root", "Läufe")
    assert done.returncode == 0, done.stdout + done.stderr
    run = reports.latest(folder / "Läufe")
    assert json.loads((run / "run.json").read_text(encoding="utf-8"))["status"] == "complete"
