"""The commands as a user has them: what they print, what they leave, how they end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from epcheck import reports
from epcheck.api import RunOptions
from epcheck.api.suite.selection import restore_options, selection
from epcheck.conformance.records.run import Run
from epcheck.conformance.records.terms import FAILURE
from epcheck.conformance.scheduling.shard import Shard
from epcheck.generators import exclusions, registry
from tests.command_line import ENVIRONMENT, START, call, epcheck, refused
from tests.conformance.small_cases import HERE

pytestmark = pytest.mark.slow  # commands in processes of their own

CPU_ALONE = ("run", "--target", "cpu", "--baseline", "none", "--no-reference")
MANY = (*CPU_ALONE, "--op", "Slice", "--limit", "700")
FEW = (*CPU_ALONE, "--op", "Slice", "-k", "rank_", "--limit", "8")

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and limits")


def folder_of(root: Path) -> Path:
    (folder,) = (path for path in (root / "epcheck-runs").iterdir() if path.is_dir())
    return folder


def test_a_good_run_ends_with_0_and_leaves_every_report(tmp_path: Path) -> None:
    done = epcheck(*FEW, cwd=tmp_path)
    folder = folder_of(tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "cpu: no conformance failure, 8 of 8 cases pass." in done.out
    assert done.out.rstrip().endswith(f"Report: epcheck-runs/{folder.name}/report.html")
    assert {path.name for path in folder.iterdir()} >= {
        "run.json", "journal.jsonl", "outcomes.parquet", "report.html", "report.json", "junit.xml",
    }  # fmt: skip
    run = reports.read_run(folder)
    assert (run.status, run.planned, run.candidates, run.baseline) == ("complete", 8, ("cpu",), None)
    assert "onnxruntime" in run.targets["cpu"]
    for item in reports.read_records(folder):
        assert item.candidate.assignment == (("CPUExecutionProvider", "Slice"),)


@posix
def test_a_conformance_failure_ends_with_1_and_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    target = "python:faulty_backends:aborts_always"
    arguments = ("--baseline", "none", "--no-reference", "--op", "Slice", "--limit", "2", "--root", str(tmp_path))
    done = call("run", "-t", target, *arguments)
    assert (done.code, done.err) == (1, "")
    shown, _, summary = done.out.partition("\noperator")
    why = "crashes: the worker process ended: killed by SIGABRT"
    first = re.fullmatch(r"failure Slice-1/float32/(\w+)\[runtime\] \(crash\): (.*)", shown.splitlines()[0])
    assert first is not None
    assert first[1] in {"steps_omitted", "steps_omitted_past_the_end"}  # of two at once, either may end first
    assert first[2] == f"{target} {why}"
    assert "failure Slice, 2 cases, crash, blame: candidate: the process ends" in summary
    assert f'smallest: epcheck show "Slice-1/float32/steps_omitted[runtime]" --target "{target}"' in summary


@posix
@pytest.mark.parametrize(("status", "strict", "code"), [("crash", False, 0), ("crash", True, 0), ("timeout", False, 1)])
def test_an_expected_failure_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, strict: bool, code: int
) -> None:
    known = tmp_path / "known.toml"
    known.write_text(f'[[expect]]\ncase = "Slice-*"\nstatus = "{status}"\nreason = "it aborts, always"\n')
    monkeypatch.chdir(HERE)
    done = call(
        "run", "-t", "python:faulty_backends:aborts_always", "--baseline", "none", "--no-reference", "--op", "Slice",
        "--limit", "1", "--root", str(tmp_path), "--expect", str(known), *["--strict"] * strict,
    )  # fmt: skip
    assert done.code == code


def test_an_expectation_that_no_longer_fails_fails_a_strict_run_only(tmp_path: Path) -> None:
    known = tmp_path / "known.toml"
    known.write_text('[[expect]]\ncase = "Slice-*"\nstatus = "crash"\nreason = "it did once"\n')
    for extra, code in (((), 0), (("--strict",), 1)):
        assert call(*FEW, "--limit", "1", "--expect", str(known), "--root", str(tmp_path), *extra).code == code


def test_a_target_that_is_given_twice_runs_once(tmp_path: Path) -> None:
    assert call(*FEW, "--target", "cpu", "--root", str(tmp_path / "epcheck-runs")).code == 0
    assert reports.read_run(folder_of(tmp_path)).planned == 8
    assert len(list(reports.read_records(folder_of(tmp_path)))) == 8


def test_two_candidates_are_compared_in_one_run(tmp_path: Path) -> None:
    done = call(*FEW, "--target", "reference", "--root", str(tmp_path / "epcheck-runs"))
    assert "cpu: no conformance failure, 8 of 8 cases pass." in done.out
    assert {item.candidate.target for item in reports.read_records(folder_of(tmp_path))} == {"cpu", "reference"}


ONE_CASE = ("--op", "Slice", "-k", "Slice-13/float32/steps_omitted*", "--limit", "1", "--baseline", "none")
ENDS_AT_ONCE = "its worker does not start: the worker process ended: exit code"


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("python:nothing:here", f"{ENDS_AT_ONCE} 1; it said: ModuleNotFoundError: No module named 'nothing'; check "
                                "that 'from nothing import here' works in this folder"),
        ("python:os:no_such", f"{ENDS_AT_ONCE} 1; it said: AttributeError: module 'os' has no attribute 'no_such'; "
                              "check that 'from os import no_such' works in this folder"),
        pytest.param("/bin/true", f'{ENDS_AT_ONCE} 0; check that /bin/true -c "import onnxruntime" works', marks=posix),
        ("/no/such/python", "no such interpreter: /no/such/python"),
    ],
)  # fmt: skip
def test_a_target_that_does_not_start_leaves_no_run_and_says_what_to_do(tmp_path: Path, target: str, why: str) -> None:
    done = call("run", "-t", target, *ONE_CASE, "--root", str(tmp_path / "runs"))
    assert (done.code, done.out, done.err) == (2, "", f"epcheck: target '{target}': {why}\n")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_has_begun_is_kept_where_its_target_does_not_start_again(tmp_path: Path) -> None:
    (tmp_path / "epcheck.toml").write_text('[targets.mine]\nbase = "cpu"\n')
    assert epcheck(*FEW[:1], "-t", "mine", *ONE_CASE, cwd=tmp_path).code == 0
    folder = folder_of(tmp_path)
    (folder / "journal.jsonl").write_bytes(b"")
    (tmp_path / "epcheck.toml").write_text('[targets.mine]\nfunction = "nothing:here"\n')
    done = epcheck("run", "--resume", "latest", cwd=tmp_path)
    assert (done.code, "Resume with: epcheck run --resume" in done.out) == (2, True)
    assert reports.read_run(folder).status.startswith("failed: target 'mine': its worker does not start")


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is killed when the test is done: one that does not heed a signal is not waited for."""
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, **options) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def running(root: Path, records: int) -> Iterator[tuple[subprocess.Popen[bytes], Path, list[psutil.Process]]]:
    """A run with so many records at least, its folder and its workers."""
    with started([*START, *MANY], cwd=root, stdout=subprocess.PIPE, start_new_session=True) as process:
        journal = None
        while journal is None or journal.read_bytes().count(b"\n") < records:
            assert process.poll() is None, process.communicate()
            journal = next(root.glob("epcheck-runs/*/journal.jsonl"), None)
            time.sleep(0.02)
        family = psutil.Process(process.pid).children(recursive=True)
        workers = [
            child for child in family if child.ppid() != process.pid
        ] or family  # those that a template forked, if any
        assert workers
        yield process, journal.parent, workers


def recorded(folder: Path) -> list[tuple[str, str]]:
    return [(item.candidate.target, item.case_id) for item in reports.read_records(folder)]


def resume(root: Path, folder: Path) -> None:
    """Complete the run; nothing is lost, nothing is there twice."""
    before = recorded(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        done = call("run", "--resume", "latest")
    run, after = reports.read_run(folder), recorded(folder)
    assert folder_of(root) == folder
    assert (run.status, len(after), len(set(after))) == ("complete", run.planned, run.planned)
    assert after[: len(before)] == before
    failing = any(item.reading == FAILURE for item in reports.read_records(folder))
    assert (done.code, done.err) == (1 if failing else 0, "")


@posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupted_run_ends_with_130_keeps_what_it_has_and_can_be_resumed(tmp_path: Path, name: str) -> None:
    with running(tmp_path, records=60) as (process, folder, workers):
        os.killpg(process.pid, getattr(signal, name))  # as the terminal does
        out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"")
    assert psutil.wait_procs(workers, timeout=5)[1] == []
    run = reports.read_run(folder)
    assert (run.status, len(recorded(folder)) >= 60, len(recorded(folder)) < run.planned) == ("interrupted", True, True)
    assert (folder / "report.html").is_file()
    assert f"Resume with: epcheck run --resume epcheck-runs/{folder.name}".encode() in out
    resume(tmp_path, folder)


@posix
def test_an_impatient_user_does_not_keep_the_run_from_being_closed(tmp_path: Path) -> None:
    with running(tmp_path, records=60) as (process, folder, workers):
        while process.poll() is None and reports.read_run(folder).status == "running":
            for _ in range(200):
                process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert psutil.wait_procs(workers, timeout=5)[1] == []
    assert reports.read_run(folder).status == "interrupted"
    resume(tmp_path, folder)


@posix
def test_a_run_that_is_killed_leaves_no_worker_and_can_be_resumed(tmp_path: Path) -> None:
    with running(tmp_path, records=30) as (process, folder, workers):
        process.kill()
        process.communicate()
    assert psutil.wait_procs(workers, timeout=5)[1] == []
    assert reports.read_run(folder).status == "running"
    resume(tmp_path, folder)


@posix
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 130), ("SIGKILL", -9)])
def test_a_worker_that_hangs_ends_with_its_run(tmp_path: Path, name: str, code: int) -> None:
    function = "python:faulty_backends:hangs_always"
    command = [*START, "run", "-t", function, "--op", "Slice", "--baseline", "none", "--root", str(tmp_path)]
    with started(command, cwd=HERE, stdout=subprocess.DEVNULL) as process:
        while not any(b'"interpreter"' in path.read_bytes() for path in tmp_path.glob("*/run.json")):  # greeted
            time.sleep(0.05)
        time.sleep(0.3)
        workers = psutil.Process(process.pid).children(recursive=True)
        hanging = any(function in word for worker in workers for word in worker.cmdline())
        process.send_signal(getattr(signal, name))
        _, err = process.communicate(timeout=20)
    assert hanging
    assert (process.returncode, err) == (code, b"")
    assert psutil.wait_procs(workers, timeout=5)[1] == []


@posix
def test_a_worker_that_is_killed_costs_the_run_nothing_but_a_repetition(tmp_path: Path) -> None:
    with running(tmp_path, records=30) as (process, folder, workers):
        of_the_target = [worker for worker in workers if "onnxruntime" in worker.cmdline()]
        for worker in of_the_target:
            worker.suspend()
        time.sleep(0.5)  # by now one has been sent something: an idle one ends without anyone's loss
        for worker in of_the_target:
            with contextlib.suppress(psutil.NoSuchProcess):  # it ended with its container, of which another was first
                worker.kill()
        process.communicate(timeout=60)
    run, found = reports.read_run(folder), list(reports.read_records(folder))
    assert (run.status, len(found), len({item.case_id for item in found})) == ("complete", run.planned, run.planned)
    assert not [item.case_id for item in found if "killed by SIGKILL" in item.reason]
    assert [note for note in run.notes if "killed by SIGKILL" in note]
    assert process.returncode == 0


@posix
@pytest.mark.parametrize("size", [4_000, 60_000], ids=["before_the_first_record", "in_the_middle"])
def test_a_full_disk_ends_the_run_with_one_sentence_and_it_can_be_resumed(tmp_path: Path, size: int) -> None:
    import resource

    def little_space() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    done = epcheck(*MANY, "--limit", "100", cwd=tmp_path, preexec_fn=little_space)
    folder = folder_of(tmp_path)
    assert done.code == 2
    assert done.err == (
        f"epcheck: epcheck-runs/{folder.name}/journal.jsonl: cannot write (File too large); every record before it is "
        "kept: free the disk and continue with --resume\n"
    )
    assert (folder / "journal.jsonl").stat().st_size <= size
    assert len(recorded(folder)) == (folder / "journal.jsonl").read_bytes().count(b"\n")
    assert reports.read_run(folder).status == f"failed: {done.err.removeprefix('epcheck: ').rstrip()}"
    resume(tmp_path, folder)


@posix
def test_a_disk_that_is_full_when_the_report_is_written(tmp_path: Path) -> None:
    import resource

    def little_space() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))

    done = epcheck(*FEW, cwd=tmp_path, preexec_fn=little_space)
    folder = folder_of(tmp_path)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert done.err.startswith(f"epcheck: epcheck-runs/{folder.name}/report.html: cannot write (File too large)")
    assert reports.read_run(folder).status == "complete"
    assert len(recorded(folder)) == 8


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_output_that_cannot_be_written_is_said() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*START, "list"], stdout=full, stderr=subprocess.PIPE, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "epcheck: No space left on device")


def test_the_journal_of_a_running_run_belongs_to_one_process(tmp_path: Path) -> None:
    assert call(*FEW, "--root", str(tmp_path / "epcheck-runs")).code == 0
    folder = folder_of(tmp_path)
    with reports.resume(folder).journal:
        done = call("run", "--resume", str(folder))
    assert (done.code, "another process is writing this run" in done.err) == (2, True)


def test_a_run_is_not_taken_up_again_by_another_driver(tmp_path: Path) -> None:
    assert call(*FEW, "--root", str(tmp_path)).code == 0
    (folder,) = tmp_path.iterdir()
    run = reports.read_run(folder)
    (folder / "journal.jsonl").write_bytes(b"")
    older = {"cpu": {**run.targets["cpu"], "onnxruntime": "1.0", "interpreter": "/elsewhere"}}
    reports.write_run(folder, replace(run, status="interrupted", targets=older))
    assert refused("run", "--resume", str(folder)) == (
        f"run {folder.name}: target 'cpu' has changed since the run was started: onnxruntime is '1.0' and "
        f"'{run.targets['cpu']['onnxruntime']}'; start a new run, or pass --may-differ onnxruntime"
    )
    assert recorded(folder) == []
    assert call("run", "--resume", str(folder), "--may-differ", "onnxruntime").code == 0
    assert reports.read_run(folder).targets["cpu"]["onnxruntime"] == f"1.0 | {run.targets['cpu']['onnxruntime']}"


def a_run() -> Run:
    return Run("run", "", (), ("cpu",), None, {}, 0, {}, {})


def test_the_options_of_a_run_survive_the_way_to_disk() -> None:
    options = RunOptions(
        targets=("cpu",), baseline="none", reference=False, operators=("Slice",), dtypes=("int8",), patterns=("*",),
        limit=3, expect=(Path("a.toml"),), config=Path("b.toml"), vulkan=Path("c.json"), pack=True,
        shard=Shard(3, 16), balance=Path("night"), scheduler="tcp://a",
    )  # fmt: skip
    stored = replace(a_run(), selection=json.loads(json.dumps(selection(options, ("cpu",), None))))
    assert restore_options(stored, RunOptions()) == options
    assert restore_options(stored, RunOptions(scheduler="tcp://b", may_differ=("os",))) == replace(
        options, scheduler="tcp://b", may_differ=("os",)
    )


def test_list_prints_the_ids_that_run_and_repro_take() -> None:
    done = call("list", "--op", "TopK", "--dtype", "int8", "-k", "TopK-11/*")
    ids = done.out.splitlines()
    assert done.code == 0
    assert ids
    assert all(case_id.startswith("TopK-11/int8/") for case_id in ids)


def test_what_a_code_page_lacks_is_written_out(tmp_path: Path) -> None:
    known = tmp_path / "known.toml"
    known.write_text('[[expect]]\ncase = "*"\nstatus = "crash"\nreason = "it did once"\n', encoding="utf-8")
    (tmp_path / "epcheck.toml").write_text('[targets."ж∞"]\nbase = "cpu"\n', encoding="utf-8")
    arguments = ("run", "-t", "ж∞", "--baseline", "none", "--no-reference", "--op", "Slice", "--limit", "1")
    done = epcheck(*arguments, "--expect", str(known), cwd=tmp_path, env={**ENVIRONMENT, "PYTHONIOENCODING": "cp1252"})
    assert (done.code, done.err) == (0, "")
    assert "\\u0436\\u221e: no conformance failure" in done.out


def test_list_operators_counts_the_cases() -> None:
    lines = call("list", "operators").out.splitlines()
    found = {line.split()[0]: line.split()[1:] for line in lines}
    without = {name: words for name, words in found.items() if words[:2] == ["no", "case"]}
    assert found.keys() - without.keys() == registry.all_operators().keys()
    assert without.keys() == {row.name for row in exclusions.list_excluded_operators()}
    assert without["ImageDecoder"][2:4] == ["since_version", "20:"]
    slices = len(call("list", "--op", "Slice").out.splitlines())
    assert found["Slice"] == [f"{slices}", "cases", "since_version", "1,", "10,", "11,", "13"]


def test_list_dtypes_says_why_a_type_has_no_case() -> None:
    lines = call("list", "dtypes").out.splitlines()
    assert "int2             has cases" in lines
    assert "complex64        no case: ONNX Runtime has no tensor of it" in lines


def test_what_is_expected_of_a_target_is_listed_with_its_condition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text(
        '[[expect]]\ncase = "Slice-13/*"\nstatus = "crash"\nreason = "a test"\nwhen = { vendor = "0x10de" }\n'
        '[[expect]]\ncase = "TopK-*"\nstatus = "order-dependent"\nreason = "another"\n'
    )
    (tmp_path / "epcheck.toml").write_text('[targets.mine]\nfunction = "m:f"\nexpectations = "own.toml"\n')
    of_slice = "crash            Slice-13/*, where vendor is 0x10de: a test\n"
    assert call("list", "expectations", "-t", "mine").out == f"{of_slice}order-dependent  TopK-*: another\n"
    assert call("list", "expectations", "-t", "mine", "--op", "Slice").out == of_slice
    assert call("list", "expectations", "-t", "reference").out == ""


def test_list_targets_has_those_of_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.joinpath("epcheck.toml").write_text('[targets.mine]\nbase = "cpu"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EPCHECK_RUNTIMES", str(tmp_path / "runtimes"))
    names = [line.split()[0] for line in call("list", "targets").out.splitlines()]
    recipes = ["webgpu", "openvino", "openvino-plugin", "qnn", "cuda"]
    assert names == ["cpu", "dml", "directml", "reference", *recipes, "mine", "default"]


def test_without_arguments_it_shows_what_there_is_and_with_version_its_version() -> None:
    assert all(f" {name} " in call().out + call().err for name in ("run", "list", "repro", "replay", "report", "lab"))
    from importlib.metadata import version

    assert call("--version").out == f"epcheck {version('epcheck')}\n"
