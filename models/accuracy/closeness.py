"""How far two values of one model are apart: one figure for each, whatever its dtype, to follow an error through a
graph.

It is the largest difference of two elements, relative to the element that is expected or, where that is nearly 0, to a
SMALL one of the tensor: a mask of -3.4e38 among scores of 1 hides no error. What cannot be compared is infinitely far
away: another shape, another dtype, a NaN or an infinity where the other has none. Of booleans and strings it is the
share of elements that differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import ml_dtypes
import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.models.graph.feed import Feed, tensors

SMALL = 0.25
"""A quarter of the elements, zeros left out, is below what errors of elements near 0 are measured by."""

STEP = 1 / 255
"""One step of 8 bits, relative to their range: what quantisation itself may move a value by."""

ROUNDINGS = 8
"""Half-epsilons that honest arithmetic is taken to be off by at least; a graph has more than one rounding."""

QUANTISED = ("Quantize", "QLinear", "QGemm", "QAttention", "Integer", "NBits")
"""In the names of operators that round to a few bits."""


def distance(expected: Feed, got: Feed) -> float:
    """How far `got` is from `expected`: 0 for the same, inf for what cannot be compared; see above. Of sequences it is
    that of the tensors that are farthest apart."""
    if not isinstance(expected, np.ndarray) or not isinstance(got, np.ndarray):
        pairs = paired(expected, got)
        return math.inf if pairs is None else max((distance(*pair) for pair in pairs), default=0.0)
    if expected.shape != got.shape or expected.dtype != got.dtype:
        return math.inf
    if expected.size == 0:
        return 0.0
    if expected.dtype.kind in "bOSU":
        return float(np.mean(expected != got))
    if expected.dtype.kind == "c":
        return max(distance(expected.real, got.real), distance(expected.imag, got.imag))
    one, other = expected.astype(np.float64), got.astype(np.float64)
    finite = np.isfinite(one)
    if not np.array_equal(finite, np.isfinite(other)) or not _same_specials(one[~finite], other[~finite]):
        return math.inf
    gap, size = np.abs(one[finite] - other[finite]), np.abs(one[finite])
    if not gap.any():
        return 0.0
    usual = size[size > 0]
    least = 1.0 if expected.dtype.kind in "iu" or not usual.size else float(np.quantile(usual, SMALL))
    with np.errstate(over="ignore"):
        return float((gap / np.maximum(size, least)).max())


def paired(one: Feed, other: Feed) -> list[tuple[Array, Array]] | None:
    """The tensors of two values side by side; None where they are not alike: a tensor and a sequence, or two sequences
    of different lengths."""
    first, second = tensors(one), tensors(other)
    alike = isinstance(one, np.ndarray) == isinstance(other, np.ndarray) and len(first) == len(second)
    return list(zip(first, second, strict=True)) if alike else None


def farthest(expected: Mapping[str, Feed], got: Mapping[str, Feed], names: Iterable[str]) -> float:
    """The largest distance of the named values; one that is missing is infinitely far away."""
    return max((distance(expected[n], got[n]) if n in expected and n in got else math.inf for n in names), default=0.0)


def noise(model: onnx.ModelProto, values: Iterable[Feed]) -> float:
    """What the coarsest arithmetic of a model is off by at least, relative: a step where it quantises, else ROUNDINGS
    of the coarsest dtype. values: those of the model."""
    if any(part in node.op_type for node in model.graph.node for part in QUANTISED):
        return STEP
    arrays = [one for value in values for one in tensors(value)]
    floating = [v.dtype for v in arrays if v.dtype.kind == "f" or v.dtype == ml_dtypes.bfloat16]
    coarsest = max((float(ml_dtypes.finfo(dtype).eps) for dtype in floating), default=0.0)  # type: ignore[no-untyped-call]
    return ROUNDINGS / 2 * coarsest


def _same_specials(one: Array, other: Array) -> bool:
    return bool(np.all((one == other) | (np.isnan(one) & np.isnan(other))))
