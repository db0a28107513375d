"""Compress by the words of its page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.truth import Refusal
from tests.generators.built_suite import node_of, true_outputs

DATA = np.array([[1, 2], [3, 4], [5, 6]], np.float32)


@pytest.mark.parametrize(
    ("condition", "attributes", "expected"),
    [
        ([False, True, True], {"axis": 0}, [[3, 4], [5, 6]]),
        ([False, True], {"axis": 1}, [[2], [4], [6]]),
        ([False, True], {"axis": -1}, [[2], [4], [6]]),
        ([False, True, False, False, True], {}, [2, 5]),
        ([True], {"axis": 0}, [[1, 2]]),
        ([], {}, []),
    ],
)
def test_what_the_condition_selects(condition: list[bool], attributes: dict[str, Any], expected: list[Any]) -> None:
    (output,) = true_outputs(node_of("Compress", 11, [DATA, np.array(condition, bool)], **attributes))
    assert output.tolist() == expected
    assert output.dtype == np.float32


@pytest.mark.parametrize(
    ("condition", "axis", "reason"),
    [
        (np.ones((3, 1), bool), 0, "condition must have one dimension, not 2"),
        (np.ones((), bool), 0, "condition must have one dimension, not 0"),
        (np.ones(2, bool), 2, r"axis 2 must be within [-2, 1] for rank 2"),
    ],
)
def test_what_must_be_refused(condition: np.ndarray, axis: int, reason: str) -> None:
    node = node_of("Compress", 11, [DATA, condition], axis=axis)
    assert registry.operator_of("Compress").truth(node) == Refusal(reason)
