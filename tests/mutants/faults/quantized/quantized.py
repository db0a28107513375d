"""Faults of the quantised operators and of quantising itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.node import Node
from tests.mutants.faults.matmul.matmul import without
from tests.mutants.mutant import Mutant, attribute, by_truth, inputs, misread, outputs, outputs_of, swapped

MICROSOFT = "com.microsoft::"
QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"


def zeroed(operator: str, wanted: str) -> Mutant:
    """The provider takes an input for 0."""
    return inputs(operator, f"{wanted} is 0", lambda name, value: np.zeros_like(value) if name == wanted else value)


def one_more(operator: str, wanted: str) -> Mutant:
    """The provider has a zero point one too large."""
    return inputs(operator, f"{wanted} is one more", lambda n, v: v + v.dtype.type(1) if n == wanted else v)


def first_only(operator: str, *wanted: str) -> Mutant:
    """The provider reads the first of several parameters only."""
    return inputs(
        operator,
        f"of {', '.join(wanted)} only the first is read",
        lambda n, v: np.full_like(v, v.flat[0]) if n in wanted and v.size else v,
    )


def _outward(name: str, value: Array) -> Array:
    if name != "x" or value.dtype.kind != "f":
        return value
    return np.nextafter(value, np.copysign(value.dtype.type(np.inf), value))


def _inward(name: str, value: Array) -> Array:
    return np.nextafter(value, value.dtype.type(0)) if name == "x" and value.dtype.kind == "f" else value


def _no_infinity(name: str, value: Array) -> Array:
    return np.where(np.isinf(value), value.dtype.type(0), value) if name == "x" and value.dtype.kind == "f" else value


def _wrapped(node: Node) -> Mapping[str, Array] | None:
    """Levels beyond the type's range wrap around."""
    x, scale, zero = node.array("x"), node.array("y_scale"), node.value("y_zero_point")
    if zero is None or scale.ndim:
        return None
    steps = np.rint(np.clip(x.astype(np.float64) / float(scale), -1e6, 1e6)).astype(np.int64)
    return {"y": (steps + int(zero)).astype(zero.dtype)}


def _rounded_last(node: Node) -> Mapping[str, Array] | None:
    """The zero point is added before rounding."""
    x, scale, zero = node.array("x"), node.array("y_scale"), node.value("y_zero_point")
    if zero is None or scale.ndim:
        return None
    info = np.iinfo(zero.dtype)
    return {
        "y": np.clip(np.rint(x.astype(np.float64) / float(scale) + int(zero)), info.min, info.max).astype(zero.dtype)
    }


def formula(operator: str, what: str, answer: Callable[[Node], Mapping[str, Array] | None]) -> Mutant:
    """The provider computes something else; where that has no meaning it is right."""
    return by_truth(operator, what, lambda built: answer(built.node) or outputs_of(built.truth))


def _dynamic(steps: int, symmetric: bool) -> Callable[[BuiltCase], Mapping[str, Array] | None]:
    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        x = built.node.array("x").astype(np.float64)
        low, high = min(0.0, x.min()), max(0.0, x.max())
        if symmetric:
            low, high = -max(-low, high), max(-low, high)
        scale = np.float32((high - low) / steps)
        zero = np.clip(np.rint(-low / scale), 0, 255)
        y = np.clip(np.rint(x / scale) + zero, 0, 255)
        return {
            "y": np.asarray(y).astype(np.uint8),
            "y_scale": np.array(scale),
            "y_zero_point": np.array(zero, np.uint8),
        }

    return answer


def _middle_zero_point(node: Node) -> Node:
    """An omitted zero point of an unsigned type is its middle."""
    if len(node.inputs) != 2 or node.array("x").dtype.kind != "u":
        return node
    x, scale = node.array("x"), node.inputs[1]
    assert scale is not None
    zero = np.full(scale.value.shape, np.iinfo(x.dtype).max // 2 + 1, x.dtype)
    return replace(node, inputs=(*node.inputs, replace(scale, name="x_zero_point", value=zero)))


def _first_scale_of_third(node: Node) -> Node:
    """QLinearConcat: Y_scale, Y_zero_point, then x, scale and zero point of each input."""
    if node.integer("axis", 0) == 1 or len(node.inputs) < 11:
        return node
    first, third = node.inputs[3], node.inputs[9]
    assert first is not None
    assert third is not None
    return replace(node, inputs=(*node.inputs[:9], replace(third, value=first.value), *node.inputs[10:]))


MUTANTS = (
    zeroed("MatMulInteger", "a_zero_point"),
    zeroed("MatMulInteger", "b_zero_point"),
    first_only("MatMulInteger", "a_zero_point"),
    first_only("MatMulInteger", "b_zero_point"),
    outputs("MatMulInteger", "sums saturate at 16 bits", lambda v: np.clip(v, -(2**15), 2**15 - 1)),
    zeroed(f"{MICROSOFT}MatMulIntegerToFloat", "bias"),
    zeroed(f"{MICROSOFT}MatMulIntegerToFloat", "a_zero_point"),
    first_only(f"{MICROSOFT}MatMulIntegerToFloat", "b_scale"),
    first_only(f"{MICROSOFT}MatMulIntegerToFloat", "b_zero_point"),
    zeroed(f"{MICROSOFT}DynamicQuantizeMatMul", "bias"),
    zeroed(f"{MICROSOFT}DynamicQuantizeMatMul", "b_zero_point"),
    first_only(f"{MICROSOFT}DynamicQuantizeMatMul", "b_scale"),
    inputs(f"{MICROSOFT}DynamicQuantizeMatMul", "A is 1 % too large", lambda n, v: v * 1.01 if n == "A" else v),
    by_truth("DynamicQuantizeLinear", "the range has 256 steps", _dynamic(256, symmetric=False)),
    by_truth("DynamicQuantizeLinear", "the range is symmetric", _dynamic(255, symmetric=True)),
    inputs("DynamicQuantizeLinear", "ties go away from 0", _outward),
    zeroed("QLinearMatMul", "a_zero_point"),
    zeroed("QLinearMatMul", "y_zero_point"),
    first_only("QLinearMatMul", "a_scale", "a_zero_point"),
    first_only("QLinearMatMul", "b_scale", "b_zero_point"),
    outputs("QLinearMatMul", "the lowest level is not used", lambda v: np.maximum(v, np.iinfo(v.dtype).min + 1)),
    *(fault for domain in ("", MICROSOFT) for fault in (
        zeroed(f"{domain}{QUANTIZE}", "y_zero_point"),
        attribute(f"{domain}{QUANTIZE}", "axis", None),
        first_only(f"{domain}{QUANTIZE}", "y_scale"),
        inputs(f"{domain}{QUANTIZE}", "ties go away from 0", _outward),
        inputs(f"{domain}{QUANTIZE}", "ties go to 0", _inward),
        inputs(f"{domain}{QUANTIZE}", "infinity becomes 0", _no_infinity),
        formula(f"{domain}{QUANTIZE}", "the zero point is added before rounding", _rounded_last),
        formula(f"{domain}{QUANTIZE}", "levels wrap around", _wrapped),
        zeroed(f"{domain}{DEQUANTIZE}", "x_zero_point"),
        attribute(f"{domain}{DEQUANTIZE}", "axis", None),
        first_only(f"{domain}{DEQUANTIZE}", "x_scale"),
        first_only(f"{domain}{DEQUANTIZE}", "x_zero_point"),
        misread(f"{domain}{DEQUANTIZE}", "an omitted zero point is the middle", _middle_zero_point),
    )),
    attribute(QUANTIZE, "output_dtype", None),
    attribute(DEQUANTIZE, "output_dtype", None),
    *(zeroed(f"{MICROSOFT}QLinearAdd", f"{name}_zero_point") for name in "ABC"),
    swapped(f"{MICROSOFT}QLinearAdd", 1, 4),
    outputs(
        f"{MICROSOFT}QLinearAdd", "the highest level is not used", lambda v: np.minimum(v, np.iinfo(v.dtype).max - 1)
    ),
    *(one_more(f"{MICROSOFT}QLinearSigmoid", f"{name}_zero_point") for name in "XY"),
    without(f"{MICROSOFT}QLinearSigmoid", "X_zero_point"),
    attribute(f"{MICROSOFT}QLinearConcat", "axis", 0),
    zeroed(f"{MICROSOFT}QLinearConcat", "Y_zero_point"),
    swapped(f"{MICROSOFT}QLinearConcat", 3, 6),
    swapped(f"{MICROSOFT}QLinearConcat", 2, 5),
    misread(f"{MICROSOFT}QLinearConcat", "beside axis 1 the third input has the first scale", _first_scale_of_third),
)  # fmt: skip
