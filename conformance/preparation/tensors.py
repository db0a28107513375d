"""Arrays as they travel to a worker, and as the cache keeps them."""

from __future__ import annotations

from epcheck.generators.array import Array

Tensor = tuple[str, str, tuple[int, ...], bytes]
"""An array as it travels: name, numpy's name of the dtype, shape, little-endian bytes."""


def tensor(name: str, array: Array) -> Tensor:
    """An array as it travels."""
    data: bytes = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return name, array.dtype.name, array.shape, data
