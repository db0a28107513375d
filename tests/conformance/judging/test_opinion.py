"""From outcomes to opinions: status and message."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epcheck.conformance.judging.opinion import condense, opinion, placement_gap
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.outcome import CRASHED, DONE, FAILED, TIMED_OUT, Outcome
from epcheck.conformance.targets.target import CPU, DML, Target
from epcheck.generators import suite
from tests.conformance.judged_cases import CLAIMED, DIRECTML, FUNCTION, ON_DML, REFUSAL, RIGHT, UNCLAIMED, WRONG


def judged(outcome: Outcome, case: PreparedCase = CLAIMED, target: Target = DIRECTML) -> tuple[str, str]:
    found = opinion(case, target, outcome)
    return found.status, found.message


def test_the_true_result_on_the_provider_passes() -> None:
    assert judged(RIGHT) == ("pass", "")


def test_a_wrong_result_is_a_mismatch_with_its_differences() -> None:
    found = opinion(CLAIMED, DIRECTML, WRONG)
    assert found.status == "mismatch"
    assert found.message == "output: 4 of 4 elements are wrong; each must match exactly"
    assert [(d.output, d.wrong) for d in found.differences] == [("output", 4)]


def test_a_missing_output_is_a_mismatch() -> None:
    assert judged(replace(RIGHT, outputs={})) == ("mismatch", "output: the output is missing")


def test_outputs_that_the_model_does_not_have_are_a_mismatch() -> None:
    more = dict.fromkeys(("more", "and_more"), RIGHT.outputs["output"])
    message = "unknown outputs: and_more, more"
    assert judged(replace(RIGHT, outputs={**RIGHT.outputs, **more})) == ("mismatch", message)


def test_every_wrong_output_is_in_the_message() -> None:
    outcome = Outcome(DONE, outputs={})
    assert judged(outcome, UNCLAIMED, FUNCTION) == (
        "mismatch",
        "Values: the output is missing; Indices: the output is missing",
    )


@pytest.mark.parametrize("assignment", [None, ()])
def test_without_a_record_of_assigned_nodes_nothing_is_proved(
    assignment: tuple[tuple[str, str], ...] | None,
) -> None:
    expected = ("unplaced", "no proof of placement: the session's record of assigned nodes is empty")
    assert judged(replace(RIGHT, assignment=assignment)) == expected
    assert judged(replace(WRONG, assignment=assignment)) == expected
    assert judged(replace(RIGHT, assignment=assignment), REFUSAL) == expected


def test_a_node_on_another_provider_is_unplaced() -> None:
    assert judged(replace(RIGHT, assignment=((CPU, "Slice"),))) == (
        "unplaced",
        "Slice was assigned to CPUExecutionProvider",
    )
    both = ((DML, "Slice"), (CPU, "Slice"))
    assert judged(replace(RIGHT, assignment=both))[0] == "unplaced"


def test_other_nodes_on_another_provider_do_not_matter() -> None:
    assert judged(replace(RIGHT, assignment=((DML, "Slice"), (CPU, "MemcpyToHost")))) == ("pass", "")


def test_a_record_that_does_not_name_the_node_proves_nothing() -> None:
    assert judged(replace(RIGHT, assignment=((CPU, "Cast"),))) == (
        "unplaced",
        "no proof of placement: the session's record names no Slice",
    )


def test_a_fused_node_of_the_provider_is_a_proof() -> None:
    assert judged(replace(RIGHT, assignment=((DML, "DmlFusedNode_0_0"),))) == ("pass", "")


def test_a_node_around_the_one_under_test_is_no_proof() -> None:
    beside = CLAIMED._replace(beside=("SequenceConstruct",))
    assert judged(replace(RIGHT, assignment=((DML, "SequenceConstruct"),)), beside)[0] == "unplaced"
    assert judged(replace(RIGHT, assignment=((DML, "SequenceConstruct"), (DML, "Slice"))), beside) == (
        "pass",
        "",
    )
    assert judged(replace(RIGHT, assignment=((DML, "DmlFusedNode_0_0"),)), beside) == ("pass", "")


def test_a_callable_has_no_provider_to_prove() -> None:
    assert judged(replace(RIGHT, assignment=None), target=FUNCTION) == ("pass", "")


@pytest.mark.parametrize(
    "message",
    [
        "This session contains graph nodes that are assigned to the default CPU EP, but fallback to CPU EP has been "
        "explicitly disabled by the user.",
        "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for TopK(24) node with name 'n'",
        "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Failed to find kernel for com.microsoft.QAttention(1) (node:'n')",
        "graph_partitioner.cc IsNodeCompatibleWithProvider !node_provider_type.empty() was false",
        "transformer_memcpy.cc:253 bool onnxruntime::TransformerMemcpyImpl::IsNodeCompatibleWithProvider"
        "(const onnxruntime::Node&) const !node_provider_type.empty() was false. Provider type for op node is not set.",
    ],
)
@pytest.mark.parametrize("case", [CLAIMED, REFUSAL], ids=["valid", "to be refused"])
def test_a_node_that_nobody_takes_is_unplaced(message: str, case: PreparedCase) -> None:
    assert judged(Outcome(FAILED, "create", message), case) == ("unplaced", message)


def test_a_feed_that_numpy_has_no_dtype_for_is_nobody_s_failure() -> None:
    outcome = Outcome(FAILED, "feed", "data type 'int4' not understood")
    status, message = judged(outcome)
    assert (status, message) == (
        "skipped", "not run: a feed cannot be passed to the session: data type 'int4' not understood",
    )  # fmt: skip


def test_an_error_refuses_a_valid_node_and_passes_where_it_must() -> None:
    outcome = Outcome(FAILED, "run", "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : step is 0")
    assert judged(outcome) == ("refused", outcome.message)
    assert judged(outcome, REFUSAL) == ("pass", outcome.message)
    assert opinion(CLAIMED, DIRECTML, outcome).stage == "run"


def test_an_answer_to_what_must_be_refused_is_a_mismatch() -> None:
    assert judged(RIGHT, REFUSAL) == ("mismatch", "accepted what must be refused: 'steps' cannot be 0")


@pytest.mark.parametrize("case", [CLAIMED, REFUSAL], ids=["valid", "to be refused"])
@pytest.mark.parametrize(("kind", "status"), [(CRASHED, "crash"), (TIMED_OUT, "timeout")])
def test_a_crash_or_a_hang_is_never_a_clean_refusal(kind: str, status: str, case: PreparedCase) -> None:
    assert judged(Outcome(kind, message="it ended by SIGSEGV"), case) == (status, "it ended by SIGSEGV")


def test_an_output_that_is_not_written_is_a_mismatch_even_if_it_looked_right() -> None:
    assert judged(replace(RIGHT, unwritten=("output",))) == (
        "mismatch",
        "the provider does not write output: the buffer keeps its old content",
    )


def test_a_second_run_with_another_answer_is_flaky() -> None:
    assert judged(replace(RIGHT, repeat_differs=("output",))) == (
        "flaky",
        "a second run of the same session changes output",
    )


def test_a_wrong_answer_is_a_mismatch_before_it_is_flaky() -> None:
    assert judged(replace(WRONG, repeat_differs=("output",), unwritten=("output",)))[1].startswith("output: 4 of 4")


def test_an_opinion_keeps_what_was_measured_and_the_log_only_of_failures() -> None:
    outcome = replace(RIGHT, create_s=0.5, run_s=0.25, log_tail="warning")
    passed = opinion(CLAIMED, DIRECTML, outcome, attempts=2)
    assert passed == Opinion("dml", "pass", assignment=ON_DML, create_s=0.5, run_s=0.25, attempts=2)
    assert opinion(CLAIMED, DIRECTML, replace(WRONG, log_tail="warning")).log_tail == "warning"


def test_the_same_fault_reads_the_same_every_time() -> None:
    first = (
        r"Non-zero status code C:\_work\1\s\onnxruntime\core\x.cpp(12)\onnxruntime_pybind11_state.pyd!00007FF8: "
        "(caller: 00007FFA) Exception(3) tid(1a4) 80070057 The parameter is incorrect."
    )
    again = first.replace("00007FF8", "00001234").replace("tid(1a4)", "tid(99)").replace("(3)", "(4)")
    assert condense(first) == condense(again)
    assert condense(first).endswith("80070057 The parameter is incorrect.")


BRANCHES = prepared_case.of(suite.case_by_id("If-13/float16/then[initializer]").build())


@pytest.mark.parametrize(
    ("nodes", "gap"),
    [
        (((DML, "If"), (DML, "Identity")), ""),
        (((DML, "If"),), ""),
        (((DML, "If"), (CPU, "Identity")), "Identity, in a graph of If, was assigned to CPUExecutionProvider"),
        (((CPU, "If"), (CPU, "Identity")), "If was assigned to CPUExecutionProvider"),
    ],
)
def test_a_node_with_bodies_is_the_provider_s_where_its_bodies_are(
    nodes: tuple[tuple[str, str], ...], gap: str
) -> None:
    assert placement_gap(BRANCHES, DML, Outcome(DONE, assignment=nodes)) == gap


def test_another_node_beside_it_is_no_gap() -> None:
    assert (
        placement_gap(BRANCHES._replace(beside=("Cast",)), DML, Outcome(DONE, assignment=((DML, "If"), (CPU, "Cast"))))
        == ""
    )
