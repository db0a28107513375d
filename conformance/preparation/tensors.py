"""Arrays as they travel to a worker, and as the cache keeps them."""

from __future__ import annotations

import sys

from epcheck.generators.array import Array
from epcheck.generators.schema import dtype_name

Tensor = tuple[str, str, tuple[int, ...], bytes]
"""An array as it travels: name, numpy's name of the dtype, shape, little-endian bytes."""


def tensor(name: str, array: Array) -> Tensor:
    """An array as it travels."""
    dtype = array.dtype
    if not (dtype.isnative and sys.byteorder == "little"):
        array = array.astype(dtype.newbyteorder("<"), copy=False)
    return name, dtype_name(dtype), array.shape, array.tobytes()
