"""Interpolation along one axis: which input elements an output element is made of, and with what weights.

Sources: the pages of Resize and GridSample; R. G. Keys, Cubic convolution interpolation for digital image processing,
equation 4, for the cubic kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds.running_error import Approximate

FLOAT32_UNIT = 2.0**-24
COORDINATE_ROUNDINGS = 8
"""A coordinate is a handful of float32 operations: scale, two offsets, product, quotient, difference."""


@dataclass(frozen=True)
class Kernel:
    """weight: of an element at a distance. reach: beyond it, the weight is 0.

    steepness: the most that a weight changes per pixel.
    """

    weight: Callable[[Array], Array]
    reach: int
    steepness: float


LINEAR = Kernel(lambda distance: np.maximum(0.0, 1.0 - np.abs(distance)), 1, 1.0)


def cubic(a: float) -> Kernel:
    """Keys' kernel with the coefficient a; its slope is largest at (a + 3) / (3 (a + 2)), or |a| at a distance of 1."""

    def weight(distance: Array) -> Array:
        t = np.abs(distance)
        near = ((a + 2) * t - (a + 3)) * t * t + 1
        far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
        return np.where(t <= 1, near, np.where(t < 2, far, 0.0))

    return Kernel(weight, 2, max((a + 3) ** 2 / (3 * (a + 2)), abs(a)))


@dataclass(frozen=True)
class Weights:
    """One axis as a matrix [output, input] with the error of its elements; count: how many terms a sum has at most."""

    matrix: Array
    error: Array
    count: int


def weights(
    kernel: Kernel, at: Array, length: int, unit: float, *, shrink: float = 1.0, exclude_outside: bool = False
) -> Weights:
    """The weights of `length` elements for output elements at the coordinates `at`.

    Elements outside count as the edge, or not at all. shrink: less than 1 stretches the kernel (antialias).
    unit: of the dtype in which a provider computes a weight; coordinates are float32 at least.
    """
    reach = int(np.ceil(kernel.reach / shrink)) + 1
    taps = np.floor(at)[:, None].astype(np.int64) + np.arange(-reach, reach + 2)
    distance = (taps - at[:, None]) * shrink
    weight = kernel.weight(distance)
    moved = COORDINATE_ROUNDINGS * FLOAT32_UNIT * (length + 1) * kernel.steepness * shrink
    slack = np.where(np.abs(distance) < kernel.reach + shrink, moved + COORDINATE_ROUNDINGS * unit, 0.0)
    if shrink < 1:
        norm = weight.sum(axis=1, keepdims=True)
        weight, slack = weight / norm, slack / norm
    inside = (taps >= 0) & (taps < length)
    if exclude_outside:
        weight, slack = np.where(inside, weight, 0.0), np.where(inside, slack, 0.0)
        norm = weight.sum(axis=1, keepdims=True)
        weight, slack = weight / norm, (slack + np.abs(weight / norm) * slack.sum(axis=1, keepdims=True)) / np.abs(norm)
    matrix, error = np.zeros((len(at), length)), np.zeros((len(at), length))
    rows = np.broadcast_to(np.arange(len(at))[:, None], taps.shape)
    np.add.at(matrix, (rows, np.clip(taps, 0, length - 1)), weight)
    np.add.at(error, (rows, np.clip(taps, 0, length - 1)), slack)
    return Weights(matrix, error, 2 * reach)


def along(axis: int, weights: Weights, data: Approximate, unit: float) -> Approximate:
    """The data resampled along an axis, with the error of the data, of the weights and of the sums."""

    def apply(matrix: Array, values: Array) -> Array:
        return np.moveaxis(np.tensordot(matrix, values, axes=(1, axis)), 0, axis)

    steps = (weights.count + 1) * unit
    magnitude = np.abs(data.value) + data.error
    error = apply(np.abs(weights.matrix), data.error) + apply(weights.error, magnitude)
    return Approximate(
        apply(weights.matrix, data.value),
        error + steps / (1 - steps) * apply(np.abs(weights.matrix) + weights.error, magnitude),
    )
