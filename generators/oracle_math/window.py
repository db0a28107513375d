"""The geometry that convolutions and pools share: padding, output sizes, and the elements under each window.

Sources: the operator pages Conv-11, AveragePool-22, MaxPool-22 (output sizes, auto_pad, ceil_mode).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Node

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Windows:
    """A window that slides over the spatial axes of an image; every tuple has one element per spatial axis.

    begin, end: the padding before and after the image. output: the number of windows along each axis.
    """

    image: Sizes
    kernel: Sizes
    strides: Sizes
    dilations: Sizes
    begin: Sizes
    end: Sizes
    output: Sizes

    @property
    def rank(self) -> int:
        return len(self.image)

    @property
    def taps_each(self) -> int:
        """The number of elements under a window, padding included."""
        return prod(self.kernel)


def slide(node: Node, image: Sizes, kernel: Sizes, *, ceil_mode: bool = False) -> Windows | str:
    """The windows that strides, dilations, pads and auto_pad of the node describe, or the rule that they break."""
    attributes = spatial_attributes(node, len(image))
    if isinstance(attributes, str):
        return attributes
    if len(kernel) != len(image):
        return f"the kernel {kernel} does not have one size for each of the spatial axes {image}"
    strides, dilations, begin, end = attributes
    extent = tuple(dilation * (size - 1) + 1 for dilation, size in zip(dilations, kernel, strict=True))
    mode = node.text("auto_pad", "NOTSET")
    if mode.startswith("SAME"):
        begin, end = same_padding(image, extent, strides, upper=mode == "SAME_UPPER")
    elif mode == "VALID":
        begin = end = (0,) * len(image)
    padded = tuple(size + b + e for size, b, e in zip(image, begin, end, strict=True))
    if any(e > p for e, p in zip(extent, padded, strict=True)):
        return f"the kernel {extent} is larger than the padded image {padded}"
    rounds_up = ceil_mode and mode == "NOTSET"
    output = tuple(
        _count(size, p, e, stride, b, rounds_up)
        for size, p, e, stride, b in zip(image, padded, extent, strides, begin, strict=True)
    )
    return Windows(image, kernel, strides, dilations, begin, end, output)


def spatial_attributes(node: Node, rank: int) -> tuple[Sizes, Sizes, Sizes, Sizes] | str:
    """(strides, dilations, pads at the begin, pads at the end) of a node, or the rule that they break."""
    ones = (1,) * rank
    strides, dilations = node.integers("strides", ones), node.integers("dilations", ones)
    pads = node.integers("pads", (0,) * 2 * rank)
    if len(strides) != rank or len(dilations) != rank:
        return f"strides {strides} and dilations {dilations} must have a value for each of {rank} spatial axes"
    if len(pads) != 2 * rank:
        return f"pads must have a begin and an end for each of {rank} spatial axes"
    if min(strides) < 1 or min(dilations) < 1:
        return f"strides {strides} and dilations {dilations} must be positive"
    if min(pads) < 0:
        return f"pads {pads} must not be negative"
    return strides, dilations, pads[:rank], pads[rank:]


def _count(size: int, padded: int, extent: int, stride: int, begin: int, rounds_up: bool) -> int:
    """The number of windows; one that rounding up added and that starts behind the image is ignored."""
    room = padded - extent
    if not rounds_up:
        return room // stride + 1
    count = -(-room // stride) + 1
    return count - 1 if (count - 1) * stride >= size + begin else count


def same_padding(image: Sizes, extent: Sizes, strides: Sizes, *, upper: bool) -> tuple[Sizes, Sizes]:
    """(begin, end) so that output = ceil(input / stride); an odd one goes to the end (UPPER) or the begin (LOWER)."""
    totals = tuple(
        max(0, (-(-size // stride) - 1) * stride + e - size)
        for size, e, stride in zip(image, extent, strides, strict=True)
    )
    return halve_padding(totals, upper=upper)


def halve_padding(totals: Sizes, *, upper: bool) -> tuple[Sizes, Sizes]:
    """(begin, end) of a total padding; the greater half is at the end (UPPER) or at the begin (LOWER)."""
    less = tuple(total // 2 for total in totals)
    more = tuple(total - total // 2 for total in totals)
    return (less, more) if upper else (more, less)


def taps(values: Array, windows: Windows, fill: float) -> Array:
    """The elements under each window: [..., *image] becomes a read-only view [..., *output, *kernel].

    fill: what stands in the padding, and behind it where rounding up makes the last window reach beyond.
    """
    rank = windows.rank
    leading = values.ndim - rank
    needed = [
        (count - 1) * stride + dilation * (size - 1) + 1
        for count, stride, dilation, size in zip(
            windows.output, windows.strides, windows.dilations, windows.kernel, strict=True
        )
    ]
    behind = [max(0, need - b - size) for need, b, size in zip(needed, windows.begin, windows.image, strict=True)]
    padded = np.pad(values, ((0, 0),) * leading + tuple(zip(windows.begin, behind, strict=True)), constant_values=fill)
    steps = padded.strides[leading:]
    return np.lib.stride_tricks.as_strided(
        padded,
        (*padded.shape[:leading], *windows.output, *windows.kernel),
        (
            *padded.strides[:leading],
            *(step * stride for step, stride in zip(steps, windows.strides, strict=True)),
            *(step * dilation for step, dilation in zip(steps, windows.dilations, strict=True)),
        ),
        writeable=False,
    )


def columns(values: Array, windows: Windows, fill: float) -> Array:
    """As `taps`, with the elements of a window along one last axis: [..., *output, taps]."""
    under = taps(values, windows, fill)
    return under.reshape(*under.shape[: -windows.rank], windows.taps_each)


def is_image(windows: Windows) -> Array:
    """Whether each tap lies on the image: bool [*output, taps]."""
    return columns(np.ones(windows.image, bool), windows, False)


def is_padded_image(windows: Windows) -> Array:
    """Whether each tap lies on the image or its padding, not behind it: bool [*output, taps]."""
    padded = tuple(size + b + e for size, b, e in zip(windows.image, windows.begin, windows.end, strict=True))
    none = (0,) * windows.rank
    return is_image(Windows(padded, windows.kernel, windows.strides, windows.dilations, none, none, windows.output))


def scatter(under: Array, windows: Windows) -> Array:
    """The transpose of `taps`: [..., *output, *kernel] is added up where its windows lie, to [..., *image].

    What falls on the padding is dropped.
    """
    rank = windows.rank
    extents = [d * (k - 1) + 1 for d, k in zip(windows.dilations, windows.kernel, strict=True)]
    reached = [(n - 1) * s + e for n, s, e in zip(windows.output, windows.strides, extents, strict=True)]
    sizes = [max(r, b + size) for r, b, size in zip(reached, windows.begin, windows.image, strict=True)]
    total = np.zeros((*under.shape[: -2 * rank], *sizes), under.dtype)
    leading = (slice(None),) * (under.ndim - 2 * rank)
    by_tap = under.reshape(*under.shape[:-rank], windows.taps_each)
    for index, tap in enumerate(np.ndindex(*windows.kernel)):
        starts = [at * dilation for at, dilation in zip(tap, windows.dilations, strict=True)]
        places = tuple(
            slice(start, start + (count - 1) * stride + 1, stride)
            for start, count, stride in zip(starts, windows.output, windows.strides, strict=True)
        )
        total[leading + places] += by_tap[..., index]
    inside = tuple(slice(b, b + size) for b, size in zip(windows.begin, windows.image, strict=True))
    return total[leading + inside]


def convolve(x: Array, w: Array, windows: Windows, group: int) -> Array:
    """x [N, C, *image] and w [M, C / group, *kernel] give [N, M, *output]: the direct sum, in their dtype."""
    batch, channels = x.shape[:2]
    under = columns(x.reshape(batch, group, channels // group, *x.shape[2:]), windows, 0)
    weights = w.reshape(group, w.shape[0] // group, w.shape[1], windows.taps_each)
    places = "xyz"[: windows.rank]
    sums: Array = np.einsum(f"ngc{places}k,gmck->ngm{places}", under, weights)
    return sums.reshape(batch, w.shape[0], *windows.output)


def convolve_transposed(x: Array, w: Array, windows: Windows, group: int) -> Array:
    """x [N, C, *output] and w [C, M / group, *kernel] give [N, M, *image]: each x spreads its kernel."""
    batch, channels = x.shape[:2]
    grouped = x.reshape(batch, group, channels // group, *x.shape[2:])
    weights = w.reshape(group, channels // group, *w.shape[1:])
    places, kernel = "xyz"[: windows.rank], "ijk"[: windows.rank]
    spread = np.einsum(f"ngc{places},gcm{kernel}->ngm{places}{kernel}", grouped, weights)
    return scatter(spread, windows).reshape(batch, group * w.shape[1], *windows.image)


def maximum(values: Array, windows: Windows) -> tuple[Array, Array]:
    """(the greatest element under each window, its place in the flattened image), padding left out.

    NaN is greater than any number. Of equal elements it is the first.
    """
    lowest = -np.inf if values.dtype.kind == "f" else np.iinfo(values.dtype).min
    under, on_image = columns(values, windows, lowest), is_image(windows)
    at = np.where(on_image, under, lowest).argmax(-1)
    chosen = np.take_along_axis(np.broadcast_to(on_image, under.shape), at[..., None], -1)[..., 0]
    at = np.where(chosen, at, on_image.argmax(-1))[..., None]
    places = columns(np.arange(prod(windows.image)).reshape(windows.image), windows, -1)
    found = np.take_along_axis(np.broadcast_to(places, under.shape), at, -1)
    return np.take_along_axis(under, at, -1)[..., 0], found[..., 0]
