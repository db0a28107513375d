"""Faults of quantised constants, which their levels show: saturated, few levels used, another axis than they were
quantised along. The values that they were made from are not in the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from epcheck.generators.array import Array
from epcheck.models.accuracy.metrics import portion
from epcheck.models.graph.wiring import Wiring
from epcheck.models.quantization.fault import FaultyQuantizer, QuantizerFault
from epcheck.models.quantization.quantizers import Quantizer

LEAST_ELEMENTS = 64
"""Elements from which on levels have a distribution."""

LEAST_LEVELS = 17
"""Different levels from which on a constant is no mask and no table of few values."""

SATURATED = 0.05
"""The share of elements at the ends, beyond the one at each end that every scale has. Calibration by percentiles
leaves 0.01 at most there."""

USED = 0.2
"""The share of the levels that a constant uses at least: half of them are left out on purpose where products of 8-bit
integers would overflow 16 bits (`reduce_range` of ONNX Runtime's quantisation), and half of the rest where symmetric
quantisation meets positive values alone."""

FULL = 0.98
"""The share of the greatest level that each slice reaches along the axis that it was quantised along."""


def faults(wiring: Wiring, found: Sequence[Quantizer]) -> Iterator[FaultyQuantizer]:
    """The faults of DequantizeLinear nodes that read a constant of 8 bits, at most one of each."""
    for each in found:
        if each.quantizes or each.dtype is None or each.dtype.itemsize > 1 or each.ends[1] - each.ends[0] < UINT8:
            continue
        if each.blocked or each.source not in wiring.constants:
            continue
        levels = wiring.constant(each.source)
        if levels is None or levels.size < LEAST_ELEMENTS or not _is_whole(each, levels):
            continue
        whole = levels.astype(np.int64)
        if len(np.unique(whole)) >= LEAST_LEVELS or np.ptp(whole) < LEAST_LEVELS:
            fault = next(_of_levels(each, whole), None)
            if fault is not None:
                yield fault


UINT8 = 255
"""The distance of the ends of an 8-bit integer."""


def _is_whole(each: Quantizer, levels: Array) -> bool:
    """Whether the parameters suit the constant; where not, `parameters` has the fault."""
    if each.zero.size not in (1, each.scale.size):
        return False
    if not each.per_axis:
        return True
    return -levels.ndim <= each.axis < levels.ndim and levels.shape[each.axis] == each.scale.size


def _of_levels(each: Quantizer, levels: Array) -> Iterator[FaultyQuantizer]:
    low, high = each.ends
    low += low == -128  # symmetric quantisation leaves -128 out
    slices = each.scale.size
    at_ends = int(np.count_nonzero((levels <= low) | (levels >= high)))
    share = (at_ends - 2 * slices) / levels.size
    if share > SATURATED and len(np.unique(levels)) >= LEAST_LEVELS:
        words = f"{portion(at_ends / levels.size)} of its levels are {each.ends[0]} or {high}: its scale is too small"
        yield FaultyQuantizer(each.node, QuantizerFault.SATURATES, words)
    if each.per_axis:
        yield from _axis(each, levels)
    used = _compute_used_share(each, levels)
    if used < USED:
        words = f"it uses {portion(used)} of its levels, from {levels.min()} to {levels.max()}: its scale is too large"
        yield FaultyQuantizer(each.node, QuantizerFault.WASTES, words)


def _by_slice(levels: Array, axis: int) -> Array:
    """(slices, elements of each)."""
    return np.moveaxis(levels, axis, 0).reshape(levels.shape[axis], -1)


def _compute_used_share(each: Quantizer, levels: Array) -> float:
    """The share of its levels between the least and the greatest, the zero point among them; of vectors of scales the
    median over the slices that are not empty."""
    rows = _by_slice(levels, each.axis) if each.per_axis else levels.reshape(1, -1)
    zero = np.broadcast_to(each.zero.ravel(), len(rows))
    spans = np.maximum(rows.max(1), zero) - np.minimum(rows.min(1), zero)
    spans = spans[spans > 0]
    return float(np.median(spans)) / (each.ends[1] - each.ends[0]) if spans.size else 1.0


def _axis(each: Quantizer, levels: Array) -> Iterator[FaultyQuantizer]:
    """Symmetric quantisation brings the largest of every slice to the end of the range. Where that is so along another
    axis of the same size, and not along this, the scales belong there."""
    if each.zero.any():
        return
    axis = each.axis % levels.ndim
    most = _compute_least_reach(levels, axis)
    for other in range(levels.ndim):
        if (
            other != axis
            and levels.shape[other] == each.scale.size
            and most < FULL <= _compute_least_reach(levels, other)
        ):
            words = (f"its {each.scale.size} scales are along axis {axis}, and its levels were made along axis "
                     f"{other}, where every slice reaches the end of the range")  # fmt: skip
            yield FaultyQuantizer(each.node, QuantizerFault.AXIS, words)
            return


def _compute_least_reach(levels: Array, axis: int) -> float:
    """The least over all slices that are not empty of the largest magnitude, as a share of the largest of all."""
    largest = np.abs(_by_slice(levels, axis)).max(1)
    largest = largest[largest > 0]
    return float(largest.min()) / float(largest.max()) if largest.size else 0.0
