"""What further oracles say of the truth, and whose answer a candidate repeats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from epcheck.conformance.judging.opinion import opinion
from epcheck.conformance.judging.oracles import echoes, second_oracles
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.records.outcome import CRASHED, FAILED, Outcome, bits
from tests.conformance.judged_cases import BUILT, CLAIMED, REFERENCE, REFUSAL, RIGHT, WRONG


def test_the_description_agrees_with_the_truth() -> None:
    assert second_oracles(CLAIMED, None) == {"DML_SLICE1_OPERATOR_DESC": "agrees"}
    assert second_oracles(REFUSAL, None) == {}


def test_a_description_that_is_undefined_cannot_say_anything() -> None:
    lowering = BUILT.lowering
    assert lowering is not None
    undefined = replace(lowering.description, input_window_strides=(0,))  # type: ignore[call-arg]
    case = prepared_case.of(replace(BUILT, lowering=replace(lowering, description=undefined)))
    words = second_oracles(case, None)["DML_SLICE1_OPERATOR_DESC"]
    assert words.startswith("cannot: DML_SLICE1_OPERATOR_DESC has no defined result: stride_nonzero: ")
    assert echoes(case, bits(RIGHT.outputs), {}) == ()


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (replace(RIGHT, assignment=None), "agrees"),
        (WRONG, "disagrees: output: 4 of 4 elements are wrong; each must match exactly"),
        (Outcome(FAILED, "run", "no such operator"), "cannot: no such operator"),
        (Outcome(CRASHED, message="it ended"), "cannot: it ended"),
    ],
)
def test_what_the_reference_says_of_the_truth(outcome: Outcome, words: str) -> None:
    reference = opinion(CLAIMED, REFERENCE, outcome)
    assert second_oracles(CLAIMED, reference)["reference"] == words


def test_echoes_are_the_oracles_with_the_candidate_s_bits() -> None:
    right, wrong = bits(RIGHT.outputs), bits(WRONG.outputs)
    assert echoes(CLAIMED, right, {"reference": wrong}) == ("DML_SLICE1_OPERATOR_DESC",)
    assert echoes(CLAIMED, wrong, {"reference": wrong}) == ("reference",)
    assert echoes(CLAIMED, wrong, {}) == ()
    assert echoes(CLAIMED, "", {"reference": ""}) == ()


def test_an_echo_is_the_same_to_the_last_bit() -> None:
    minus_zero = bits({"output": np.array([-0.0], np.float32)})
    zero = bits({"output": np.array([0.0], np.float32)})
    assert echoes(CLAIMED, minus_zero, {"reference": zero}) == ()
    assert echoes(CLAIMED, zero, {"reference": zero}) == ("reference",)
