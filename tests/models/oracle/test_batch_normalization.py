"""BatchNormalization of the oracle: the suite's truth, for inference; nothing where the suite has more to say."""

from __future__ import annotations

import numpy as np
import pytest

from epcheck.generators.node import Node, Operand
from epcheck.generators.operators.normalization import batch_normalization as suite
from epcheck.generators.truth import Outputs, Refusal
from epcheck.models.oracle import batch_normalization


def node(spatial: int = 1, per: tuple[int, ...] = (3,), **attributes: int | float) -> Node:
    rng = np.random.default_rng(0)
    values = (rng.normal(0, 3, (2, 3, 4, 5)), *(rng.uniform(0.1, 2, per) for _ in range(4)))
    operands = tuple(
        Operand(name, value) for name, value in zip(("X", "scale", "B", "mean", "var"), values, strict=True)
    )
    settings = attributes if spatial else {"spatial": 0, **attributes}
    return Node("BatchNormalization", "", 7 if not spatial else 15, operands, ("Y",), settings)


@pytest.mark.parametrize(
    "asked", [node(), node(epsilon=0.5), node(spatial=0, per=(3, 4, 5)), node(training_mode=0, epsilon=1e-3)]
)
def test_inference_is_the_suites(asked: Node) -> None:
    true = suite.truth(asked)
    assert isinstance(true, Outputs)
    found = batch_normalization.evaluate(asked)
    assert found is not None
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, true.outputs[0].value, rtol=1e-13, atol=1e-14)


def test_training_and_wrong_shapes_are_left_to_the_suite() -> None:
    assert batch_normalization.evaluate(node(training_mode=1)) is None
    short = node(per=(2,))
    assert batch_normalization.evaluate(short) is None
    assert isinstance(suite.truth(short), Refusal)
