"""Changing the values that a node works on, without leaving those that its operator drew.

Bounds of errors hold for the values of the samples. So floating-point data is mixed, repeated, rounded and made zero,
never larger than it was; an operator whose samples have NaN and infinities draws them itself.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Node, Operand


def mutate_node(node: Node, random: Random) -> Node:
    """The node with the data of one input changed."""
    places = [i for i, o in enumerate(node.inputs) if o is not None and not o.parameter and o.value.size > 1]
    if not places or node.surroundings:
        return node
    place = random.choice(places)
    operands = list(node.inputs)
    operand = operands[place]
    assert isinstance(operand, Operand)
    operands[place] = replace(operand, value=_change_values(operand.value, random))
    return replace(node, inputs=tuple(operands))


def _change_values(value: Array, random: Random) -> Array:
    flat = value.reshape(-1).copy()
    count = flat.size
    match random.choice(("one", "all", "ends", "half", "sorted", "reversed", "ties", "whole")):
        case "one":  # one element differs from all others
            flat[:] = flat[random.randrange(count)]
            flat[random.randrange(count)] = value.reshape(-1)[0]
        case "all":
            flat[:] = flat[random.randrange(count)]
        case "ends":  # the first and the last are what the middle was
            flat[0], flat[-1] = flat[count // 2], flat[count // 3]
        case "half":
            flat[count // 2 :] = flat[: count - count // 2]
        case "sorted":
            flat.sort()
        case "reversed":
            flat = flat[::-1].copy()
        case "ties":
            flat[:] = np.resize(flat[: max(2, count // 4)], count)
        case "whole" if value.dtype.kind == "f":
            with np.errstate(all="ignore"):
                flat = np.trunc(flat)
    return np.ascontiguousarray(flat.reshape(value.shape)).astype(value.dtype, copy=False)
