"""Resize, Upsample and GridSample: values that follow from the pages by hand, and what the samples promise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from epcheck.generators.array import Array
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operators.resampling import grid_sample
from epcheck.generators.operators.resampling.resize import oracle, samples
from epcheck.generators.oracle_math.coordinates import Axis
from epcheck.generators.truth import Outputs

LINE = np.array([1, 2], np.float32)


def resized(version: int, x: Array, attributes: dict[str, Attribute], **parameters: Array) -> Array:
    inputs = [Operand("X", x), *(Operand(name, value) for name, value in parameters.items())]
    truth = oracle.truth(Node("Resize", "", version, tuple(inputs), ("Y",), attributes))
    assert isinstance(truth, Outputs), truth
    return truth.outputs[0].value


@pytest.mark.parametrize(
    ("version", "transform", "expected"),
    [
        (10, None, [1, 1.5, 2, 2]),
        (19, None, [1, 1.25, 1.75, 2]),
        (19, "asymmetric", [1, 1.5, 2, 2]),
        (19, "align_corners", [1, 4 / 3, 5 / 3, 2]),
    ],
)
def test_a_line_of_two_is_doubled(version: int, transform: str | None, expected: list[float]) -> None:
    attributes = {"mode": "linear"} | ({"coordinate_transformation_mode": transform} if transform else {})
    got = resized(version, LINE, attributes, scales=np.array([2], np.float32))
    assert np.allclose(got, expected, rtol=1e-7, atol=0)


def test_cubic_half_way_between_elements_has_keys_weights() -> None:
    # a = -0.75 at a distance of 1/2: weights -3/32, 19/32, 19/32, -3/32.
    x = np.array([0, 0, 32, 64, 0, 0], np.float32)
    attributes: dict[str, Attribute] = {"mode": "cubic"}
    got = resized(19, x, attributes, scales=np.array([0.5], np.float32))
    assert got.tolist() == [-3.0 + 0.0, 57.0, -6.0]


@pytest.mark.parametrize(("policy", "shape"), [("not_larger", (7, 11)), ("not_smaller", (8, 12)), ("stretch", (7, 12))])
def test_aspect_ratio_rounds_half_way_sizes_up(policy: str, shape: tuple[int, int]) -> None:
    # Of 4 x 6 to 7 x 12: 7 / 4 gives 10.5, which becomes 11; 12 / 6 gives 8.
    x = np.ones((4, 6), np.float32)
    attributes: dict[str, Attribute] = {"keep_aspect_ratio_policy": policy, "mode": "linear"}
    assert resized(19, x, attributes, sizes=np.array([7, 12], np.int64)).shape == shape


@pytest.mark.parametrize(
    ("mode", "index"), [("round_prefer_floor", 0), ("round_prefer_ceil", 1), ("floor", 0), ("ceil", 1)]
)
def test_a_tie_goes_where_nearest_mode_says(mode: str, index: int) -> None:
    axis = Axis(length=2, resized=1, scale=Fraction(1, 2), transform="half_pixel", region=(0.0, 1.0))
    assert axis.original(0) == Fraction(1, 2)
    assert axis.find_nearest(0, mode) == index


def test_no_valid_sample_of_mode_nearest_depends_on_the_rounding_of_a_coordinate() -> None:
    assert [s.name for s in samples.resize_samples() if not s.refused and not samples._is_clear_sample(s)] == []


def test_reflection_of_the_page_of_grid_sample() -> None:
    assert grid_sample._reflect(np.array([-3.5, 1.5, 0.5]), -1.0, 1.0).tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(("align", "expected"), [(0, [0.5, 2.5, 2.0]), (1, [1.0, 2.5, 4.0])])
def test_the_corners_of_the_grid(align: int, expected: list[float]) -> None:
    x = np.array([[[1, 2, 3, 4]]], np.float32)
    grid = np.array([[[-1], [0], [1]]], np.float32)
    node = Node("GridSample", "", 20, (Operand("X", x), Operand("grid", grid)), ("Y",), {"align_corners": align})
    truth = grid_sample.truth(node)
    assert isinstance(truth, Outputs)
    assert truth.outputs[0].value[0, 0].tolist() == expected


@pytest.mark.parametrize("align", [0, 1])
def test_cubic_reads_the_border_beyond_it_as_pytorch_does(align: int) -> None:
    """torch.nn.functional.grid_sample(mode="bicubic", padding_mode="border"), torch 2.13.0."""
    x = np.tile(np.array([1, 5, 2, 7], np.float32), 4).reshape(1, 1, 4, 4)
    at = np.array([-3.0, -1.6, -0.8, -0.3, 0.2, 3.1, 3.6, 4.4, 9.0])
    across = 2 * at / 3 - 1 if align else (2 * at + 1) / 4 - 1
    grid = np.stack([across, np.zeros(9)], -1).reshape(1, 1, 9, 2)
    attributes: dict[str, Attribute] = {"mode": "cubic", "padding_mode": "border", "align_corners": align}
    node = Node("GridSample", "", 20, (Operand("X", x), Operand("grid", grid)), ("Y",), attributes)
    truth = grid_sample.truth(node)
    assert isinstance(truth, Outputs)
    expected = [1, 1, 0.904, 0.559, 1.776, 7.30375, 7.36, 7, 7]
    np.testing.assert_allclose(truth.outputs[0].value.ravel(), expected, atol=1e-6)
