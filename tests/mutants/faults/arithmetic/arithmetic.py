"""Faults of the element-wise operators: another function, another rounding, values that are lost on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.node import Node
from tests.mutants.mutant import Mutant, attribute, by_truth, inputs, misread, outputs, outputs_of, swapped

ACTIVATION = "fused_activation"


def instead(operator: str, what: str, function: Callable[..., Any]) -> Mutant:
    """The provider computes another function of the inputs, in their own types; it refuses what must be refused."""

    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        right = outputs_of(built.truth)
        if right is None:
            return None
        ((name, value),) = right.items()
        result = np.asarray(function(*(o.value for o in built.node.inputs if o is not None)))
        return {name: np.broadcast_to(result.astype(value.dtype), value.shape)}

    return by_truth(operator, what, answer)


def through(operator: str, dtype: str) -> Mutant:
    """The provider carries its inputs in another type."""

    def change(_name: str, value: Array) -> Array:
        fits = value.dtype.kind != "f" and dtype != value.dtype.name
        return value.astype(dtype).astype(value.dtype) if fits else value

    return inputs(operator, f"integers travel as {dtype}", change)


def flushed(operator: str) -> Mutant:
    """The provider takes denormals for zero."""

    def change(_name: str, value: Array) -> Array:
        if value.dtype.kind != "f":
            return value
        return np.where(np.abs(value) < np.finfo(value.dtype).tiny, np.copysign(0, value), value).astype(value.dtype)

    return inputs(operator, "denormals are taken for zero", change)


def without_nan(operator: str) -> Mutant:
    """The provider loses NaN."""
    return outputs(operator, "NaN comes out as 0", lambda v: np.nan_to_num(v, nan=0.0, posinf=np.inf, neginf=-np.inf))


def saturated(operator: str, function: Callable[[Any, Any], Any]) -> Mutant:
    """Integers stop at the ends of their range."""

    def at_the_end(a: Array, b: Array) -> Array:
        if a.dtype.kind == "f":
            return np.asarray(function(a, b))
        info = np.iinfo(a.dtype)
        whole = np.asarray(function(a.astype(object), b.astype(object)))
        return np.clip(whole, int(info.min), int(info.max))

    return instead(operator, "integers saturate", at_the_end)


def last_missing(operator: str) -> Mutant:
    """The provider does not see the last of three and more inputs."""

    def change(node: Node) -> Node:
        return replace(node, inputs=node.inputs[:-1]) if len(node.inputs) > 2 else node

    return misread(operator, "the last of several inputs is forgotten", change)


def _floored(a: Array, b: Array) -> Any:
    return a / b if a.dtype.kind == "f" else a // b


def _rounded(a: Array, b: Array) -> Any:
    return a / b if a.dtype.kind == "f" else np.rint(a / b)


def _quotient(a: Array, b: Array) -> Any:
    return a / b if a.dtype.kind == "f" else np.trunc(a / b)


def _compared_as_bits(function: Callable[[Any, Any], Any]) -> Callable[[Array, Array], Any]:
    def compared(a: Array, b: Array) -> Any:
        unsigned = f"u{a.dtype.itemsize}"
        return (
            function(a.view(unsigned), b.view(unsigned))
            if a.dtype.kind in "if" and a.ndim and b.ndim
            else function(a, b)
        )

    return compared


def _whole_exponent(node: Node) -> Node:
    base, exponent = node.inputs
    assert base is not None
    assert exponent is not None
    if base.value.dtype.kind == "f":
        return node
    return replace(node, inputs=(base, replace(exponent, value=np.trunc(exponent.value).astype(exponent.value.dtype))))


ARITHMETIC = (
    swapped("Sub"),
    swapped("Div"),
    swapped("Mod"),
    saturated("Add", lambda a, b: a + b),
    saturated("Sub", lambda a, b: a - b),
    saturated("Mul", lambda a, b: a * b),
    through("Add", "float32"),
    through("Sub", "float64"),
    through("Mul", "float32"),
    instead("Add", "the second input is doubled", lambda a, b: a + 2 * b),
    instead("Div", "integers are divided toward minus infinity", _floored),
    instead("Div", "integers are divided as floats and rounded", _rounded),
    instead("Div", "integers are divided as float64", _quotient),
    instead("Div", "the quotient of zero divisors is 0", lambda a, b: np.where(b == 0, 0, _quotient(a, b))),
    attribute("Mod", "fmod", 1),
    attribute("Mod", "fmod", 0),
    through("Mod", "float32"),
    flushed("Neg"),
    flushed("Abs"),
    flushed("Sign"),
    instead("Neg", "0 - x, which gives +0 for +0", lambda x: 0 - x),
    through("Neg", "float32"),
    through("Abs", "float32"),
    instead("Abs", "-0 stays -0", lambda x: np.where(x < 0, 0 - x, x)),
    instead("Sign", "0 has the sign 1", lambda x: np.where(x >= 0, 1, -1)),
    instead("Sign", "infinities have the sign of infinity", lambda x: np.where(np.isinf(x), x, np.sign(x))),
    instead("com.microsoft::BiasAdd", "skip is forgotten", lambda x, bias, _skip: x + bias),
    instead("com.microsoft::BiasAdd", "bias is forgotten", lambda x, _bias, skip: x + skip),
    attribute("com.microsoft.dml::DmlFusedAdd", ACTIVATION, "Relu"),
    attribute("com.microsoft.dml::DmlFusedAdd", ACTIVATION, "LeakyRelu"),
    attribute("com.microsoft.dml::DmlFusedAdd", "fused_alpha", None),
    attribute("com.microsoft.dml::DmlFusedSum", ACTIVATION, "Relu"),
    attribute("com.microsoft.dml::DmlFusedSum", "fused_alpha", None),
    swapped("Pow"),
    through("Pow", "float32"),
    misread("Pow", "exponents of integers are cut off", _whole_exponent),
    instead("Pow", "powers of negative numbers are NaN", lambda x, y: np.where(x < 0, np.nan, np.power(x + 0.0, y))),
    instead("Pow", "0 to the power of 0 is 0", lambda x, y: np.where(x == 0, 0, np.power(x + 0.0, y))),
    instead("Pow", "exp(y log x)", lambda x, y: np.exp(y * np.log(x + 0.0))),
)  # fmt: skip

VARIADIC = (
    *(last_missing(name) for name in ("Min", "Max", "Mean", "Sum")),
    without_nan("Min"),
    without_nan("Max"),
    without_nan("Sum"),
    through("Min", "float32"),
    through("Max", "float64"),
    instead("Min", "NaN is passed over", lambda *v: np.fmin.reduce(np.broadcast_arrays(*v))),
    instead("Max", "NaN is passed over", lambda *v: np.fmax.reduce(np.broadcast_arrays(*v))),
    instead("Mean", "the sum is divided by two", lambda *v: sum(v) / 2),
    instead("Sum", "the mean is taken", lambda *v: sum(v) / len(v)),
    instead("Min", "the maximum is taken", lambda *v: np.maximum.reduce(np.broadcast_arrays(*v))),
)  # fmt: skip


COMPARISONS = (
    *(through(name, "float32") for name in ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")),
    *(through(name, "float64") for name in ("Equal", "Greater")),
    *(flushed(name) for name in ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")),
    *(swapped(name) for name in ("Greater", "GreaterOrEqual", "Less", "LessOrEqual")),
    instead("Equal", "bits are compared, so that -0 is not 0", _compared_as_bits(np.equal)),
    instead("Greater", "signed integers are compared as unsigned ones", _compared_as_bits(np.greater)),
    instead("Less", "signed integers are compared as unsigned ones", _compared_as_bits(np.less)),
    instead("GreaterOrEqual", "not less, which NaN is", lambda a, b: ~(a < b)),
    instead("LessOrEqual", "not greater, which NaN is", lambda a, b: ~(a > b)),
    instead("Greater", "greater or equal", np.greater_equal),
    instead("Less", "less or equal", np.less_equal),
)


def _without_last_shift(amounts: Array) -> Array:
    return np.where(amounts == 8 * amounts.itemsize - 1, 0, amounts).astype(amounts.dtype)


LOGIC = (
    instead("And", "or", np.logical_or),
    instead("And", "the second input alone", lambda _a, b: b),
    instead("Or", "exclusive or", np.logical_xor),
    instead("Or", "the first input alone", lambda a, _b: a),
    instead("Xor", "or", np.logical_or),
    instead("Xor", "equality", np.equal),
    instead("Not", "identity", lambda x: x),
    instead("Not", "everything is true", np.ones_like),
    through("BitwiseAnd", "float64"),
    through("BitwiseOr", "float64"),
    through("BitwiseXor", "float64"),
    through("BitwiseNot", "float64"),
    instead("BitwiseAnd", "logical and", np.logical_and),
    instead("BitwiseOr", "exclusive or", np.bitwise_xor),
    instead("BitwiseXor", "or", np.bitwise_or),
    instead("BitwiseNot", "negation", lambda x: 0 - x),
    attribute("BitShift", "direction", "LEFT"),
    attribute("BitShift", "direction", "RIGHT"),
    swapped("BitShift"),
    inputs("BitShift", "shifts by the width less one are by 0", lambda n, v: _without_last_shift(v) if n == "Y" else v),
)  # fmt: skip


def _least(value: Array) -> Any:
    return -np.inf if value.dtype.kind == "f" else np.iinfo(value.dtype).min


SELECTION = (
    swapped("Where", 1, 2),
    inputs("Where", "the condition is not", lambda name, v: ~v if name == "condition" else v),
    through("Where", "float32"),
    without_nan("Where"),
    inputs("Clip", "nothing is below min", lambda name, v: np.full_like(v, _least(v)) if name == "min" else v),
    attribute("Clip", "max", None),
    without_nan("Clip"),
    through("Clip", "float32"),
)

MUTANTS = (*ARITHMETIC, *VARIADIC, *COMPARISONS, *LOGIC, *SELECTION)
