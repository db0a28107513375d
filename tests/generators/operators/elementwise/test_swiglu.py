"""SwiGLU-28: its oracle against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.truth import Refusal
from tests.generators.built_suite import node_of, true_outputs


def test_the_gate_is_swish_and_alpha_scales_inside_the_sigmoid_alone() -> None:
    a, b = np.array([0.0, np.log(3.0), -np.log(3.0)]), np.array([5.0, 4.0, 4.0])
    (y,) = true_outputs(node_of("SwiGLU", 28, [a, b]))
    assert y.tolist() == pytest.approx([0.0, 3 * np.log(3.0), -np.log(3.0)])
    (flat,) = true_outputs(node_of("SwiGLU", 28, [a, b], alpha=0.0))
    assert flat.tolist() == pytest.approx([0.0, 2 * np.log(3.0), -2 * np.log(3.0)])


def test_nothing_is_broadcast() -> None:
    node = node_of("SwiGLU", 28, [np.ones((2, 3), np.float32), np.ones(3, np.float32)])
    truth = registry.operator_of("SwiGLU").truth(node)
    assert isinstance(truth, Refusal)
    assert "identical" in truth.reason
