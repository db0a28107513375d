"""Mutants of QuantizeLinear and DequantizeLinear with float8: what must not be done to these types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.families import float8
from tests.mutants.mutant import Mutant, by_truth, outputs_of


def of_float8(operator: str, fault: str, change: Callable[[BuiltCase, Array], Array]) -> Mutant:
    """The provider changes the output of the cases with float8."""

    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        right = outputs_of(built.truth)
        if right is None or "float8" not in built.case.dtype:
            return right
        with np.errstate(all="ignore"):
            return {name: change(built, value).astype(value.dtype) for name, value in right.items()}

    return by_truth(operator, fault, answer)


def _always_saturated(built: BuiltCase, _: Array) -> Array:
    right = outputs_of(float8.quantize_truth(replace(built.node, attributes={"saturate": 1})))
    assert right is not None
    return right["y"]


def _first_scale(built: BuiltCase, value: Array) -> Array:
    scale = built.node.array("x_scale")
    return value / scale[:, None] * scale[0] if scale.ndim else value


def _scaled_twice(built: BuiltCase, value: Array) -> Array:
    return value / built.node.array("y_scale")


MUTANTS = (
    of_float8("QuantizeLinear", "float8: saturate is ignored", _always_saturated),
    of_float8("QuantizeLinear", "float8: the scale is applied twice", _scaled_twice),
    of_float8("QuantizeLinear", "float8: -0 is 0", lambda _, value: value + 0.0),
    of_float8("QuantizeLinear", "float8: values are whole numbers", lambda _, value: np.rint(value)),
    of_float8(
        "DequantizeLinear", "float8: NaN is 0", lambda _, value: np.nan_to_num(value, posinf=np.inf, neginf=-np.inf)
    ),
    of_float8("DequantizeLinear", "float8: the first scale is that of all rows", _first_scale),
    of_float8("DequantizeLinear", "float8: the sign is lost", lambda _, value: np.abs(value)),
    of_float8("DequantizeLinear", "float8: infinity is NaN", lambda _, value: np.where(np.isinf(value), np.nan, value)),
)
