"""Faults of Cast and CastLike: what a cast through another type, or with another rule at the ends, answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from mutant import Mutant, by_truth, outputs_of

from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase


def casting(operator: str, what: str, cast: Callable[[Array, np.dtype[np.generic]], Array]) -> Mutant:
    """The provider casts by another rule: (values, target) -> result."""

    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        right = outputs_of(built.truth)
        if right is None:
            return None
        ((name, value),) = right.items()
        return {name: np.asarray(cast(built.node.array("input"), value.dtype)).astype(value.dtype)}

    return by_truth(operator, what, answer)


def _through_uint8(values: Array, target: np.dtype[np.generic]) -> Array:
    return values.astype(np.uint8) if target.kind == "b" else values


def _through_float32(values: Array, target: np.dtype[np.generic]) -> Array:
    exact = values.dtype.kind in "iu" and target.kind in "iu"
    return values.astype(np.float32).astype(np.float64) if exact else values


def _saturated(values: Array, target: np.dtype[np.generic]) -> Array:
    if values.dtype.kind not in "iu" or target.kind not in "iu":
        return values
    info = np.iinfo(str(target))
    return np.array([min(max(int(v), int(info.min)), int(info.max)) for v in values.flat]).reshape(values.shape)


def _rounded(values: Array, target: np.dtype[np.generic]) -> Array:
    return np.rint(values) if values.dtype.kind == "f" and target.kind in "iu" else values


def _floored(values: Array, target: np.dtype[np.generic]) -> Array:
    return np.floor(values) if values.dtype.kind == "f" and target.kind in "iu" else values


def _clamped(values: Array, target: np.dtype[np.generic]) -> Array:
    if target.kind != "f":
        return values
    most = float(np.finfo(str(target)).max)
    return np.where(np.isinf(values), values, np.clip(values.astype(np.float64), -most, most))


def _without_nan(values: Array, _target: np.dtype[np.generic]) -> Array:
    return np.where(np.isnan(values), 0, values) if values.dtype.kind == "f" else values


MUTANTS = tuple(
    casting(operator, what, rule)
    for operator in ("Cast", "CastLike")
    for what, rule in {
        "to bool by way of uint8": _through_uint8,
        "between integers by way of float32": _through_float32,
        "integers saturate": _saturated,
        "fractions are rounded to the nearest integer": _rounded,
        "fractions are rounded down": _floored,
        "overflow ends at the greatest number": _clamped,
        "NaN becomes 0": _without_nan,
    }.items()
)
