"""epcheck as a Windows program: the wheel in the lab's Windows Python, where `sys.platform` is win32.

Wine stands in for Windows: process and path handling, the native `dml` target, the command line and the store are the
ones that Windows users have.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from epcheck import reports
from epcheck.conformance import lab
from tests import windows_session

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there the whole suite runs on Windows itself")

REQUIREMENTS = (
    "numpy==1.26.4",  # the newest that loads under Wine 10
    "pyarrow<20",  # the newest that takes numpy 1
    f"onnxruntime-directml=={lab.DEFAULT_RUNTIME}",
    *("onnx", "ml-dtypes", "pytest", "typer", "rich", "jinja2", "platformdirs", "psutil", "colorama", "duckdb"),
    *("msgspec", "filelock", "packaging", "threadpoolctl", "lazy-loader"),
)

RunPython = Callable[..., subprocess.CompletedProcess[str]]
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
    return windows_session.copy_prefix(tmp_path_factory.mktemp("own") / "prefix")


@pytest.fixture(scope="module")
def run_python(site: Path, prefix: Path) -> RunPython:
    """The lab's Windows Python with epcheck: a folder to run in, a script, and what of the environment is set."""

    def run(folder: Path, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        launch = lab.python_launch()
        environment = {
            **launch.env,
            "WINEPREFIX": str(prefix),
            "PYTHONPATH": lab.windows_path(site),
            "EPCHECK_PRELUDE": lab.windows_path(lab.prelude()),
            **variables,
        }
        return subprocess.run(
            [*launch.argv, "-c", script],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    return run


@pytest.fixture(scope="module")
def epcheck(run_python: RunPython) -> Epcheck:
    """The `epcheck` command in the lab's Windows Python: a folder to run in, arguments, and what of the environment is
    set."""

    def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        script = f"import sys; sys.argv = ['epcheck', *{list(arguments)!r}]; from epcheck.cli.start import main; main()"
        return run_python(folder, script, **variables)

    return run


@pytest.fixture(scope="module")
def launcher(installed_lab: None, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001
    """What starts the lab's Windows Python as `Scripts\\python.exe` of a virtual environment starts its interpreter."""
    interpreter = lab.python_launch().argv[-2].replace("\\", "\\\\")
    made = tmp_path_factory.mktemp("venv") / "python.exe"
    compile_windows("launcher.c", made, f'-DTARGET=L"{interpreter}"')
    return made


def compile_windows(source: str, made: Path, *options: str) -> None:
    """A program or library for Windows of a file of this folder."""
    compiler = shutil.which("x86_64-w64-mingw32-gcc")
    if compiler is None:
        pytest.skip("needs x86_64-w64-mingw32-gcc, of Debian's package gcc-mingw-w64-x86-64-win32")
    subprocess.run([compiler, "-O1", *options, "-o", made, Path(__file__).parent / source], check=True)


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


SMALL = """[targets.small]
python = '{}'
memory_mib = 120
"""


def test_a_bound_of_memory_holds_behind_the_launcher_of_a_virtual_environment(
    epcheck: Epcheck, launcher: Path, tmp_path: Path
) -> None:
    (tmp_path / "epcheck.toml").write_text(SMALL.format(lab.windows_path(launcher)), encoding="utf-8")
    done = epcheck(tmp_path, "run", "--target", "small", "--op", "Slice", "--limit", "5")
    assert done.returncode == 2, done.stdout + done.stderr
    assert re.search(r"the worker used \d{3} MiB of memory; the limit is 120 MiB", done.stdout + done.stderr)


WATCHED = """
import json, os, queue, sys, time
import psutil
from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.process import FrameReceived, WorkerProcess

def backend(model, feeds):
    return feeds

if __name__ == "__main__":
    events = queue.SimpleQueue()
    worker = WorkerProcess(Target("behind", (sys.argv[1],), ("python:watched:backend", "--path", os.getcwd())), events)
    hello = events.get(timeout=60)
    assert isinstance(hello, FrameReceived), hello
    started = worker.process.pid
    found = {"before": worker.pid == started}
    for name, stated in (("stated", hello.header["pid"]), ("own", os.getpid()), ("none", None), ("text", "7")):
        worker.take_pid(stated)
        found[name] = psutil.Process(worker.pid).exe()
    worker.take_pid(hello.header["pid"])
    own = psutil.Process(worker.pid).memory_info().rss
    found["parent"] = psutil.Process(worker.pid).ppid() == started
    found["counted"] = worker.resident_bytes() - own
    found["launcher"] = psutil.Process(started).memory_info().rss
    found["cpu_s"] = worker.cpu_seconds(children=False)
    worker.kill("seen")
    found["left"] = psutil.pid_exists(hello.header["pid"])
    print(json.dumps(found))
"""


def test_a_worker_says_which_process_it_is_and_nobody_elses_is_taken_for_it(
    run_python: RunPython, launcher: Path, tmp_path: Path
) -> None:
    (tmp_path / "watched.py").write_text(WATCHED, encoding="utf-8")
    windows = lab.windows_path(launcher)
    script = (
        f"import runpy, sys; sys.argv = ['watched.py', {windows!r}]; runpy.run_path('watched.py', None, '__main__')"
    )
    done = run_python(tmp_path, script)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    interpreter = lab.python_launch().argv[-2]
    assert found["stated"].lower() == interpreter.lower()
    assert {found[name].lower() for name in ("own", "none", "text")} == {windows.lower()}
    assert found["before"]
    assert found["parent"]
    assert 0 < found["launcher"] <= found["counted"] + (1 << 20)
    assert found["cpu_s"] > 0.1
    assert not found["left"]


NATIVE = """
import ctypes, os, runpy, sys
runpy.run_path(os.environ["LAB_PRELUDE"], run_name="epcheck_prelude")
shim = sys.modules["d3d12_shim"]
numbers = [int(number) for number in os.environ["DRIVER"].split(".")]
shim._ANY_DRIVER_VERSION = sum(number << place for number, place in zip(numbers, (48, 32, 16, 0)))
shim._report_vendor(shim._first_adapter(), 0x10DE, int(os.environ["DEVICE"], 16))
calls = []

def hang(this):
    calls.append(1)
    return 0x887A0006 - (1 << 32) if len(calls) >= int(os.environ["HANGS_AT"]) else 0

if "HANGS_AT" in os.environ:
    GET_DEVICE_REMOVED_REASON = 37
    shim._patch(shim._device, GET_DEVICE_REMOVED_REASON, shim._hook(hang, ctypes.c_void_p))
del sys._epcheck_facts
"""
"""A prelude that makes DirectML run in the lab and states no facts: the worker asks DXGI, as it does on Windows. The
version of the driver and the ids of the adapter, which Wine does not have, are those of the environment; so is at which
of its questions DirectML's provider hears that the device hangs, which no device of Wine does."""

OLDER, NEWER = "31.0.101.4502", "32.0.101.8331"
FEW = ("--target", "dml", "--op", "Slice", "--dtype", "int64", "--limit", "4")

EXPECTED = """[[expect]]
case = "Slice-*/int64/*"
status = "mismatch"
reason = "of the newer driver"
when = { driver = ">=32" }
"""

Native = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def native(epcheck: Epcheck, tmp_path_factory: pytest.TempPathFactory) -> Native:
    """The command on a machine with a GPU: the folder to run in, the driver, the PCI id, arguments, and what else of
    the environment is set."""
    prelude = tmp_path_factory.mktemp("prelude") / "native.py"
    prelude.write_text(NATIVE, encoding="utf-8")

    def run(
        folder: Path, driver: str, device: str, *arguments: str, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        variables |= {"EPCHECK_PRELUDE": lab.windows_path(prelude), "LAB_PRELUDE": lab.windows_path(lab.prelude())}
        return epcheck(folder, *arguments, DRIVER=driver, DEVICE=device, **variables)

    return run


@pytest.fixture(scope="module")
def nights(native: Native, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Three nights: on a GPU, on it with another driver, and on another GPU behind the same processor. Their folder,
    and what each printed."""
    folder = tmp_path_factory.mktemp("nights")
    (folder / "known.toml").write_text(EXPECTED, encoding="utf-8")
    printed = []
    for driver, device in ((OLDER, "2684"), (NEWER, "2684"), (NEWER, "2704")):
        done = native(folder, driver, device, "nightly", *FEW, "--fuzz-minutes", "0", "--expect", "known.toml")
        assert done.returncode == 0, done.stdout + done.stderr
        printed.append(" ".join(done.stdout.split()))
    return folder, printed


def runs_of(folder: Path) -> list[Path]:
    return sorted((folder / "epcheck-runs").iterdir())


def test_a_native_worker_states_adapter_and_driver(nights: tuple[Path, list[str]]) -> None:
    facts = reports.read_run(runs_of(nights[0])[0]).targets["dml"]
    assert facts["adapter"]
    assert (facts["vendor_id"], facts["device_id"], facts["driver_version"]) == ("0x10de", "0x2684", OLDER)
    assert re.fullmatch(r"0x[0-9a-f]{8}_0x[0-9a-f]{8}", facts["luid"])
    assert facts["d3d_feature_level"] in ("11_0", "11_1", "12_0", "12_1", "12_2")


def test_a_new_driver_is_named_in_nightly_diff_and_trend(native: Native, nights: tuple[Path, list[str]]) -> None:
    folder, (first, second, _) = nights
    changed = f"Changed: driver: {OLDER} → {NEWER}."
    assert "First night of DmlExecutionProvider on " in first
    assert changed in second
    older, newer, _ = (path.name for path in runs_of(folder))
    done = native(folder, NEWER, "2684", "diff", f"epcheck-runs/{older}", f"epcheck-runs/{newer}")
    assert changed in " ".join(done.stdout.split()), done.stdout + done.stderr
    done = native(folder, NEWER, "2684", "trend", "--json", "trend.json")
    assert done.returncode == 0, done.stdout + done.stderr
    machines = json.loads((folder / "trend.json").read_text(encoding="utf-8"))["trend"]["machines"]
    (machine,) = (each for each in machines if "10de:2684" in each["name"])
    assert machine["nights"][1]["changed"] == [{"part": "driver", "older": OLDER, "newer": NEWER}]


def test_two_adapters_behind_one_processor_are_two_classes(nights: tuple[Path, list[str]]) -> None:
    first, second, third = nights[1]
    assert "[10de:2684], operators Slice" in first
    assert "First night of" not in second
    assert "First night of" in third
    assert "[10de:2704], operators Slice" in third


def test_an_expectation_about_a_driver_applies_natively(nights: tuple[Path, list[str]]) -> None:
    readings = [{record.reading for record in reports.read_records(run)} for run in runs_of(nights[0])]
    assert readings == [{"ok"}, {"fixed"}, {"fixed"}]


def test_a_device_that_hangs_is_told_with_the_reason_that_direct3d_gives(native: Native, tmp_path: Path) -> None:
    done = native(tmp_path, OLDER, "2684", "run", *FEW[:-1], "1", "--jobs", "1", HANGS_AT="6")
    assert done.returncode == 1, done.stdout + done.stderr
    run = reports.latest(tmp_path / "epcheck-runs")
    (record,) = reports.read_records(run)
    assert record.status == "crash"
    assert "the device was lost (hung: it did not respond" in record.reason
    assert "887A0006" in record.candidate.message
    assert "hung: it did not respond" in (run / "report.html").read_text(encoding="utf-8")


WITH_AN_NPU = """
import ctypes, json
ctypes.CDLL({!r})
from epcheck.conformance.workers.program.backends.directml import adapters
npu = [("DmlExecutionProvider", {{"device_filter": "npu"}})]
print(json.dumps([adapters.list_adapters(), adapters.adapter_facts(npu)]))
"""


def test_an_npu_that_dxcore_alone_lists_has_facts(run_python: RunPython, tmp_path: Path) -> None:
    compile_windows("dxcore.c", tmp_path / "dxcore.dll", "-shared")
    done = run_python(tmp_path, WITH_AN_NPU.format(lab.windows_path(tmp_path / "dxcore.dll")))
    assert done.returncode == 0, done.stdout + done.stderr
    (of_dxgi, npu), facts = json.loads(done.stdout)
    assert of_dxgi[0] == 0
    assert npu == [None, "Intel(R) AI Boost", 0x8086, 0x643E, 0xE001, "32.0.100.3104", False]
    assert facts == {
        "adapter": "Intel(R) AI Boost",
        "vendor_id": "0x8086",
        "device_id": "0x643e",
        "driver_version": "32.0.100.3104",
        "luid": "0x00000000_0x0000e001",
    }
