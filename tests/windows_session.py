"""Fast tests by Windows Python, in the DirectML lab: `nox -s windows`. On Windows itself, that runs all of them.

Wine stands in for Windows: paths, files, processes, consoles and the native `dml` target are those that Windows users
have. What Wine cannot do is in `wine_limits.py`; anything else that fails is a fault of epcheck or of a test.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path

from epcheck.conformance import lab

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "windows"

REQUIREMENTS = Path(__file__).with_name("windows-requirements.txt")
"""What the tests need besides Windows Python, numpy and onnxruntime-directml, which the lab has: wheels with hashes."""

LEFT_OUT = (
    "tests/api/bug_reports", "tests/api/fuzzing", "tests/api/test_certify.py", "tests/api/test_first_verdict.py",
    "tests/api/test_replay_models.py", "tests/api/test_replay_truths.py", "tests/api/test_repro.py",
    "tests/api/test_variants.py", "tests/benchmarks", "tests/cli/test_demo.py", "tests/cli/test_reduce.py",
    "tests/conformance/cache/test_code_digest.py", "tests/conformance/fuzzing",
    "tests/conformance/scheduling/test_case_scheduler.py", "tests/conformance/scheduling/test_run_history.py",
    "tests/examples/test_examples.py", "tests/fuzzing", "tests/models/execution", "tests/models/fix",
    "tests/models/gate", "tests/models/harvest", "tests/models/precision", "tests/models/validation",
    "tests/models/zoo", "tests/mutants", "tests/reports/store/test_columns.py", "tests/reports/trend",
)  # fmt: skip
"""Of the fast tests those that start a process, or search, for each of many questions that are not of the system: a
process takes a second to start under Wine, and these as long as all others. On Windows itself they run, too."""

FAST = "not lab and not browser and not slow"

START = """
import os, runpy, sys
os.environ["TEMP"] = os.environ["TMP"] = {temp!r}
sys.path.append({startup!r})
sys.argv = ["pytest", *{arguments!r}]
runpy.run_module("pytest", run_name="__main__")
"""
"""A program of Windows Python. Wine takes the names of temporary folders from the prefix, which all share. What starts
Python from a store of modules leaves `sys.path` by itself, and what tests start takes its path from there."""

STORE = """
import contextlib, importlib, pkgutil, sys
import module_store
import epcheck
own = [module.name for module in pkgutil.walk_packages(epcheck.__path__, "epcheck.", onerror=lambda name: None)]
for name in [*{names!r}, *own]:
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
module_store.write({store!r}, tuple({{name.partition(".")[0] for name in sys.modules}} - set(sys.stdlib_module_names)))
"""
"""A program of Windows Python that imports modules and keeps what it has imported, as a worker of the lab does."""

STORED = (
    "pytest", "_pytest.assertion.rewrite", "xdist.remote", "xdist.plugin", "hypothesis.strategies", "yaml",
    "jsonschema", "numpy", "onnx", "onnx.reference", "onnx.checker", "onnx.shape_inference", "onnx.version_converter",
    "onnx.numpy_helper", "onnx.reference.ops.op_add", "onnxruntime", "ml_dtypes", "pyarrow", "pyarrow.parquet",
    "pyarrow.compute", "duckdb", "typer", "typer.testing", "rich.console", "rich.table", "rich.progress", "rich.live",
    "jinja2", "platformdirs", "psutil", "msgspec", "filelock", "packaging.specifiers", "threadpoolctl", "lazy_loader",
    "unittest.mock", "asyncio", "multiprocessing.spawn", "sqlite3", "xml.etree.ElementTree", "xml.sax.saxutils",
    "http.server", "tomllib", "importlib.metadata", "importlib.resources", "concurrent.futures.thread", "tarfile",
)  # fmt: skip
"""Modules that many processes of tests import."""


def main(arguments: Sequence[str]) -> int:
    """Run the tests. arguments: of pytest, in place of all but LEFT_OUT. Returns pytest's exit code."""
    started = time.monotonic()
    if not lab.status().installed:
        if reason := lab.can_install():
            print(reason)
            return 2
        lab.install()
    with lab.in_use(), tempfile.TemporaryDirectory(prefix="epcheck-windows-") as scratch:
        environment = make_environment(Path(scratch))
        print(f"Windows Python is ready after {time.monotonic() - started:.0f} s", flush=True)
        temporary = Path(scratch, "temp")
        temporary.mkdir()
        chosen = arguments or ["--numprocesses", "logical", *(f"--ignore={part}" for part in LEFT_OUT), "tests"]
        options = ["-m", FAST, "-p", "no:cacheprovider", *chosen]
        startup = environment["PYTHONPATH"].partition(";")[0]
        program = START.format(temp=lab.windows_path(temporary), arguments=options, startup=startup)
        code = run_windows_python(["-c", program], environment)
    print(f"The session took {time.monotonic() - started:.0f} s")
    return code


def make_environment(scratch: Path) -> dict[str, str]:
    """The environment in which Windows Python has epcheck, as an editable install has it, and what the tests need."""
    site = install_site()
    launch = lab.python_launch()
    environment = {
        **launch.env,
        "WINEPREFIX": str(copy_prefix(scratch / "prefix")),
        "PYTHONPATH": ";".join([launch.env["PYTHONPATH"], *map(lab.windows_path, (site, ROOT / ".editable"))]),
        "PYTHONPYCACHEPREFIX": lab.windows_path(BUILD / "pycache"),
        "EPCHECK_PRELUDE": lab.windows_path(lab.prelude()),
        "EPCHECK_MODULE_STORE": lab.windows_path(scratch / "modules"),
    }
    program = STORE.format(names=STORED, store=environment["EPCHECK_MODULE_STORE"])
    if code := run_windows_python(["-c", program], environment):
        raise SystemExit(f"Windows Python does not start: exit code {code}")
    return environment


def install_site() -> Path:
    """The folder with what REQUIREMENTS names, and what describes this checkout as a distribution."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]
    site = BUILD / f"site-{digest}"
    if not site.exists():
        draft = site.with_suffix(".draft")
        shutil.rmtree(draft, ignore_errors=True)
        lab.pip_install_windows(["--no-deps", "--require-hashes", "-r", str(REQUIREMENTS)], draft)
        draft.replace(site)
    metadata = Path(str(distribution("epcheck").locate_file("")))
    for described in metadata.glob("epcheck-*.dist-info"):
        shutil.copytree(described, site / described.name, dirs_exist_ok=True)
    return site


def copy_prefix(own: Path) -> Path:
    """A Wine prefix of our own, and so a server of our own, which lives as long as its programs: Wine's server opens
    files for its programs, and one that a jailed worker of the lab started may write in the lab's folders only."""
    shared = Path(lab.python_launch().env["WINEPREFIX"])
    own.mkdir()
    for entry in shared.iterdir():
        if entry.name == "drive_c":
            (own / entry.name).symlink_to(entry)
        elif entry.name == "dosdevices":
            shutil.copytree(entry, own / entry.name, symlinks=True)
        elif entry.name != "wineserver":  # which names the server's folder
            shutil.copy2(entry, own)
    return own


def run_windows_python(arguments: Sequence[str], environment: dict[str, str]) -> int:
    """Run Windows Python to its end in the checkout; returns its exit code."""
    command = [*lab.python_launch().argv, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
