"""Det by the definition of the determinant."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.array import Array
from epcheck.generators.truth import Outputs, Refusal, Ulp
from tests.generators.built_suite import node_of


def by_permutations(matrix: Array) -> float:
    """The sum over all permutations, in whole numbers."""
    size, total = len(matrix), 0
    for order in permutations(range(size)):
        swaps = sum(order[i] > order[j] for i in range(size) for j in range(i + 1, size))
        product = 1
        for row, column in enumerate(order):
            product *= int(matrix[row, column])
        total += -product if swaps % 2 else product
    return float(total)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_whole_numbers(size: int) -> None:
    x = np.random.default_rng(size).integers(-9, 10, (7, size, size)).astype(np.float32)
    truth = registry.operator_of("Det").truth(node_of("Det", 22, [x]))
    assert isinstance(truth, Outputs)
    (output,) = truth.outputs
    assert output.value.tolist() == [by_permutations(matrix) for matrix in x]


def test_powers_of_two_and_many_rows_are_exact() -> None:
    """The first has rows whose numbers are far apart; the second is 2 I + J, whose determinant is 2^(n-1) (2 + n), with
    rows that change places."""
    apart = np.array([[2.0**100, 3.0], [0.0, 2.0**-120]])
    many = (2 * np.eye(33) + 1)[::-1].copy()
    truths = [registry.operator_of("Det").truth(node_of("Det", 22, [x])) for x in (apart, many)]
    found = [truth.outputs[0].value.item() for truth in truths if isinstance(truth, Outputs)]
    assert found == [2.0**-20, 2.0**32 * 35]


def test_the_bound_holds_for_numpy_and_is_not_wide() -> None:
    x = np.random.default_rng(3).uniform(-2, 2, (200, 4, 4)).astype(np.float32)
    truth = registry.operator_of("Det").truth(node_of("Det", 22, [x]))
    assert isinstance(truth, Outputs)
    (output,) = truth.outputs
    assert isinstance(output.bound, Ulp)
    assert output.exact is not None
    off = np.abs(np.linalg.det(x).astype(np.float64) - output.exact)
    assert (off <= output.bound.floor).all()
    assert np.median(output.bound.floor) < 1e-4  # of determinants of about 8


def test_what_must_be_refused() -> None:
    node = node_of("Det", 22, [np.zeros((2, 3), np.float32)])
    reason = "the last two dimensions of X must be equal; its shape is (2, 3)"
    assert registry.operator_of("Det").truth(node) == Refusal(reason)
