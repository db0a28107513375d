"""Conv in float64 as products of matrices: the result of the suite's direct sum, in less time."""

from __future__ import annotations

import math

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Node
from epcheck.generators.operators.convolution_pooling import convolution
from epcheck.generators.oracle_math.window import Windows, taps

BLOCK = 1 << 15
"""Elements that are computed together where each channel has a kernel of its own: they fit into a core's cache."""


def evaluate(node: Node) -> Array | str:
    """The output of a Conv (float64), or the rule of the standard that the node breaks."""
    parsed = convolution.parse(node)
    if isinstance(parsed, str):
        return parsed
    x, w, bias, windows, group = parsed
    x, w = x.astype(np.float64, copy=False), w.astype(np.float64, copy=False)
    if w.shape[1] == 1 and 1 < group == w.shape[0]:
        images = [_by_taps(image, w, windows) for image in x]
    else:
        weights = w.reshape(group, w.shape[0] // group, w.shape[1] * windows.taps_each)
        images = [weights @ _columns(image.reshape(group, w.shape[1], *image.shape[1:]), windows) for image in x]
    total = np.array(images, np.float64).reshape(x.shape[0], w.shape[0], *windows.output)
    return total if bias is None else total + bias.reshape(-1, *(1,) * windows.rank)


def _by_taps(image: Array, w: Array, windows: Windows) -> Array:
    """Each channel with a kernel of its own, one tap after the other: products of so few terms take longer to lay out
    than to compute. [channels, *image], [channels, 1, *kernel] -> [channels, *output]."""
    under = taps(image, windows, 0)
    total: Array = np.zeros((w.shape[0], *windows.output))
    some = max(1, BLOCK // max(1, math.prod(windows.output)))
    for start in range(0, w.shape[0], some):
        channels = slice(start, start + some)
        product = np.empty_like(total[channels])
        for at in np.ndindex(*windows.kernel):
            weight = w[(channels, 0, *at)]
            np.multiply(under[(channels, ..., *at)], weight.reshape(-1, *(1,) * windows.rank), out=product)
            total[channels] += product
    return total


def _columns(image: Array, windows: Windows) -> Array:
    """[group, channels, *image] -> [group, channels * taps, places]: one image at a time, to bound memory."""
    if windows.taps_each == 1 and windows.output == windows.image:
        return image.reshape(image.shape[0], image.shape[1], math.prod(windows.image))
    under = taps(image, windows, 0)
    rank = windows.rank
    by_tap = np.moveaxis(under, range(-rank, 0), range(2, 2 + rank))
    return by_tap.reshape(image.shape[0], image.shape[1] * windows.taps_each, math.prod(windows.output))
