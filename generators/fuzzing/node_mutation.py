"""Changing the values that a node works on, without leaving those that its operator drew.

Bounds of errors hold for the values of the samples. So floating-point data is mixed, repeated, rounded and made zero,
never larger than it was. One element may become NaN, infinite or a zero or denormal with a sign; the oracle leaves the
node open where no sample of its operator has that and `Operator.propagates` does not name it.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Node, Operand

STYLES = ("one", "all", "ends", "half", "sorted", "reversed", "ties", "whole", "special", "wrapped")
"""How data is changed; see `_change`. `wrapped` is of indices: some count from the end."""


def mutate_node(node: Node, random: Random, style: str = "") -> Node:
    """The node with the data of one input changed. style: one of STYLES; any where it is empty."""
    style = style or random.choice(STYLES)
    is_wrapped = style == "wrapped"
    places = [
        index
        for index, operand in enumerate(node.inputs)
        if operand is not None
        and operand.value.size > (0 if is_wrapped else 1)
        and (operand.value.dtype.kind == "i" if is_wrapped else not operand.parameter)
    ]
    if not places or node.surroundings:
        return node
    place = random.choice(places)
    operands = list(node.inputs)
    operand, first = operands[place], next(each for each in operands if each is not None)
    assert isinstance(operand, Operand)
    value = _wrap(operand.value, first.value.shape, random) if is_wrapped else _change(operand.value, style, random)
    operands[place] = replace(operand, value=value)
    return replace(node, inputs=tuple(operands))


def _wrap(value: Array, shape: tuple[int, ...], random: Random) -> Array:
    """Indices into one of the dimensions, some of which count from its end."""
    size = random.choice(shape) if shape else 1
    if size > np.iinfo(value.dtype).max:
        return value
    flat = value.reshape(-1).copy()
    for index in range(flat.size):
        if 0 <= flat[index] < size and random.random() < 0.6:
            flat[index] -= size
    return flat.reshape(value.shape)


def _change(value: Array, style: str, random: Random) -> Array:
    flat = value.reshape(-1).copy()
    count = flat.size
    match style:
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
        case "special" if value.dtype.kind == "f":
            tiny = float(np.finfo(value.dtype).smallest_subnormal)
            flat[random.choice((0, -1, random.randrange(count)))] = random.choice((np.nan, np.inf, -np.inf, -0.0, tiny))
        case "whole" if value.dtype.kind == "f":
            with np.errstate(all="ignore"):
                flat = np.trunc(flat)
    return np.ascontiguousarray(flat.reshape(value.shape)).astype(value.dtype, copy=False)
