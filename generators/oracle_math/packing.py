"""Levels of fewer than 8 bits in bytes: several along the last axis, the first in the lowest bits."""

from __future__ import annotations

import numpy as np

from epcheck.generators.array import Array


def pack_levels(levels: Array, bits: int) -> Array:
    """Levels [..., count] as uint8; the last byte is filled with zeros."""
    per_byte = 8 // bits
    padding = [(0, 0)] * (levels.ndim - 1) + [(0, -levels.shape[-1] % per_byte)]
    grouped = np.pad(levels, padding).reshape(*levels.shape[:-1], -(-levels.shape[-1] // per_byte), per_byte)
    joined: Array = np.sum(grouped << bits * np.arange(per_byte), -1)
    return joined.astype(np.uint8)


def unpack_levels(values: Array, bits: int) -> Array:
    """The levels, int64 [..., 8 / bits times as many], of bytes."""
    shifts = bits * np.arange(8 // bits)
    levels: Array = values.astype(np.int64)[..., None] >> shifts & (2**bits - 1)
    return levels.reshape(*values.shape[:-1], values.shape[-1] * shifts.size)
