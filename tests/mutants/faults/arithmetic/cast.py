"""Faults of Cast and CastLike: what a cast through another type, or with another rule at the ends, answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.families import narrow
from tests.mutants.mutant import Mutant, by_truth, outputs_of


def casting(operator: str, what: str, cast: Callable[[Array, np.dtype[np.generic]], Array]) -> Mutant:
    """The provider casts by another rule: (values, target) -> result."""

    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        right = outputs_of(built.truth)
        if right is None:
            return None
        ((name, value),) = right.items()
        if narrow.is_narrow(tuple(built.case.dtype.split("-"))):
            return right
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


def narrowed(what: str, change: Callable[[BuiltCase, Array], Array]) -> Mutant:
    """The provider changes what a cast to a narrow type gives: (case, right values, widened) -> values."""

    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        right = outputs_of(built.truth)
        if right is None or built.node.surroundings is None:
            return right
        return {name: change(built, value).astype(value.dtype) for name, value in right.items()}

    return by_truth("Cast", what, answer)


def _narrow_type(built: BuiltCase) -> str:
    assert built.node.surroundings is not None
    return built.node.surroundings.types["T2"]


def _is_floating(value: Array) -> bool:
    return value.dtype.kind == "f"


def _nan_instead_of_the_largest(_: BuiltCase, value: Array) -> Array:
    return np.where(np.abs(value) == np.nanmax(np.abs(value)), np.nan, value) if _is_floating(value) else value


def _always_saturated(built: BuiltCase, _: Array) -> Array:
    again = replace(built.node, attributes={**built.node.attributes, "saturate": 1})
    right = outputs_of(narrow.truth(again))
    assert right is not None
    return right["output"]


def _never_negative_zero(_: BuiltCase, value: Array) -> Array:
    return value + 0.0 if _is_floating(value) else value


def _with_negative_zero(built: BuiltCase, value: Array) -> Array:
    return np.where(value == 0, np.copysign(value, built.node.array("input")), value) if _is_floating(value) else value


def _toward_zero(built: BuiltCase, value: Array) -> Array:
    values = built.node.array("input")
    return np.trunc(values) if not _is_floating(value) and values.dtype.kind == "f" else value


def _away_from_zero(built: BuiltCase, value: Array) -> Array:
    values = built.node.array("input")
    away = np.trunc(values + np.copysign(0.5, values))
    return away if not _is_floating(value) and values.dtype.kind == "f" else value


def _saturated_integers(built: BuiltCase, value: Array) -> Array:
    low, high = narrow.INTEGERS.get(_narrow_type(built), (0, 0))
    return np.clip(built.node.array("input"), low, high) if high and not _is_floating(value) else value


def _rounded_up(built: BuiltCase, _: Array) -> Array:
    above = replace(built.node, attributes={**built.node.attributes, "round_mode": "up"})
    right = outputs_of(narrow.truth(above))
    assert right is not None
    return right["output"]


def _ties_away(built: BuiltCase, value: Array) -> Array:
    if built.case.sample != "float_ties":
        return value
    values = built.node.array("input").astype(np.float64)
    return value + 2 * np.where(np.abs(value) < np.abs(values), values - value, 0)


def codes(what: str, change: Callable[[Array], Array]) -> Mutant:
    """The provider changes what a cast from a narrow type gives."""

    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        right = outputs_of(built.truth)
        narrow_source = built.node.surroundings is None and built.node.array("input").dtype.name in narrow.ONNX_NAMES
        return {name: change(value) for name, value in right.items()} if right and narrow_source else right

    return by_truth("Cast", what, answer)


NARROW = (
    narrowed("the largest number of a narrow type is NaN", _nan_instead_of_the_largest),
    narrowed("saturate is ignored", _always_saturated),
    narrowed("a narrow type has no -0", _never_negative_zero),
    narrowed("a narrow type without -0 has one", _with_negative_zero),
    narrowed("fractions are cut off in narrow integers", _toward_zero),
    narrowed("ties go away from zero in narrow integers", _away_from_zero),
    narrowed("narrow integers saturate", _saturated_integers),
    narrowed("round_mode is ignored", _rounded_up),
    narrowed("ties go away from zero in narrow floating point", _ties_away),
    codes("NaN of a narrow type is 0", lambda value: np.nan_to_num(value, posinf=np.inf, neginf=-np.inf)),
    codes("denormals of a narrow type are 0", lambda value: np.where(np.abs(value) < 0.01, 0, value)),
    codes("narrow integers are unsigned", lambda value: np.abs(value)),
    codes(
        "narrow elements are read in pairs, the high one first",
        lambda value: value[: value.size // 2 * 2].reshape(-1, 2)[:, ::-1].ravel(),
    ),
)

MUTANTS = NARROW + tuple(
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
