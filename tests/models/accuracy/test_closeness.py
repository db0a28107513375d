"""One figure for the distance of two values."""

from __future__ import annotations

import math

import numpy as np
import onnx
import pytest
from onnx import helper

from epcheck.models.accuracy.closeness import STEP, distance, noise

ONES = np.ones(8, np.float32)


@pytest.mark.parametrize(
    ("expected", "got", "apart"),
    [
        (ONES, ONES, 0.0),
        (ONES, ONES * np.float32(1.25), 0.25),
        (ONES, ONES[:4], math.inf),
        (ONES, ONES.astype(np.float64), math.inf),
        (ONES, np.where(np.arange(8) == 3, np.nan, ONES).astype(np.float32), math.inf),
        (np.float32([np.nan, np.inf, 1]), np.float32([np.nan, np.inf, 1]), 0.0),
        (np.float32([np.inf, 1]), np.float32([-np.inf, 1]), math.inf),
        (np.array([True, False]), np.array([True, True]), 0.5),
        (np.int64([0, 10]), np.int64([1, 10]), 1.0),
        ([ONES, ONES], [ONES, ONES * 2], 1.0),
        ([ONES, ONES], [ONES], math.inf),
        (np.empty(0), np.empty(0), 0.0),
    ],
)
def test_the_distance_of_two_values(expected: object, got: object, apart: float) -> None:
    assert distance(expected, got) == pytest.approx(apart)  # type: ignore[arg-type]


def test_a_mask_hides_no_error() -> None:
    scores = np.float32([1, 1, 1, -3.4e38])
    assert distance(scores, np.float32([1, 1.5, 1, -3.4e38])) == pytest.approx(0.5)


def test_an_error_of_an_element_that_is_nearly_0_is_measured_by_the_others() -> None:
    assert distance(np.float32([1e-9, 1, 1, 1]), np.float32([2e-9, 1, 1, 1])) < 1e-8


def test_noise_is_that_of_the_coarsest_arithmetic() -> None:
    plain = onnx.ModelProto()
    assert noise(plain, [ONES]) == pytest.approx(4 * 2**-23)
    assert noise(plain, [ONES, ONES.astype(np.float16)]) == pytest.approx(4 * 2**-10)
    plain.graph.node.append(helper.make_node("QuantizeLinear", ["x"], ["y"]))
    assert noise(plain, [ONES]) == STEP
