"""The first moments of a command: signals and streams, before anything of epcheck is imported, and at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.command_line import ENVIRONMENT, START

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and streams")

SIGNALS = ("SIGINT", "SIGTERM", "SIGBREAK" if sys.platform == "win32" else "SIGHUP")
AT_THE_FIRST_IMPORT = """
import os, signal, sys
class Interrupted:
    def find_spec(self, name, *_):
        if name == "{module}":
            signal.raise_signal(signal.{signal})
sys.meta_path.insert(0, Interrupted())
import epcheck.cli.start
sys.argv = ["epcheck", "list", "targets"]
epcheck.cli.start.main()
"""


def heard() -> None:
    """In a child: signals are not ignored, as they are in what a shell runs in the background."""
    for name in SIGNALS:
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def ended(command: list[str], cwd: Path, **options: object) -> subprocess.CompletedProcess[bytes]:
    before = None if sys.platform == "win32" else heard
    how = {"env": ENVIRONMENT, "capture_output": True, "preexec_fn": before, "timeout": 60, **options}
    return subprocess.run(command, cwd=cwd, check=False, **how)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize(
    ("name", "module"),
    [
        *((name, "epcheck.cli.main") for name in SIGNALS),
        *(("SIGINT", module) for module in ("typer", "rich.console", "epcheck.api")),
    ],
)
def test_a_signal_while_epcheck_is_imported_is_130_and_no_traceback(tmp_path: Path, name: str, module: str) -> None:
    done = ended([sys.executable, "-c", AT_THE_FIRST_IMPORT.format(module=module, signal=name)], tmp_path)
    assert (done.returncode, done.stderr, done.stdout) == (130, b"epcheck: interrupted\n", b"")


AT_THE_END = """
import atexit, os, signal, sys
def late():
    for name in {signals!r}:
        number = getattr(signal, name)
        signal.raise_signal(number)
        print(signal.getsignal(number).name, flush=True)
atexit.register(late)
import epcheck.cli.start
sys.argv = ["epcheck", "--version"]
epcheck.cli.start.main()
"""


def test_signals_when_all_is_done_change_nothing(tmp_path: Path) -> None:
    """Python itself sets them back to what ends a process, and goes on for a while."""
    done = ended([sys.executable, "-c", AT_THE_END.format(signals=SIGNALS)], tmp_path)
    assert (done.returncode, done.stderr, done.stdout.split()[-3:]) == (0, b"", [b"SIG_IGN"] * 3)


@posix
@pytest.mark.parametrize("name", ["SIGHUP", "SIGINT"])
def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path, name: str) -> None:
    def ignore() -> None:
        signal.signal(getattr(signal, name), signal.SIG_IGN)

    program = AT_THE_FIRST_IMPORT.format(module="epcheck.api", signal=name)
    done = ended([sys.executable, "-c", program], tmp_path, preexec_fn=ignore)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_reader_that_goes_away_is_no_fault(tmp_path: Path) -> None:
    """Windows says EINVAL of a pipe that nobody reads, Linux EPIPE."""
    with subprocess.Popen(
        [*START, "list"], cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1)  # 76,000 ids do not fit into the pipe
        process.stdout.close()
        assert (process.stderr.read(), process.wait(20)) == (b"", 1)


MODULE = [sys.executable, "-m", "epcheck"]


def test_python_runs_epcheck_as_a_module(tmp_path: Path) -> None:
    """Nothing is imported from the working directory, which `-m` puts first on `sys.path`."""
    for name in ("typer", "rich", "numpy", "signal"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    done = ended([*MODULE, "--version"], tmp_path)
    assert (done.returncode, done.stdout.decode().split()[0], done.stderr) == (0, "epcheck", b"")
    done = ended([*MODULE, "report", "nowhere"], tmp_path)
    assert (done.returncode, done.stderr.startswith(b"epcheck: nowhere: is not a run folder (no run.json)")) == (
        2,
        True,
    )


@posix
@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)])
def test_closed_streams_are_no_reason_to_end(tmp_path: Path, closed: tuple[int, ...]) -> None:
    def close() -> None:
        for number in closed:
            os.close(number)

    done = ended([*START, "repro", "Relu-6/float32/ordinary[runtime]", "--out", "repro"], tmp_path, preexec_fn=close)
    made = [path.name for path in tmp_path.glob("repro/*/model.onnx")]
    assert (done.returncode, made, b"Traceback" in done.stderr) == (0, ["model.onnx"], False)


@posix
def test_an_error_that_cannot_be_told_is_an_exit_code(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        assert ended([*START, "report", "nowhere"], tmp_path, capture_output=False, stderr=full).returncode == 2


@posix
def test_ctrl_c_ends_a_command_whose_reader_takes_nothing(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*START, "list"], cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=heard,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1)  # 65,000 ids do not fit into the pipe
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read() == b"epcheck: interrupted\n"


@posix
def test_a_terminal_that_goes_away_is_one_sentence(tmp_path: Path) -> None:
    """Where SIGHUP is ignored, what is written to it fails with EIO."""
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [*START, "list"], cwd=tmp_path, env=ENVIRONMENT, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:  # fmt: skip
        os.close(theirs)
        assert os.read(ours, 1)  # 76,000 ids do not fit into it
        os.close(ours)
        assert process.stderr is not None
        assert (process.stderr.read(), process.wait(20)) == (b"epcheck: Input/output error\n", 2)


@posix
@pytest.mark.parametrize(
    "arguments",
    [("status",), ("--no-jail", "run", "-t", "cpu", "--op", "Relu", "--dtype", "float32", "--limit", "2")],
    ids=lambda words: " ".join(words[:2]),
)
def test_the_runtime_s_telemetry_leaves_no_file(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """onnxruntime 1.32 wrote a data base and an identifier of the machine into the user's cache."""
    environment = {
        **{name: value for name, value in ENVIRONMENT.items() if name not in ("CI", "ORT_DISABLE_TELEMETRY")},
        "XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path / "tmp"),
    }  # fmt: skip
    for name in ("cache", "tmp", "here"):
        (tmp_path / name).mkdir()
    done = ended([*START, *arguments], tmp_path / "here", env=environment)
    assert (done.returncode in (0, 2), b"cpu" in done.stdout) == (True, True), done  # 2: the machine has no lab
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in written if path.suffix in (".ses", ".db") or "Microsoft" in path.parts] == []


TOO_LITTLE = "epcheck: there is too little memory; free some, or allow it more (ulimit -v)\n"
LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_AS, ({bytes}, {bytes}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
@pytest.mark.parametrize("mebibytes", [150, 300, 450, 700, 1024])
def test_too_little_memory_is_a_sentence(tmp_path: Path, mebibytes: int) -> None:
    program = f"{LIMITED.format(bytes=mebibytes << 20)}{START[-1]}"
    options = ["run", "--target", "cpu", "--op", "Relu", "--limit", "1", "--root", "runs"]
    done = ended([*START[:-1], program, *options], tmp_path)
    assert done.returncode in (0, 2), done.stderr
    assert b"Traceback" not in done.stderr
    if mebibytes <= 300:  # not enough for the libraries
        assert (done.returncode, done.stderr) == (2, TOO_LITTLE.encode())


FAILING_IMPORT = """
import sys
class Failing:
    def find_spec(self, name, *_):
        if name == "epcheck.api.machine.cache":
            raise {error}
sys.meta_path.insert(0, Failing())
sys.argv = ["epcheck", "cache"]
import epcheck.cli.start
epcheck.cli.start.main()
"""


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("MemoryError", TOO_LITTLE),
        ("OSError(12, 'Cannot allocate memory')", TOO_LITTLE),
        ('RuntimeError("can\'t start new thread")', TOO_LITTLE),
        ("ImportError('x.so: failed to map segment from shared object')", TOO_LITTLE),
        (
            "ImportError('x.so: undefined symbol \\x1b[31m\\nand more')",
            "epcheck: a library cannot be loaded: 'x.so: undefined symbol \\x1b[31m'; install epcheck again\n",
        ),
    ],
)
def test_a_library_that_cannot_be_loaded_is_a_sentence(tmp_path: Path, error: str, sentence: str) -> None:
    done = ended([sys.executable, "-c", FAILING_IMPORT.format(error=error)], tmp_path)
    assert (done.returncode, done.stderr.decode()) == (2, sentence)
