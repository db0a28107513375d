"""CDist and Inverse: values worked out by hand, and the bound of an inverse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operators.matmul.inverse import find_error, invert
from epcheck.generators.truth import Outputs, Refusal, Truth


def truth(operator: str, attributes: dict[str, Attribute], **inputs: Any) -> Truth:
    operands = tuple(Operand(name, np.asarray(value, np.float32)) for name, value in inputs.items())
    node = Node(operator, "com.microsoft", 1, operands, ("out",), attributes)
    return registry.operator_of(f"com.microsoft::{operator}").truth(node)


def values(operator: str, attributes: dict[str, Attribute], **inputs: Any) -> list[Any]:
    answer = truth(operator, attributes, **inputs)
    assert isinstance(answer, Outputs), answer
    return list(answer.outputs[0].value.tolist())


@pytest.mark.parametrize(
    ("metric", "expected"), [("sqeuclidean", 25), ("euclidean", 5), ("cityblock", 7), ("chebyshev", 4)]
)
def test_distances_of_3_and_4(metric: str, expected: float) -> None:
    assert values("CDist", {"metric": metric}, A=[[1, 1], [4, 5]], B=[[1, 1]]) == [[0], [expected]]
    assert values("CDist", {}, A=[[0, 0]], B=[[3, 4], [1, 0]]) == [[25, 1]]


def test_an_inverse_of_each_matrix() -> None:
    found = values("Inverse", {}, X=[[[2, 0], [0, 4]], [[0, 2], [1, 0]]])
    assert found == [[[0.5, 0], [0, 0.25]], [[0, 1], [0.5, 0]]]
    assert values("Inverse", {}, X=[[4, 7], [2, 6]]) == np.float32([[0.6, -0.7], [-0.2, 0.4]]).tolist()
    assert values("Inverse", {}, X=np.full((1, 1), 8.0)) == [[0.125]]


def test_an_exact_inverse_is_that_of_numpy() -> None:
    matrix = np.random.default_rng(1).uniform(-1, 1, (7, 7)) + 3 * np.eye(7)[::-1]
    np.testing.assert_allclose(invert(matrix), np.linalg.inv(matrix), rtol=1e-12)
    single = np.linalg.inv(matrix.astype(np.float32))
    error = find_error(matrix.astype(np.float32), invert(matrix.astype(np.float32)))
    assert (np.abs(single - invert(matrix.astype(np.float32))) <= error).all()
    assert error.max() < 1e-4
    with pytest.raises(ZeroDivisionError):
        invert(np.ones((2, 2)))


@pytest.mark.parametrize(
    ("operator", "attributes", "inputs", "why"),
    [
        ("CDist", {}, {"A": [[1, 2]], "B": [[1]]}, "as many columns"),
        ("CDist", {"metric": "taxicab"}, {"A": [[1]], "B": [[1]]}, "there is no metric"),
        ("Inverse", {}, {"X": [[1, 2, 3], [4, 5, 6]]}, "must be equal"),
        ("Inverse", {}, {"X": [1, 2]}, "must be equal"),
    ],
)
def test_the_rules(operator: str, attributes: dict[str, Attribute], inputs: dict[str, Any], why: str) -> None:
    answer = truth(operator, attributes, **inputs)
    assert isinstance(answer, Refusal)
    assert why in answer.reason
