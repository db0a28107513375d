"""Causes: the same for cases of all operators that are not right for the same reason, and others for other reasons."""

import dataclasses
import pickle
import re

import numpy as np
import pytest

from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.preparation.data_words import compare_data, compare_with_numbers, describe_data
from epcheck.conformance.records.case_facts import NodeFacts, Value
from epcheck.conformance.records.facts import FactReader, describe_case
from epcheck.conformance.records.record import Direct, Expected, Record
from epcheck.generators import suite
from epcheck.reports.causes.cause import Cause
from epcheck.reports.causes.condition import Term
from epcheck.reports.causes.symptom import describe_remark, symptom_of
from epcheck.reports.runs.summary import summarize
from tests.reports.stored_records import a_refused_qlinearconv, a_run, a_slice, a_wrong_slice, an_opinion, changed

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
    assert cause.text == "is refused: MLOperatorAuthorImpl.cpp(2508) 80070057 Invalid parameter."
    assert (cause.cases, cause.place, cause.statuses) == (3, "", {"refused": 3})
    assert cause.operators == ("ReduceSum", "Slice")


def test_the_operator_in_the_message_of_one_line_does_not_tell_causes_apart() -> None:
    line = (
        "/onnxruntime_src/transformer_memcpy.cc:9 bool n::F::f(const n::Node&) const Provider type for {} is not set."
    )
    (cause,) = causes(*(refused(f"{ORT}{line.format(name)}", name) for name in ("Slice", "Erf")))
    assert cause.text == "is refused: transformer_memcpy.cc:9 n::F::f Provider type for … is not set."
    assert len(causes(refused("No kernel for Slice found"), refused("No kernel for Erf found", "Erf"))) == 2


@pytest.mark.parametrize("other", [AT_CREATE.replace("2508", "2412"), AT_CREATE.replace("80070057", "80004005")])
def test_another_line_or_another_error_is_another_cause(other: str) -> None:
    assert len(causes(refused(AT_CREATE), refused(other))) == 2


def test_names_shapes_numbers_and_dtypes_do_not_tell_causes_apart() -> None:
    first = refused("Type 'tensor(float16)' of input X of node 'node_3' with shape {1,3,8} is invalid, got 7")
    second = refused("Type 'tensor(int64)' of input X of node 'n' with shape {2,9} is invalid, got 12")
    (cause,) = causes(first, second)
    assert cause.text == "is refused: Type … of input X of node … with shape […] is invalid, got …"
    assert cause.place == "DML_SLICE1_OPERATOR_DESC"


def test_the_number_of_a_graph_does_not_tell_causes_apart() -> None:
    """As QNN's provider writes it, with a hash of the model."""
    message = "Failed to setup QNN input tensors for graph: QNNExecutionProvider_{}. Having zero graph inputs"
    (cause,) = causes(refused(message.format("10835740570103152242_1_0")), refused(message.format("582307390584_0_1")))
    assert cause.text == f"is refused: {message.format('…')}"


def test_wrong_values_of_several_operators_without_a_condition_are_several_causes() -> None:
    flatten = a_wrong_slice(case_id="Flatten-13/float16/ranks[runtime]", operator="Flatten")
    found = causes(
        a_wrong_slice(), flatten, a_slice(), a_slice(case_id="Flatten-13/int8/a[runtime]", operator="Flatten")
    )
    assert {cause.operators: cause.condition for cause in found} == {("Slice",): "", ("Flatten",): ""}
    assert {cause.evidence for cause in found} == {"no condition separates the cases"}


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
    assert {symptom_of(with_reason(reason)).detail for reason in reasons} == set(reasons)


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
    assert [cause.text for cause in causes(*flaky)] == [
        "the answer changes when the case is repeated: the result changes between runs: … of … elements are wrong"
    ]


def test_another_provider_has_no_directml_operator_below() -> None:
    record = a_wrong_slice()
    on_cuda = dataclasses.replace(record.candidate, assignment=(("CUDAExecutionProvider", "Slice"),))
    assert [cause.place for cause in causes(changed(record, candidate=on_cuda))] == [""]


def test_the_source_of_a_bound_and_the_bound_do_not_tell_causes_apart() -> None:
    words = "2 of 8 elements are wrong; each must be within 1 ULP (WebNN conformance tests, gelu (erf))"
    (difference,) = a_wrong_slice().candidate.differences
    opinion = an_opinion("dml", status="mismatch", differences=(dataclasses.replace(difference, reason=words),))
    assert symptom_of(a_wrong_slice(candidate=opinion)).detail == "each must be within … ULP"


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
    assert describe_remark(wrong) == "cpu is wrong: LSTM operator does not support dtype yet"
    unclaimed = a_slice(reading="noted", claimed=False)
    assert describe_remark(unclaimed) == "passes, but the provider does not claim it"
    assert describe_remark(a_slice()) == ""


def test_of_cases_of_one_size_the_first_by_its_id_is_named_in_whichever_order_they_ended() -> None:
    first, second = a_wrong_slice(sample="one"), a_wrong_slice(sample="two")
    for order in ((first, second), (second, first)):
        (cause,) = causes(*order)
        assert (cause.smallest, cause.repro) == (first.case_id, first.case.repro)


def with_steps(steps: int, length: int, dtype: str = "float32", *, is_wrong: bool) -> Record:
    """A Slice with these steps of a tensor of that length."""
    sample = f"length_{length}_step_{steps}"
    values = (
        Value("data", dtype, (length,), "input", data=("negative", "2^1")),
        Value("steps", "int64", (1,), "initializer", str(steps)),
        Value("output", dtype, (length,), "output"),
    )
    return (a_wrong_slice if is_wrong else a_slice)(dtype, sample, values=values)


def test_a_cause_states_the_condition_that_separates_failing_from_right_cases() -> None:
    records = [with_steps(s, n, is_wrong=s < 0) for s in (-3, -2, -1, 1, 2, 3) for n in range(3, 9)]
    (cause,) = causes(*records)
    assert cause.condition == "a value of steps < 0"
    assert cause.evidence == "18 of 18 cases where it holds, 0 of 18 others"
    assert [cause.matches(describe_case(each.case)) for each in records] == [each.status != "pass" for each in records]
    assert (cause.smallest, cause.right) == (
        "Slice-13/float32/length_3_step_-1[runtime]", "Slice-13/float32/length_3_step_1[runtime]",
    )  # fmt: skip


def test_a_condition_has_two_parts_where_one_does_not_separate() -> None:
    records = [
        with_steps(s, n, dtype, is_wrong=s < 0 and dtype == "float16")
        for s in (-3, -2, -1, 1, 2, 3) for n in range(3, 9) for dtype in ("float16", "float32", "int8")
    ]  # fmt: skip
    (cause,) = causes(*records)
    assert cause.condition == "a value of steps < 0 and dtype = float16"
    assert cause.evidence == "18 of 18 cases where it holds, 0 of 90 others"


def test_two_faults_of_an_operator_are_two_causes() -> None:
    records = [
        with_steps(s, n, dtype, is_wrong=s < 0 or dtype == "int8")
        for s in (-3, -2, -1, 1, 2, 3) for n in range(3, 9) for dtype in ("float16", "float32", "int8")
    ]  # fmt: skip
    found = {cause.condition: cause.cases for cause in causes(*records)}
    assert found == {"a value of steps < 0": 54, "dtype = int8": 18}


def in_a_graph(record: Record) -> Record:
    """A wrong graph that has the node of another case, and ends with a Relu."""
    node = NodeFacts("Slice", "", 13, record.case.types, record.case.attributes, record.case.values)
    relu = {"operator": "Relu", "case_id": f"Relu-14/{record.case.dtype}/graph_{record.case.sample}[runtime]"}
    return changed(a_wrong_slice(), **relu, beside=("Slice",), nodes=(node,))


def test_a_graph_has_the_cause_whose_condition_holds_for_a_node_of_it() -> None:
    records = [with_steps(s, n, is_wrong=s < 0) for s in (-3, -2, -1, 1, 2, 3) for n in range(3, 9)]
    graphs = [in_a_graph(with_steps(s, 4, is_wrong=True)) for s in (-2, -1)]
    (cause,) = causes(*records, *graphs)
    assert (cause.condition, cause.operators, cause.cases) == ("a value of steps < 0", ("Slice",), 20)
    assert cause.evidence == "18 of 18 cases where it holds, 0 of 18 others; 2 graphs with such a node"
    assert cause.smallest == "Slice-13/float32/length_3_step_-1[runtime]"


def test_graphs_for_no_node_of_which_a_condition_holds_are_a_cause_of_their_own_where_there_are_several() -> None:
    records = [with_steps(s, n, is_wrong=s < 0) for s in (-3, -2, -1, 1, 2, 3) for n in range(3, 9)]
    graphs = [in_a_graph(with_steps(2, n, is_wrong=True)) for n in (4, 5, 6)]
    (cause,) = causes(*records, *graphs[:2])
    assert cause.evidence == "18 of 18 cases where it holds, 0 of 18 others; 2 other graphs of the operator"
    assert sorted(each.cases for each in causes(*records, *graphs)) == [3, 18]


def test_no_condition_is_stated_where_data_does_not_support_one() -> None:
    places = {(3, 5), (-2, 3), (1, 8)}
    records = [with_steps(s, n, is_wrong=(s, n) in places) for s in (-3, -2, -1, 1, 2, 3) for n in range(3, 9)]
    (cause,) = causes(*records)
    assert (cause.condition, cause.cases) == ("", 3)
    assert cause.evidence.startswith("no condition separates the cases")


def test_of_too_few_cases_for_a_condition_the_nearest_is_named() -> None:
    records = [
        with_steps(s, n, dtype, is_wrong=(s, n) == (-2, 5) and dtype != "int8")
        for s in (-3, -2, -1, 1, 2, 3) for n in range(3, 9) for dtype in ("float16", "float32", "int8")
    ]  # fmt: skip
    (cause,) = causes(*records)
    assert (cause.condition, cause.terms) == ("", ())
    assert cause.evidence == (
        "no condition separates the cases; the nearest is: steps = -2 and last size of the first input = 5 (2 of 3 "
        "cases where it holds, 0 of 105 others)"
    )


def ended(operator: str, shape: tuple[int, ...], message: str, *, is_wrong: bool) -> Record:
    values = (
        Value("X" if operator == "Relu" else "data", "float32", shape, "input"),
        Value("Y", "float32", shape, "output"),
    )
    sample = "x".join(map(str, shape))
    case_id = f"{operator}-13/float32/{sample}[runtime]"
    right = a_slice(case_id=case_id, operator=operator, sample=sample, values=values, attributes={})
    if not is_wrong:
        return right
    crash = an_opinion("dml", operator, "crash", message=message)
    return changed(right, candidate=crash, status="crash", reading="failure", blame="candidate")


def empty_ends(ends: dict[str, str]) -> list[Record]:
    """Cases of operators whose process ends where a size is 0. ends: operator -> how it ends."""
    shapes = [(a, b) for a in (0, 1, 2, 3, 5) for b in (0, 2, 3, 4)]
    return [
        ended(name, shape, f"the worker process ended: {text}", is_wrong=0 in shape)
        for name, text in ends.items() for shape in shapes
    ]  # fmt: skip


def test_operators_that_share_condition_and_symptom_are_one_cause() -> None:
    (cause,) = causes(*empty_ends({"Relu": "exit code 139", "Gather": "killed by signal 11"}))
    assert cause.condition == "a size of any input = 0"
    assert cause.text == "the process ends (SIGSEGV)"
    assert (sorted(cause.operators), cause.cases) == (["Gather", "Relu"], 16)


def test_what_the_baseline_shows_alike_is_a_cause_of_its_own() -> None:
    both = [changed(with_steps(3, n, is_wrong=True), blame="both") for n in range(3, 9)]
    records = [with_steps(s, n, is_wrong=s < 0) for s in (-3, -2, -1, 1, 2) for n in range(3, 9)]
    assert {(cause.condition, cause.shared) for cause in causes(*records, *both)} == {
        ("a value of steps < 0", False), ("steps = 3", True),
    }  # fmt: skip


def test_what_directml_says_when_it_is_asked_directly_is_counted() -> None:
    opinion = an_opinion("directml")
    lowered = a_wrong_slice("float16", direct=Direct("lowering", opinion))
    below = a_wrong_slice("float64", direct=Direct("directml", opinion))
    (cause,) = causes(lowered, below, a_wrong_slice("int8"))
    assert cause.below == {"lowering": 1, "directml": 1}


def test_the_key_of_a_cause_is_the_same_in_every_run() -> None:
    first, again = causes(refused(AT_CREATE)), causes(refused(AT_RUN))
    assert first[0].key == again[0].key


def test_a_case_that_gave_no_result_is_not_ok() -> None:
    idle = a_slice("int8", status="unplaced", claimed=False)
    (target,) = summarize(a_run(), [a_slice(), idle]).targets
    assert target.by_reading == {"ok": 1, "not-run": 1}


def test_facts_that_cases_share_are_those_of_each() -> None:
    cases = [
        case.case
        for dtype in ("float32", "int8", "int64") for steps in (-1, 2) for length in (3, 4)
        for case in (with_steps(steps, length, dtype, is_wrong=False), ended("Relu", (length, 2), "", is_wrong=False))
    ]  # fmt: skip
    values = [dataclasses.replace(value, data=("ties 0", "negative")) for value in cases[0].values]
    cases += [dataclasses.replace(cases[0], values=tuple(values)), dataclasses.replace(cases[1], dtype="int8")]
    reader = FactReader()
    packed = [reader.read(case) for case in cases]
    for case, parts in zip(cases, packed, strict=True):
        assert dict(reader.facts[number] for number in reader.expand(parts)) == describe_case(case)


def test_two_faults_that_fail_alike_are_two_causes_where_neither_holds_for_most_cases() -> None:
    records = [
        with_steps(s, n, dtype, is_wrong=(s < 0) == (dtype == "int8"))
        for s in (-3, -2, -1, 1, 2, 3) for n in range(3, 9) for dtype in ("float16", "float32", "int8")
    ]  # fmt: skip
    assert {cause.condition: cause.cases for cause in causes(*records)} == {
        "a value of steps < 0 and dtype = int8": 18, "kind of dtype = float and no value of steps < 0": 36,
    }  # fmt: skip


def test_operators_whose_wrong_elements_contradict_each_other_have_causes_of_their_own() -> None:
    ends = {"Relu": "exit code 139", "Gather": "exit code 134"}
    assert {(cause.operators, cause.condition) for cause in causes(*empty_ends(ends))} == {
        (("Relu",), "a size of any input = 0"), (("Gather",), "a size of any input = 0"),
    }  # fmt: skip


def test_facts_of_an_equation_of_dtypes_and_of_a_range() -> None:
    case = a_slice(attributes={"equation": "ii, ...j"}).case
    case = dataclasses.replace(
        case,
        values=(
            Value("a", "float32", (2, 2), "input", data=("negative", "2^7", "fraction")),
            Value("b", "float16", (3,), "input", data=("zero",)),
            Value("c", "int8", (3,), "output"),
        ),
    )
    facts = describe_case(case)
    assert (facts["equation has an arrow"], facts["equation has an ellipsis"]) == (False, True)
    assert facts["an operand of equation has a label twice"] is True
    assert facts["the first two inputs have one dtype"] is False
    assert facts["a value of the first input exceeds the dtype of the first output"] is True
    assert (facts["a contains a fraction"], facts["b contains zeros only"]) == (True, True)


def test_whether_an_input_is_absent_is_not_known_of_a_node_in_a_graph() -> None:
    absent, present = Term("max is absent", "=", True), Term("max is absent", "=", False)
    alone = describe_case(a_slice().case)
    among = describe_case(dataclasses.replace(a_slice().case, beside=("Conv",)))
    assert [(term.holds(alone), term.holds(among)) for term in (absent, present)] == [(True, False), (False, False)]


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        ("a value of steps < 0", "no value of steps < 0"), ("B is absent", "B is present"),
        ("the outputs have one shape", "the outputs do not have one shape"),
        ("the values of axes ascend", "the values of axes do not ascend"),
        ("a pad ≥ the kernel", "no pad ≥ the kernel"), ("two values of pads ≠ 0", "no two values of pads ≠ 0"),
    ],
)  # fmt: skip
def test_a_fact_that_does_not_hold_has_words_of_its_own(fact: str, words: str) -> None:
    assert str(Term(fact, "=", value=False)) == words


def of_data(sample: str, dtype: str, data: tuple[str, ...], shape: tuple[int, ...], *, is_wrong: bool) -> Record:
    """A Slice of a tensor whose elements have these words about them."""
    values = (Value("data", dtype, shape, "input", data=data), Value("output", dtype, shape, "output", data=data))
    return (a_wrong_slice if is_wrong else a_slice)(dtype, sample, values=values)


def test_dtypes_of_one_width_are_one_condition() -> None:
    widths = {"int8": 8, "uint8": 8, "bool": 8, "int16": 16, "float16": 16, "int32": 32, "float32": 32, "int64": 64}
    records = [
        of_data(f"length_{n}", dtype, (), (n,), is_wrong=bits == 8)
        for dtype, bits in widths.items() for n in range(3, 9)
    ]  # fmt: skip
    (cause,) = causes(*records)
    assert (cause.condition, cause.cases) == ("bits of dtype = 8", 18)


def test_an_infinity_is_beyond_every_power_of_two() -> None:
    data = [("inf", "2^1"), ("-inf",), ("2^9",), ("2^12",), ("2^15", "inf"), ("2^1",), ("2^2",), ("2^3",), ("2^0",)]
    records = [of_data(f"{words}", "float32", words, (5,), is_wrong=False) for words in data]
    facts = [describe_case(record.case) for record in records]
    assert [each["largest power of two in data with infinities"] for each in facts] == [
        1024, 1024, 9, 12, 1024, 1, 2, 3, 0,
    ]  # fmt: skip
    assert [each.get("largest power of two in data") for each in facts] == [1, None, 9, 12, 15, 1, 2, 3, 0]


def test_a_bound_is_beyond_a_power_of_two_where_there_are_many_sizes() -> None:
    records = [of_data(f"length_{n}", "float32", (), (n,), is_wrong=n > 16) for n in range(3, 60)]
    (cause,) = causes(*records)
    assert (cause.condition, cause.cases) == ("last size of the first input ≥ 17", 43)


def test_a_size_of_1_is_a_condition_among_many_sizes() -> None:
    records = [
        of_data(f"{m}_{n}", "float32", (), (m, n), is_wrong=n == 1) for m in range(1, 5) for n in (*range(20), 31, 45)
    ]
    (cause,) = causes(*records)
    assert (cause.condition, cause.cases) == ("last size of the first input = 1", 4)


def with_a_denormal(operator: str, length: int, *, first_is_zero: bool, is_wrong: bool) -> Record:
    """A case with a denormal that is wrong: it gives 0 there, or in every element another value."""
    words = ("denormal",) if is_wrong else ("positive",)
    values = (Value("X", "float32", (length,), "input", data=words), Value("Y", "float32", (length,), "output"))
    case_id = f"{operator}-13/float32/length_{length}_{words[0]}[runtime]"
    changes = {"operator": operator, "sample": f"length_{length}_{words[0]}", "values": values, "attributes": {}}
    if not is_wrong:
        return a_slice(case_id=case_id, **changes)
    record = a_wrong_slice("float32", case_id=case_id, **changes)
    (difference,) = record.candidate.differences
    first = tuple(dataclasses.replace(each, got="0" if first_is_zero else "5") for each in difference.first[:1])
    difference = dataclasses.replace(difference, wrong=1 if first_is_zero else 8, first=first)
    return changed(record, candidate=dataclasses.replace(record.candidate, differences=(difference,)))


def test_that_every_element_is_wrong_does_not_tell_operators_apart() -> None:
    records = [
        with_a_denormal(operator, n, first_is_zero=operator != "Erf", is_wrong=is_wrong)
        for operator in ("Exp", "Log", "Erf") for n in range(3, 9) for is_wrong in (False, True)
    ]  # fmt: skip
    (cause,) = causes(*records)
    assert (sorted(cause.operators), cause.cases) == (["Erf", "Exp", "Log"], 18)


def test_cases_that_may_be_refused_say_nothing_of_wrong_values() -> None:
    """Their condition is that of the fault, although a node for which it holds is refused, as it must be."""
    records = [with_steps(s, n, is_wrong=s < 0) for s in (-3, -2, -1, 1, 2) for n in range(3, 9)]
    refusals = [with_steps(-9, n, is_wrong=False) for n in range(3, 15)]
    refusals = [
        dataclasses.replace(record, case=dataclasses.replace(record.case, expects="a refusal: steps"))
        for record in refusals
    ]
    (cause,) = causes(*records, *refusals)
    assert (cause.condition, cause.evidence) == (
        "a value of steps < 0", "18 of 18 cases where it holds, 0 of 12 others",
    )  # fmt: skip


def of_axes(operator: str, sample: str, *, axes: list[int], is_wrong: bool, **attributes: int | str) -> Record:
    """A node of a 4-D tensor with axes and other attributes."""
    values = (Value("data", "float32", (2, 3, 4, 5), "input"), Value("reduced", "float32", (2,), "output"))
    case_id = f"{operator}-13/float32/{sample}[runtime]"
    return (a_wrong_slice if is_wrong else a_slice)(
        "float32", case_id=case_id, operator=operator, sample=sample, values=values,
        attributes={"axes": axes, **attributes},
    )  # fmt: skip


def test_one_condition_of_two_operators_is_one_cause_although_one_of_them_has_another_fault() -> None:
    axes = [[0], [1], [2], [3], [-1], [-2], [-3], [0, 1], [2, 1], [0, 2], [3, 1], [0, 1, 2], [-1, 0]]
    records = [
        of_axes(operator, f"{operator}_{place}_{keepdims}", axes=each, keepdims=keepdims, is_wrong=is_wrong)
        for operator in ("ReduceSum", "ReduceMax")
        for place, each in enumerate(axes) for keepdims in (0, 1) for is_wrong in [
            len(each) > 1 or (operator == "ReduceMax" and keepdims == 0)
        ]
    ]  # fmt: skip
    found = {cause.condition: sorted(cause.operators) for cause in causes(*records)}
    assert found == {"number of reduced axes ≥ 2": ["ReduceMax", "ReduceSum"], "keepdims = 0": ["ReduceMax"]}


def test_a_case_of_another_operator_joins_the_cause_whose_condition_holds_for_none_of_its_right_cases() -> None:
    axes = [[0], [1], [2], [3], [-1], [-2], [0, 1], [2, 1], [0, 2], [3, 1]]
    records = [
        of_axes(operator, f"{operator}_{place}", axes=each, is_wrong=len(each) > 1)
        for operator in ("ReduceSum", "ReduceMax") for place, each in enumerate(axes)
    ]  # fmt: skip
    records += [
        of_axes("ReduceMin", f"{place}_{part}", axes=each, part=part, is_wrong=part >= 4 or len(each) > 1)
        for place, each in enumerate(axes[:6]) for part in range(8)
    ]  # fmt: skip
    records.append(of_axes("ReduceMin", "two", axes=[0, 1], part=0, is_wrong=True))
    found = {cause.condition: (sorted(cause.operators), cause.cases) for cause in causes(*records)}
    assert found == {
        "all values of axes are not equal": (["ReduceMax", "ReduceMin", "ReduceSum"], 9),
        "part ≥ 4": (["ReduceMin"], 24),
    }


def test_two_words_for_the_same_cases_of_two_operators_are_one_cause() -> None:
    """Although the operators' other faults, of more cases, keep the shared condition from being the best of each."""
    axes = [[0], [1], [2], [3], [-1], [-2], [-3], [-4], [0, 1], [2, 1], [0, 2], [3, 1]]
    records = [
        of_axes(operator, f"{operator}_{place}_{part}", axes=each, part=part, is_wrong=is_wrong, **also)
        for operator, wrong in (("ReduceSum", (0, 1, 2, 3)), ("ReduceMax", (4, 5, 6, 7)))
        for place, each in enumerate(axes) for part in range(8) for is_several in [len(each) > 1]
        for is_wrong in [is_several or part in wrong]
        for also in [{"how": "several" if is_several else "one"} if operator == "ReduceMax" else {}]
    ]  # fmt: skip
    found = {cause.condition: sorted(cause.operators) for cause in causes(*records)}
    assert found == {
        "part < 4": ["ReduceSum"], "part ≥ 4": ["ReduceMax"],
        "all values of axes are not equal": ["ReduceMax", "ReduceSum"],
    }  # fmt: skip


def test_conditions_that_differ_in_a_word_are_one_where_the_wrong_elements_are_alike() -> None:
    words = ("none", "add", "mul", "max", "min")
    records = [
        of_axes("Scatter", f"{word}_{place}", axes=[place % 3], reduction=word, is_wrong=word in ("max", "min"))
        for word in words for place in range(9)
    ]  # fmt: skip
    (cause,) = causes(*records)
    assert (cause.condition, cause.evidence) == (
        "reduction = max or min", "18 of 18 cases where it holds, 0 of 27 others",
    )  # fmt: skip
    assert [cause.matches(describe_case(each.case)) for each in records] == [each.status != "pass" for each in records]


def test_facts_of_reduced_axes_of_channels_and_of_inputs_behind_the_second() -> None:
    data, third = Value("X", "float32", (2, 6, 4, 4), "input"), Value("third", "float32", (4,), "input")
    second, output = Value("scale", "float32", (6,), "input"), Value("Y", "uint8", (2, 6, 4, 4), "output")
    case = dataclasses.replace(a_slice().case, values=(data, second, third, output), attributes={"num_groups": 6})
    facts = describe_case(case)
    assert (facts["num_groups is the number of input channels"], facts["third is broadcast"]) == (True, True)
    assert facts["num_groups is above the number of input channels"] is False
    assert facts["kind of the dtype of output Y"] == "unsigned integer"
    assert [facts.get(f"number of elements of X is a multiple of {n}") for n in (64, 128)] == [True, None]
    assert "number of reduced axes" not in facts
    for attributes, expected in [
        ({"keepdims": 1}, (True, 4)),
        ({"keepdims": 1, "noop_with_empty_axes": 1}, (True, 0)),
        ({"keepdims": 0, "axes": [1, -1]}, (False, 2)),
    ]:
        facts = describe_case(dataclasses.replace(case, attributes=attributes))
        assert (facts["axes is absent or empty"], facts["number of reduced axes"]) == expected


def test_a_size_of_0_is_a_multiple_of_every_number_and_one_value_is_the_first_and_the_last() -> None:
    facts = describe_case(with_steps(-2, 0, is_wrong=False).case)
    assert facts["last size of output output is a multiple of 256"] is True
    assert (facts["first value of steps"], facts["last value of steps"]) == (-2, -2)


def test_whether_a_size_that_is_not_there_is_a_multiple_is_unknown() -> None:
    for value in (True, False):
        term = Term("last size of bias is a multiple of 4", "=", value)
        assert not term.holds({"last size of data": 4})
        assert term.holds({"last size of bias": 3}) is not value


def test_facts_of_elements_of_changed_sizes_and_of_lengths() -> None:
    data = Value("X", "float32", (4, 2, 3), "input", data=("-inf", "positive", "2^3"))
    lengths = Value("sequence_lens", "int32", (2,), "input", "4, 3")
    zeros = Value("x_zero_point", "uint8", (2,), "initializer", "0, 0")
    output = Value("Y", "float32", (4, 1, 6), "output")
    case = dataclasses.replace(a_slice().case, values=(data, lengths, zeros, output), attributes={"keepdims": 1})
    facts = describe_case(case)
    assert facts["X contains a negative value"] is facts["any input contains a negative value"] is True
    assert (facts["x_zero_point contains zeros only"], facts["a value of x_zero_point ≠ 0"]) == (True, False)
    assert facts["a value of sequence_lens < the first size of the first input"] is True
    assert [facts[f"the first output has a size {how}"] for how in (
        "< that of the first input", "> that of the first input", "that differs by an odd number",
    )] == [True, True, True]  # fmt: skip
    assert (facts["number of elements reduced to one"], facts["the last axis is reduced"]) == (24, True)
    facts = describe_case(dataclasses.replace(case, attributes={"keepdims": 1, "axes": [0, -2]}))
    assert (facts["number of elements reduced to one"], facts["the last axis is reduced"]) == (8, False)
    assert facts["the first input is square in its last two axes"] is False
    scalar = dataclasses.replace(data, shape=())
    facts = describe_case(dataclasses.replace(case, values=(scalar, output), attributes={"axis": 0}))
    assert facts["axis is the first one"] is True
    assert "the first output has a size < that of the first input" not in facts


def test_scale_and_zero_point_of_the_second_operand_have_one_name_in_every_operator() -> None:
    for name in ("w_zero_point", "b_zero_point", "B_zero_point"):
        values = (Value("x", "uint8", (3, 3), "input"), Value(name, "uint8", (2,), "initializer", "0, 7"))
        facts = describe_case(dataclasses.replace(a_slice().case, values=values))
        for which in (name, "the zero point of the second operand"):
            assert (facts[f"a value of {which} ≠ 0"], facts[f"rank of {which}"]) == (True, 1)


def test_facts_of_several_values_of_channels_of_batches_and_of_axes_that_are_apart() -> None:
    data, repeats = Value("X", "float32", (2, 6, 4), "input"), Value("repeats", "int64", (3,), "input", "1, 2, 0")
    facts = describe_case(dataclasses.replace(a_slice().case, values=(data, repeats)))
    assert (facts["two values of repeats > 1"], facts["two values of repeats ≠ 0"]) == (False, True)
    assert describe_case(with_steps(-2, 3, is_wrong=False).case)["two values of steps ≠ 0"] is False
    assert [facts.get(f"second size of the first input is a multiple of {n}") for n in (2, 4)] == [True, None]
    other, indices = Value("B", "float32", (4, 3), "input"), Value("indices", "int64", (5, 2), "input")
    batches = "the first two inputs have one shape but for the last two sizes"
    for second, is_one in ((other, False), (dataclasses.replace(other, shape=(2, 4, 3)), True)):
        values = data, second, Value("Y", "float32", (2, 6, 3), "output")
        assert describe_case(dataclasses.replace(a_slice().case, values=values))[batches] is is_one
    values = data, indices, Value("Y", "float32", (5, 4), "output")
    facts = describe_case(dataclasses.replace(a_slice().case, values=values))
    assert facts["last size of indices < rank of the first input"] is True
    for axes, are_adjacent in (([0, 2], False), ([-1, 1], True), ([1], True), (None, True)):
        attributes = {"keepdims": 1} if axes is None else {"keepdims": 1, "axes": axes}
        facts = describe_case(dataclasses.replace(a_slice().case, values=(data,), attributes=attributes))
        assert facts["the reduced axes are adjacent"] is are_adjacent


def test_facts_of_small_inputs_of_floats_and_of_lists_that_are_compared() -> None:
    low, high = Value("min", "float32", (), "input", "2.5"), Value("max", "float32", (), "initializer", "-1.0")
    data, output = Value("X", "float32", (2, 3), "input"), Value("Y", "float32", (2, 3), "output")
    case = dataclasses.replace(a_slice().case, values=(data, low, high, output), attributes={})
    facts = describe_case(case)
    assert (facts["min"], facts["largest value of max"], facts["a value of max < 0"]) == (2.5, -1.0, True)
    assert (facts["a value of max < that of min"], facts["a value of min < that of max"]) == (True, False)
    scales = Value("scales", "float32", (3,), "initializer", "0.6, 2.0, nan")
    assert "smallest value of scales" not in describe_case(dataclasses.replace(case, values=(data, scales, output)))
    known = dataclasses.replace(scales, preview="0.6, 2.0, 1.0")
    facts = describe_case(dataclasses.replace(case, values=(data, known, output)))
    assert facts["smallest value of scales"] == 0.6
    windows = {"strides": [1, 4], "block_shape": [2, 2]}
    facts = describe_case(dataclasses.replace(case, values=(data, output), attributes=windows))
    assert facts["a value of strides < that of block_shape"] is True
    assert facts["a value of block_shape < that of strides"] is True
    first = describe_case(dataclasses.replace(case, values=(data, dataclasses.replace(low, name="B"), output)))
    assert "B" not in first


def test_elements_are_compared_with_the_numbers_beside_them() -> None:
    facts = {}
    for case_id in ("ThresholdedRelu-10/float32/beside_alpha[runtime]", "Clip-13/float32/one_value[runtime]"):
        case = prepared_case.of(suite.case_by_id(case_id).build()).facts
        facts[case.operator] = {
            name.removeprefix("the first input contains a value ")
            for name in describe_case(case)
            if re.search("contains a value (above|below|equal to) ", name)
        }
    assert facts["ThresholdedRelu"] == {"equal to alpha", "above alpha", "below alpha"}
    assert facts["Clip"] == {f"{how} {name}" for how in ("above", "below") for name in ("min", "max")}
    for least, is_stated in (("least 2^-1", True), ("least 2^0", None)):
        data = Value("X", "float32", (2,), "input", data=("positive", "2^3", least))
        known = describe_case(dataclasses.replace(a_slice().case, values=(data,)))
        assert known.get("X contains a nonzero magnitude below 1") is is_stated
    numbers = np.array([1.0, np.nan, 0.1], np.float32)
    assert [*compare_with_numbers(numbers, {"alpha": 0.1})] == ["equal to alpha", "above alpha"]
    assert [*compare_with_numbers(numbers.astype(bool), {"alpha": 0.1})] == []
    unpickled = pickle.loads(pickle.dumps(np.array([2**40 + 1, 7])))
    assert unpickled.dtype.isbuiltin != np.dtype(np.int64).isbuiltin
    assert [*compare_with_numbers(unpickled, {"bound": 7})] == ["equal to bound", "above bound"]
    assert describe_data(unpickled) == describe_data(np.array([2**40 + 1, 7])) == ("positive", "2^40", "least 2^2")
    assert compare_data(unpickled, unpickled[::-1]) == ("less", "greater")
