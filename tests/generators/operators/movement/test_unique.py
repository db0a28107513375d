"""Unique by the examples of its page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.truth import Refusal
from tests.generators.built_suite import node_of, true_outputs

FLAT = np.array([2, 1, 1, 3, 4, 3], np.float32)
ROWS = np.array([[1, 0, 0], [1, 0, 0], [2, 3, 4]], np.float32)
PAIRS = np.array([[[1, 1], [0, 1], [2, 1], [0, 1]]] * 2, np.float32)


@pytest.mark.parametrize(
    ("x", "attributes", "expected"),
    [
        (FLAT, {"sorted": 0}, ([2, 1, 3, 4], [0, 1, 3, 4], [0, 1, 1, 2, 3, 2], [1, 2, 2, 1])),
        (np.array([[1, 3], [2, 3]], np.float32), {"sorted": 1}, ([1, 2, 3], [0, 2, 1], [0, 2, 1, 2], [1, 1, 2])),
        (ROWS, {"axis": 0}, ([[1, 0, 0], [2, 3, 4]], [0, 2], [0, 0, 1], [2, 1])),
        (PAIRS, {"axis": 1}, ([[[0, 1], [1, 1], [2, 1]]] * 2, [1, 0, 2], [1, 0, 2, 0], [2, 1, 1])),
        (np.zeros((0, 3), np.float32), {"axis": 0}, ([], [], [], [])),
    ],
)
def test_the_outputs(x: np.ndarray, attributes: dict[str, Any], expected: tuple[Any, ...]) -> None:
    found = true_outputs(node_of("Unique", 11, [x], **attributes))
    assert tuple(value.tolist() for value in found) == expected


def test_what_must_be_refused() -> None:
    for attributes, reason in (
        ({"sorted": 2}, "sorted must be 0 or 1, not 2"),
        ({"axis": 1}, "axis 1 must be within [-1, 0] for rank 1"),
    ):
        assert registry.operator_of("Unique").truth(node_of("Unique", 11, [FLAT], **attributes)) == Refusal(reason)
