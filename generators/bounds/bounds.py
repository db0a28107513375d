"""How far from the truth a floating-point result may be, and who says so.

A bound is a number of ULP of the output dtype, from a published table or derived; what a provider returned is no
source. Where an operator adds many terms, its error is not one of ULP of the sum, which may cancel, but of the sum of
the terms' magnitudes: `accumulated` derives it. Denormal results may be zero: Direct3D flushes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.truth import Output, Ulp, ZeroSigns

D3D = "Direct3D 11.3 functional specification, 3.1 floating point rules"
WEBNN = "WebNN conformance tests"
OPENCL = "OpenCL C specification, relative error as ULPs"
HIGHAM = "N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, 3.1: any order of summation"


def finfo(dtype: np.dtype[Any]) -> np.finfo[Any]:
    """numpy's description of a floating-point dtype."""
    return np.finfo(dtype)


def ulp(bound: float, source: str, dtype: np.dtype[Any], floor: float | Array = 0.0) -> Ulp:
    """A bound in ULP of `dtype`, below whose smallest normal number a result may be flushed to zero (D3D)."""
    return Ulp(
        bound,
        source,
        np.maximum(floor, float(finfo(dtype).tiny)) if np.ndim(floor) else max(float(floor), float(finfo(dtype).tiny)),
    )


def accumulated(length: int, dtype: np.dtype[Any], magnitude: Array, ulps: float = 2.0, roundings: int = 1) -> Ulp:
    """The bound of a sum of `length` terms, in any order and in no less than the precision of `dtype`.

    magnitude: float64 of the output's shape, the sum of the terms' absolute values. roundings: of each term before it
    is added, 1 for a product. The error is at most gamma(n) = n u / (1 - n u) of the magnitude, u half an epsilon; the
    `ulps` are for what is done with the sum.
    """
    unit = float(finfo(dtype).eps) / 2
    steps = (length + roundings) * unit
    gamma = steps / (1 - steps) if steps < 0.5 else 2 * steps
    floor = np.nan_to_num(gamma * np.asarray(magnitude, np.float64), nan=0.0, posinf=0.0)
    return ulp(ulps, f"{HIGHAM}, for {length} terms", dtype, floor)


def rounded(name: str, exact: Array, dtype: np.dtype[Any], bound: Ulp, zeros: ZeroSigns | None = None) -> Output:
    """An output whose truth is `exact` (float64), rounded once to `dtype`; beyond its range is infinity."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return Output(name, np.asarray(exact).astype(dtype), bound, np.asarray(exact, np.float64), zeros)
