"""Sizes and numbers at which kernels change their path."""

from __future__ import annotations

from random import Random

SMALL = (0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8)

POWERS = (16, 32, 64, 128, 256, 512, 1024, 4096, 65_536)
"""Widths of vectors, tiles and thread groups; one less and one more is where a kernel has a remainder."""

FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-3, 1e-6, 3.0, 10.0, -2.5, 100.0)


def size(random: Random) -> int:
    """A dimension: mostly a small one, sometimes one beside a power of two."""
    if random.random() < 0.75:
        return random.choice(SMALL)
    reach = len(POWERS) if random.random() < 0.1 else 5
    return random.choice(POWERS[:reach]) + random.choice((-1, 0, 1))


def integer(value: int, random: Random) -> int:
    """Another integer than the value: a neighbour, its opposite, or a small one."""
    near = (value + 1, value - 1, -value, 2 * value, 0, 1, -1, 2, 3, value + random.randint(2, 9))
    return random.choice(near)


def number(value: float, random: Random) -> float:
    """Another number than the value: one of the same kind, or one at which formulas break."""
    near = (-value, 2 * value, value / 2, value + 1, 1 - value, random.uniform(-4, 4), *FLOATS)
    return random.choice(near)
