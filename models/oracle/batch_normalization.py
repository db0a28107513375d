"""BatchNormalization of inference in float64: the values of the suite's truth, without its bounds, in less time."""

from __future__ import annotations

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Node


def evaluate(node: Node) -> Array | None:
    """The output (float64); None for a node that trains, or breaks the standard, of which the suite says more."""
    x = node.array("X").astype(np.float64, copy=False)
    operands = [operand.value for operand in node.inputs[1:] if operand is not None]
    per_channel = x.shape[1:2] if node.integer("spatial", 1) else x.shape[1:]
    if node.integer("training_mode", 0) or any(operand.shape != per_channel for operand in operands):
        return None
    places = (1, *per_channel, *(1,) * (x.ndim - 1 - len(per_channel)))
    scale, bias, mean, variance = (operand.astype(np.float64).reshape(places) for operand in operands)
    total: Array = x - mean
    total *= scale / np.sqrt(variance + node.number("epsilon", 1e-5))
    total += bias
    return total
