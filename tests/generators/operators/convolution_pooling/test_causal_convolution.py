"""CausalConvWithState-27: its oracle against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from epcheck.generators.array import Array
from tests.generators.built_suite import node_of, true_outputs

WEIGHT = np.array([[[1.0, 10.0, 100.0]]], np.float32)


def run(x: list[float], *inputs: Array | None, **attributes: object) -> tuple[list[float], list[float]]:
    """output and present_state of one batch and channel."""
    node = node_of("CausalConvWithState", 27, [np.array([[x]], np.float32), WEIGHT, *inputs], **attributes)
    output, state = true_outputs(node)
    return output.ravel().tolist(), state.ravel().tolist()


def test_the_last_weight_meets_the_present_and_zeros_stand_before_it() -> None:
    assert run([1, 2, 3]) == ([100, 210, 321], [2, 3])


def test_a_sequence_in_two_parts_is_that_in_one() -> None:
    whole, end = run([1, 2, 3, 4])
    first, state = run([1])
    assert state == [0, 1]
    rest, last = run([2, 3, 4], None, np.array([[state]], np.float32))
    assert (first + rest, last) == (whole, end)


def test_bias_is_added_before_the_activation() -> None:
    output, _ = run([0.0], np.array([np.log(3.0)], np.float32), activation="silu")
    assert output == pytest.approx([0.75 * np.log(3.0)])
    assert run([0.0], np.array([2.0], np.float32), activation="none")[0] == [2.0]
