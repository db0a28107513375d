"""What the standard leaves undefined: which elements, what of the others is true, and what a provider may do."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import onnx
import pytest

from epcheck.conformance.comparison import compare
from epcheck.conformance.judging.opinion import opinion
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.records import terms
from epcheck.conformance.records.outcome import CRASHED, DONE, FAILED, Outcome
from epcheck.conformance.targets.target import Target
from epcheck.generators import suite
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.sources import undefined
from epcheck.generators.truth import Output, Outputs
from tests.generators.built_suite import cases_by_operator

TARGET = Target("mine", (), ())


def built(case_id: str) -> BuiltCase:
    return suite.case_by_id(case_id).build()


def output(case: BuiltCase) -> Output:
    assert isinstance(case.truth, Outputs)
    return case.truth.outputs[0]


def wrong(case: BuiltCase, got: Array) -> int:
    assert isinstance(case.truth, Outputs)
    return sum(each.wrong for each in compare.differences(case.truth, {output(case).name: got}))


def test_every_sample_is_a_valid_model_with_a_reason_and_something_undefined() -> None:
    every = [case for own in cases_by_operator(undefined).values() for case in own]
    assert len({case.id for case in every}) == len(every) >= 100
    for case in every:
        made = case.build()
        onnx.checker.check_model(onnx.load_from_string(made.model))
        assert isinstance(made.truth, Outputs)
        assert made.truth.undefined
        for each in made.truth.outputs:
            assert each.undefined is not None
            assert each.undefined.where.shape == each.value.shape
        assert (
            any(each.undefined.where.any() for each in made.truth.outputs if each.undefined) or "MaxUnpool" in case.id
        )
        assert suite.is_own(case)
        assert case.kind == "undefined"
        assert pickle.loads(pickle.dumps(case)).build().model == made.model


@pytest.mark.parametrize(
    ("case_id", "defined", "undefined"),
    [
        ("Div-14/int32/undefined_divisor_0[runtime]", {2: 3, 4: 1, 5: 0, 7: 1}, [0, 1, 3, 6]),
        ("Mod-13/uint8/undefined_divisor_0[runtime]", {2: 0, 4: 0, 5: 0, 7: 0}, [0, 1, 3, 6]),
        ("Neg-13/int8/undefined_least_integer[runtime]", {1: -6, 3: -9}, [0, 2]),
        ("BitShift-11/uint8/undefined_by_the_width_left[runtime]", {1: 6, 3: 200}, [0, 2, 4, 5]),
        ("Pow-15/int64/undefined_negative_exponent[runtime]", {2: 9}, [0, 1, 3]),
        ("Cast-21/float32-uint8/undefined_beyond_the_integers[runtime]", {0: 1, 6: 100, 7: 0}, [1, 2, 3, 4, 5]),
        ("Cast-21/float32-int64/undefined_beyond_the_integers[runtime]", {0: 1, 6: 100, 7: 0}, [1, 2, 3, 4, 5]),
        ("QuantizeLinear-21/float32-int8/undefined_nan[runtime]", {0: 2, 2: -4}, [1, 3]),
        ("ReverseSequence-10/float32/undefined_length_below_0[runtime]", {1: 4, 3: 2, 5: 6}, [0, 2, 4]),
    ],
)
def test_the_elements_that_are_defined(case_id: str, defined: dict[int, int], undefined: list[int]) -> None:
    found = output(built(case_id))
    assert found.undefined is not None
    assert np.flatnonzero(found.undefined.where).tolist() == undefined
    assert {at: int(found.value.flat[at]) for at in defined} == defined


def test_what_is_undefined_may_be_anything_and_what_is_not_must_be_right() -> None:
    case = built("Div-14/int32/undefined_divisor_0[runtime]")
    value = output(case).value
    got = value.copy()
    got[[0, 1, 3, 6]] = 12345
    assert wrong(case, got) == 0
    got[2] += 1
    assert wrong(case, got) == 1
    assert wrong(case, got[:3]) == value.size


def test_what_only_moves_data_gives_nothing_that_was_never_there() -> None:
    case = built("ScatterElements-16/float32/undefined_index_twice[runtime]")
    found = output(case)
    assert found.undefined is not None
    assert found.undefined.where.sum() == 2
    at = np.unravel_index(int(found.undefined.where.argmax()), found.value.shape)
    for value, foreign in ((53.0, 0), (57.0, 0), (0.0, 0), (3.5, 1), (np.nan, 1)):
        got = found.value.copy()
        got[at] = value
        assert wrong(case, got) == foreign


def test_a_provider_may_refuse_or_answer_but_not_end_its_process_or_leave_an_output_unwritten() -> None:
    case = built("ReduceMean-18/float32/undefined_of_nothing[runtime]")
    prepared, name = prepared_case.of(case), output(case).name
    assert prepared.may_be_refused
    assert not prepared.must_be_refused
    assert "a refusal, or a result that is right where it is defined" in prepared.facts.expects
    done = Outcome(DONE, outputs={name: np.full((2, 1, 3), 7, np.float32)})
    found = {
        "answered": opinion(prepared, TARGET, done).status,
        "refused": opinion(prepared, TARGET, Outcome(FAILED, message="no")).status,
        "crashed": opinion(prepared, TARGET, Outcome(CRASHED, message="killed by SIGFPE")).status,
        "unwritten": opinion(prepared, TARGET, replace(done, unwritten=(name,))).status,
        "changing": opinion(prepared, TARGET, replace(done, repeat_differs=(name,))).status,
    }
    assert found == {
        "answered": terms.PASS,
        "refused": terms.PASS,
        "crashed": terms.CRASH,
        "unwritten": terms.MISMATCH,
        "changing": terms.FLAKY,
    }


def test_thin_keeps_some_of_them() -> None:
    found = [case.sample for case in suite.cases(["Div"], ["int64"], thin=True) if case.kind == "undefined"]
    assert found == ["undefined_divisor_0", "undefined_least_by_minus_1"]
