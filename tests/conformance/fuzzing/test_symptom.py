"""What failures look like: the same fault looks the same, whatever its numbers are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epcheck.conformance.fuzzing.symptom import kind_of, resembling, symptom
from epcheck.conformance.preparation import case_facts
from epcheck.conformance.records.opinion import Difference, Mismatch, Opinion
from epcheck.conformance.records.record import Record
from epcheck.conformance.targets.expectation import Expectation
from epcheck.generators import suite

CASE = next(iter(suite.cases(["Slice"], dtypes=["float32"])))


def record(status: str, message: str = "", *differences: Difference) -> Record:
    opinion = Opinion("cpu", status, message=message, differences=differences)
    return Record(case_facts.of_unbuilt(CASE), opinion, None, {}, status, "candidate", "failure", message, None)


def difference(*pairs: tuple[str, str, float | None], reason: str = "1 of 1 elements is wrong") -> Difference:
    first = tuple(Mismatch((0,), expected, got, ulp) for expected, got, ulp in pairs)
    return Difference("y", "float32", (1,), reason, len(first), 1, first=first)


def test_refusals_with_other_numbers_look_alike() -> None:
    first = record("refused", "[ONNXRuntimeError] : 1 : FAIL : node 'node' /src/pad.cc:441 got {2,3} at axis 1.")
    other = record("refused", "[ONNXRuntimeError] : 1 : FAIL : node 'n2' /build/pad.cc:7 got {4} at axis -3.")
    assert symptom(first) == symptom(other)
    assert symptom(first).operator == "Slice"
    assert symptom(first) != symptom(record("refused", "another message"))
    assert symptom(first) != symptom(replace(first, status="crash"))


def test_addresses_and_shapes_do_not_tell_refusals_apart() -> None:
    messages = ("kernel at 0x7f3a9c12 refused (3, 5)", "kernel at 0xdeadbeef refused (2,)", "kernel at 0xa refused [4]")
    assert len({symptom(record("refused", message)) for message in messages}) == 1


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (difference(reason="the shape is [1, 0], must be [0, 0]"), "the shape"),
        (difference(("nan", "0.5", None)), "NaN"),
        (difference(("inf", "3e38", None), ("1.0", "1.0000001", 1.0)), "infinity"),
        (difference(("0.0", "-0.0", 0.0)), "sign of zero"),
        (difference(("1.0 (exactly 1.00001)", "1.00002", 90.0)), "precision"),
        (difference(("1.0", "2.0", 8e6)), "values"),
        (difference(("7", "8", None)), "values"),
        (difference(("True", "False", None)), "values"),
    ],
)
def test_differences_are_of_a_kind(found: Difference, kind: str) -> None:
    assert kind_of(found) == kind


def test_a_recorded_deviation_of_another_operator_or_status_is_none() -> None:
    refusal = record("refused", "no")
    entries = [Expectation("Slice-*/*/some[*", "mismatch", "no"), Expectation("SliceX-13/*/a*", "refused", "no")]
    assert resembling(refusal, entries) is None
    fits = Expectation("Slice-13/float16/some[*", "refused", "yes")
    assert resembling(refusal, [*entries, fits]) is fits


def test_wrong_values_resemble_those_of_the_same_dtypes_alone() -> None:
    wrong = record("mismatch", "", difference(("1.0", "2.0", 8e6)))
    other = Expectation(f"Slice-{CASE.since_version}/float16/some[*", "mismatch", "another dtype")
    same = Expectation(f"Slice-{CASE.since_version}/float32/some[*", "mismatch", "the same")
    assert resembling(wrong, [other, same]) is same
    form = record("mismatch", "", difference(reason="the shape is [1], must be []"))
    assert resembling(form, [other, same]) is other
