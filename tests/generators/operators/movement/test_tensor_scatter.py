"""TensorScatter-24 and CenterCropPad-18: the oracles against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.generators.built_suite import node_of, true_outputs

CACHE, UPDATE = np.zeros((2, 4, 1)), np.array([[[1.0], [2.0]], [[3.0], [4.0]]])


def test_each_sample_is_written_from_its_own_index_on() -> None:
    (present,) = true_outputs(node_of("TensorScatter", 24, [CACHE, UPDATE, np.array([0, 2])]))
    assert present[:, :, 0].tolist() == [[1, 2, 0, 0], [0, 0, 3, 4]]


def test_circular_indices_wrap_around() -> None:
    (present,) = true_outputs(node_of("TensorScatter", 24, [CACHE, UPDATE, np.array([3, 6])], mode="circular"))
    assert present[:, :, 0].tolist() == [[2, 0, 0, 1], [0, 0, 3, 4]]


@pytest.mark.parametrize(
    ("size", "expected"),
    [(1, [3.0]), (2, [2.0, 3.0]), (3, [2.0, 3.0, 4.0]), (6, [1.0, 2.0, 3.0, 4.0, 5.0, 0.0]), (4, [1.0, 2.0, 3.0, 4.0])],
)
def test_the_middle_is_cut_out_or_padded(size: int, expected: list[float]) -> None:
    (found,) = true_outputs(node_of("CenterCropPad", 18, [np.arange(1.0, 6.0), np.array([size])]))
    assert found.tolist() == expected
