"""What an answer says of a case that was only placed, and which cases are run before anything is answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.records.outcome import DONE, FAILED, PLACED, Outcome
from epcheck.conformance.scheduling.placements import _Asked
from epcheck.conformance.scheduling.pools.supervisor import Job
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.generators import suite

CPU, OTHER = "CPUExecutionProvider", "OtherExecutionProvider"
TARGET = replace(resolve("cpu"), provider=OTHER)
BRANCHES = prepared_case.of(suite.case_by_id("If-13/float64/then[initializer]").build())
DISABLED = Outcome(FAILED, stage="create", message="fallback to CPU EP has been explicitly disabled by the user.")


@pytest.fixture
def answers() -> list[tuple[str, bool]]:
    return []


@pytest.fixture
def asked(answers: list[tuple[str, bool]]) -> _Asked:
    return _Asked(TARGET, IdleWorkers(), 1, 1, lambda _case, why_not, fails: answers.append((why_not, fails)))


def submitted(asked: _Asked, monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    jobs: list[Job] = []
    monkeypatch.setattr(asked.pool, "submit", jobs.append)
    return jobs


def test_a_node_that_is_taken_whole_is_not_run(
    asked: _Asked, answers: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = submitted(asked, monkeypatch)
    asked._handle_outcome(BRANCHES, Outcome(PLACED, assignment=((OTHER, "If"), (OTHER, "Identity"))))
    assert (answers, jobs) == ([("", False)], [])


def test_a_node_beside_one_that_others_take_is_run_where_nothing_may_fall_back(
    asked: _Asked, answers: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = submitted(asked, monkeypatch)
    beside = BRANCHES._replace(beside=("Cast",))
    asked._handle_outcome(beside, Outcome(PLACED, assignment=((OTHER, "If"), (CPU, "Cast"))))
    assert answers == []
    (job,) = jobs
    assert (job.prepared, job.place) == (beside, False)
    job.finished(DISABLED)
    assert answers == [(DISABLED.message, False)]


def test_a_node_that_was_taken_apart_is_run_too(
    asked: _Asked, answers: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = submitted(asked, monkeypatch)
    asked._handle_outcome(BRANCHES, Outcome(PLACED, assignment=((OTHER, "Identity"),)))
    jobs[0].finished(Outcome(DONE, assignment=((OTHER, "Identity"),)))
    assert answers == [("", False)]


def test_a_node_of_another_provider_is_declined(
    asked: _Asked, answers: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = submitted(asked, monkeypatch)
    asked._handle_outcome(BRANCHES, Outcome(PLACED, assignment=((CPU, "If"),)))
    assert (answers, jobs) == ([("If was assigned to CPUExecutionProvider", False)], [])


def test_a_node_that_only_the_device_cannot_run_is_taken(asked: _Asked, answers: list[tuple[str, bool]]) -> None:
    lacking = "[ONNXRuntimeError] : 1 : FAIL : Program Transpose requires f16 but the device does not support it."
    asked._handle_outcome(BRANCHES, Outcome(FAILED, stage="create", message=lacking))
    asked._handle_outcome(BRANCHES, Outcome(FAILED, stage="create", message="Cannot compile"))
    assert answers == [("", False), ("Cannot compile", True)]
