"""A run on a real cluster of processes: every case once, whoever is lost, and the verdicts of a run on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epcheck import reports
from epcheck.cli.terminal.progress_log import ProgressLog
from epcheck.conformance.cluster import node
from epcheck.conformance.cluster.node import ClusterError, Line, Order, TaskResult
from epcheck.conformance.records.record import Record, decode
from epcheck.conformance.workers.client import TargetDown
from epcheck.generators import suite
from epcheck.generators.case import BuiltCase, Case
from tests.command_line import call, refused
from tests.conformance.small_cases import HERE, backend, identities, identity, records_of

pytest.importorskip("distributed")

import dask
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context

from epcheck.conformance.cluster import cluster as cluster_module
from epcheck.conformance.cluster import connection, dispatch, nodes
from epcheck.conformance.cluster.cluster import Cluster

pytestmark = pytest.mark.slow  # clusters of processes

SLOW, RIGHT, NO_BACKEND = "python:faulty_backends:slow", "python:faulty_backends:right", "python:nothing:here"
METHOD = "spawn" if sys.platform == "win32" else "forkserver"
RESOURCES = {"cpu": 1, "mine": 1, SLOW: 1, RIGHT: 1, NO_BACKEND: 1}


@contextlib.contextmanager
def cluster_of(machines: int, deaths: int = 0) -> Iterator[LocalCluster]:
    """Dask workers in processes of their own, which find the faulty backends. deaths: how many Dask allows of the
    machines that take a task, before it gives the task up. They are forks of a process that has imported Dask and
    epcheck."""
    settings = {"distributed.scheduler.allowed-failures": deaths, "distributed.worker.multiprocessing-method": METHOD}
    with pytest.MonkeyPatch.context() as patch, dask.config.set(settings):
        if METHOD == "forkserver":
            get_mp_context().set_forkserver_preload(["distributed.nanny", node.__name__])
        patch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), str(HERE.parents[1])]))
        with LocalCluster(
            n_workers=machines, threads_per_worker=1, processes=True, resources=RESOURCES, dashboard_address=":0",
            silence_logs="CRITICAL",
        ) as cluster:  # fmt: skip
            yield cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with cluster_of(2) as cluster:
        yield cluster


@pytest.fixture
def mortal_cluster() -> Iterator[LocalCluster]:
    """For tests that kill machines: a machine that Dask does not bring back is missed by no other test."""
    with cluster_of(2) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "CHUNK", 8)
    monkeypatch.setattr(dispatch, "SMALLEST_CHUNK", 1)


Change = Callable[[TaskResult, Sequence[Case]], TaskResult]


def one_machine_says(cluster: LocalCluster, change: Change) -> None:
    """From now on, one machine does this to what it answers."""

    def install(change: Change) -> None:
        from epcheck.conformance.cluster import node

        original = node._Executor.run

        def run(executor: node._Executor, cases: Sequence[Case]) -> TaskResult:
            return change(original(executor, cases), cases)

        run.original = original  # type: ignore[attr-defined]
        node._Executor.run = run  # type: ignore[method-assign]

    with Client(cluster.scheduler_address, set_as_default=False) as client:
        client.run(install, change, workers=[*client.nthreads()][:1])


@pytest.fixture
def honest_again(cluster: LocalCluster) -> Iterator[None]:
    """After the test, all machines say what is."""

    def restore() -> None:
        from epcheck.conformance.cluster import node

        node._Executor.run = getattr(node._Executor.run, "original", node._Executor.run)  # type: ignore[method-assign]

    yield
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        client.run(restore)


def an_order(candidate: str, run: str = "a run", **changes: Any) -> Order:
    return Order(run, candidate, **{"baseline": None, "reference": False, **changes})


def run(
    cluster: LocalCluster, order: Order, cases: Sequence[Case], messages: list[str] | None = None
) -> tuple[list[Record], tuple[str, ...]]:
    """The records that come back, and the notes."""
    lines: list[Line] = []
    with Cluster(cluster.scheduler_address, [order], (messages if messages is not None else []).append) as connected:
        connected.run(cases, (), lines.append, lambda _: None)
        notes = connected.notes
    return [decode(text) for text, _ in lines], notes


def statuses(records: Sequence[Record]) -> dict[str, str]:
    assert len({record.case_id for record in records}) == len(records)
    return {record.case.sample: record.status for record in records}


def folder_in(root: Path) -> Path:
    (folder,) = root.iterdir()
    return folder


def verdicts(folder: Path) -> dict[str, tuple[str, str, str, str]]:
    records = list(reports.read_records(folder))
    assert len({record.case_id for record in records}) == len(records)
    return {r.case_id: (r.status, r.reading, r.blame, r.reason) for r in records}


FEW = ("run", "-t", "cpu", "--op", "TopK", "--dtype", "float32", "--dtype", "uint8", "--limit", "60")


def test_the_verdicts_are_those_of_a_run_on_this_machine(cluster: LocalCluster, tmp_path: Path) -> None:
    done = call(*FEW, "--root", str(tmp_path / "there"), "--scheduler", cluster.scheduler_address)
    assert (done.code, done.err) == (0, "")
    assert call(*FEW, "--root", str(tmp_path / "here")).code == 0
    there, here = folder_in(tmp_path / "there"), folder_in(tmp_path / "here")
    assert verdicts(there) == verdicts(here)
    assert len(verdicts(there)) == 60
    apart, other = reports.read_run(there), reports.read_run(here)
    assert (apart.status, apart.planned, apart.baseline, apart.notes) == ("complete", 60, "reference", ())
    assert (apart.targets, apart.share) == (other.targets, other.share)
    assert apart.selection["scheduler"] == cluster.scheduler_address


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_machine_that_is_killed_costs_no_case_and_no_verdict(mortal_cluster: LocalCluster) -> None:
    cases = [*identities(36), *(identity(f"accepted_{n}", n, must_refuse=True) for n in range(4))]
    lines: list[Line] = []

    def take(line: Line) -> None:
        lines.append(line)
        if len(lines) == 1:
            (victim, *_) = mortal_cluster.workers.values()
            os.kill(victim.pid, signal.SIGKILL)

    with Cluster(mortal_cluster.scheduler_address, [an_order(SLOW)]) as connected:
        connected.run(cases, (), take, lambda _: None)
    here = records_of(cases, backend("slow"))
    assert statuses([decode(text) for text, _ in lines]) == {name: record.status for name, record in here.items()}


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_case_that_takes_machines_down_is_named_and_all_others_are_run(
    mortal_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "SMALLEST_CHUNK", 8)

    def deadly(case: Case) -> BuiltCase:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError(case.id)

    cases = identities(7)
    cases.insert(3, replace(identity("deadly"), builder=deadly))
    lines: list[Line] = []
    unrecorded = r"1 case is not recorded.*: Identity-16/float32/deadly\[runtime\]"
    with (
        Cluster(mortal_cluster.scheduler_address, [an_order(RIGHT)]) as connected,
        pytest.raises(ClusterError, match=unrecorded),
    ):
        connected.run(cases, (), lines.append, lambda _: None)
    assert statuses([decode(text) for text, _ in lines]) == {f"number_{n}": "pass" for n in range(7)}


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_the_only_machine_may_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "RESULT_S", 0.5)
    lines: list[Line] = []
    with cluster_of(1, deaths=3) as own, Cluster(own.scheduler_address, [an_order(RIGHT)]) as connected:

        def take(line: Line) -> None:
            lines.append(line)
            if len(lines) == 1:
                (only,) = own.workers.values()
                os.kill(only.pid, signal.SIGKILL)

        connected.run(identities(24), (), take, lambda _: None)
    assert statuses([decode(text) for text, _ in lines]) == {f"number_{n}": "pass" for n in range(24)}


def test_a_run_that_is_interrupted_is_taken_up_again(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        taken: list[str] = []

        def interrupt(_shown: ProgressLog, reading: str) -> None:
            taken.append(reading)
            if len(taken) == 20:
                raise KeyboardInterrupt

        patch.setattr(ProgressLog, "take", interrupt)
        assert call(*FEW, "--root", str(tmp_path), "--scheduler", cluster.scheduler_address).code == 130
    folder = folder_in(tmp_path)
    assert len(verdicts(folder)) == 20
    assert call("run", "--resume", str(folder)).code == 0
    assert (len(verdicts(folder)), reports.read_run(folder).status) == (60, "complete")


def other_driver(result: TaskResult, _cases: Sequence[Case]) -> TaskResult:
    return replace(result, facts={name: {**facts, "driver": "2.0"} for name, facts in result.facts.items()})


@pytest.mark.usefixtures("honest_again")
def test_machines_with_different_drivers_are_not_mixed(cluster: LocalCluster) -> None:
    one_machine_says(cluster, other_driver)
    with pytest.raises(ClusterError) as error:
        run(cluster, an_order(RIGHT), identities(3))
    assert f"its '{RIGHT}' is not what other machines have: driver is " in str(error.value)
    assert str(error.value).endswith("give its target and resource another name, or pass --may-differ driver")


@pytest.mark.usefixtures("honest_again")
def test_drivers_may_differ_where_the_user_says_so(cluster: LocalCluster) -> None:
    one_machine_says(cluster, other_driver)
    facts: dict[str, Any] = {}
    with Cluster(cluster.scheduler_address, [an_order(RIGHT)], may_differ=("driver",)) as connected:
        connected.run(identities(3), (), lambda _: None, facts.update)
    assert facts[RIGHT]["driver"] == "2.0"


@pytest.mark.usefixtures("honest_again")
def test_baselines_that_are_not_the_same_are_said(cluster: LocalCluster) -> None:
    def other_numpy(result: TaskResult, _cases: Sequence[Case]) -> TaskResult:
        return replace(result, facts={**result.facts, "cpu": {**result.facts["cpu"], "numpy": "0.1"}})

    one_machine_says(cluster, other_numpy)
    _, notes = run(cluster, an_order(RIGHT, baseline="cpu"), identities(3))
    assert notes == ("The target cpu is not the same on all machines; it differs in numpy",)


@pytest.mark.usefixtures("honest_again")
def test_a_machine_whose_target_breaks_is_left_out_and_the_others_go_on(cluster: LocalCluster) -> None:
    def breaks(result: TaskResult, cases: Sequence[Case]) -> TaskResult:
        if cases:
            raise TargetDown("the GPU has fallen off the bus")
        return result

    one_machine_says(cluster, breaks)
    messages: list[str] = []
    records, notes = run(cluster, an_order(RIGHT), identities(40), messages)
    assert statuses(records) == {f"number_{n}": "pass" for n in range(40)}
    assert messages == list(notes)
    (note,) = notes
    assert note.startswith("Left out: ")
    assert note.endswith("the GPU has fallen off the bus")


def test_a_target_that_no_machine_can_start_is_said_at_once(cluster: LocalCluster) -> None:
    with pytest.raises(ClusterError, match=r"its worker does not start: .*No module named 'nothing'"):
        run(cluster, an_order(NO_BACKEND), identities(3))


def test_a_target_that_no_machine_declares_is_said_with_what_to_do(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "PATIENCE_S", 0.2)
    address = cluster.scheduler_address
    assert refused(*FEW[:2], "dml", "--op", "Neg", "--scheduler", address) == (
        f"no Dask worker declares the resource 'dml'; start one where the target is: "
        f'dask worker {address} --nthreads 1 --resources "dml=1"'
    )


def test_another_epcheck_on_a_machine_is_said(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "version", lambda package: {"epcheck": "9.9", "onnx": "1.0"}[package])
    with pytest.raises(ClusterError, match=r"tcp://.*: it has epcheck [\d.]+, and this machine 9\.9"):
        run(cluster, an_order(RIGHT), identities(3))


def test_tables_and_expectations_of_the_client_travel(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    known = '[[expect]]\ncase = "{}"\nstatus = "crash"\nreason = "a test"\n'
    Path("own.toml").write_text(known.format("TopK-*/float32/*"))
    elsewhere = known.format("Never-*") + 'when = { vendor = "0x10de" }\n'
    Path("further.toml").write_text(known.format("Nothing-*") + elsewhere)
    Path("epcheck.toml").write_text('[targets.mine]\nbase = "cpu"\nexpectations = "own.toml"\n')
    few = list(suite.cases(["TopK"], ["float32"], limit=5))
    monkeypatch.setattr(suite, "cases", lambda *_: iter(few))
    options = ("--expect", "further.toml", "--root", "runs", "--scheduler", cluster.scheduler_address)
    assert call("run", "-t", "mine", *options).code == 0
    folder = folder_in(Path("runs"))
    assert {reading for _, reading, _, _ in verdicts(folder).values()} == {"fixed"}
    stale = reports.read_run(folder).stale
    assert "mine: Nothing-*" in stale
    assert not any(entry.startswith(("mine: TopK-*/float32/*", "mine: Never-*")) for entry in stale)


def test_workers_stay_warm_within_a_run_and_end_with_it(cluster: LocalCluster) -> None:
    def idle(dask_worker: Any) -> int:
        del dask_worker
        from epcheck.conformance.cluster import node

        return sum(executor.order.run == "warm" for executor in node._idle)

    with Client(cluster.scheduler_address, set_as_default=False) as client:
        with Cluster(cluster.scheduler_address, [an_order(RIGHT, run="warm")]) as connected:
            connected.run(identities(40), (), lambda _: None, lambda _: None)
            assert list(client.run(idle).values()) == [1, 1]
        until = time.monotonic() + 10
        while any(client.run(idle).values()) and time.monotonic() < until:
            time.sleep(0.02)
        assert not any(client.run(idle).values())


def test_a_scheduler_that_is_lost_ends_the_run_and_keeps_what_came(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (connection, dispatch):
        monkeypatch.setattr(module, "CONNECT_S", 1.0)
    lines: list[Line] = []
    with cluster_of(1) as own:

        def take(line: Line) -> None:
            lines.append(line)
            if len(lines) == 1:
                own.close()

        with Cluster(own.scheduler_address, [an_order(SLOW)]) as connected, pytest.raises(ClusterError, match="lost"):
            connected.run(identities(64), (), take, lambda _: None)
    assert 1 <= len(lines) < 64
