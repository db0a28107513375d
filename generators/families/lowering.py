"""Arrays as the DML EP hands them to DirectML: leading dimensions of 1 up to four, broadcasting by strides of 0."""

from __future__ import annotations

import math

import numpy as np

from epcheck.generators.case import Array
from epcheck.generators.directml import DataType, TensorDesc

LEAST_RANK = 4
"""The DML EP puts leading dimensions of 1 in front of smaller ranks (TensorDesc.cpp)."""


def padded(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes with leading dimensions of 1 up to LEAST_RANK."""
    return (1,) * (LEAST_RANK - len(sizes)) + tuple(sizes)


def broadcast(array: Array, sizes: tuple[int, ...] | None = None) -> tuple[TensorDesc, Array]:
    """The description of an array, or of any view of one, broadcast to `sizes`, and its values in those sizes.

    Strides are given only where the tensor is not packed.
    """
    base = array if array.base is not None else np.ascontiguousarray(array).reshape(array.shape)
    view = np.broadcast_to(base, padded(base.shape if sizes is None else sizes))
    packed = view.flags.c_contiguous or math.prod(view.shape) <= 1
    strides = None if packed else tuple(stride // view.itemsize for stride in view.strides)
    return TensorDesc(DataType.of(view.dtype), view.shape, strides), view


def optional(array: Array | None, sizes: tuple[int, ...] | None = None) -> tuple[TensorDesc | None, Array | None]:
    """As `broadcast`, for an input that may be left out."""
    return (None, None) if array is None else broadcast(array, sizes)


def result(dtype: np.dtype[np.generic], sizes: tuple[int, ...]) -> TensorDesc:
    """The packed description of an output."""
    return TensorDesc(DataType.of(dtype), padded(sizes))
