"""A run that is asked for one record at a time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from epcheck.conformance.records.terms import CRASH, PASS
from epcheck.conformance.scheduling import stream
from epcheck.conformance.scheduling.stream import CaseStream, CaseStreamError
from tests.conformance.small_cases import HERE, identities, own_workers


@pytest.fixture(autouse=True)
def _beside_the_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)


def test_records_come_in_the_order_they_are_asked_for() -> None:
    cases = identities(20)
    with CaseStream("python:faulty_backends:right", "none", cases) as run:
        samples = [run.record(case).case.sample for case in cases]
        backwards = [run.record(case).case.sample for case in reversed(cases[:3])]
    assert samples == [f"number_{number}" for number in range(20)]
    assert backwards == ["number_2", "number_1", "number_0"]
    assert own_workers() == []


def test_cases_ahead_are_run_once() -> None:
    """`wrong_after_case_2` counts: had case 2 been run again after case 5, nothing would differ; so ask for all."""
    cases = identities(8)
    with CaseStream("python:faulty_backends:wrong_after_case_2", "none", cases) as run:
        statuses = [run.record(case).status for case in cases]
    assert statuses == [PASS] * 5 + ["order-dependent"] + [PASS] * 2


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_crash_is_a_verdict_and_not_the_end() -> None:
    with CaseStream("python:faulty_backends:aborts_always", "python:faulty_backends:right") as run:
        found = [run.record(case) for case in identities(2)]
    assert [item.status for item in found] == [CRASH, CRASH]
    assert all(item.baseline is not None and item.baseline.status == PASS for item in found)


@pytest.mark.parametrize(
    ("candidate", "baseline", "words"),
    [
        ("gpu", None, "unknown target 'gpu'"),
        ("cpu", "gpu", "unknown target 'gpu'"),
        ("python:nothing:f", "none", "target 'python:nothing:f': its worker does not start"),
        ("cpu", "python:nothing:f", "target 'python:nothing:f': its worker does not start"),
    ],
)
def test_what_cannot_run_is_one_kind_of_error(candidate: str, baseline: str | None, words: str) -> None:
    with pytest.raises(CaseStreamError, match=words):
        CaseStream(candidate, baseline)
    assert own_workers() == []


def test_an_expectation_file_that_is_broken_is_that_kind_of_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("epcheck.toml").write_text('[targets.x]\nbase = "cpu"\nexpectations = "none.toml"\n')
    with pytest.raises(CaseStreamError, match=r"expectations 'none\.toml' cannot be read"):
        CaseStream("x", "none")


@pytest.mark.parametrize(
    ("candidates", "baseline", "names"),
    [
        (("cpu",), None, ("cpu", "reference")),
        (("reference",), None, ("reference", "cpu")),
        (("cpu", "reference", "cpu"), None, ("cpu", "reference", "cpu")),
        (("cpu",), "none", ("cpu", None)),
    ],
)
def test_the_baseline_is_cpu_and_that_of_cpu_the_reference(
    candidates: tuple[str, ...], baseline: str | None, names: tuple[str | None, ...]
) -> None:
    chosen, against = stream.choose(candidates, baseline)
    assert (*(target.name for target in chosen), against.name if against else None) == names


def test_without_directml_the_candidate_is_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "why_no_dml", lambda: "there is none")
    ((candidate,), against) = stream.choose((), None)
    assert (candidate.name, against.name if against else None) == ("cpu", "reference")
