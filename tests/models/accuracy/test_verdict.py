"""Verdicts on outputs."""

from __future__ import annotations

import numpy as np
import pytest

from epcheck.models.accuracy.thresholds import Threshold
from epcheck.models.accuracy.verdict import judge

ROW = np.array([[1.0, -2.0, 4.0]], np.float32)


def verdicts(got: object, expected: object, truth: object = None, threshold: Threshold | None = None) -> list[bool]:
    bound = threshold or Threshold(1e-3)
    oracle = None if truth is None else {"y": np.asarray(truth)}
    found = judge("t", {"y": np.asarray(got)}, {"y": np.asarray(expected)}, oracle, {"y": bound})
    return [verdict.right for verdict in found]


def test_an_output_within_its_threshold_is_right_and_beyond_it_wrong() -> None:
    assert verdicts(ROW * np.float32(1.0005), ROW) == [True]
    assert verdicts(ROW * np.float32(1.01), ROW) == [False]


def test_the_truth_decides_between_candidate_and_baseline() -> None:
    truth = ROW.astype(np.float64)
    assert verdicts(ROW, ROW * np.float32(1.1), truth) == [True, True]
    assert verdicts(ROW * np.float32(1.1), ROW, truth) == [False, False]


def test_a_candidate_may_be_as_far_from_the_truth_as_the_baseline() -> None:
    truth = ROW.astype(np.float64)
    assert verdicts(ROW * np.float32(1.02), ROW * np.float32(0.99), truth) == [True, True]


def test_another_shape_or_dtype_or_a_missing_output_is_wrong() -> None:
    assert verdicts(ROW[0], ROW) == [False]
    assert verdicts(ROW.astype(np.float16), ROW) == [False]
    assert [verdict.why for verdict in judge("t", {}, {"y": ROW}, None, {})] == ["the candidate does not give it"]


@pytest.mark.parametrize(("tensor", "output"), [("present.0.key", "present.0.key"), ("s[1]", "s"), ("m.keys", "m")])
def test_a_tensor_has_the_threshold_of_the_output_that_it_is_in(tensor: str, output: str) -> None:
    (verdict,) = judge("t", {tensor: ROW * np.float32(1.0005)}, {tensor: ROW}, None, {output: Threshold(1e-3)})
    assert verdict.right


def test_an_infinite_element_on_one_side_is_wrong() -> None:
    assert verdicts(np.float32([np.inf, 1]), np.float32([1, 1])) == [False]


def test_a_share_of_integers_may_differ_where_numbers_decide_them() -> None:
    reference = np.arange(200)
    got = reference.copy()
    got[0] = 7
    assert verdicts(got, reference, threshold=Threshold(agreement=0.99)) == [True]
    assert verdicts(got, reference, threshold=Threshold(agreement=1.0)) == [False]
