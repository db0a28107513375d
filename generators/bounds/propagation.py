"""How rounding errors travel through sums, exp, log, mean and variance: what the bounds of compositions rest on.

Every function takes wide arrays (float64 or longdouble) and returns absolute errors of their shapes, unless it says
relative. `u` is the unit roundoff of the precision in which a provider may compute, half an epsilon.

A sum of n terms in any order is off by at most gamma(n) = n u / (1 - n u) of the sum of magnitudes (Higham, 3.1); for
exp and log the numbers are those of the Vulkan specification, for sqrt and division those of OpenCL C.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.citation import Citation, CitationKind, Publisher

VULKAN = Citation(
    CitationKind.PUBLISHED,
    "Vulkan specification, precision of individual operations: exp is 3 + 2 |x| ULP, log 3 ULP or absolute",
    Publisher.VULKAN,
    "individual operations",
)
SQRT_AND_DIVISION = 6.5
"""In ULP: sqrt has 3, a division 2.5 (OpenCL C, full profile); the addition of epsilon rounds once, too."""

_LOG_NEAR_ONE = {"float16": 2.0**-7, "float32": 2.0**-21}
"""The absolute error of log between 0.5 and 2 (Vulkan)."""


def unit(dtype: np.dtype[Any]) -> float:
    """The unit roundoff of a floating-point dtype."""
    return float(bounds.finfo(dtype).eps) / 2


def gamma(length: int, dtype: np.dtype[Any]) -> float:
    """The relative error of `length` roundings in a row."""
    steps = length * unit(dtype)
    return steps / (1 - steps) if steps < 0.5 else 2 * steps


def exp_error(x: Array, dtype: np.dtype[Any]) -> Array:
    """Relative: of exp(x), where x itself was rounded once."""
    error: Array = (3 + 2 * np.abs(x) + np.abs(x) / 2) * float(bounds.finfo(dtype).eps)
    return error


def log_error(x: Array, dtype: np.dtype[Any]) -> Array:
    """Absolute: of log(x), x itself being right."""
    eps = float(bounds.finfo(dtype).eps)
    with np.errstate(all="ignore"):
        outside = 3 * eps * np.abs(np.log(np.asarray(x)))
    near_one = (x >= 0.5) & (x <= 2)
    near = np.maximum(outside, _LOG_NEAR_ONE.get(dtype.name, 4 * eps))
    return np.asarray(np.where(near_one, near, outside))


@dataclass(frozen=True)
class Moments:
    """Mean and variance along some axes, which are kept with size 1, and how far off a provider may be.

    `one pass` (the mean of squares less the square of the mean), as the function bodies of ONNX have it, is as good as
    two passes: the variance is off by gamma of the mean square, not of the variance.
    """

    mean: Array
    mean_error: Array
    variance: Array
    variance_error: Array

    @classmethod
    def of(
        cls, x: Array, axes: tuple[int, ...], dtype: np.dtype[Any], x_error: Array | float = 0.0, centred: bool = True
    ) -> Moments:
        """x_error: of the elements of x. centred: False leaves the mean out (it is 0, exactly), as RMS does."""
        count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
        noise = np.broadcast_to(x_error, x.shape)
        square = np.mean(x * x, axis=axes, keepdims=True)
        if centred:
            mean = np.mean(x, axis=axes, keepdims=True)
            mean_error = gamma(count + 1, dtype) * np.mean(np.abs(x), axis=axes, keepdims=True)
            mean_error = mean_error + np.mean(noise, axis=axes, keepdims=True)
        else:
            mean, mean_error = np.zeros_like(square), np.zeros_like(square)
        centred_x = x - mean
        variance = np.mean(centred_x * centred_x, axis=axes, keepdims=True)
        travelled = 2 * np.mean(np.abs(centred_x) * noise, axis=axes, keepdims=True)
        return cls(mean, mean_error, variance, gamma(count + 3, dtype) * (square + mean * mean) + travelled)

    def inverse_deviation(self, epsilon: float, dtype: np.dtype[Any]) -> tuple[Array, Array]:
        """1 / sqrt(variance + epsilon) and its relative error: half of the variance's, and sqrt and a division."""
        total = self.variance + epsilon
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = 1 / np.sqrt(total)
            relative = np.minimum(np.nan_to_num(self.variance_error / (2 * total), nan=1.0), 1.0)
        return inverse, relative + SQRT_AND_DIVISION * 2 * unit(dtype)


def normalize(
    x: Array, moments: Moments, inverse: tuple[Array, Array], dtype: np.dtype[Any], x_error: Array | float = 0.0
) -> tuple[Array, Array]:
    """(x - mean) * inverse deviation and its error, also if it is computed as x * inverse - mean * inverse."""
    factor, relative = inverse
    y = (x - moments.mean) * factor
    roundings = 2 * unit(dtype) * (np.abs(x) + np.abs(moments.mean)) * factor
    return y, np.abs(y) * (relative + unit(dtype)) + factor * (moments.mean_error + x_error) + roundings


def rescale(y: Array, error: Array, scale: Array, bias: Array | float, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """y * scale + bias and its error."""
    product = y * scale
    return product + bias, error * np.abs(scale) + 2 * unit(dtype) * (np.abs(product) + np.abs(bias))
