"""Causes: the same for cases of all operators that are not right for the same reason, and others for other reasons."""

import dataclasses

import pytest
from stored_records import a_refused_qlinearconv, a_run, a_slice, a_wrong_slice, an_opinion, changed

from epcheck.conformance.records.case_facts import Value
from epcheck.conformance.records.record import Direct, Expected, Record
from epcheck.reports.cause_text import CauseText, cause_text
from epcheck.reports.runs.causes import Cause
from epcheck.reports.runs.summary import summarize

ORT = "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : "
AT_CREATE = f"{ORT}Exception during initialization: MLOperatorAuthorImpl.cpp(2508) 80070057 Invalid parameter."
AT_RUN = (
    f"{ORT}Non-zero status code returned while running ReduceSum node. Name:'node' Status Message: "
    "MLOperatorAuthorImpl.cpp(2508) 80070057 Invalid parameter."
)


def refused(message: str, operator: str = "Slice", **changes: object) -> Record:
    case_id = f"{operator}-13/float32/{message[-9:-1]}[runtime]"
    record = a_slice(case_id=case_id, operator=operator, status="refused", reading="failure", blame="candidate")
    return changed(record, candidate=an_opinion("dml", operator, "refused", message=message), **changes)


def causes(*records: Record) -> tuple[Cause, ...]:
    (target,) = summarize(a_run(), records).targets
    return target.causes


def test_one_line_of_source_code_is_one_cause_across_operators_and_stages() -> None:
    (cause,) = causes(refused(AT_CREATE), refused(AT_RUN, "ReduceSum"), refused(AT_RUN, "ReduceSum"))
    assert cause.text == "MLOperatorAuthorImpl.cpp(2508) 80070057 Invalid parameter."
    assert (cause.cases, cause.place, cause.statuses) == (3, "", {"refused": 3})
    assert cause.operators == ("ReduceSum", "Slice")


def test_the_operator_in_the_message_of_one_line_does_not_tell_causes_apart() -> None:
    line = (
        "/onnxruntime_src/transformer_memcpy.cc:9 bool n::F::f(const n::Node&) const Provider type for {} is not set."
    )
    (cause,) = causes(*(refused(f"{ORT}{line.format(name)}", name) for name in ("Slice", "Erf")))
    assert cause.text == "transformer_memcpy.cc:9 n::F::f Provider type for … is not set."
    assert len(causes(refused("No kernel for Slice found"), refused("No kernel for Erf found", "Erf"))) == 2


@pytest.mark.parametrize("other", [AT_CREATE.replace("2508", "2412"), AT_CREATE.replace("80070057", "80004005")])
def test_another_line_or_another_error_is_another_cause(other: str) -> None:
    assert len(causes(refused(AT_CREATE), refused(other))) == 2


def test_names_shapes_numbers_and_dtypes_do_not_tell_causes_apart() -> None:
    first = refused("Type 'tensor(float16)' of input X of node 'node_3' with shape {1,3,8} is invalid, got 7")
    second = refused("Type 'tensor(int64)' of input X of node 'n' with shape {2,9} is invalid, got 12")
    (cause,) = causes(first, second)
    assert cause.text == "Type … of input X of node … with shape […] is invalid, got …"
    assert cause.place == "DML_SLICE1_OPERATOR_DESC"


def test_wrong_elements_are_grouped_by_the_directml_operator_below() -> None:
    flatten = a_wrong_slice(case_id="Flatten-13/float16/ranks[runtime]", operator="Flatten")
    other = changed(a_wrong_slice(case_id="Tile-13/float16/x[runtime]", operator="Tile"), directml=None)
    by_place = {cause.place: cause for cause in causes(a_wrong_slice(), flatten, other)}
    assert by_place.keys() == {"DML_SLICE1_OPERATOR_DESC", "Tile"}
    assert by_place["DML_SLICE1_OPERATOR_DESC"].operators == ("Slice", "Flatten")
    assert by_place["Tile"].text == "… of … elements differ"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1 of 1 elements is wrong; each is to be exact", "3 of 6 elements are wrong; each is to be exact"),
        ("the shape is (), must be (2,)", "the shape is (3,), must be (2, 1)"),
    ],
)  # fmt: skip
def test_one_wrong_element_is_of_the_cause_of_many(first: str, second: str) -> None:
    assert len(causes(with_reason(first), with_reason(second))) == 1


def test_dtypes_are_told_where_they_are_what_is_wrong() -> None:
    reasons = ("the dtype is float64, must be float32", "the dtype is int32, must be int64")
    assert {cause.text for cause in causes(*map(with_reason, reasons))} == set(reasons)


def with_reason(reason: str) -> Record:
    record = a_wrong_slice()
    difference = dataclasses.replace(record.candidate.differences[0], reason=reason)
    return changed(record, candidate=dataclasses.replace(record.candidate, differences=(difference,)))


def test_how_often_an_answer_changed_does_not_tell_causes_apart() -> None:
    messages = [
        "the result changes between runs (mismatch, pass, pass; alone pass, mismatch): 3 of 6 elements are wrong",
        "the result changes between runs (pass, pass, mismatch; alone mismatch, pass): 2 of 6 elements are wrong",
    ]
    flaky = [
        changed(
            refused(message),
            status="flaky",
            reading="flaky",
            candidate=an_opinion("dml", "Slice", "flaky", message=message),
        )
        for message in messages
    ]
    assert [cause.text for cause in causes(*flaky)] == ["the result changes between runs: … of … elements are wrong"]


def test_another_provider_has_no_directml_operator_below() -> None:
    record = a_wrong_slice()
    on_cuda = dataclasses.replace(record.candidate, assignment=(("CUDAExecutionProvider", "Slice"),))
    assert [cause.place for cause in causes(changed(record, candidate=on_cuda))] == ["Slice"]


def test_the_source_of_a_bound_and_the_bound_do_not_tell_causes_apart() -> None:
    words = "2 of 8 elements are wrong; each must be within 1 ULP (WebNN conformance tests, gelu (erf))"
    (difference,) = a_wrong_slice().candidate.differences
    opinion = an_opinion("dml", status="mismatch", differences=(dataclasses.replace(difference, reason=words),))
    found = cause_text(a_wrong_slice(candidate=opinion))
    assert found is not None
    assert found.text == "wrong values: each must be within … ULP"


def test_an_expected_deviation_has_the_reason_and_the_link_of_its_expectation() -> None:
    known = Expected("*", "mismatch", "ties go to the higher index", "docs/findings.md")
    slices = [a_wrong_slice(dtype, reading="expected", expectation=known) for dtype in ("float16", "float64")]
    (cause, other) = causes(a_refused_qlinearconv(), *slices)
    assert (cause.text, cause.link, cause.cases) == ("ties go to the higher index", "docs/findings.md", 2)
    assert (other.text, other.link) == ("per-channel weights: known", "https://example.test/issues/7")


def test_flaky_cases_are_apart_from_failures() -> None:
    flaky = refused(AT_CREATE, reading="flaky")
    assert [cause.reading for cause in causes(flaky, refused(AT_CREATE))] == ["failure", "flaky"]


def test_a_remark_says_whether_the_baseline_is_wrong_or_nothing_is_claimed() -> None:
    baseline = an_opinion("cpu", status="refused", message="LSTM operator does not support double yet")
    wrong = a_slice(reading="noted", blame="baseline", baseline=baseline)
    assert cause_text(wrong) == CauseText("cpu is wrong: LSTM operator does not support dtype yet", "Slice")
    unclaimed = a_slice(reading="noted", claimed=False)
    assert cause_text(unclaimed) == CauseText("passes, but the provider does not claim it")
    assert cause_text(a_slice()) is None


def test_of_cases_of_one_size_the_first_by_its_id_is_named_in_whichever_order_they_ended() -> None:
    first, second = a_wrong_slice(sample="one"), a_wrong_slice(sample="two")
    for order in ((first, second), (second, first)):
        (cause,) = causes(*order)
        assert (cause.smallest, cause.repro) == (first.case_id, first.case.repro)


def test_a_cause_names_its_smallest_case_and_what_all_its_cases_have_in_common() -> None:
    large = a_wrong_slice(sample="large", attributes={"axis": 1, "mode": "x"})
    small = a_wrong_slice(
        sample="small", attributes={"axis": 1, "mode": "y"}, values=(Value("data", "float16", (1, 1, 1, 2), "input"),)
    )
    (cause,) = causes(large, small)
    assert cause.smallest == small.case_id
    assert cause.common == ("attribute axis = 1", "binding runtime", "dtype float16", "rank 4")
    (alone,) = causes(large)
    assert alone.common == ()


def test_what_directml_says_when_it_is_asked_directly_is_counted() -> None:
    opinion = an_opinion("directml")
    lowered = a_wrong_slice("float16", direct=Direct("lowering", opinion))
    below = a_wrong_slice("float64", direct=Direct("directml", opinion))
    (cause,) = causes(lowered, below, a_wrong_slice("int8"))
    assert cause.below == {"lowering": 1, "directml": 1}


def test_the_key_of_a_cause_is_the_same_in_every_run() -> None:
    first, again = causes(refused(AT_CREATE)), causes(refused(AT_RUN, "ReduceSum"))
    assert first[0].key == again[0].key


def test_a_case_that_gave_no_result_is_not_ok() -> None:
    idle = a_slice("int8", status="unplaced", claimed=False)
    (target,) = summarize(a_run(), [a_slice(), idle]).targets
    assert target.by_reading == {"ok": 1, "not-run": 1}
