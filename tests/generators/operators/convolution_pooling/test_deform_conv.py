"""DeformConv by the examples of its page, and beside a plain convolution."""

from __future__ import annotations

import numpy as np

from tests.generators.built_suite import node_of, true_outputs

X = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
W = np.ones((1, 1, 2, 2), np.float32)


def test_the_example_of_the_page() -> None:
    offset = np.zeros((1, 8, 4, 4), np.float32)
    offset[0, 0, 0, 0], offset[0, 5, 1, 2] = 0.5, -0.1
    (y,) = true_outputs(node_of("DeformConv", 19, [X, W, offset], kernel_shape=(2, 2), pads=(1, 1, 1, 1)))
    assert np.allclose(y[0, 0], [[0, 1, 3, 2], [3, 8, 11.9, 7], [9, 20, 24, 13], [6, 13, 15, 8]])


def test_the_mask_and_the_bias() -> None:
    offset, mask = np.zeros((1, 8, 2, 2), np.float32), np.ones((1, 4, 2, 2), np.float32)
    mask[0, 2, 1, 1] = 0.5  # the lower left tap of the last output, which reads 7
    (y,) = true_outputs(node_of("DeformConv", 19, [X, W, offset, np.array([100], np.float32), mask]))
    assert y.tolist() == [[[[108, 112], [120, 120.5]]]]


def test_an_offset_moves_rows_before_columns() -> None:
    weight = np.ones((1, 1, 1, 1), np.float32)
    offset = np.zeros((1, 2, 3, 3), np.float32)
    offset[0, 0] = 1
    (y,) = true_outputs(node_of("DeformConv", 19, [X, weight, offset], kernel_shape=(1, 1)))
    assert y[0, 0].tolist() == [[3, 4, 5], [6, 7, 8], [0, 0, 0]]
