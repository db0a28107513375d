"""Nodes and arrays as the DML EP hands them to DirectML: leading dimensions of 1 up to four, broadcasting by strides
of 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.operator_desc import OperatorDesc
from epcheck.generators.directml.tensor import DataType, TensorDesc

LEAST_RANK = 4
"""The DML EP puts leading dimensions of 1 in front of smaller ranks (TensorDesc.cpp)."""


@dataclass(frozen=True)
class Lowering:
    """A node as DirectML sees it: the operator description and one array (or None) for each of its input tensors."""

    description: OperatorDesc
    feeds: tuple[Array | None, ...]


def count_missing(rank: int, least: int = LEAST_RANK) -> int:
    """How many dimensions a rank lacks."""
    return max(0, least - rank)


def padded_sizes(sizes: tuple[int, ...], least: int = LEAST_RANK) -> tuple[int, ...]:
    """Sizes with leading dimensions of 1 up to the least rank."""
    return (1,) * count_missing(len(sizes), least) + tuple(sizes)


def pad_rank(array: Array, least: int = LEAST_RANK) -> Array:
    """The same elements with leading dimensions of 1 up to the least rank."""
    return array.reshape(padded_sizes(array.shape, least))


def broadcast(array: Array, sizes: tuple[int, ...] | None = None) -> tuple[TensorDesc, Array]:
    """The description of an array, or of any view of one, broadcast to `sizes`, and its values in those sizes.

    The description has strides only where the tensor is not packed.
    """
    base = array if array.base is not None else np.ascontiguousarray(array).reshape(array.shape)
    view = np.broadcast_to(base, padded_sizes(base.shape if sizes is None else sizes))
    packed = view.flags.c_contiguous or math.prod(view.shape) <= 1
    strides = None if packed else tuple(stride // view.itemsize for stride in view.strides)
    return TensorDesc(DataType.of(view.dtype), view.shape, strides), view


def optional(array: Array | None, sizes: tuple[int, ...] | None = None) -> tuple[TensorDesc | None, Array | None]:
    """As `broadcast`, for an input that may be left out."""
    return (None, None) if array is None else broadcast(array, sizes)


def result(dtype: np.dtype[np.generic], sizes: tuple[int, ...]) -> TensorDesc:
    """The packed description of an output."""
    return TensorDesc(DataType.of(dtype), padded_sizes(sizes))


def as_matrices(a: Array, b: Array) -> tuple[Array, Array, tuple[int, ...]] | None:
    """A and B with the same batches, vectors as a row and a column, and the sizes of their product; None where DirectML
    has nothing to multiply: no elements, or more than 4 dimensions."""
    a = a[None, :] if a.ndim == 1 else a
    b = b[:, None] if b.ndim == 1 else b
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if len(batch) > 2 or not a.size or not b.size or 0 in batch:
        return None
    a, b = np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, (*batch, *b.shape[-2:]))
    return a, b, (*batch, a.shape[-2], b.shape[-1])
