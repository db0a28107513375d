"""NonMaxSuppression and TfIdfVectorizer by the words and examples of their pages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epcheck.generators.array import Array
from tests.generators.built_suite import node_of, true_outputs

BOXES = np.array(
    [[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]]],
    np.float32,
)
SCORES = np.array([[[0.9, 0.75, 0.6, 0.95, 0.5, 0.3]]], np.float32)


def selected(most: int | None, overlap: float | None, least: float | None, boxes: Array = BOXES, **more: Any) -> Any:
    scalars = ((most, np.int64), (overlap, np.float32), (least, np.float32))
    inputs = [boxes, SCORES, *(None if value is None else np.array(value, dtype) for value, dtype in scalars)]
    (rows,) = true_outputs(node_of("NonMaxSuppression", 11, inputs, **more))
    return rows[:, 2].tolist()


def test_boxes_of_the_page() -> None:
    assert selected(3, 0.5, 0.0) == [3, 0, 5]
    assert selected(3, 0.5, 0.4) == [3, 0]
    assert selected(2, 0.5, 0.0) == [3, 0]
    assert selected(None, 0.5, 0.0) == []
    assert selected(30, 0.5, 0.0, BOXES[..., [2, 3, 0, 1]]) == [3, 0, 5]
    center = np.concatenate([(BOXES[..., :2] + BOXES[..., 2:])[..., ::-1] / 2, np.ones((1, 6, 2), np.float32)], -1)
    assert selected(30, 0.5, 0.0, center, center_point_box=1) == [3, 0, 5]


def test_a_score_that_equals_the_threshold_stays() -> None:
    assert selected(30, 0.5, float(np.float32(0.3))) == [3, 0, 5]


EXAMPLE = {
    "ngram_counts": (0, 4),
    "ngram_indexes": (0, 1, 2, 3, 4, 5, 6),
    "pool_int64s": (2, 3, 5, 4, 5, 6, 7, 8, 6, 7),
}
"""Of the page: the n-grams 2, 3, 5, 4 and (5, 6), (7, 8), (6, 7)."""


@pytest.mark.parametrize(
    ("lengths", "skips", "expected"),
    [
        ((1, 2), 5, [0, 3, 1, 0, 1, 3, 1]),
        ((2, 2), 5, [0, 0, 0, 0, 1, 3, 1]),
        ((2, 2), 0, [0, 0, 0, 0, 1, 1, 1]),
    ],
)
def test_ngrams_of_the_page(lengths: tuple[int, int], skips: int, expected: list[int]) -> None:
    x = np.array([1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8], np.int32)
    settings = {"min_gram_length": lengths[0], "max_gram_length": lengths[1], "max_skip_count": skips}
    (y,) = true_outputs(node_of("TfIdfVectorizer", 9, [x], mode="TF", **settings, **EXAMPLE))
    assert y.tolist() == expected
