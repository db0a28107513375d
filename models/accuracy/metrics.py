"""How far two tensors are apart, in the numbers that people read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np

from epcheck.conformance.comparison.ulp import is_floating, ulp_error
from epcheck.generators.array import Array

MASKED = 1e30
"""A magnitude from which on a number is a mask (`-3.4e38` before a Softmax), not part of the scale of a tensor."""


@dataclass(frozen=True)
class Metrics:
    """A tensor against a reference of its shape.

    relative: the largest error in units of the element, of the reference's root mean square or of the smallest normal
    number of the dtype, whichever is largest: below that, digits are lost by rounding alone.
    max_abs; max_rel: of the element alone; max_ulp: in units in the last place of the dtype (`ulp.ulp_error`), None for
    integers.
    cosine: of the two as vectors; snr_db: power of the reference over power of the error in decibels, infinite for
    equal ones. top1: share of rows of the last axis whose largest element is at the same place, None for vectors of
    one. differing: elements that are not equal. nonfinite: elements that are NaN or infinite in one of the two alone.
    """

    elements: int
    differing: int
    nonfinite: int
    relative: float
    max_abs: float
    max_rel: float
    max_ulp: float | None
    cosine: float
    snr_db: float
    top1: float | None


def portion(share: float) -> str:
    """`all`, or `3.4 %`: how many of the values, in a sentence."""
    return "all" if share >= 1 else f"{100 * share:.3g} %"


def worst(found: Sequence[Metrics]) -> Metrics:
    """The largest errors of several measurements of the same output."""
    return replace(
        max(found, key=lambda metrics: metrics.relative),
        differing=max(metrics.differing for metrics in found),
        nonfinite=max(metrics.nonfinite for metrics in found),
        max_abs=max(metrics.max_abs for metrics in found),
        snr_db=min(metrics.snr_db for metrics in found),
    )


def measure(got: Array, reference: Array) -> Metrics:
    """The metrics of two tensors of the same shape; NaN equals NaN. The ULP are those of `got`'s dtype."""
    with np.errstate(all="ignore"):
        return _measure_array(got, reference)


def _measure_array(got: Array, reference: Array) -> Metrics:
    exact = np.asarray(reference)
    a, b = got.astype(np.float64), exact.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if got.dtype.kind in "iu" and exact.dtype.kind in "iu":
        same = got == exact  # float64 has 53 bits only
    finite = np.isfinite(a) & np.isfinite(b)
    error = np.where(finite & ~same, np.abs(a - b), 0.0)
    size = np.where(finite, np.abs(b), 0.0)
    usual = size[size < MASKED]
    scale = float(np.sqrt(np.mean(usual**2))) if usual.size else 0.0
    least = float(ml_dtypes.finfo(got.dtype).tiny) if is_floating(got.dtype) else 0.0  # type: ignore[no-untyped-call]
    floor = np.maximum(size, max(scale, least))
    return Metrics(
        elements=got.size,
        differing=int(np.count_nonzero(~same)),
        nonfinite=int(np.count_nonzero(~finite & ~same)),
        relative=_largest(error / np.where(floor > 0, floor, 1.0)),
        max_abs=_largest(error),
        max_rel=_largest(np.where(size > 0, error / np.where(size > 0, size, 1.0), np.where(error > 0, np.inf, 0.0))),
        max_ulp=_largest(np.where(error > 0, ulp_error(b, got), 0.0)) if is_floating(got.dtype) else None,
        cosine=_cosine(np.where(finite, a, 0.0), np.where(finite, b, 0.0)),
        snr_db=_snr(np.where(size < MASKED, size, 0.0), error),
        top1=_top1(a, b),
    )


def _largest(values: Array) -> float:
    return float(np.max(values)) if values.size else 0.0


def _cosine(a: Array, b: Array) -> float:
    lengths = float(np.linalg.norm(a.ravel()) * np.linalg.norm(b.ravel()))
    if lengths == 0:
        return 1.0 if not a.any() and not b.any() else 0.0
    return float(np.clip(np.dot(a.ravel(), b.ravel()) / lengths, -1, 1))


def _snr(size: Array, error: Array) -> float:
    noise, power = float(np.sum(error**2)), float(np.sum(size**2))
    if noise == 0:
        return float("inf")
    return float(10 * np.log10(power / noise)) if power > 0 else float("-inf")


def _top1(a: Array, b: Array) -> float | None:
    if a.ndim == 0 or a.shape[-1] < 2 or a.size == 0:
        return None
    return float(np.mean(np.argmax(a, -1) == np.argmax(b, -1)))
