"""Commands in folders of strangers: no module of the working directory, of a model, a run or a store is executed.

Each folder has a module of every name that our code imports, and of every one of the standard library; each of them
writes down that it was executed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import onnx
import pytest
from onnx import helper

from epcheck.reports import data_process
from tests.command_line import ENVIRONMENT, Done, epcheck

START = [sys.executable, "-P", "-c", "from epcheck.cli.start import main; main()"]
"""As the console script starts: without the working directory on `sys.path`."""

ONE_AFTER_ANOTHER = f"""
import json, sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from tests.command_line import call
sys.path.pop(0)
answers, sys.stdout = sys.stdout, sys.stderr
for line in sys.stdin:
    done = call(*json.loads(line))
    print(json.dumps([done.code, done.out, done.err, sys.path]), file=answers, flush=True)
"""
"""Runs the commands whose arguments it reads, each a line; answers with exit code, stdout and stderr of each, and with
the path on which what they import later is looked for. A process of its own for each would take a second to start."""

STARTED_BY_PYTHON = ("sitecustomize", "usercustomize", "conftest", "setup", "pip", "venv", "ensurepip", "epcheck")
PROGRAMS = ("python", "python3", "sh", "git", "uname", "apt-get", "wine64")

IMPORTED_LATE = ("argparse", "click", "json", "numpy", "onnx", "psutil", "subprocess", "tempfile", "typer")

INSTALLED = (
    "click", "distributed", "duckdb", "filelock", "hypothesis", "jinja2", "lazy_loader", "ml_dtypes", "msgspec",
    "numpy", "onnx", "onnxruntime", "packaging", "platformdirs", "psutil", "pyarrow", "pytest", "rich",
    "threadpoolctl", "typer",
)  # fmt: skip


class Place:
    """Folders full of modules that must not be executed, and the file in which they would say so. resources: end what
    runs its commands."""

    def __init__(self, root: Path, resources: ExitStack) -> None:
        self.root, self.mark = root, root / "executed.txt"
        self._resources = resources
        self._commands: subprocess.Popen[str] | None = None
        names = {*sys.stdlib_module_names, *STARTED_BY_PYTHON, *INSTALLED}
        self.text = f"open({str(self.mark)!r}, 'a').write(__name__ + ' of ' + __file__ + chr(10))\n"
        self.names = sorted(names - {"__main__"})
        self.here = self.fill(root / "here")

    def fill(self, folder: Path) -> Path:
        """The folder with the modules in it, made if need be."""
        folder.mkdir(parents=True, exist_ok=True)
        for module in self.names:
            (folder / f"{module}.py").write_text(self.text, encoding="utf-8")
        for program in PROGRAMS:
            (folder / program).write_text(f"#!{sys.executable}\n{self.text}", encoding="utf-8")
            (folder / program).chmod(0o755)
        return folder

    def run(self, *arguments: str, code: int | None = 0, **variables: str) -> Done:
        """A command in the working directory, with these environment variables in a process of its own. code: with
        which it ends, None for any. It executes nothing of ours."""
        environment = {**self.environment, "PYTHONPATH": "", **variables}
        alone = bool(variables)
        done = epcheck(*arguments, cwd=self.here, env=environment, start=START) if alone else self._ask(*arguments)
        assert not self.mark.exists(), (arguments, self.mark.read_text(encoding="utf-8"))
        assert code is None or done.code == code, (arguments, done.out, done.err)
        assert "Traceback" not in done.err, done.err
        return done

    @property
    def environment(self) -> dict[str, str]:
        """Without a package index: what pip is asked for fails at once."""
        no_index = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
        return {**ENVIRONMENT, "EPCHECK_RUNTIMES": str(self.root / "runtimes"), **no_index}

    def _ask(self, *arguments: str) -> Done:
        if self._commands is None:
            command = [sys.executable, "-P", "-c", ONE_AFTER_ANOTHER]
            environment = {**self.environment, "PYTHONPATH": ""}
            pipe = subprocess.PIPE
            self._commands = self._resources.enter_context(
                subprocess.Popen(command, cwd=self.here, env=environment, stdin=pipe, stdout=pipe, encoding="utf-8")
            )
        assert self._commands.stdin is not None
        assert self._commands.stdout is not None
        print(json.dumps(arguments), file=self._commands.stdin, flush=True)
        *done, path = json.loads(self._commands.stdout.readline())
        assert not [entry for entry in path if Path(self.here, entry).is_relative_to(self.root)], (arguments, path)
        return Done(*done)

    def suite(self, name: str) -> str:
        """The folder of a small run, with the modules in it."""
        self.run("run", "--target", "cpu", "--op", "Relu", "--limit", "3", "--root", f"../runs-{name}")
        (folder,) = (found for found in (self.root / f"runs-{name}").iterdir() if found.is_dir())
        return str(self.fill(folder))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One for all tests, which give other names to what they write, so that one process and its workers run all."""
    with ExitStack() as resources:
        yield make_place(tmp_path_factory.mktemp("place"), resources)


@pytest.fixture
def own_place(tmp_path: Path) -> Iterator[Place]:
    with ExitStack() as resources:
        yield make_place(tmp_path, resources)


def make_place(tmp_path: Path, resources: ExitStack) -> Place:
    made = Place(tmp_path, resources)
    node = helper.make_node("Relu", ["x"], ["y"], name="relu")
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3]) for name in "xy"]
    graph = helper.make_graph([node], "relu", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for folder in (made.here, made.fill(tmp_path / "models")):
        onnx.save(model, folder / "model.onnx")
    return made


def test_a_model_is_validated_in_a_folder_of_modules(place: Place) -> None:
    place.run("validate", "model.onnx", "--target", "cpu", "--no-culprit")


@pytest.mark.parametrize("path", [os.pathsep, "."])
def test_an_entry_of_pythonpath_that_means_the_working_directory_is_left_out(own_place: Place, path: str) -> None:
    """What Python imports before anything of ours does is not among these modules."""
    for file in own_place.here.glob("*.py"):
        if file.stem not in IMPORTED_LATE:
            file.unlink()
    own_place.run("validate", "../models/model.onnx", "--target", "cpu", "--no-culprit", PYTHONPATH=path)


@pytest.mark.slow
def test_no_command_on_models_executes_a_module_of_a_folder_that_it_reads(place: Place) -> None:
    run, model = place.run, "../models/model.onnx"
    run("validate", model, "--target", "reference", "--baseline", "cpu")
    run("doctor", model, "--float16")
    run("reduce", model, "--target", "cpu", "--baseline", "reference", code=2)
    run("harvest", model, "--out", "../harvested")
    run("repro", run("list", "--op", "Relu").out.split()[0], "--out", "../repro")
    for folder in (place.root / "repro").rglob("*/"):
        place.fill(folder)
    run("replay", str(place.fill(place.root / "repro")), "--target", "cpu")
    run("run", "--target", "cpu", "--source", str(place.fill(place.root / "harvested")), "--root", "../of-harvested")
    run("probe", "--target", "cpu", "--op", "Relu", "--each", "1", "--out", "../claims.json")
    run("fuzz", "--target", "cpu", "--op", "Relu", "--minutes", "0.02", "--out", "../fuzz")
    run("coverage", "--target", "cpu", "--claims", "../claims.json")
    run("status")


@pytest.mark.slow
def test_no_command_on_runs_executes_a_module_of_a_folder_that_it_reads(place: Place) -> None:
    run, first, second = place.run, place.suite("1"), place.suite("2")
    run("run", "--resume", first)
    run("report", first)
    run("diff", first, second)
    run("merge", first, "--out", "../merged")
    run("expect", "--from", first, "--reason", "none", "--file", "../expected.toml")
    run("report-bug", first, code=2)
    run("coverage", "--run", first, code=1)
    run("store", "add", first, second, "--store", "../store")
    place.fill(place.root / "store")
    run("store", "list", "--store", "../store")
    run("store", "check", "--store", "../store", code=2)  # modules are no files of a store
    run("trend", "--store", "../store")
    run("site", "../store", "--out", "../site")
    fuzz = ("--fuzz-minutes", "0.02", "--fuzz-out", "../fuzz-of-nights")
    run(
        "nightly",
        "--target",
        "cpu",
        "--op",
        "Relu",
        "--store",
        "../store",
        "--root",
        "../nights",
        "--out",
        "../night",
        *fuzz,
    )


@pytest.mark.slow
def test_no_command_that_runs_pip_executes_a_module_of_the_working_directory(place: Place) -> None:
    assert "cannot be made" in place.run("env", "create", "webgpu", code=2).err
    place.run("validate", "../models/model.onnx", "--target", "cpu@1.20.1", code=2)
    place.run("bisect", "Relu-14/*", "--target", "cpu", code=2)
    place.run("lab", "status", code=None)
    place.run("env", "list")


def test_the_process_that_makes_reports_executes_no_module_of_a_run(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place.suite("3")
    monkeypatch.setattr(data_process, "LARGE_BYTES", 1)
    monkeypatch.chdir(place.here)
    with data_process.start_data_process(Path(folder)) as process:
        assert process is not None
        assert process.problems() == ""
    assert not place.mark.exists(), place.mark.read_text(encoding="utf-8")
