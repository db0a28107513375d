"""What a specification means, and that every kind of target really runs."""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import onnxruntime
import pytest

from epcheck import reports
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.run import Run
from epcheck.conformance.records.terms import PASS
from epcheck.conformance.targets import choice, environments, specification
from epcheck.conformance.targets.choice import Choice, best_choice, why_no_dml
from epcheck.conformance.targets.config import load_config
from epcheck.conformance.targets.expectation import Expectation
from epcheck.conformance.targets.specification import direct_of, resolve
from epcheck.conformance.targets.target import CPU, DML, MEASURED, MEBIBYTE, RECORDED, STRICT, Target, TargetError
from tests.command_line import call
from tests.conformance.small_cases import HERE, backend, identities, own_workers, records_of

FEW = ("--op", "Slice", "-k", "rank_", "--limit", "4")


def run(root: Path, *arguments: str) -> tuple[Run, list[Record]]:
    """A run of four cases that ends well."""
    done = call("run", *FEW, "--root", str(root / "runs"), *arguments)
    assert (done.code, done.err) == (0, ""), done
    (folder,) = (root / "runs").iterdir()
    return reports.read_run(folder), list(reports.read_records(folder))


def test_cpu_is_this_interpreter_s_provider_and_records_what_it_runs() -> None:
    target = resolve("cpu")
    assert (target.name, target.command, target.arguments) == ("cpu", (sys.executable,), ("onnxruntime",))
    assert (target.provider, target.config, target.device) == (CPU, RECORDED, "cpu")


def test_a_provider_of_another_interpreter_may_not_fall_back_to_cpu() -> None:
    target = resolve(f"{sys.executable}#OpenVINOExecutionProvider")
    assert (target.command, target.provider, target.config) == ((sys.executable,), "OpenVINOExecutionProvider", STRICT)
    assert target.config["session.disable_cpu_ep_fallback"] == "1"


def test_an_interpreter_alone_means_its_cpu_provider(tmp_path: Path) -> None:
    described, records = run(tmp_path, "-t", sys.executable, "--baseline", "none", "--no-reference")
    assert described.targets[sys.executable]["onnxruntime"] == onnxruntime.__version__
    assert {item.candidate.assignment for item in records} == {((CPU, "Slice"),)}


def test_a_provider_that_the_interpreter_lacks_is_named(tmp_path: Path) -> None:
    name = f"{sys.executable}#NoExecutionProvider"
    done = call("run", *FEW, "-t", name, "--baseline", "none", "--root", str(tmp_path))
    assert done.code == 2
    assert f"target '{name}': its onnxruntime has no NoExecutionProvider; it has " in done.err


def test_a_function_is_found_in_the_working_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    found = records_of(identities(2), resolve("python:faulty_backends:right"))
    assert [item.status for item in found.values()] == [PASS, PASS]


@pytest.mark.slow
def test_a_release_has_an_environment_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the profile proves where its nodes ran: that release keeps no record of assignments."""
    release = "1.20.1" if sys.version_info < (3, 14) else "1.24.1"
    monkeypatch.setenv("EPCHECK_RUNTIMES", str(tmp_path / "runtimes"))
    name = f"cpu@{release}"
    described, records = run(tmp_path, "-t", name, "-t", "cpu", "--baseline", "none", "--no-reference")
    assert described.targets[name]["onnxruntime"] == release
    assert described.targets["cpu"]["onnxruntime"] == onnxruntime.__version__
    assert described.targets[name]["interpreter"].startswith(str(tmp_path / "runtimes" / f"onnxruntime-{release}"))
    assert Counter((item.candidate.target, item.status, item.candidate.assignment) for item in records) == {
        (name, PASS, ((CPU, "Slice"),)): 4,
        ("cpu", PASS, ((CPU, "Slice"),)): 4,
    }


@pytest.mark.slow
def test_a_release_that_does_not_exist_is_named_and_leaves_nothing_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EPCHECK_RUNTIMES", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(
        environments.RuntimeInstallError, match=r"onnxruntime 0\.0\.1 cannot be installed: ERROR: No match"
    ):
        resolve("cpu@0.0.1")
    assert not (tmp_path / "onnxruntime-0.0.1/complete").exists()


TABLES = """
[targets.strict-cpu]
base = "cpu"
deadline_s = 1.5
startup_s = 9
memory_mib = 512
window = 3
device = "cpu"
expectations = "known.toml"
[targets.strict-cpu.config]
"session.intra_op.allow_spinning" = 0
[targets.strict-cpu.env]
OMP_NUM_THREADS = 1

[targets.gpu]
python = '{python}'
provider = "CUDAExecutionProvider"
options = {{ device_id = 1, tunable = "0" }}

[targets.mine]
function = "faulty_backends:right"
"""


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with an epcheck.toml."""
    tmp_path.joinpath("epcheck.toml").write_text(TABLES.format(python=sys.executable))
    tmp_path.joinpath("known.toml").write_text('[[expect]]\ncase = "TopK-1/*"\nstatus = "crash"\nreason = "known"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("tables")
def test_a_table_changes_what_it_is_based_on() -> None:
    target = resolve("strict-cpu", load_config())
    assert (target.name, target.provider, target.arguments) == ("strict-cpu", CPU, ("onnxruntime",))
    assert (target.deadline_s, target.startup_s, target.window) == (1.5, 9, 3)
    assert target.memory_bytes == 512 * MEBIBYTE
    assert target.config == {**RECORDED, "session.intra_op.allow_spinning": "0"}
    assert target.environment == {**os.environ, "OMP_NUM_THREADS": "1"}
    assert Expectation("TopK-1/*", "crash", "known") in target.expectations


@pytest.mark.usefixtures("tables")
def test_a_table_may_name_an_interpreter_a_provider_and_its_options() -> None:
    target = resolve("gpu", load_config())
    assert (target.command, target.provider, target.config) == ((sys.executable,), "CUDAExecutionProvider", STRICT)
    assert target.options == {"device_id": "1", "tunable": "0"}


def test_a_table_based_on_dml_takes_the_vulkan_driver_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def dml(*arguments: object) -> Target:
        asked.extend(arguments)
        return Target("dml", (), ())

    monkeypatch.setattr(specification, "_dml", dml)
    resolve("mine", {"targets": {"mine": {"base": "dml@1.20.1"}}}, print, Path("icd.json"))
    assert asked == ["dml@1.20.1", "1.20.1", print, Path("icd.json")]


@pytest.mark.usefixtures("tables")
def test_a_table_may_name_a_function() -> None:
    target = resolve("mine", load_config())
    assert (target.name, target.arguments[0]) == ("mine", "python:faulty_backends:right")


@pytest.mark.slow
def test_a_table_is_run_like_any_target(tables: Path) -> None:
    described, records = run(tables, "-t", "strict-cpu", "--baseline", "reference", "--no-reference")
    assert described.candidates == ("strict-cpu",)
    assert [item.status for item in records] == [PASS] * 4


def test_the_environment_of_a_table_reaches_its_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.joinpath("loud.py").write_text(
        "import os\ndef f(model, feeds):\n    return {'y': feeds['x'] * float(os.environ['VOLUME'])}\n"
    )
    tmp_path.joinpath("epcheck.toml").write_text(
        '[targets.one]\nfunction = "loud:f"\nenv = { VOLUME = 1 }\n'
        '[targets.two]\nfunction = "loud:f"\nenv = { VOLUME = 2.0 }\n'
    )
    monkeypatch.chdir(tmp_path)
    statuses = [
        next(iter(records_of(identities(2)[1:], resolve(name, load_config())).values())).status
        for name in ("one", "two")
    ]
    assert statuses == [PASS, "mismatch"]


@pytest.mark.parametrize(
    ("specification", "folder", "requirement"),
    [
        ("dml@1.20.1", "onnxruntime-directml-1.20.1", "onnxruntime-directml==1.20.1"),
        ("dml@windowsml-1.30.0", "onnxruntime-windowsml-1.30.0", "onnxruntime-windowsml==1.30.0.*"),
    ],
)
def test_on_windows_a_release_of_dml_is_one_of_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, specification: str, folder: str, requirement: str
) -> None:
    """Those of Windows ML have the number of a build after that of ONNX Runtime."""
    commands: list[list[str]] = []
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("EPCHECK_RUNTIMES", str(tmp_path))
    monkeypatch.setattr(environments, "pip_command", lambda *arguments: list(arguments))
    monkeypatch.setattr(environments, "run_step", lambda _failure, command: commands.append(command))
    monkeypatch.setattr(environments, "compile_imports", lambda _python: None)
    (tmp_path / folder).mkdir()
    assert resolve(specification).command == (str(tmp_path / folder / "Scripts" / "python.exe"),)
    assert requirement in commands[1]


@pytest.mark.skipif(sys.platform == "win32", reason="native there")
@pytest.mark.parametrize("specification", ["dml", "dml@1.20.1", "directml", "directml@windowsml-1.30.0"])
def test_without_a_lab_dml_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, specification: str) -> None:
    monkeypatch.setenv("EPCHECK_LAB", str(tmp_path))
    sentence = rf"^target '{specification}': the lab is not installed; run: epcheck lab install$"
    with pytest.raises(TargetError, match=sentence):
        resolve(specification)


def test_the_best_target_says_why_it_is_not_directml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "why_no_dml", lambda: "there is no GPU")
    monkeypatch.setattr(choice.lab, "can_install", lambda: "this is no Linux")
    assert best_choice() == Choice("cpu", "there is no GPU")


def test_an_option_of_a_target_does_not_change_another() -> None:
    slow = backend("right", deadline_s=99.0)
    assert (slow.deadline_s, replace(slow, deadline_s=1.0).deadline_s, backend("right").deadline_s) == (99.0, 1.0, 20.0)


@pytest.mark.slow
def test_running_leaves_no_process() -> None:
    records_of(identities(2), backend("right"), reference=resolve("reference"))
    assert own_workers() == []


def test_dml_is_the_lab_s_or_the_machine_s() -> None:
    if why_no_dml():
        pytest.skip(f"{why_no_dml()}")
    target = resolve("dml")
    assert (target.provider, target.config, target.device) == (DML, STRICT, "dml")
    assert target.owns_group == (sys.platform == "win32")
    assert (target.jobs, direct_of(target).jobs) == (MEASURED, 1)


def test_how_many_workers_a_provider_gets_and_a_table_may_say_otherwise() -> None:
    jobs = {provider: resolve(f"{sys.executable}#{provider}").jobs for provider in (CPU, DML, "CUDAExecutionProvider")}
    assert jobs == {CPU: 0, DML: MEASURED, "CUDAExecutionProvider": 1}
    assert resolve("own", {"targets": {"own": {"provider": DML, "jobs": 2}}}).jobs == 2
