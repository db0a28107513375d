"""Pools with real workers: culprits and who is none, two workers of one target, and runs that must not stand still."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.records import terms
from epcheck.conformance.records.record import Record
from epcheck.conformance.scheduling import case_scheduler
from epcheck.conformance.scheduling import run as run_module
from epcheck.conformance.scheduling.case_scheduler import CaseScheduler
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.pools import session_times
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.targets.target import DML, STRICT, Target
from epcheck.generators import suite
from epcheck.generators.case import BuiltCase, Case
from tests.conformance.packed_backends import workers
from tests.conformance.small_cases import backend, identities, identity

pytestmark = [pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals"), pytest.mark.slow]


def packed(function: str, **changes: Any) -> Target:
    return replace(backend(function, module="packed_backends"), name=function, **{"pack": 20, **changes})


def run(cases: Sequence[Case], target: Target) -> tuple[dict[str, Record], tuple[str, ...]]:
    """Sample name -> record, and the notes."""
    taken: list[Record] = []
    notes = run_plan(Plan(cases, (target,)), taken.append)
    assert len(taken) == len({r.case_id for r in taken}) == len(cases)
    return {r.case.sample: r for r in taken}, notes


@pytest.mark.parametrize(
    ("function", "status"), [("aborts_on_3_and_9", terms.CRASH), ("refuses_3_and_9", terms.REFUSED)]
)
def test_every_culprit_of_a_pack_is_named_and_nobody_else(function: str, status: str) -> None:
    found, notes = run(identities(20), packed(function))
    wrong = {
        name: (r.status, r.candidate.attempts, r.candidate.shared) for name, r in found.items() if r.status != "pass"
    }
    assert wrong == dict.fromkeys(("number_3", "number_9"), (status, 2, 1))
    assert max(r.candidate.shared for r in found.values()) > 1
    assert notes == ()


def test_a_pack_that_fails_though_no_case_does_alone_becomes_a_note() -> None:
    found, notes = run(identities(20), packed("aborts_on_3_beside_9"))
    assert {r.status for r in found.values()} == {terms.PASS}
    assert notes == (
        "aborts_on_3_beside_9: a session of 20 cases failed, but no case fails alone "
        "(Identity-16/float32/number_0[runtime] and 19 more): the worker process ended: killed by SIGABRT",
    )


def test_wrong_answers_are_no_reason_for_a_crash() -> None:
    """Every case is a mismatch, alone or not; that two of them together end the process is another matter."""
    found, notes = run(identities(20), packed("wrong_and_aborts_on_3_beside_9"))
    assert {r.status for r in found.values()} == {terms.MISMATCH}
    (note,) = notes
    assert note.startswith("wrong_and_aborts_on_3_beside_9: a session of 20 cases failed, but no case fails alone")


PLACING = """
import os
import sys

from epcheck.conformance.workers.program import backends, main


class Placing:
    def facts(self):
        return {"providers": "DmlExecutionProvider", "assignment": "recorded"}

    def trouble_with(self, sessions):
        return ""

    def run(self, request, model, feeds):
        if len(request["outputs"]) > 2:
            os.abort()
        return {"stage": "placed", "assignment": [["CPUExecutionProvider", "TopK", "node"]]}, {}


backends.make = lambda *_: Placing()
main.main(sys.argv[1:])
"""
"""A worker in which nodes are assigned to the CPU provider one by one, and not together."""


def test_declined_cases_are_no_reason_for_a_crash_either(tmp_path: Path) -> None:
    """DirectML's provider claims none of these, so they are only placed, many together."""
    (tmp_path / "worker.py").write_text(PLACING, encoding="utf-8")
    here = (sys.executable,)
    dml = Target("dml", here, ("onnxruntime",), str(tmp_path / "worker.py"), None, DML, config=STRICT, pack=4)
    found, notes = run(list(suite.cases(["TopK"], ["float32"], ["TopK-24/*[initializer]"], limit=4)), dml)
    assert {r.status for r in found.values()} == {terms.UNPLACED}
    (note,) = notes
    assert note.startswith("dml: a session of 4 cases failed, but no case fails alone (TopK-24/")


def test_two_workers_share_the_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found, notes = run(identities(200), packed("in_two_workers", jobs=2))
    assert {r.status for r in found.values()} == {terms.PASS}
    assert len(set(workers())) == 2
    assert notes == ()


@pytest.mark.parametrize("pack", [1, 20])
def test_a_worker_that_is_killed_loses_nothing_and_duplicates_nothing(
    pack: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    taken: list[Record] = []
    target = packed("in_two_workers", jobs=2, pack=pack)
    killed = 0
    with CaseScheduler(Plan((), (target,)), taken.append) as session:
        for case in identities(400):
            session.submit(case)
        while session.under_way:
            session.turn()
            if taken and not killed:
                killed = next(workers())
                os.kill(killed, signal.SIGKILL)
        notes = [note for note in session.notes() if "killed by SIGKILL" in note]
    assert sorted(r.case_id for r in taken) == sorted(case.id for case in identities(400))
    unsteady = [r.reason for r in taken if r.status != terms.PASS]
    assert all("killed by SIGKILL" in reason for reason in unsteady)
    assert len(unsteady) + len(notes) <= 1  # what it was at, if it was at anything


def of_another_shell(case: Case, producer: str) -> Case:
    """The case in a model by another producer, which cannot share a session with those of others."""

    def build(built_as: Case) -> BuiltCase:
        built = case.build()
        field_2 = b"\x12" + bytes([len(producer)]) + producer.encode()
        return replace(built, case=built_as, model=built.model + field_2)

    return replace(case, sample=f"{case.sample}_by_{producer}", builder=build)


def test_a_run_goes_on_when_no_pack_fills_up_and_a_worker_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many kinds of cases, too few of each for a pack, and more cases than may be under way."""
    monkeypatch.setattr(case_scheduler, "IN_PROGRESS", 100)
    for module in (run_module, case_scheduler):
        monkeypatch.setattr(module, "AT_ONCE", 20)
    turns, turn = 0, CaseScheduler.turn

    def counted(session: CaseScheduler, more: bool = False, wait: bool = True) -> None:
        nonlocal turns
        turns += 1
        if turns > 300:
            pytest.fail(f"{session.under_way} cases stand still")
        turn(session, more, wait)

    monkeypatch.setattr(CaseScheduler, "turn", counted)
    cases = [of_another_shell(case, str(number % 10)) for number, case in enumerate(identities(190))]
    found, _ = run([identity("number_3", 3), *cases], packed("aborts_on_3_and_9", pack=128))
    wrong = {name for name, r in found.items() if r.status != terms.PASS}
    assert wrong == {"number_3", "number_3_by_3", "number_9_by_9"}


def test_cases_that_hang_cost_the_others_little_and_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that stands still is given up, here after 1 s: 8 cases in two sessions each would take 16 s in turn."""
    monkeypatch.setattr(session_times, "STALLED_S", 1.0)
    target = backend("faulty")
    cases = [*identities(400), *(identity(f"hangs_{number}", number, "hang") for number in range(8))]
    cases = [*cases[400:404], *cases[:400], *cases[404:]]
    with closing(Cache(tmp_path / "cache.sqlite")) as kept:
        for _run in ("cases hang unforeseen", "they go last"):
            taken: list[Record] = []
            started = time.monotonic()
            run_plan(Plan(cases, (target,)), taken.append, cache=kept)
            took_s = time.monotonic() - started
            assert Counter(record.status for record in taken) == {terms.PASS: 400, terms.TIMEOUT: 8}
            assert took_s < 10
    assert {record.case.sample for record in taken[-8:]} == {f"hangs_{number}" for number in range(8)}
    assert "no response, and no CPU time used for 1 s" in taken[-1].reason
