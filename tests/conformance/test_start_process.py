"""How processes are started: what of the working directory they do not get, and that nothing starts one otherwise."""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from epcheck.conformance import start_process as module
from epcheck.conformance.start_process import (
    clean_environment,
    find_program,
    module_environment,
    run_process,
    start_process,
)
from tests.test_imports import nodes_of

ROOT = Path(__file__).parents[2]
PACKAGES = ("generators", "conformance", "models", "reports", "api", "cli")

STARTERS = {"subprocess", "multiprocessing", "pty", "webbrowser", "runpy", "concurrent.futures.process"}
"""Modules that start processes, or execute files."""

HARMLESS = {"subprocess.PIPE", "subprocess.DEVNULL", "subprocess.STDOUT", "subprocess.TimeoutExpired",
            "subprocess.CompletedProcess",
            "subprocess.CREATE_NEW_PROCESS_GROUP", "subprocess.list2cmdline"}  # fmt: skip

FUNCTIONS = {"shutil.which", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"}

OF_OS = ("exec", "spawn", "posix_spawn", "fork", "system", "popen", "startfile")

EXCEPTIONS = {
    "conformance/start_process.py": "the function that starts them",
    "conformance/lab/startup/sitecustomize.py": "it executes the lab's own prelude",
    "conformance/workers/confinement.py": "what `start_process` has make a process, in a job object on Windows",
    "conformance/workers/job_object.py": "the process in a job object that it makes",
    "conformance/workers/program/jail.py": "it executes the command that it was started with, in its own process",
    "conformance/workers/program/main.py": "it executes the prelude that the target names",
    "conformance/workers/program/namespaces.py": "a worker's guard forks itself",
    "conformance/workers/program/backends/variants.py": "a worker's own interpreter, whose end is what it looks at",
    "conformance/workers/program/fork.py": "a fork server forks itself",
    "conformance/workers/program/watch.py": "a worker forks itself",
    "conformance/test_data/run_script.py": "a script in a folder of test data, which its user starts without epcheck",
    "conformance/targets/recipes/install_pack.py": "a script in a folder of parts, started without epcheck",
    "api/machine/demo.py": "the user's browser opens the page of the demo",
}
"""File -> why it starts a process without `start_process`."""


def starts(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """What a file refers to that starts processes, annotations and `except` clauses aside."""
    annotations = {
        id(inner)
        for node in nodes
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if isinstance(part, ast.AST)
        for inner in ast.walk(part)
    }
    for node in nodes:
        if id(node) in annotations:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module in STARTERS or node.module == "os"):
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in STARTERS - {"subprocess"})
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            of_os = node.value.id == "os" and node.attr.startswith(OF_OS)
            if of_os or node.value.id == "subprocess" or name in FUNCTIONS:
                yield name
        elif isinstance(node, ast.Name) and node.id in ("ProcessPoolExecutor", "Popen"):
            yield node.id


def texts(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """The texts of a file, its docstrings aside: programs may be among them."""
    statements = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements:
            yield node.value


def is_module_option(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in ("-m", "-c")


def commands(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Commands that have an interpreter execute a module or a text, without what keeps the working directory out."""
    for node in nodes:
        if isinstance(node, ast.List | ast.Tuple) and any(is_module_option(element) for element in node.elts):
            words = [ast.unparse(element) for element in node.elts]
            if words[:1] and words[0] in OTHER_PROGRAMS:
                continue
            for before, word in pairwise(words):
                if word in ("'-m'", "'-c'") and before not in ("'-I'", "'-P'", "sys.executable"):
                    yield ast.unparse(node)


FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


OTHER_PROGRAMS = ("'apt-get'", "*compiler.gcc", "'/bin/sh'")

WORDS = ("subprocess", "multiprocessing", "os.system", "os.popen", "os.exec", "os.spawn", "Popen")


def test_no_process_is_started_but_by_start_process() -> None:
    found: dict[str, list[str]] = {}
    for path in FILES:
        name, nodes = path.relative_to(ROOT).as_posix(), nodes_of(path.read_text(encoding="utf-8"))
        found[name] = list(commands(nodes))
        if name not in EXCEPTIONS:
            found[name] += sorted(set(starts(nodes)) - HARMLESS)
            found[name] += [text for text in texts(nodes) if any(word in text for word in WORDS)]
    assert len(found) > 500
    assert {name: words for name, words in found.items() if words} == {}


def test_each_exception_is_one() -> None:
    for name in EXCEPTIONS:
        nodes = nodes_of((ROOT / name).read_text(encoding="utf-8"))
        assert set(starts(nodes)) - HARMLESS, name


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import subprocess\nsubprocess.run(['a'])", ["subprocess.run"]),
        ("import subprocess\nmake = subprocess.Popen", ["subprocess.Popen"]),
        ("from subprocess import check_output", ["subprocess.check_output"]),
        ("import subprocess\ndef f(process: subprocess.Popen[str]) -> subprocess.Popen[str]: ...", []),
        ("import os\nos.execvp('a', [])", ["os.execvp"]),
        ("from os import system", ["os.system"]),
        ("import multiprocessing", ["multiprocessing"]),
        ("from concurrent.futures import ProcessPoolExecutor\nProcessPoolExecutor()", ["ProcessPoolExecutor"]),
        ("import shutil\nshutil.which('a')", ["shutil.which"]),
    ],
)
def test_the_test_sees_what_starts_a_process(source: str, found: list[str]) -> None:
    assert list(starts(nodes_of(source))) == found


def test_the_test_sees_commands_that_take_the_working_directory_in() -> None:
    nodes = nodes_of("[python, '-m', 'pip']; [python, '-I', '-m', 'pip']; [sys.executable, '-m', 'pip']")
    assert list(commands(nodes)) == ["[python, '-m', 'pip']"]


PATH_OF_MODULES = "import json, sys; print(json.dumps(sys.path))"


def test_a_process_of_this_interpreter_does_not_import_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "json.py").write_text("raise SystemExit('executed')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", ".", "sub", str(tmp_path), str(tmp_path / "other")]))
    done = run_process([sys.executable, "-c", PATH_OF_MODULES])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert str(tmp_path / "other") in found
    assert {"", str(tmp_path)}.isdisjoint(found)


def test_the_working_directory_stays_where_epcheck_itself_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "HOME", tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["other", ""]))
    assert clean_environment()["PYTHONPATH"] == str(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path / "other"), *sys.path])
    assert module_environment()["PYTHONPATH"].split(os.pathsep)[:2] == [str(tmp_path), str(tmp_path / "other")]


def test_a_process_that_finds_modules_as_this_one_gets_no_folder_of_the_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interpreter of another environment that it starts would take modules from there."""
    import numpy

    monkeypatch.setattr(sys, "path", [*sys.path, "", str(tmp_path)])
    folders = module_environment()["PYTHONPATH"].split(os.pathsep)
    assert str(tmp_path) in folders
    assert "" not in folders
    assert not {str(Path(numpy.__file__).parents[1]), str(Path(os.__file__).parent)} & set(folders)


def test_what_has_python_execute_files_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX"):
        monkeypatch.setenv(name, "relative")
    monkeypatch.setenv("LD_LIBRARY_PATH", os.pathsep)
    monkeypatch.setenv("PATH", os.pathsep.join([os.environ["PATH"], "", "bin"]))
    cleaned = clean_environment()
    assert "relative" not in cleaned.values()
    assert "LD_LIBRARY_PATH" not in cleaned
    assert all(Path(folder).is_absolute() for folder in cleaned["PATH"].split(os.pathsep))


def test_what_a_caller_puts_into_the_environment_stays() -> None:
    """The lab's Windows Python has a PYTHONPATH of Windows: `Z:\\a;Z:\\b`."""
    assert clean_environment({"PYTHONPATH": "Z:\\a;Z:\\b", "PATH": "x"})["PYTHONPATH"] == "Z:\\a;Z:\\b"


def test_a_program_is_never_that_of_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "tool.exe" if sys.platform == "win32" else "tool"
    for folder in (tmp_path / "here", tmp_path / "bin"):
        folder.mkdir()
        (folder / name).write_text("", encoding="utf-8")
        (folder / name).chmod(0o755)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", str(tmp_path / "bin")]))
    assert find_program("tool") == str(tmp_path / "bin" / name)
    monkeypatch.setenv("PATH", os.pathsep)
    assert find_program("tool") is None
    with pytest.raises(FileNotFoundError):
        start_process(["tool"])


def test_windows_is_told_not_to_look_in_the_working_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert clean_environment()["NoDefaultCurrentDirectoryInExePath"] == "1"


def test_what_another_python_prints_is_read_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    assert run_process([sys.executable, "-c", "print('Läufe, \u65e5')"]).stdout == "Läufe, \u65e5\n"
    monkeypatch.setattr(sys, "platform", "win32")
    assert clean_environment()["PYTHONIOENCODING"] == "utf-8"


def test_a_process_that_takes_too_long_is_ended() -> None:
    with pytest.raises(module.subprocess.TimeoutExpired):
        run_process([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.2)
