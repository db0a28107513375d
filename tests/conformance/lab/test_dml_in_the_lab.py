"""The real DirectML provider behind the worker: placement proved, stale memory found, two releases side by side."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from onnx import TensorProto, helper

from epcheck import reports
from epcheck.conformance import lab
from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.judging.opinion import opinion
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.outcome import DONE, Outcome
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.terms import PASS
from epcheck.conformance.scheduling.case_scheduler import CaseScheduler
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.run import ask, run_plan
from epcheck.conformance.targets.target import DML, Target
from epcheck.conformance.workers import confinement
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import find_guarded_worker
from epcheck.conformance.workers.program.namespaces import GUARD
from epcheck.generators import suite
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.node import Node, Operand
from epcheck.generators.truth import Output, Outputs
from tests.command_line import ENVIRONMENT, START, call
from tests.conformance.small_cases import identities, identity, own_workers

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the lab is for Linux")


def sum_over_nothing() -> PreparedCase:
    """ReduceSum-11 over an axis of length 0: four zeros, by the definition of an empty sum."""
    x = np.zeros((0, 4), np.float32)
    node = Node("ReduceSum", "", 11, (Operand("x", x),), ("y",), {"axes": (0,), "keepdims": 0})
    graph = helper.make_graph(
        [helper.make_node("ReduceSum", ["x"], ["y"], axes=[0], keepdims=0)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [0, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8).SerializeToString()
    truth = Outputs((Output("y", np.zeros(4, np.float32)),))

    def build(case: Case) -> BuiltCase:
        return BuiltCase(case, node, 11, model, {"x": x}, truth, {"T": "float32"}, None)

    return prepared_case.of(Case("ReduceSum", "", 11, "float32", "over_nothing", "runtime", build).build())


@pytest.fixture(scope="module")
def answers(dml: Target) -> dict[str, Outcome]:
    """What DirectML does with a healthy case and with a sum over nothing."""
    cases = (prepared_case.of(identity("healthy").build()), sum_over_nothing())
    return {prepared.case.sample: ask(dml, prepared) for prepared in cases}


def test_cases_that_are_not_claimed_and_pass_share_sessions_the_next_time(dml: Target, tmp_path: Path) -> None:
    cases = list(suite.cases(["PRelu"], patterns=["PRelu-16/int64/slope_*"]))
    shared = []
    for _ in range(2):
        found: list[Record] = []
        with closing(Cache(tmp_path / "cache.sqlite")) as kept:
            run_plan(Plan(cases, (dml,)), found.append, cache=kept)
        assert {(r.status, r.claimed, r.reading) for r in found} == {(PASS, False, terms.NOTED)}
        shared.append({r.candidate.shared for r in found})
    assert shared == [{1}, {len(cases)}]


def test_a_healthy_case_is_written_and_assigned_to_directml(answers: dict[str, Outcome]) -> None:
    healthy = answers["healthy"]
    assert (healthy.kind, healthy.unwritten, healthy.repeat_differs) == (DONE, (), ())
    assert healthy.assignment == ((DML, "Identity"),)
    assert healthy.outputs["y"].tolist() == [-1.0, 0.0]


def test_an_output_that_directml_never_writes_is_found(answers: dict[str, Outcome]) -> None:
    """Without the dirtied second run this is right or wrong by chance: fresh memory is zero, and so is the sum."""
    empty = answers["over_nothing"]
    assert (empty.kind, empty.unwritten) == (DONE, ("y",))


def test_an_unwritten_output_is_never_a_pass(dml: Target, answers: dict[str, Outcome]) -> None:
    found = answers["over_nothing"]
    by_chance = replace(found, outputs={"y": np.zeros(4, np.float32)})
    opinions = [opinion(sum_over_nothing(), dml, outcome) for outcome in (found, by_chance)]
    assert [opinion.status for opinion in opinions] == [terms.MISMATCH, terms.MISMATCH]
    assert opinions[1].message == "the provider does not write y: the buffer keeps its old content"


def test_two_releases_run_side_by_side_and_both_prove_their_placement(dml: Target, tmp_path: Path) -> None:
    """1.20.1 keeps no record of assignments: its profile is the proof."""
    root = tmp_path / "runs"
    done = call(
        "run", "-t", "dml", "-t", "dml@1.20.1", "--op", "Slice", "-k", "rank_", "--limit", "6", "--root", f"{root}"
    )
    (folder,) = root.iterdir()
    facts = reports.read_run(folder).targets
    assert (done.code, dml.name) == (0, "dml")
    assert facts["dml"]["onnxruntime"] == lab.DEFAULT_RUNTIME
    assert facts["dml@1.20.1"]["onnxruntime"] == "1.20.1"
    assert facts["dml"]["DirectML.dll"] != facts["dml@1.20.1"]["DirectML.dll"]
    assert facts["dml"]["adapter"] == facts["dml@1.20.1"]["adapter"] != ""
    found = Counter(
        (item.candidate.target, item.status, item.candidate.assignment) for item in reports.read_records(folder)
    )
    assert found == {
        ("dml", PASS, ((DML, "Slice"),)): 6,
        ("dml@1.20.1", PASS, ((DML, "Slice"),)): 6,
    }


def test_a_worker_in_the_lab_that_is_killed_costs_no_case_its_verdict_and_is_noted(dml: Target) -> None:
    taken: list[Record] = []
    with CaseScheduler(Plan((), (replace(dml, window=2, pack=1),)), taken.append) as session:
        for case in identities(30):
            session.submit(case)
        killed = False
        while session.under_way:
            session.turn()
            if len(taken) >= 5 and not killed:
                (worker,) = own_workers()
                worker.kill()
                killed = True
        notes = list(session.notes())
    assert Counter(found.status for found in taken) == {PASS: 30}
    (note,) = notes
    assert "dml: a worker ended while it ran" in note
    assert own_workers() == []


def test_the_lab_is_left_running_while_another_uses_it(dml: Target) -> None:
    """A session that ends does not end Wine under a session that goes on."""
    taken: list[Record] = []
    with CaseScheduler(Plan((), (dml,)), taken.append) as session:
        session.submit(identity("before"))
        while session.under_way:
            session.turn()
        assert ask(dml, prepared_case.of(identity("meanwhile").build())).kind == DONE
        session.submit(identity("after"))
        while session.under_way:
            session.turn()
    assert [(found.case.sample, found.status, found.candidate.attempts) for found in taken] == [
        ("before", PASS, 1),
        ("after", PASS, 1),
    ]


@pytest.mark.skipif(not confinement.has_namespaces(), reason="this system has no namespaces for us")
def test_a_run_has_a_server_of_its_own_which_ends_with_it_and_leaves_the_prefix_as_it_was(dml: Target) -> None:
    prefix = Path(str((dml.environment or {})["WINEPREFIX"]))

    def files() -> dict[str, tuple[int, int]]:
        found = {path: path.lstat() for path in prefix.rglob("*")}
        return {str(path): (about.st_size, about.st_mtime_ns) for path, about in found.items()}

    def servers(container: str) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter(["name"]):
            with contextlib.suppress(psutil.Error, OSError):
                if process.info["name"].startswith("wineserver") and container_of(process) == container:
                    found.append(process)
        return found

    def container_of(process: psutil.Process) -> str:
        return str(Path(f"/proc/{process.pid}/ns/pid").readlink())

    def guards() -> set[int]:
        return {child.pid for child in psutil.Process().children() if child.name() == GUARD}

    before, others = files(), guards()
    with closing(IdleWorkers(keep=1)) as workers:
        records: list[Record] = []
        run_plan(Plan(identities(2), (dml,)), records.append, idle_workers=workers)
        assert [record.status for record in records] == [PASS] * 2
        (guard,) = guards() - others
        container = container_of(psutil.Process(find_guarded_worker(guard)))
        assert container != container_of(psutil.Process())
        (wine_server,) = servers(container)
    assert not wine_server.is_running()
    assert servers(container) == []
    assert files() == before


@pytest.mark.usefixtures("dml")
def test_an_interrupted_run_ends_its_windows_process(tmp_path: Path) -> None:
    command = [
        *START,
        "run",
        "-t",
        "dml",
        "--baseline",
        "none",
        "--no-reference",
        "--op",
        "Slice",
        "--root",
        str(tmp_path),
    ]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not any(path.stat().st_size for path in tmp_path.glob("*/journal.jsonl")):
            time.sleep(0.05)
        workers = psutil.Process(process.pid).children(recursive=True)
        assert any("python.exe" in " ".join(worker.cmdline()) for worker in workers)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    (folder,) = tmp_path.iterdir()
    assert (process.returncode, err, reports.read_run(folder).status) == (130, b"", "interrupted")
    assert psutil.wait_procs(workers, timeout=5)[1] == []
