"""Arrays read in blocks of BLOCK elements: what a comparison needs beside its arrays does not grow with their size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from epcheck.generators.array import Array

BLOCK = 2**15
"""Elements that are looked at together: enough to hide what a call into numpy costs, few enough for the caches."""


def read(*arrays: Array) -> Iterator[tuple[int, tuple[Array, ...]]]:
    """Where a block starts, as a flat index in C order, and its at most BLOCK elements of each array; one by one.

    Arrays have one shape; a scalar stands for an array full of it. Blocks are contiguous and in native byte order:
    views of arrays that are so, else of a buffer that the next block overwrites.
    """
    each: Any = [["readonly", "contig", "aligned", "nbo"]] * len(arrays)
    start = 0
    for block in np.nditer(arrays, ["external_loop", "buffered", "zerosize_ok"], each, order="C", buffersize=BLOCK):
        if block[0].size:
            yield start, block
        start += block[0].size


def index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index, one number for each axis, of the element at a flat index in C order."""
    return tuple(int(i) for i in np.unravel_index(flat, shape))
