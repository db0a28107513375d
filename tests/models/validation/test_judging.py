"""Outputs that are judged by the model's noise, beside those whose threshold its sensitivity extends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from epcheck.models.accuracy.thresholds import Threshold, ThresholdSource
from epcheck.models.graph.feed import Feed
from epcheck.models.validation.judging import judge_outputs

THRESHOLD = Threshold(0.001, source=ThresholdSource.HIGHAM_MARY, is_coarse=True)


def values(**off: float) -> dict[str, np.ndarray]:
    return {name: np.full(64, 1 + by, np.float64) for name, by in off.items()}


def test_one_output_that_is_far_off_leaves_the_others_their_sensitivity() -> None:
    asked: list[bool] = []

    def evaluate(once: bool) -> Iterator[Mapping[str, Feed]]:
        asked.append(once)
        yield values(a=1e-6, b=1e-6) if once else values(a=1e-6, b=0.001)

    candidate, baseline, truth = values(a=0.0005, b=0.0012), values(a=1e-6, b=0.0001), values(a=0, b=0)
    found = judge_outputs(("t", candidate, baseline, truth, {"a": THRESHOLD, "b": THRESHOLD}), evaluate)
    by_truth = {each.output: (each.right, each.threshold.source) for each in found if each.against == "oracle"}
    assert by_truth == {"a": (False, ThresholdSource.NOISE), "b": (True, ThresholdSource.HIGHAM_MARY)}
    assert asked == [True, False]
    (words,) = (each.why for each in found if each.output == "b" and each.against == "oracle")
    assert "which the model's sensitivity extends: rounding alone changes this output by 0.001 of its size" in words


def test_an_output_that_the_baseline_makes_right_is_not_far_off() -> None:
    def evaluate(once: bool) -> Iterator[Mapping[str, Feed]]:
        raise AssertionError(once)

    candidate, baseline, truth = values(a=0.0012), values(a=0.0004), values(a=0)  # beyond the threshold, 3 times as far
    assert [each.right for each in judge_outputs(("t", candidate, baseline, truth, {"a": THRESHOLD}), evaluate)] == [
        True, True,
    ]  # fmt: skip
