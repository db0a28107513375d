"""Verdicts on outputs."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from epcheck.models.accuracy.thresholds import Override, Threshold, ThresholdSource
from epcheck.models.accuracy.verdict import judge

YOURS = ThresholdSource.YOURS

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
    assert verdicts(ROW * np.float32(1.005), ROW * np.float32(0.998), truth) == [True, True]


def words(got: object, expected: object, truth: object, bound: Threshold | None = None) -> list[str]:
    outputs = ({"y": np.asarray(value)} for value in (got, expected, truth))
    found = judge("t", *outputs, {"y": bound or Threshold(1e-3)})
    return [verdict.word for verdict in found]


def test_a_baseline_far_from_the_truth_proves_nothing() -> None:
    truth = ROW.astype(np.float64)
    assert words(ROW * np.float32(1.5), ROW * np.float32(1.5), truth) == ["right", "undecided"]
    assert words(ROW * np.float32(1.5), ROW * np.float32(1.02), truth) == ["WRONG", "WRONG"]
    assert words(ROW * np.float32(1.005), ROW * np.float32(1.005), truth, Threshold(1e-3, source=YOURS)) == [
        "right",
        "WRONG",
    ]


def test_a_shape_that_both_have_and_the_oracle_has_not_is_undecided() -> None:
    assert words(ROW, ROW, np.zeros((3, 1))) == ["right", "undecided"]
    assert words(ROW, ROW[0], np.zeros(3)) == ["WRONG", "WRONG"]


def test_the_truth_judges_alone_where_there_is_no_baseline() -> None:
    found = list(judge("t", {"y": ROW, "z": ROW}, None, {"y": ROW.astype(np.float64)}, {"y": Threshold(1e-3)}))
    assert [(verdict.output, verdict.against, verdict.right) for verdict in found] == [("y", "oracle", True)]


def test_bfloat16_is_compared_with_a_truth_in_float64() -> None:
    narrow = ROW.astype(ml_dtypes.bfloat16)
    assert words(narrow, narrow, ROW.astype(np.float64) * 1.0005) == ["right", "right"]


def test_a_relative_error_of_nothing_is_allowed() -> None:
    assert verdicts(ROW, ROW, threshold=Threshold(0.0, source=YOURS)) == [True]
    (verdict,) = judge("t", {"y": ROW * np.float32(1.01)}, {"y": ROW}, None, {"y": Threshold(0.0, source=YOURS)})
    assert (verdict.right, verdict.why) == (False, "relative error 0.01, where none is allowed")


def test_an_absolute_error_may_be_allowed() -> None:
    near = ROW + np.float32(0.01)
    assert verdicts(near, ROW, threshold=Threshold(0.0, absolute=0.02, source=YOURS)) == [True]
    assert verdicts(near, ROW, threshold=Threshold(0.0, absolute=0.005, source=YOURS)) == [False]
    (verdict,) = judge("t", {"y": near}, {"y": ROW}, None, {"y": Threshold(0.0, absolute=0.005, source=YOURS)})
    assert verdict.why == "largest error 0.01; allowed are 0.005"


def test_another_shape_or_dtype_or_a_missing_output_is_wrong() -> None:
    assert verdicts(ROW[0], ROW) == [False]
    assert verdicts(ROW.astype(np.float16), ROW) == [False]
    assert verdicts(ROW.astype(np.float64), ROW, ROW.astype(np.float64)) == [
        False,
        False,
    ]  # values alone are not enough
    assert [verdict.why for verdict in judge("t", {}, {"y": ROW}, None, {})] == ["the candidate does not give it"]


@pytest.mark.parametrize(("tensor", "output"), [("present.0.key", "present.0.key"), ("s[1]", "s"), ("m.values", "m")])
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


def test_what_random_rounding_changes_extends_the_threshold_and_is_said() -> None:
    truth, got = np.linspace(1, 2, 8), np.linspace(1, 2, 8).astype(np.float32) * np.float32(1.001)
    threshold = {"y": Threshold(1e-5)}
    rounded = [{"y": truth * (1 + 4e-4)}, {"y": truth * (1 - 2e-4)}]
    (plain,) = judge("t", {"y": got}, None, {"y": truth}, threshold)
    (found,) = judge("t", {"y": got}, None, {"y": truth}, threshold, rounded)
    assert (plain.word, found.word) == ("WRONG", "right")
    assert found.why.endswith("which the model's sensitivity extends: rounding alone changes this output by 0.0004 of "
                              "its size")  # fmt: skip
    (beyond,) = judge("t", {"y": got * np.float32(1.001)}, None, {"y": truth}, threshold, rounded)
    assert (beyond.word, beyond.sensitivity is not None) == ("WRONG", True)


def test_a_model_that_rounding_alone_takes_beyond_a_hundredth_is_undecided() -> None:
    truth, got = np.linspace(1, 2, 8), np.linspace(1, 2, 8).astype(np.float32) * np.float32(1.05)
    (found,) = judge("t", {"y": got}, None, {"y": truth}, {"y": Threshold(1e-5)}, [{"y": truth * 1.03}])
    assert found.word == "undecided"
    assert "the model is too sensitive on these feeds: rounding alone changes this output by 0.03" in found.why
    (far,) = judge("t", {"y": got * 2}, None, {"y": truth}, {"y": Threshold(1e-5)}, [{"y": truth * 1.03}])
    assert far.word == "WRONG"


def test_a_threshold_that_was_asked_for_is_not_extended() -> None:
    truth, got = np.linspace(1, 2, 8), np.linspace(1, 2, 8).astype(np.float32) * np.float32(1.001)
    asked = {"y": Override(relative=1e-5).apply(Threshold(1e-3))}
    (found,) = judge("t", {"y": got}, None, {"y": truth}, asked, [{"y": truth * 1.001}])
    assert found.word == "WRONG"


def test_the_keys_of_a_map_are_equal_and_its_values_are_near() -> None:
    keys, bound = np.array([5, 2**40]), {"m": Threshold(1e-3)}
    found = judge("t", {"m.keys": keys + 1, "m.values": ROW * 1.0001}, {"m.keys": keys, "m.values": ROW}, None, bound)
    assert [(verdict.output, verdict.right) for verdict in found] == [("m.keys", False), ("m.values", True)]


COARSE = Threshold(0.12, source=ThresholdSource.HIGHAM_MARY, is_coarse=True)


@pytest.mark.parametrize(("moved", "noise", "word"), [
    (0.02, 0.001, "WRONG"),  # 40 times as far as the baseline, 20 times as far as the noise
    (0.02, 0.004, "right"),  # the noise of the model is more than the baseline's
    (0.004, 0.0002, "right"),  # 8 times as far as the baseline
])  # fmt: skip
def test_a_coarse_output_is_judged_by_the_noise_of_its_model(moved: float, noise: float, word: str) -> None:
    truth = np.linspace(1, 2, 8)
    got, baseline = (truth * (1 + moved)).astype(np.float16), (truth * 1.0005).astype(np.float16)
    noisy = [{"y": truth * (1 + noise)}]
    found = list(judge("t", {"y": got}, {"y": baseline}, {"y": truth}, {"y": COARSE}, noisy=noisy))
    assert found[1].word == word
    if word == "WRONG":
        assert found[1].threshold.source is ThresholdSource.NOISE
        assert found[1].threshold.relative == pytest.approx(0.0192, rel=0.01)  # 16 times the noise in float16
        assert "times as far from the truth as the baseline" in found[1].why
        again = list(judge("t", {"y": got}, {"y": baseline}, {"y": truth}, {"y": COARSE}, noisy, noisy))
        assert again[1].word == "WRONG", "random rounding of partial sums does not extend it"


def test_a_coarse_output_is_not_far_off_where_the_baseline_is_beyond_the_threshold_or_the_user_chose() -> None:
    truth = np.linspace(1, 2, 8)
    got, baseline = (truth * 1.02).astype(np.float16), (truth * 1.0005).astype(np.float16)

    def far_off(threshold: Threshold, other: object = baseline) -> bool:
        return list(judge("t", {"y": got}, {"y": np.asarray(other)}, {"y": truth}, {"y": threshold}))[1].is_far_off

    assert far_off(COARSE)
    assert not far_off(Override(relative=0.12).apply(COARSE))
    assert not far_off(Threshold(0.12))
    assert not far_off(COARSE, (truth * 1.5).astype(np.float16))
    noisy = Threshold(1.0, snr_db=30.0, source=ThresholdSource.BENNETT, is_coarse=True)
    assert far_off(noisy)
