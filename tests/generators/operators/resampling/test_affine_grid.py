"""AffineGrid by the drawings of its page."""

from __future__ import annotations

import numpy as np
import pytest

from tests.generators.built_suite import node_of, true_outputs

IDENTITY = np.eye(2, 3, dtype=np.float32)[None]


@pytest.mark.parametrize(("align", "columns"), [(1, [-1, 0, 1]), (0, [-2 / 3, 0, 2 / 3])])
def test_where_the_pixels_are(align: int, columns: list[float]) -> None:
    node = node_of("AffineGrid", 20, [IDENTITY, np.array([1, 1, 2, 3])], align_corners=align)
    (grid,) = true_outputs(node)
    assert grid.shape == (1, 2, 3, 2)
    assert grid[0, 0, :, 0] == pytest.approx(columns)
    assert grid[0, :, 0, 1] == pytest.approx([-1, 1] if align else [-0.5, 0.5])


def test_a_point_is_turned_and_moved() -> None:
    theta = np.array([[[0, -1, 2], [1, 0, 3]]], np.float32)  # x' = -y + 2, y' = x + 3
    (grid,) = true_outputs(node_of("AffineGrid", 20, [theta, np.array([1, 1, 2, 2])], align_corners=1))
    assert grid.tolist() == [[[[3, 2], [3, 4]], [[1, 2], [1, 4]]]]
