"""CumProd-26: its oracle against the example of the page, and what the page leaves out."""

from __future__ import annotations

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.truth import Outputs, Refusal, Ulp
from tests.generators.built_suite import built, node_of, true_outputs


@pytest.mark.parametrize(
    ("exclusive", "reverse", "expected"),
    [(0, 0, [1, 2, 6]), (1, 0, [1, 1, 2]), (0, 1, [6, 6, 3]), (1, 1, [6, 3, 1])],
)
def test_the_example_of_the_page(exclusive: int, reverse: int, expected: list[int]) -> None:
    for dtype in ("float32", "int64"):
        x = np.array([1, 2, 3], dtype)
        node = node_of("CumProd", 26, [x, np.array(0, np.int32)], exclusive=exclusive, reverse=reverse)
        (y,) = true_outputs(node)
        assert (y.dtype, y.tolist()) == (dtype, expected)


def test_an_axis_outside_the_rank_is_refused() -> None:
    x = np.ones((2, 3), np.float32)
    truth = registry.operator_of("CumProd").truth(node_of("CumProd", 26, [x, np.array(2)]))
    assert truth == Refusal("axis 2 must be within [-2, 1] for rank 2")


def test_the_bound_grows_with_the_number_of_factors() -> None:
    floors = {}
    for case in built("CumProd"):
        if case.case.id in ("CumProd-26/float32/length_31[initializer]", "CumProd-26/float32/length_4097[initializer]"):
            assert isinstance(case.truth, Outputs)
            (output,) = case.truth.outputs
            assert isinstance(output.bound, Ulp)
            assert output.exact is not None
            floors[case.case.sample] = float(np.max(np.asarray(output.bound.floor) / np.abs(output.exact)))
    assert floors["length_31"] == pytest.approx(30 * 2.0**-24, rel=1e-3)
    assert floors["length_4097"] == pytest.approx(4096 * 2.0**-24, rel=1e-3)
