"""Accuracy suspicions: answers within their bounds that are far from the truth where the baseline's are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epcheck.conformance.records.accuracy import Accuracy
from epcheck.conformance.records.record import Record
from epcheck.reports.runs.accuracy import AccuracySuspicion
from epcheck.reports.runs.summary import summarize
from tests.reports.stored_records import a_run, a_slice, an_opinion, changed


def measured(sample: str, candidate: float, baseline: float, dtype: str = "float32") -> Record:
    """A right case; candidate, baseline: the largest errors in ULP."""
    opinions = [
        replace(an_opinion(target), accuracy=Accuracy(8, error, error, (8,)))
        for target, error in (("dml", candidate), ("cpu", baseline))
    ]
    return changed(a_slice(dtype, sample), candidate=opinions[0], baseline=opinions[1])


def suspicions(*records: Record) -> tuple[AccuracySuspicion, ...]:
    (target,) = summarize(a_run(len(records)), records).targets
    return target.suspicions


def test_an_answer_that_is_much_further_from_the_truth_than_the_baselines_is_suspicious() -> None:
    (found,) = suspicions(measured("short", 14.65, 0.48), measured("long", 119.0, 0.48), measured("one", 0.5, 0.5))
    assert (found.operator, found.dtype, found.cases, found.of) == ("Slice", "float32", 2, 3)
    assert (found.worst, found.candidate, found.baseline, found.times) == (
        "Slice-13/float32/long[runtime]", 119.0, 0.48, 238.0,
    )  # fmt: skip
    assert found.describe("cpu") == (
        "Slice float32: 119 ULP where cpu has 0.48, 238 times as far; 2 of 3 right cases are like this"
    )


@pytest.mark.parametrize(
    ("candidate", "baseline", "dtype"),
    [(3.9, 0.1, "float32"), (100.0, 6.3, "float32"), (2.0**20, 0.5, "float32"), (128.0, 0.5, "float16")],
)
def test_small_errors_errors_of_both_and_errors_close_to_zero_are_not(
    candidate: float, baseline: float, dtype: str
) -> None:
    assert suspicions(measured("a", candidate, baseline, dtype)) == ()


def test_the_furthest_comes_first_and_a_wrong_case_does_not_count() -> None:
    wrong = changed(measured("wrong", 500.0, 0.5), status="mismatch", reading="failure", blame="candidate")
    halves = measured("a", 100.0, 0.5, "float16")
    assert [(each.dtype, each.times) for each in suspicions(measured("b", 10.0, 0.5), halves, wrong)] == [
        ("float16", 200.0), ("float32", 20.0),
    ]  # fmt: skip
