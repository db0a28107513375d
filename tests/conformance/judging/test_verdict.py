"""From opinions to a verdict: blame, reading and the words for it; and what a record shows of the case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from epcheck.conformance.judging import verdict as judge
from epcheck.conformance.judging.evidence import Evidence
from epcheck.conformance.preparation import case_facts
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records.case_facts import Value
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.record import Record
from epcheck.conformance.targets.expectation import Expectation
from epcheck.conformance.targets.target import NO_CLAIMS, Target
from epcheck.generators.claims import Claims
from tests.conformance.judged_cases import (
    CLAIMED,
    DIRECTML,
    FUNCTION,
    REFUSAL,
    SILENT,
    UNCLAIMED,
    UNCLAIMED_REFUSAL,
    prepared,
)


def opinion_of(status: str, target: str = "dml") -> Opinion:
    """What passes says nothing."""
    return Opinion(target, status, stage="run", message="" if status == "pass" else "it says so")


def verdict(
    status: str,
    case: PreparedCase = CLAIMED,
    target: Target = DIRECTML,
    baseline: str | None = "pass",
    echoes: Sequence[str] = (),
    expectations: Sequence[Expectation] = (),
    oracles: Mapping[str, str] | None = None,
) -> Record:
    other = None if baseline is None else opinion_of(baseline, "cpu")
    evidence = Evidence(opinion_of(status), other, oracles or {}, echoes, expectations)
    return judge.verdict(case, target, evidence)


def blame_and_reading(*arguments: object, **keywords: object) -> tuple[str, str]:
    found = verdict(*arguments, **keywords)  # type: ignore[arg-type]
    return found.blame, found.reading


STEADY = ("mismatch", "refused", "crash", "timeout", "order-dependent")
FAILING = ("mismatch", "refused", "crash", "timeout", "flaky", "order-dependent")


def test_what_the_device_lacks_is_no_failure_of_the_provider() -> None:
    message = "[ONNXRuntimeError] : 1 : FAIL : Program Add requires f16 but the device does not support it."
    found = judge.verdict(CLAIMED, DIRECTML, Evidence(replace(opinion_of("refused"), message=message)))
    assert (found.status, found.blame, found.reading) == ("refused", "", "noted")
    assert found.reason == f"dml: not applicable, the device has no f16: {message}"
    assert judge.verdict(CLAIMED, DIRECTML, Evidence(replace(opinion_of("mismatch"), message=message))).blame


def test_a_pass_where_it_is_claimed_is_ok() -> None:
    assert blame_and_reading("pass") == ("", "ok")
    assert blame_and_reading("pass", REFUSAL) == ("", "ok")
    assert blame_and_reading("pass", baseline=None) == ("", "ok")


@pytest.mark.parametrize("status", STEADY)
@pytest.mark.parametrize("case", [CLAIMED, REFUSAL], ids=["valid", "to be refused"])
def test_a_failure_where_it_is_claimed_is_the_candidate_s(status: str, case: PreparedCase) -> None:
    assert blame_and_reading(status, case) == ("candidate", "failure")
    assert blame_and_reading(status, case, baseline=None) == ("candidate", "failure")
    assert blame_and_reading(status, case, baseline="unplaced") == ("candidate", "failure")
    assert blame_and_reading(status, case, baseline="skipped") == ("candidate", "failure")


@pytest.mark.parametrize("status", STEADY)
@pytest.mark.parametrize("baseline", FAILING)
def test_where_the_baseline_fails_too_both_are_to_blame(status: str, baseline: str) -> None:
    assert blame_and_reading(status, baseline=baseline) == ("both", "failure")


@pytest.mark.parametrize("baseline", FAILING)
def test_where_only_the_baseline_fails_it_is_noted(baseline: str) -> None:
    assert blame_and_reading("pass", baseline=baseline) == ("baseline", "noted")


@pytest.mark.parametrize("baseline", ["pass", "mismatch", None])
@pytest.mark.parametrize("status", STEADY)
def test_where_an_oracle_gives_the_candidate_s_answer_the_oracles_disagree(status: str, baseline: str | None) -> None:
    assert blame_and_reading(status, baseline=baseline, echoes=["reference"]) == ("oracles-disagree", "failure")


@pytest.mark.parametrize("echoes", [[], ["reference"]])
@pytest.mark.parametrize("target", [None, SILENT, FUNCTION], ids=["publishes", "silent", "function"])
def test_a_result_that_changes_is_a_reading_of_its_own(target: Target | None, echoes: list[str]) -> None:
    on = {} if target is None else {"target": target}
    assert blame_and_reading("flaky", echoes=echoes, **on) == ("candidate", "flaky")
    assert blame_and_reading("flaky", baseline="mismatch", echoes=echoes, **on) == ("both", "flaky")
    assert blame_and_reading("flaky", UNCLAIMED, echoes=echoes, **on) == ("candidate", "flaky")


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
    for target in (SILENT, FUNCTION):
        found = verdict("unplaced", target=target)
        assert (found.claimed, found.blame, found.reading) == (None, "", "ok")


def test_without_a_table_of_claims_a_refusal_of_a_provider_is_noted_and_a_wrong_answer_a_failure() -> None:
    assert blame_and_reading("refused", target=SILENT) == ("", "noted")
    assert blame_and_reading("refused", target=SILENT, baseline="mismatch") == ("baseline", "noted")
    for status in ("mismatch", "crash", "timeout", "order-dependent"):
        assert blame_and_reading(status, target=SILENT) == ("candidate", "failure")


def test_to_decline_what_is_claimed_in_part_breaks_no_promise() -> None:
    slice_13 = ("", "Slice", 13)
    types = {"T": frozenset({"float32"}), "Tind": frozenset({"int64"})}
    promised = replace(SILENT, claim_table=Claims("SilentExecutionProvider", {slice_13: types}))
    in_part = replace(
        SILENT, claim_table=Claims("SilentExecutionProvider", {slice_13: types}, partial={slice_13: {"T": types["T"]}})
    )
    assert blame_and_reading("unplaced", CLAIMED, target=promised) == ("candidate", "failure")
    assert blame_and_reading("unplaced", CLAIMED, target=in_part) == ("", "ok")
    assert blame_and_reading("refused", CLAIMED, target=in_part) == ("candidate", "failure")
    assert verdict("unplaced", CLAIMED, target=in_part).claimed is True
    assert blame_and_reading("refused", CLAIMED, target=replace(promised, claim_table=NO_CLAIMS)) == ("", "noted")


def test_without_a_table_of_claims_a_failure_is_a_failure() -> None:
    for status in STEADY:
        assert blame_and_reading(status, target=FUNCTION) == ("candidate", "failure")


def test_a_pass_that_is_not_claimed_is_noted() -> None:
    assert blame_and_reading("pass", UNCLAIMED) == ("", "noted")
    assert blame_and_reading("pass", UNCLAIMED_REFUSAL) == ("", "ok")


def test_a_clean_refusal_of_what_is_not_claimed_is_harmless() -> None:
    assert verdict("refused", UNCLAIMED).reading == "ok"


@pytest.mark.parametrize("status", ["mismatch", "crash", "timeout", "order-dependent"])
def test_a_wrong_answer_or_a_crash_is_a_failure_even_where_nothing_is_claimed(status: str) -> None:
    assert blame_and_reading(status, UNCLAIMED) == ("candidate", "failure")


def test_the_claim_is_recorded() -> None:
    assert verdict("pass").claimed is True
    assert verdict("pass", UNCLAIMED).claimed is False
    assert verdict("pass", target=SILENT).claimed is None


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


def test_a_refusal_that_is_allowed_is_called_one() -> None:
    refusal = Opinion("dml", "pass", stage="create", message="it says so")
    assert judge.verdict(CLAIMED, DIRECTML, Evidence(refusal, None, {}, ())).reason == "dml refuses it, as allowed"


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (verdict("pass"), "dml is right"),
        (verdict("pass", REFUSAL), "dml refuses it, as required"),
        (verdict("mismatch"), "dml: it says so; cpu is right"),
        (verdict("mismatch", baseline=None), "dml: it says so"),
        (verdict("mismatch", baseline="crash"), "dml: it says so; cpu is wrong too: it says so"),
        (verdict("mismatch", baseline="unplaced"), "dml: it says so"),
        (verdict("refused"), "dml refuses a valid node at run: it says so; cpu is right"),
        (verdict("crash"), "dml crashes: it says so; cpu is right"),
        (verdict("timeout"), "dml does not answer: it says so; cpu is right"),
        (verdict("flaky"), "dml: it says so; cpu is right"),
        (verdict("unplaced"), "dml does not take the node: it says so; cpu is right"),
        (
            verdict("unplaced", UNCLAIMED),
            "dml does not take the node: no kernel for TopK-24 (it has 1, 10, 11); cpu is right",
        ),
        (
            verdict("pass", UNCLAIMED),
            "dml is right; but it is not claimed: no kernel for TopK-24 (it has 1, 10, 11)",
        ),
        (verdict("pass", baseline="mismatch"), "dml is right; cpu is wrong: it says so"),
        (
            verdict("mismatch", echoes=["reference"]),
            "dml: it says so; reference gives the same result bit by bit; cpu is right",
        ),
        (
            verdict("mismatch", echoes=["DML_SLICE1_OPERATOR_DESC", "reference"], baseline=None),
            "dml: it says so; DML_SLICE1_OPERATOR_DESC and reference give the same result bit by bit",
        ),
    ],
)
def test_the_verdict_in_words(record: Record, words: str) -> None:
    assert record.reason == words


# Records


def test_a_record_says_what_was_asked() -> None:
    found = verdict("mismatch", oracles={"reference": "agrees"})
    assert found.case_id == "Slice-13/float32/steps_omitted[initializer]"
    case = found.case
    assert (case.operator, case.since_version, case.opset, case.dtype) == ("Slice", 13, 13, "float32")
    assert (case.sample, case.binding) == ("steps_omitted", "initializer")
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


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_preview_writes_numbers_as_numpy_does(dtype: type[np.floating[Any]]) -> None:
    info = np.finfo(dtype)
    values = np.array([0.1, -0.0, np.nan, -np.inf, info.max, info.smallest_subnormal, 1e-5, 1e-4, 1234.5], dtype)
    assert case_facts.preview(values) == ", ".join(map(str, values))
    every = np.random.default_rng(0).integers(0, 2**64, 600, np.uint64).view(np.float64)
    assert [case_facts.preview(value) for value in every] == [str(value) for value in every]
