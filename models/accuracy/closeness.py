"""The distance of two values of a model: one number, whatever their dtype, to follow an error through a graph.

It is the largest difference of two elements, relative to the expected element or, where that is nearly 0, to a SMALL
element of the tensor, so that a mask of -3.4e38 among scores of 1 hides no error. Values that cannot be compared are
infinitely far apart: they differ in shape or dtype, or one has a NaN or an infinity where the other has none. For
booleans and strings the distance is the share of elements that differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import ml_dtypes
import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.generators.citation import statement
from epcheck.generators.truth import OneStep, Output, Ulp
from epcheck.models.graph.feed import Feed, tensors

SMALL = 0.25
"""Quantile of the magnitudes of a tensor, zeros left out: the least scale of a relative difference."""

STEP = 1 / 255
"""One step of 8 bits, relative to their range: quantisation may move a value by so much."""

ROUNDINGS = 8
"""Half-epsilons of error that is noise: a graph rounds more than once."""

QUANTISED = ("Quantize", "QLinear", "QGemm", "QAttention", "Integer", "NBits")
"""Parts of the names of operators that quantise."""


def distance(expected: Feed, got: Feed) -> float:
    """The distance of `got` from `expected`: 0 for equal values, inf for values that cannot be compared. For sequences
    it is the largest distance of two of their tensors."""
    if not isinstance(expected, np.ndarray) or not isinstance(got, np.ndarray):
        pairs = pair_tensors(expected, got)
        return math.inf if pairs is None else max((distance(*pair) for pair in pairs), default=0.0)
    if expected.shape != got.shape or expected.dtype != got.dtype:
        return math.inf
    if expected.size == 0:
        return 0.0
    if expected.dtype.kind in "bOSU":
        return float(np.mean(expected != got))
    if expected.dtype.kind == "c":
        return max(distance(expected.real, got.real), distance(expected.imag, got.imag))
    true, value = expected.astype(np.float64), got.astype(np.float64)
    finite = np.isfinite(true)
    if not np.array_equal(finite, np.isfinite(value)) or not _same_specials(true[~finite], value[~finite]):
        return math.inf
    gap, size = np.abs(true[finite] - value[finite]), np.abs(true[finite])
    if not gap.any():
        return 0.0
    usual = size[size > 0]
    least = 1.0 if expected.dtype.kind in "iu" or not usual.size else float(np.quantile(usual, SMALL))
    with np.errstate(over="ignore"):
        return float((gap / np.maximum(size, least)).max())


def within(name: str, value: Array, tolerance: float, scale: float | None = None) -> Output:
    """An output that is right up to a `distance` of `tolerance` from a value. scale: what the tolerance is relative to,
    in place of each element."""
    if value.dtype.kind not in "biuf" and value.dtype != ml_dtypes.bfloat16:
        return Output(name, value)
    size = np.abs(value.astype(np.float64))
    usual = size[(size > 0) & np.isfinite(size)]
    least = 1.0 if value.dtype.kind in "biu" or not usual.size else float(np.quantile(usual, SMALL))
    allowed = tolerance * (np.maximum(size, least) if scale is None else np.full(size.shape, scale))
    allowed = np.where(np.isfinite(allowed), allowed, 0.0)
    if value.dtype.kind in "biu":
        return Output(name, value, OneStep(np.floor(allowed).astype(np.int64)))
    return Output(name, value, Ulp(0.0, (statement(f"{tolerance:.3g} of the element, or of a small one"),), allowed))


def pair_tensors(first: Feed, second: Feed) -> list[tuple[Array, Array]] | None:
    """The tensors of two values in pairs; None for a tensor and a sequence, and for sequences of different lengths."""
    pairs = tensors(first), tensors(second)
    is_alike = isinstance(first, np.ndarray) == isinstance(second, np.ndarray) and len(pairs[0]) == len(pairs[1])
    return list(zip(*pairs, strict=True)) if is_alike else None


def farthest(expected: Mapping[str, Feed], got: Mapping[str, Feed], names: Iterable[str]) -> float:
    """The largest distance of the named values; inf where one is missing."""
    return max((distance(expected[n], got[n]) if n in expected and n in got else math.inf for n in names), default=0.0)


def noise(model: onnx.ModelProto, values: Iterable[Feed]) -> float:
    """The distance that the coarsest arithmetic of a model explains: a STEP where the model quantises, else ROUNDINGS
    half-epsilons of the coarsest floating-point dtype. values: of the model."""
    if any(part in node.op_type for node in model.graph.node for part in QUANTISED):
        return STEP
    arrays = [tensor for value in values for tensor in tensors(value)]
    floating = [v.dtype for v in arrays if v.dtype.kind == "f" or v.dtype == ml_dtypes.bfloat16]
    coarsest = max((float(ml_dtypes.finfo(dtype).eps) for dtype in floating), default=0.0)  # type: ignore[no-untyped-call]
    return ROUNDINGS / 2 * coarsest


def _same_specials(first: Array, second: Array) -> bool:
    return bool(np.all((first == second) | (np.isnan(first) & np.isnan(second))))
