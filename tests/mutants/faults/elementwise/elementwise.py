"""Faults of the operators that work element by element: functions, activations, Gelu, PRelu, tests, copies.

The functions' faults are those of implementations: an approximation by a few terms of a series, a formula that
overflows, a wrong branch, a lost sign. They compute what the provider would say from the node's input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.node import Node, Operand
from epcheck.generators.operators.elementwise import activation, affine, float_tests, gelu, identity, prelu, unary
from tests.mutants.mutant import Mutant, attribute, by_truth, inputs, misread, outputs, outputs_of, swapped

Function = Callable[[Array], Array]


def computed(operator: str, what: str, function: Function) -> Mutant:
    """The provider computes another function of the first input, in float64."""

    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        right = outputs_of(built.truth)
        operand = built.node.inputs[0]
        if right is None or operand is None or operand.value.dtype.kind != "f":
            return right
        (name, value), *_ = right.items()
        with np.errstate(all="ignore"):
            return {**right, name: np.asarray(function(operand.value.astype(np.float64))).astype(value.dtype)}

    return by_truth(operator, what, answer)


def in_half_precision(operator: str) -> Mutant:
    """The provider rounds what it says to float16 on the way."""
    return outputs(operator, "results pass through float16", _through_float16)


def _through_float16(value: Array) -> Array:
    return value.astype(np.float16).astype(value.dtype)


def _without_nan(value: Array) -> Array:
    return np.nan_to_num(value, nan=0.0, posinf=np.inf, neginf=-np.inf)


def _series(*coefficients: float) -> Function:
    """An odd polynomial x (c0 + c1 x^2 + ...)."""
    return lambda x: x * sum(c * x ** (2 * k) for k, c in enumerate(coefficients))


def _half_away_from_zero(x: Array) -> Array:
    return np.trunc(x + np.copysign(0.5, x))


FUNCTIONS: dict[str, tuple[tuple[str, Function], ...]] = {
    "Acos": (
        ("its argument is clamped", lambda x: np.arccos(np.clip(x, -1, 1))),
        ("it is asin", np.arcsin),
        ("negative arguments lose pi", lambda x: np.arccos(np.abs(x))),
    ),
    "Acosh": (
        ("its argument is clamped from below", lambda x: np.arccosh(np.maximum(x, 1))),
        ("the square under its root is rounded to float16", lambda x: np.log(x + np.sqrt(_half(x * x) - 1))),
    ),
    "Asin": (
        ("it is the series of two terms", _series(1, 1 / 6)),
        ("its argument is clamped", lambda x: np.arcsin(np.clip(x, -1, 1))),
    ),
    "Asinh": (
        ("the sign is lost", lambda x: np.arcsinh(np.abs(x))),
        ("negative arguments cancel in float32", lambda x: _asinh_in_float32(x)),
    ),
    "Atan": (
        ("it is the series of two terms", _series(1, -1 / 3)),
        ("NaN gives a number", lambda x: np.arctan(np.nan_to_num(x, nan=1.0, posinf=np.inf, neginf=-np.inf))),
        ("infinities are NaN", lambda x: np.arctan(x * np.where(np.isinf(x), 0, 1))),
    ),
    "Atanh": (
        ("its argument is clamped short of 1", lambda x: np.arctanh(np.clip(x, -0.999, 0.999))),
        ("the half is left out", lambda x: 2 * np.arctanh(x)),
    ),
    "Ceil": (
        ("it truncates", np.trunc),
        ("it is floor and one", lambda x: np.floor(x) + 1),
        ("it passes through int32", lambda x: np.ceil(x.clip(-(2.0**31), 2.0**31 - 1))),
    ),
    "Cos": (
        ("it is sin", np.sin),
        ("it is the series of three terms", lambda x: 1 - x**2 / 2 + x**4 / 24),
        ("infinities are 1", lambda x: np.where(np.isinf(x), 1, np.cos(x))),
    ),
    "Cosh": (
        ("it is sinh", np.sinh),
        ("the half is left out", lambda x: 2 * np.cosh(x)),
    ),
    "Erf": (
        ("the sign is lost", lambda x: unary.unary.erf(np.abs(x))),
        ("it is tanh", np.tanh),
    ),
    "Exp": (
        ("it is 2 to the x", np.exp2),
        ("it does not underflow", lambda x: np.exp(np.maximum(x, -10))),
        ("it saturates instead of overflowing", lambda x: np.exp(np.minimum(x, 11))),
    ),
    "Floor": (
        ("it truncates", np.trunc),
        ("it is rounded", np.rint),
    ),
    "Log": (
        ("it is to the base of 2", np.log2),
        ("negative arguments lose their sign", lambda x: np.log(np.abs(x))),
        ("zero is clamped", lambda x: np.where(x == 0, np.log(1e-30), np.log(x))),
    ),
    "Reciprocal": (
        ("zero gives zero", lambda x: np.where(x == 0, 0, 1 / x)),
        ("zeros lose their sign", lambda x: np.where(x == 0, np.inf, 1 / x)),
    ),
    "Round": (
        ("halves go away from zero", _half_away_from_zero),
        ("halves go up", lambda x: np.floor(x + 0.5)),
        ("it truncates", np.trunc),
    ),
    "Sin": (
        ("it is cos", np.cos),
        ("its argument is not reduced", lambda x: np.where(np.abs(x) > 40, 0, np.sin(x))),
    ),
    "Sinh": (
        ("the sign is lost", lambda x: np.sinh(np.abs(x))),
        ("it is cosh", np.cosh),
    ),
    "Sqrt": (
        ("negative arguments give zero", lambda x: np.sqrt(np.maximum(x, 0))),
        ("the sign is ignored", lambda x: np.sqrt(np.abs(x))),
    ),
    "Tan": (
        ("it is sin", np.sin),
        ("it is clamped", lambda x: np.clip(np.tan(x), -10, 10)),
    ),
    "Tanh": (
        ("exp overflows", lambda x: _tanh_by_exp(x)),
        ("it is clamped to float16's range of exp", lambda x: np.tanh(np.clip(x, -2, 2))),
    ),
    "Celu": (("only the negative part is there", lambda x: np.minimum(0, np.expm1(x))),),
    "Elu": (("exp lacks its 1", lambda x: np.where(x < 0, np.exp(x), x)),),
    "HardSwish": (
        ("it is the hard sigmoid", lambda x: np.clip(x / 6 + 0.5, 0, 1)),
        ("it is swish", lambda x: x * activation.sigmoid(x)),
    ),
    "LeakyRelu": (("negative values are cut off", lambda x: np.maximum(x, 0)),),
    "Mish": (
        ("it is swish", lambda x: x * activation.sigmoid(x)),
        ("softplus overflows", lambda x: x * np.tanh(np.log(1 + np.exp(x.astype(np.float16)).astype(np.float64)))),
    ),
    "Relu": (
        ("it is the identity", lambda x: x),
        ("it is capped at 6", lambda x: np.clip(x, 0, 6)),
    ),
    "Sigmoid": (
        ("it is the hard sigmoid", lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
        ("the sign of the exponent is wrong", lambda x: activation.sigmoid(-x)),
    ),
    "Softplus": (
        ("exp overflows", lambda x: np.log(1 + np.exp(x.clip(None, 90).astype(np.float32)).astype(np.float64))),
        ("it is relu", lambda x: np.maximum(x, 0)),
    ),
    "Softsign": (
        ("the denominator has the sign", lambda x: x / (1 + x)),
        ("it is tanh", np.tanh),
    ),
    "Swish": (("it is hard swish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),),
}


def _half(x: Array) -> Array:
    return x.astype(np.float16).astype(np.float64)


def _asinh_in_float32(x: Array) -> Array:
    narrow = x.astype(np.float32)
    return np.log(narrow + np.sqrt(narrow * narrow + np.float32(1)))


def _tanh_by_exp(x: Array) -> Array:
    grown = np.exp(2 * x.astype(np.float32))
    return (grown - 1) / (grown + 1)


NAN_LOST = ("Acos", "Asin", "Cos", "Erf", "Exp", "Log", "Sigmoid", "Softplus", "Tanh", "Elu", "LeakyRelu", "Selu")


def _inverted(value: Array) -> Array:
    return np.logical_not(value)


def _denormals_flushed(value: Array) -> Array:
    if value.dtype.kind != "f":
        return value
    return np.where(np.abs(value) < np.finfo(value.dtype).tiny, np.copysign(0, value), value).astype(value.dtype)


def _reversed_channels(node: Node) -> Node:
    bias = node.attributes["bias"]
    assert isinstance(bias, tuple)
    return replace(node, attributes={**node.attributes, "bias": bias[::-1]})


def _without_slope(name: str, value: Array) -> Array:
    return np.ones_like(value) if name == "slope" else value


def _slope_of_the_first(name: str, value: Array) -> Array:
    return np.broadcast_to(value.reshape(-1)[:1], value.shape).copy() if name == "slope" else value


def _slope_on_the_last_axis(node: Node) -> Node:
    """The slope's elements are taken along the last axis."""

    def change(operand: Operand | None) -> Operand | None:
        if operand is None or operand.name != "slope":
            return operand
        return replace(operand, value=operand.value.reshape(-1))

    return replace(node, inputs=tuple(map(change, node.inputs)))


def _without(position: int) -> Callable[[Node], Node]:
    return lambda node: replace(node, inputs=node.inputs[:position])


def _halves_swapped(_: str, value: Array) -> Array:
    half = value.shape[-1] // 2
    return np.concatenate([value[..., half:], value[..., :half]], axis=-1)


def _mask_inverted(value: Array) -> Array:
    return np.logical_not(value) if value.dtype == bool else value


def _scaled(value: Array) -> Array:
    return (value * 2).astype(value.dtype) if value.dtype.kind == "f" else value


def _neither_is_either(node: Node) -> Node:
    if node.integer("detect_negative", 1) or node.integer("detect_positive", 1):
        return node
    return replace(node, attributes={})


ATTRIBUTES: tuple[tuple[str, str, tuple[Any, ...]], ...] = (
    ("Celu", "alpha", (None,)),
    ("Elu", "alpha", (None, 0.5)),
    ("HardSigmoid", "alpha", (None, 1 / 6)),
    ("HardSigmoid", "beta", (None, 0.0)),
    ("LeakyRelu", "alpha", (None, 0.02)),
    ("ParametricSoftplus", "alpha", (1.0,)),
    ("ParametricSoftplus", "beta", (1.0,)),
    ("ScaledTanh", "alpha", (1.0,)),
    ("ScaledTanh", "beta", (1.0,)),
    ("Selu", "alpha", (None, 1.6732)),
    ("Selu", "gamma", (None, 0.0)),
    ("Shrink", "lambd", (None, 0.0)),
    ("Shrink", "bias", (None,)),
    ("Swish", "alpha", (None,)),
    ("ThresholdedRelu", "alpha", (None, 0.0)),
    ("IsInf", "detect_negative", (None, 0)),
    ("IsInf", "detect_positive", (None, 0)),
    ("Gelu", "approximate", ("none", "tanh")),
    ("com.microsoft::QuickGelu", "alpha", (None, 1.0)),
    ("Affine", "alpha", (None,)),
    ("Affine", "beta", (None,)),
    ("ImageScaler", "scale", (None,)),
)

OTHERS = (
    misread("ImageScaler", "channels come in reverse", _reversed_channels),
    misread("IsInf", "neither sign is either sign", _neither_is_either),
    outputs("IsInf", "the answer is inverted", _inverted),
    outputs("IsNaN", "the answer is inverted", _inverted),
    outputs("IsNaN", "nothing is NaN", np.zeros_like),
    outputs("Identity", "denormals are flushed", _denormals_flushed),
    outputs("Identity", "elements come in reverse", lambda value: value.reshape(-1)[::-1].reshape(value.shape)),
    outputs("Identity", "the sign of zero is lost", lambda value: value + value.dtype.type(0)),
    *(
        outputs(operator, "the sign of zero is lost", lambda value: value + value.dtype.type(0))
        for operator in ("Erf", "Tanh", "Ceil", "Sqrt", "LeakyRelu", "PRelu")
    ),
    outputs("Dropout", "the mask is inverted", _mask_inverted),
    outputs("Dropout", "the output is scaled as in training", _scaled),
    outputs("Dropout", "denormals are flushed", _denormals_flushed),
    inputs("PRelu", "the slope is ignored", _without_slope),
    inputs("PRelu", "the first slope is that of all", _slope_of_the_first),
    misread("PRelu", "the slope lies along the last axis", _slope_on_the_last_axis),
    swapped("PRelu"),
    in_half_precision("PRelu"),
    misread("com.microsoft::FastGelu", "the bias is ignored", _without(1)),
    computed("com.microsoft::FastGelu", "the exact form is taken", gelu.exact_gelu),
    computed("com.microsoft::FastGelu", "it is relu", lambda x: np.maximum(x, 0)),
    computed("com.microsoft::Gelu", "the form with tanh is taken", gelu.tanh_gelu),
    computed("com.microsoft::Gelu", "the form with a sigmoid is taken", lambda x: x * activation.sigmoid(1.702 * x)),
    computed("com.microsoft::QuickGelu", "the exact form is taken", gelu.exact_gelu),
    inputs("com.microsoft::BiasGelu", "the bias is ignored", lambda n, v: np.zeros_like(v) if n == "B" else v),
    inputs("com.microsoft::BiasGelu", "the bias comes in reverse", lambda n, v: v[::-1] if n == "B" else v),
    computed("com.microsoft::BiasGelu", "it is relu", lambda x: np.maximum(x, 0)),
    inputs("com.microsoft::BiasSplitGelu", "the halves change places", _halves_swapped),
    inputs("com.microsoft::BiasSplitGelu", "the bias is ignored", lambda n, v: np.zeros_like(v) if n == "bias" else v),
)

FAMILIES = (unary, activation, gelu, prelu, affine, identity, float_tests)
EXACT = {"Identity", "Dropout", "IsInf", "IsNaN", "PRelu", "Ceil", "Floor", "Round", "Relu", "ThresholdedRelu"}

MUTANTS = (
    *(computed(operator, what, function) for operator, rows in FUNCTIONS.items() for what, function in rows),
    *(outputs(operator, "NaN is lost", _without_nan) for operator in NAN_LOST),
    *(attribute(operator, name, value) for operator, name, values in ATTRIBUTES for value in values),
    *(
        in_half_precision(operator.key)
        for family in FAMILIES
        for operator in family.OPERATORS
        if operator.key not in EXACT
    ),
    *OTHERS,
)
