"""How far from the truth a floating-point result may be, and who says so.

A bound is a number of ULP of the output dtype, from a published table or derived; what a provider returned is no
source. Where an operator adds many terms, its error is not one of ULP of the sum, which may cancel, but of the sum of
the terms' magnitudes: `bound_sum` derives it. Denormal results may be zero: Direct3D flushes them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.citation import Citation, CitationKind, Citations, Publisher
from epcheck.generators.truth import Output, Ulp, ZeroSigns

D3D = Citation(
    CitationKind.PUBLISHED,
    "Direct3D 11.3 functional specification, 3.1 floating point rules",
    Publisher.DIRECT3D,
    "floating point rules",
)
DENORMALS = replace(D3D, kind=CitationKind.FLUSH)
WEBNN = Citation(CitationKind.PUBLISHED, "WebNN conformance tests", Publisher.WEBNN, "tolerances")
OPENCL = Citation(
    CitationKind.PUBLISHED,
    "OpenCL C specification, relative error as ULPs",
    Publisher.OPENCL,
    "relative error as ULPs",
)
ACCURACY_AND_STABILITY = "N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition"
HIGHAM = Citation(
    CitationKind.DERIVED, f"{ACCURACY_AND_STABILITY}, 3.1: any order of summation", Publisher.HIGHAM, "3.1"
)


def finfo(dtype: np.dtype[Any]) -> np.finfo[Any]:
    """numpy's description of a floating-point dtype."""
    return np.finfo(dtype)


def ulp(bound: float, citations: Citations, dtype: np.dtype[Any], floor: float | Array = 0.0) -> Ulp:
    """A bound in ULP of `dtype`, below whose smallest normal number a result may be flushed to zero (D3D)."""
    return Ulp(
        bound,
        citations,
        np.maximum(floor, float(finfo(dtype).tiny)) if np.ndim(floor) else max(float(floor), float(finfo(dtype).tiny)),
    )


def cite_sum(length: int) -> Citation:
    """The source of the error of a sum of `length` terms."""
    return replace(HIGHAM, text=f"{HIGHAM.text}, for {length} terms")


def bound_sum(length: int, dtype: np.dtype[Any], magnitude: Array, ulps: float = 2.0, roundings: int = 1) -> Ulp:
    """The bound of a sum of `length` terms, in any order and in no less than the precision of `dtype`.

    magnitude: float64 of the output's shape, the sum of the terms' absolute values. roundings: of each term before it
    is added, 1 for a product. The error is at most gamma(n) = n u / (1 - n u) of the magnitude, u half an epsilon; the
    `ulps` are for what is done with the sum.
    """
    unit = float(finfo(dtype).eps) / 2
    steps = (length + roundings) * unit
    gamma = steps / (1 - steps) if steps < 0.5 else 2 * steps
    floor = np.nan_to_num(gamma * np.asarray(magnitude, np.float64), nan=0.0, posinf=0.0)
    return ulp(ulps, (cite_sum(length),), dtype, floor)


def round_output(name: str, exact: Array, dtype: np.dtype[Any], bound: Ulp, zeros: ZeroSigns | None = None) -> Output:
    """An output whose truth is `exact` (float64), rounded once to `dtype`; beyond its range is infinity."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return Output(name, np.asarray(exact).astype(dtype), bound, np.asarray(exact, np.float64), zeros)
