"""LinearAttention-27: its oracle against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from epcheck.generators.array import Array
from tests.generators.built_suite import node_of, true_outputs


def run(*inputs: Array | None, heads: tuple[int, int] = (1, 1), **attributes: object) -> tuple[Array, Array]:
    q_heads, kv_heads = heads
    arrays = [None if value is None else np.asarray(value, np.float32) for value in inputs]
    node = node_of("LinearAttention", 27, arrays, q_num_heads=q_heads, kv_num_heads=kv_heads, **attributes)
    output, state = true_outputs(node)
    return output, state


ONES = np.ones((1, 2, 1))
VALUES = np.array([[[2.0], [10.0]]])


@pytest.mark.parametrize(
    ("rule", "decay", "beta", "expected"),
    [
        ("linear", None, None, [2.0, 12.0]),
        ("gated", np.full((1, 2, 1), np.log(0.5)), None, [2.0, 11.0]),
        ("delta", None, np.full((1, 2, 1), 0.5), [1.0, 5.5]),
        ("gated_delta", np.full((1, 2, 1), np.log(0.5)), np.full((1, 2, 1), 0.5), [1.0, 5.25]),
    ],
)
def test_each_rule_by_hand(rule: str, decay: Array | None, beta: Array | None, expected: list[float]) -> None:
    output, state = run(ONES, ONES, VALUES, None, decay, beta, update_rule=rule, scale=1.0)
    assert output.ravel().tolist() == pytest.approx(expected)
    assert state.ravel().tolist() == pytest.approx(expected[-1:])


def test_the_default_scale_is_that_of_a_key_and_0_stands_for_it() -> None:
    query = np.ones((1, 1, 4))
    for attributes in ({}, {"scale": 0.0}):
        output, _ = run(query, query, np.array([[[6.0]]]), update_rule="linear", **attributes)
        assert output.ravel().tolist() == [12.0]


def test_query_heads_that_follow_each_other_share_a_state() -> None:
    query, key, value = np.array([[[1.0, 2.0, 3.0, 4.0]]]), np.ones((1, 1, 2)), np.array([[[10.0, 100.0]]])
    output, state = run(query, key, value, heads=(4, 2), update_rule="linear", scale=1.0)
    assert output.ravel().tolist() == [10.0, 20.0, 300.0, 400.0]
    assert state.shape == (1, 2, 1, 1)
