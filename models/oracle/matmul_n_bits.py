"""MatMulNBits (com.microsoft) in 4 bits without the bound of the suite's oracle, which takes most of its time."""

from __future__ import annotations

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Node
from epcheck.generators.oracle_math.packing import unpack_levels


def evaluate(node: Node) -> Array | None:
    """A times the transpose of (level - zero point) * scale, plus bias, in float64; None for shapes that the suite's
    oracle has to judge, and for other widths."""
    a, b, scales = node.array("A"), node.array("B"), node.array("scales")
    k, n, block = node.integer("K", 0), node.integer("N", 0), node.integer("block_size", 0)
    blocks = -(-k // block)
    if node.integer("bits", 4) != 4 or a.shape[-1] != k or b.shape != (n, blocks, block // 2):
        return None
    weights = np.empty((n, blocks, block))
    weights[..., 0::2] = b & 15
    weights[..., 1::2] = b >> 4
    zero_points, bias = node.value("zero_points"), node.value("bias")
    if zero_points is None:
        weights -= 8.0
    elif zero_points.dtype == np.uint8:
        weights -= unpack_levels(zero_points.reshape(n, -1), 4)[:, :blocks, np.newaxis]
    else:
        weights -= zero_points.reshape(n, blocks, 1)
    weights *= scales.reshape(n, blocks, 1)
    product = a.astype(np.float64) @ weights.reshape(n, -1)[:, :k].T
    return product if bias is None else product + bias
