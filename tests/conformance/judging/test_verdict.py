"""From outcomes to opinions, and from opinions to a verdict: status, blame, reading and the words for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from epcheck.conformance.judging import verdict as judge
from epcheck.conformance.preparation import case_facts, prepared_case
from epcheck.conformance.preparation.prepared_case import Prepared
from epcheck.conformance.records.outcome import CRASHED, DONE, FAILED, TIMED_OUT, Outcome, bits
from epcheck.conformance.records.record import Opinion, Record, Value
from epcheck.conformance.targets.expectation import Expectation
from epcheck.conformance.targets.target import CPU, DML, Target
from epcheck.generators import suite
from epcheck.generators.array import Array
from epcheck.generators.truth import Outputs, Selection

DIRECTML = Target("dml", (), (), provider=DML)
PLAIN_CPU = Target("cpu", (), (), provider=CPU)
FUNCTION = Target("python:mine:function", (), ())
REFERENCE = Target("reference", (), ())


def prepared(case_id: str) -> Prepared:
    return prepared_case.of(suite.case_by_id(case_id).build())


BUILT = suite.case_by_id("Slice-13/float32/steps_omitted[initializer]").build()
CLAIMED = prepared_case.of(BUILT)
UNCLAIMED = prepared("TopK-24/float32/defaults[initializer]")
REFUSAL = prepared("Slice-13/float32/refused_step_0[runtime]")
UNCLAIMED_REFUSAL = prepared("TopK-24/float32/refused_k_beyond_dim[initializer]")

ON_DML = ((DML, "Slice"),)


def true_outputs(case: Prepared) -> dict[str, Array]:
    if isinstance(case.truth, Selection):
        return dict(zip(("Values", "Indices"), case.truth.accepted[0], strict=True))
    assert isinstance(case.truth, Outputs)
    return {output.name: output.value for output in case.truth.outputs}


RIGHT = Outcome(DONE, outputs=true_outputs(CLAIMED), assignment=ON_DML)
WRONG = replace(RIGHT, outputs={"output": true_outputs(CLAIMED)["output"] + 1})


def said(outcome: Outcome, case: Prepared = CLAIMED, target: Target = DIRECTML) -> tuple[str, str]:
    opinion = judge.opinion(case, target, outcome)
    return opinion.status, opinion.message


# Opinions


def test_the_true_result_on_the_provider_passes() -> None:
    assert said(RIGHT) == ("pass", "")


def test_a_wrong_result_is_a_mismatch_with_its_differences() -> None:
    opinion = judge.opinion(CLAIMED, DIRECTML, WRONG)
    assert opinion.status == "mismatch"
    assert opinion.message == "output: 4 of 4 elements are wrong; each must equal the truth exactly"
    assert [(d.output, d.wrong) for d in opinion.differences] == [("output", 4)]


def test_a_missing_output_is_a_mismatch() -> None:
    assert said(replace(RIGHT, outputs={})) == ("mismatch", "output: the output is missing")


def test_every_wrong_output_is_in_the_message() -> None:
    outcome = Outcome(DONE, outputs={})
    assert said(outcome, UNCLAIMED, FUNCTION) == (
        "mismatch",
        "Values: the output is missing; Indices: the output is missing",
    )


@pytest.mark.parametrize("assignment", [None, ()])
def test_without_a_record_of_assigned_nodes_nothing_is_proved(
    assignment: tuple[tuple[str, str], ...] | None,
) -> None:
    expected = ("unplaced", "no proof of placement: the session's record of assigned nodes is empty")
    assert said(replace(RIGHT, assignment=assignment)) == expected
    assert said(replace(WRONG, assignment=assignment)) == expected
    assert said(replace(RIGHT, assignment=assignment), REFUSAL) == expected


def test_a_node_on_another_provider_is_unplaced() -> None:
    assert said(replace(RIGHT, assignment=((CPU, "Slice"),))) == (
        "unplaced",
        "Slice was assigned to CPUExecutionProvider",
    )
    both = ((DML, "Slice"), (CPU, "Slice"))
    assert said(replace(RIGHT, assignment=both))[0] == "unplaced"


def test_other_nodes_on_another_provider_do_not_matter() -> None:
    assert said(replace(RIGHT, assignment=((DML, "Slice"), (CPU, "MemcpyToHost")))) == ("pass", "")


def test_a_record_that_does_not_name_the_node_proves_nothing() -> None:
    assert said(replace(RIGHT, assignment=((CPU, "Cast"),))) == (
        "unplaced",
        "no proof of placement: the session's record names no Slice",
    )


def test_a_fused_node_of_the_provider_is_a_proof() -> None:
    assert said(replace(RIGHT, assignment=((DML, "DmlFusedNode_0_0"),))) == ("pass", "")


def test_a_node_around_the_one_under_test_is_no_proof() -> None:
    beside = CLAIMED._replace(beside=("SequenceConstruct",))
    assert said(replace(RIGHT, assignment=((DML, "SequenceConstruct"),)), beside)[0] == "unplaced"
    assert said(replace(RIGHT, assignment=((DML, "SequenceConstruct"), (DML, "Slice"))), beside) == ("pass", "")
    assert said(replace(RIGHT, assignment=((DML, "DmlFusedNode_0_0"),)), beside) == ("pass", "")


def test_a_callable_has_no_provider_to_prove() -> None:
    assert said(replace(RIGHT, assignment=None), target=FUNCTION) == ("pass", "")


@pytest.mark.parametrize(
    "message",
    [
        "This session contains graph nodes that are assigned to the default CPU EP, but fallback to CPU EP has been "
        "explicitly disabled by the user.",
        "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for TopK(24) node with name 'n'",
        "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Failed to find kernel for com.microsoft.QAttention(1) (node:'n')",
        "graph_partitioner.cc IsNodeCompatibleWithProvider !node_provider_type.empty() was false",
    ],
)
@pytest.mark.parametrize("case", [CLAIMED, REFUSAL], ids=["valid", "to be refused"])
def test_a_node_that_nobody_takes_is_unplaced(message: str, case: Prepared) -> None:
    assert said(Outcome(FAILED, "create", message), case) == ("unplaced", message)


def test_an_error_refuses_a_valid_node_and_passes_where_it_must() -> None:
    outcome = Outcome(FAILED, "run", "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : step is 0")
    assert said(outcome) == ("refused", outcome.message)
    assert said(outcome, REFUSAL) == ("pass", outcome.message)
    assert judge.opinion(CLAIMED, DIRECTML, outcome).stage == "run"


def test_an_answer_to_what_must_be_refused_is_a_mismatch() -> None:
    assert said(RIGHT, REFUSAL) == ("mismatch", "accepted what must be refused: 'steps' cannot be 0")


@pytest.mark.parametrize("case", [CLAIMED, REFUSAL], ids=["valid", "to be refused"])
@pytest.mark.parametrize(("kind", "status"), [(CRASHED, "crash"), (TIMED_OUT, "timeout")])
def test_a_crash_or_a_hang_is_never_a_clean_refusal(kind: str, status: str, case: Prepared) -> None:
    assert said(Outcome(kind, message="it ended by SIGSEGV"), case) == (status, "it ended by SIGSEGV")


def test_an_output_that_is_not_written_is_a_mismatch_even_if_it_looked_right() -> None:
    assert said(replace(RIGHT, unwritten=("output",))) == (
        "mismatch",
        "the provider does not write output: a buffer keeps what it held before",
    )


def test_a_second_run_with_another_answer_is_flaky() -> None:
    assert said(replace(RIGHT, repeat_differs=("output",))) == (
        "flaky",
        "a second run of the same session gives another output",
    )


def test_a_wrong_answer_is_a_mismatch_before_it_is_flaky() -> None:
    assert said(replace(WRONG, repeat_differs=("output",), unwritten=("output",)))[1].startswith("output: 4 of 4")


def test_an_opinion_keeps_what_was_measured_and_the_log_only_of_failures() -> None:
    outcome = replace(RIGHT, create_s=0.5, run_s=0.25, log_tail="warning")
    passed = judge.opinion(CLAIMED, DIRECTML, outcome, attempts=2)
    assert passed == Opinion("dml", "pass", assignment=ON_DML, create_s=0.5, run_s=0.25, attempts=2)
    assert judge.opinion(CLAIMED, DIRECTML, replace(WRONG, log_tail="warning")).log_tail == "warning"


def test_the_same_fault_reads_the_same_every_time() -> None:
    said_once = (
        r"Non-zero status code C:\_work\1\s\onnxruntime\core\x.cpp(12)\onnxruntime_pybind11_state.pyd!00007FF8: "
        "(caller: 00007FFA) Exception(3) tid(1a4) 80070057 The parameter is incorrect."
    )
    said_again = said_once.replace("00007FF8", "00001234").replace("tid(1a4)", "tid(99)").replace("(3)", "(4)")
    assert judge.condense(said_once) == judge.condense(said_again)
    assert judge.condense(said_once).endswith("80070057 The parameter is incorrect.")


def test_every_failure_is_confirmed_but_not_the_refusal_of_an_unclaimed_node() -> None:
    def confirmed(status: str, case: Prepared, target: Target = DIRECTML) -> bool:
        return judge.needs_confirmation(case, target, Opinion("dml", status))

    assert not confirmed("pass", CLAIMED)
    for status in ("mismatch", "refused", "crash", "timeout", "flaky"):
        assert confirmed(status, CLAIMED)
        assert confirmed(status, UNCLAIMED)
    assert confirmed("unplaced", CLAIMED)
    assert not confirmed("unplaced", UNCLAIMED)
    assert confirmed("unplaced", UNCLAIMED, PLAIN_CPU)


# Verdicts


def opinion_of(status: str, target: str = "dml") -> Opinion:
    return Opinion(target, status, stage="run", message="it says so")


def verdict(
    status: str,
    case: Prepared = CLAIMED,
    target: Target = DIRECTML,
    baseline: str | None = "pass",
    echoes: Sequence[str] = (),
    expectations: Sequence[Expectation] = (),
    oracles: Mapping[str, str] | None = None,
) -> Record:
    other = None if baseline is None else opinion_of(baseline, "cpu")
    return judge.verdict(case, target, opinion_of(status), other, oracles or {}, echoes, expectations)


def blame_and_reading(*arguments: object, **keywords: object) -> tuple[str, str]:
    found = verdict(*arguments, **keywords)  # type: ignore[arg-type]
    return found.blame, found.reading


FAILING = ("mismatch", "refused", "crash", "timeout", "flaky", "order-dependent")


def test_a_pass_where_it_is_claimed_is_ok() -> None:
    assert blame_and_reading("pass") == ("", "ok")
    assert blame_and_reading("pass", REFUSAL) == ("", "ok")
    assert blame_and_reading("pass", baseline=None) == ("", "ok")


@pytest.mark.parametrize("status", FAILING)
@pytest.mark.parametrize("case", [CLAIMED, REFUSAL], ids=["valid", "to be refused"])
def test_a_failure_where_it_is_claimed_is_the_candidate_s(status: str, case: Prepared) -> None:
    assert blame_and_reading(status, case) == ("candidate", "failure")
    assert blame_and_reading(status, case, baseline=None) == ("candidate", "failure")
    assert blame_and_reading(status, case, baseline="unplaced") == ("candidate", "failure")
    assert blame_and_reading(status, case, baseline="skipped") == ("candidate", "failure")


@pytest.mark.parametrize("status", FAILING)
@pytest.mark.parametrize("baseline", FAILING)
def test_where_the_baseline_fails_too_both_are_to_blame(status: str, baseline: str) -> None:
    assert blame_and_reading(status, baseline=baseline) == ("both", "failure")


@pytest.mark.parametrize("baseline", FAILING)
def test_where_only_the_baseline_fails_it_is_noted(baseline: str) -> None:
    assert blame_and_reading("pass", baseline=baseline) == ("baseline", "noted")


@pytest.mark.parametrize("baseline", ["pass", "mismatch", None])
@pytest.mark.parametrize("status", FAILING)
def test_where_an_oracle_gives_the_candidate_s_answer_the_oracles_disagree(status: str, baseline: str | None) -> None:
    assert blame_and_reading(status, baseline=baseline, echoes=["reference"]) == ("oracles-disagree", "failure")


def test_a_claimed_node_that_is_not_taken_is_the_candidate_s_failure() -> None:
    assert blame_and_reading("unplaced") == ("candidate", "failure")
    assert blame_and_reading("unplaced", baseline="mismatch") == ("candidate", "failure")
    assert blame_and_reading("unplaced", echoes=["reference"]) == ("candidate", "failure")


def test_an_unclaimed_node_that_is_not_taken_is_ok() -> None:
    assert blame_and_reading("unplaced", UNCLAIMED) == ("", "ok")
    assert blame_and_reading("unplaced", UNCLAIMED_REFUSAL) == ("", "ok")
    assert blame_and_reading("unplaced", UNCLAIMED, baseline="mismatch") == ("baseline", "noted")


def test_a_node_that_must_be_refused_need_not_be_taken() -> None:
    assert blame_and_reading("unplaced", REFUSAL) == ("", "ok")


def test_without_a_table_of_claims_a_node_that_is_not_taken_is_ok() -> None:
    for target in (PLAIN_CPU, FUNCTION):
        found = verdict("unplaced", target=target)
        assert (found.claimed, found.blame, found.reading) == (None, "", "ok")


def test_without_a_table_of_claims_a_failure_is_a_failure() -> None:
    for status in FAILING:
        assert blame_and_reading(status, target=FUNCTION) == ("candidate", "failure")


def test_a_pass_that_is_not_claimed_is_noted() -> None:
    assert blame_and_reading("pass", UNCLAIMED) == ("", "noted")
    assert blame_and_reading("pass", UNCLAIMED_REFUSAL) == ("", "ok")


def test_a_clean_refusal_of_what_is_not_claimed_is_harmless() -> None:
    assert verdict("refused", UNCLAIMED).reading == "ok"


@pytest.mark.parametrize("status", ["mismatch", "crash", "timeout", "flaky", "order-dependent"])
def test_a_wrong_answer_or_a_crash_is_a_failure_even_where_nothing_is_claimed(status: str) -> None:
    assert blame_and_reading(status, UNCLAIMED) == ("candidate", "failure")


def test_the_claim_is_recorded() -> None:
    assert verdict("pass").claimed is True
    assert verdict("pass", UNCLAIMED).claimed is False
    assert verdict("pass", target=PLAIN_CPU).claimed is None


# Expectations


KNOWN = Expectation("Slice-*", "mismatch", "it is known", "issue 3")


def test_an_expected_failure_is_expected_and_keeps_its_blame() -> None:
    found = verdict("mismatch", expectations=[KNOWN])
    assert (found.status, found.blame, found.reading) == ("mismatch", "candidate", "expected")
    assert found.expectation == KNOWN.as_expected()


def test_another_failure_than_the_expected_one_is_a_failure() -> None:
    found = verdict("crash", expectations=[KNOWN])
    assert (found.reading, found.expectation) == ("failure", None)


def test_the_expectation_that_covers_the_failure_is_shown() -> None:
    crash = replace(KNOWN, status="crash")
    assert verdict("crash", expectations=[KNOWN, crash]).expectation == crash.as_expected()


def test_an_expected_failure_that_passes_is_fixed() -> None:
    found = verdict("pass", expectations=[KNOWN])
    assert (found.reading, found.expectation) == ("fixed", KNOWN.as_expected())


def test_fixed_is_louder_than_a_wrong_baseline() -> None:
    assert blame_and_reading("pass", baseline="mismatch", expectations=[KNOWN]) == ("baseline", "fixed")


def test_what_is_harmless_needs_no_expectation() -> None:
    unplaced = Expectation("TopK-24*", "unplaced", "there is no kernel")
    assert verdict("unplaced", UNCLAIMED, expectations=[unplaced]).reading == "ok"


def test_a_claimed_node_that_is_not_taken_can_be_expected() -> None:
    assert verdict("unplaced", expectations=[replace(KNOWN, status="unplaced")]).reading == "expected"


# Words


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (verdict("pass"), "dml gives the true result"),
        (verdict("pass", REFUSAL), "dml refuses it, as it must"),
        (verdict("mismatch"), "dml: it says so; cpu is right"),
        (verdict("mismatch", baseline=None), "dml: it says so"),
        (verdict("mismatch", baseline="crash"), "dml: it says so; cpu is wrong too: it says so"),
        (verdict("mismatch", baseline="unplaced"), "dml: it says so"),
        (verdict("refused"), "dml refuses a valid node at run: it says so; cpu is right"),
        (verdict("crash"), "dml brings its process down: it says so; cpu is right"),
        (verdict("timeout"), "dml does not answer: it says so; cpu is right"),
        (verdict("flaky"), "dml: it says so; cpu is right"),
        (verdict("unplaced"), "dml does not take the node: it says so; cpu is right"),
        (
            verdict("unplaced", UNCLAIMED),
            "dml does not take the node: no kernel for TopK-24 (it has 1, 10, 11); cpu is right",
        ),
        (
            verdict("pass", UNCLAIMED),
            "dml gives the true result; although no kernel for TopK-24 (it has 1, 10, 11)",
        ),
        (verdict("pass", baseline="mismatch"), "dml gives the true result; cpu is wrong: it says so"),
        (
            verdict("mismatch", echoes=["reference"]),
            "dml: it says so; reference gives the very same answer; cpu is right",
        ),
        (
            verdict("mismatch", echoes=["DML_SLICE1_OPERATOR_DESC", "reference"], baseline=None),
            "dml: it says so; DML_SLICE1_OPERATOR_DESC and reference give the very same answer",
        ),
    ],
)
def test_the_verdict_in_words(record: Record, words: str) -> None:
    assert record.reason == words


# Oracles


def test_the_description_agrees_with_the_truth() -> None:
    assert judge.second_oracles(CLAIMED, None) == {"DML_SLICE1_OPERATOR_DESC": "agrees"}
    assert judge.second_oracles(REFUSAL, None) == {}


def test_a_description_that_is_undefined_cannot_say_anything() -> None:
    lowering = BUILT.lowering
    assert lowering is not None
    undefined = replace(lowering.description, input_window_strides=(0,))  # type: ignore[call-arg]
    case = prepared_case.of(replace(BUILT, lowering=replace(lowering, description=undefined)))
    said = judge.second_oracles(case, None)["DML_SLICE1_OPERATOR_DESC"]
    assert said.startswith("cannot: DML_SLICE1_OPERATOR_DESC has no defined result: stride_nonzero: ")
    assert judge.echoes(case, bits(RIGHT.outputs), {}) == ()


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (replace(RIGHT, assignment=None), "agrees"),
        (WRONG, "disagrees: output: 4 of 4 elements are wrong; each must equal the truth exactly"),
        (Outcome(FAILED, "run", "no such operator"), "cannot: no such operator"),
        (Outcome(CRASHED, message="it ended"), "cannot: it ended"),
    ],
)
def test_what_the_reference_says_of_the_truth(outcome: Outcome, said: str) -> None:
    reference = judge.opinion(CLAIMED, REFERENCE, outcome)
    assert judge.second_oracles(CLAIMED, reference)["reference"] == said


def test_echoes_are_the_oracles_with_the_candidate_s_bits() -> None:
    right, wrong = bits(RIGHT.outputs), bits(WRONG.outputs)
    assert judge.echoes(CLAIMED, right, {"reference": wrong}) == ("DML_SLICE1_OPERATOR_DESC",)
    assert judge.echoes(CLAIMED, wrong, {"reference": wrong}) == ("reference",)
    assert judge.echoes(CLAIMED, wrong, {}) == ()
    assert judge.echoes(CLAIMED, "", {"reference": ""}) == ()


def test_an_echo_is_the_same_to_the_last_bit() -> None:
    minus_zero = bits({"output": np.array([-0.0], np.float32)})
    zero = bits({"output": np.array([0.0], np.float32)})
    assert judge.echoes(CLAIMED, minus_zero, {"reference": zero}) == ()
    assert judge.echoes(CLAIMED, zero, {"reference": zero}) == ("reference",)


# Records


def test_a_record_says_what_was_asked() -> None:
    found = verdict("mismatch", oracles={"reference": "agrees"})
    assert found.case_id == "Slice-13/float32/steps_omitted[initializer]"
    case = found.case
    assert (case.operator, case.since_version, case.opset, case.dtype) == ("Slice", 13, 13, "float32")
    assert (case.sample, case.variant) == ("steps_omitted", "initializer")
    assert case.types == {"T": "float32", "Tind": "int64"}
    assert found.oracles == {"reference": "agrees"}
    assert found.case.expects == "the true result"
    assert found.candidate.target == "dml"
    assert found.baseline == opinion_of("pass", "cpu")
    assert "Slice-13/float32/steps_omitted[initializer]" in found.case.repro


def test_a_record_of_a_refusal_says_why_it_is_one() -> None:
    found = verdict("pass", REFUSAL)
    assert found.case.expects == "a refusal: 'steps' cannot be 0"
    assert found.case.directml is None
    assert found.case.values[-1] == Value("output", "float32", (), "output")


def test_a_record_shows_inputs_where_they_are_and_the_true_outputs() -> None:
    values = {value.name: value for value in verdict("pass").case.values}
    assert list(values) == ["data", "starts", "ends", "axes", "output"]
    assert [values[name].where for name in values] == ["input", "initializer", "initializer", "initializer", "output"]
    assert values["starts"] == Value("starts", "int64", (1,), "initializer", "1")
    assert (values["output"].dtype, values["output"].shape) == ("float32", (4,))
    topk = [value.name for value in verdict("pass", UNCLAIMED).case.values]
    assert topk == ["X", "K", "Values", "Indices"]


def test_a_record_shows_the_directml_operator_and_what_it_violates() -> None:
    directml = verdict("pass").case.directml
    assert directml is not None
    assert (directml.name, directml.violations) == ("DML_SLICE1_OPERATOR_DESC", ())
    assert directml.members["InputWindowOffsets"] == [1]
    whole = verdict("pass", prepared("TopK-11/float32/default_attributes_k_7[initializer]")).case.directml
    assert whole is not None
    assert whole.violations == (
        "k_less_than_axis_length: K is 7, all of axis 3, where the page wants less than the axis length",
    )


def test_a_preview_is_the_start_and_what_is_left_out() -> None:
    assert case_facts.preview(np.arange(3)) == "0, 1, 2"
    assert case_facts.preview(np.arange(15)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, … 3 more"
    assert case_facts.preview(np.empty(0)) == ""
