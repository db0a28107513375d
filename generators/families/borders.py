"""The sizes and places at which kernels change path, for operators that work element by element.

A kernel computes vectors of 4, 8 or 16 elements and the rest one by one, a group of threads has 64 to 1,024, a grid of
groups 65,535 in one dimension. A fault of one of these paths shows at one size, or at a value that only one of them
treats alone. No sample that a person thinks of has them all, so these are made by rule.
"""

from __future__ import annotations

import numpy as np

from epcheck.generators.array import Array

SIZES = (2, 4, 7, 8, 16, 17, 33, 64, 129, 513, 4096, 65_537)
"""Lengths on both sides of what a vector, a group or a grid holds. Other samples have 1, 255, 1,025 and 4,097."""

OF_UNARY = SIZES[1:]
"""The same for operators of one input, whose sample of rank 1 has two elements."""

WIDTHS = (4, 8, 16)
"""Elements of a vector."""

REST = 3
"""Elements after the last whole vector."""


def tail_shape(width: int) -> tuple[int]:
    """Two vectors of so many elements, and a rest."""
    return (2 * width + REST,)


def add_tail(ordinary: Array, special: Array) -> Array:
    """A copy of ordinary values [n] whose first element and rest are special ones, others for each n."""
    made = ordinary.copy()
    chosen = np.resize(np.roll(special, ordinary.size), REST + 1)
    made[0], made[-REST:] = chosen[0], chosen[1:]
    return made
