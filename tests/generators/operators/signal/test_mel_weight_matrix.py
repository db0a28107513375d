"""MelWeightMatrix by the example of its page."""

from __future__ import annotations

import numpy as np

from tests.generators.built_suite import node_of, true_outputs


def test_the_triangles() -> None:
    """8 bands, 16 samples at 8192 Hz, to half of that; the corners are those of the example."""
    integers = [np.array(value, np.int32) for value in (8, 16, 8192)]
    edges = [np.array(value, np.float32) for value in (0, 4096)]
    (matrix,) = true_outputs(node_of("MelWeightMatrix", 17, [*integers, *edges]))
    assert matrix.shape == (9, 8)
    assert matrix.max(0).tolist() == [1] * 8
    mel = np.arange(10) * (2595 * np.log10(1 + 4096 / 700) / 10)
    corners = np.floor(17 * 700 * (10 ** (mel / 2595) - 1) / 8192).astype(int)
    for column, (left, center, right) in enumerate(zip(corners, corners[1:], corners[2:], strict=False)):
        assert matrix[center, column] == 1
        assert not matrix[:left, column].any()
        assert not matrix[max(right, center + 1) :, column].any()
