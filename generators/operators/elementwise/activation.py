"""Activations of one tensor -> DML_ACTIVATION_{CELU,ELU,...,THRESHOLDED_RELU}_OPERATOR_DESC.

Celu, Elu, HardSigmoid, HardSwish, LeakyRelu, Mish, ParametricSoftplus, Relu, ScaledTanh, Selu, Shrink, Sigmoid,
Softplus, Softsign, Swish, ThresholdedRelu; the DML EP has no kernel for HardSwish, Mish and Swish. ScaledTanh and
ParametricSoftplus are ONNX Runtime's, with attributes that have no default.

Sources: the operator pages, and for the bounds the WebNN conformance tests (ULP), to which comes what a formula loses
by cancellation, by the tables of `elementary`. The functions that the pages define operators by cast attributes to
the data's type first: in float16 an attribute may be off by half a ULP. Where a page names a branch by a comparison
and says 'otherwise', NaN takes that one (Shrink, ThresholdedRelu). What max(0, NaN) is no page says, nor what inf / inf
stands for: no sample of Celu, HardSigmoid and Relu has NaN, none of Softsign infinities. The sign of a zero is not
compared. Shrink of integers: no sum leaves their range.
How the DML EP lowers them: DmlOperatorActivation.cpp in ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds, zero_signs
from epcheck.generators.bounds.elementary import VULKAN, Shader, bound_formula
from epcheck.generators.case import CaseContext
from epcheck.generators.citation import Citations, statement
from epcheck.generators.declaration.interaction import ABOVE_GROUPS, DISPATCHED, Interaction, Random
from epcheck.generators.directml import OperatorDesc
from epcheck.generators.directml.descriptions.elementwise import activation
from epcheck.generators.directml.descriptions.elementwise.activation import sigmoid, softplus
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.families import elementwise
from epcheck.generators.families.elementwise import (
    SPECIAL,
    Domain,
    ElementwiseOperator,
    ElementwiseSample,
    both_signs,
    list_small,
)
from epcheck.generators.node import Node, Operand
from epcheck.generators.truth import Output, Outputs, Truth, Ulp, ZeroSigns

DECLARES = (
    "Celu",
    "Elu",
    "HardSigmoid",
    "HardSwish",
    "LeakyRelu",
    "Mish",
    "ParametricSoftplus",
    "Relu",
    "ScaledTanh",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Softplus",
    "Softsign",
    "Swish",
    "ThresholdedRelu",
)

SELECTION = (statement("a comparison and a selection do not round"),)
CANCELLATION = (bounds.WEBNN, replace(VULKAN, purpose="cancellation"))
LIKE_SIGMOID = (bounds.WEBNN.cite_row("sigmoid"), replace(VULKAN, purpose="cancellation"))
ARITHMETIC = (bounds.WEBNN, replace(bounds.D3D, purpose="cancellation"))

Numbers = Mapping[str, float]
"""Attribute name -> value."""


@dataclass(frozen=True)
class Activation:
    """exact: (x, **attributes) in float64. ulps: of the result, and with `floor` for what the formula cancels.

    attributes: the names of those that are numbers. settings: sample name -> attributes worth the samples of ordinary
    values and of the whole range. required: attributes that have no default, for every other sample. describe:
    (tensor, **attributes) -> the DirectML operator; None where the DML EP has none. zeros: who defines the sign of a
    zero; empty where nobody does.
    """

    name: str
    exact: Callable[..., Array]
    ulps: float = 0.0
    citations: Citations = (bounds.WEBNN,)
    floor: Callable[..., Array] | None = None
    half_ulps: float | None = None
    attributes: tuple[str, ...] = ()
    settings: Mapping[str, Numbers] = field(default_factory=dict)
    required: Numbers = field(default_factory=dict)
    domain: Domain = field(default_factory=Domain)
    describe: Callable[..., OperatorDesc] | None = None
    zeros: str = ""


NO_NAN = tuple(value for value in SPECIAL if not np.isnan(value))
NO_INFINITY = tuple(value for value in SPECIAL if not np.isinf(value))


def _list_large(info: Any) -> list[float]:
    """Where exp overflows, or its reciprocal does, and beyond."""
    end = float(np.log(np.float64(info.max)))
    values = (8.0, 10.0, 16.0, 20.0, end - 1, end + 1, 2 * end, 1000.0, 30000.0, float(info.max) / 4, float(info.max))
    return both_signs(*values)


def _negative_tail(info: Any) -> list[float]:
    """Where 1 + exp(x) is 1 and the result still is no zero."""
    return [-float(x) for x in np.linspace(1, -np.log(np.float64(info.tiny)) - 0.5, 24)]


SATURATION = {"small": list_small, "large": _list_large}


def _expm1_floor(shader: Shader, x: Array) -> Array:
    """exp(x) - 1 for x <= 0: exp(x) is off by (3 + 2 |x|) exp(x) ULP of 1, at most 3, and the difference rounds."""
    return np.full_like(x, 4 * shader.eps)


def _linear_floor(shader: Shader, product: Array, addend: float, end: float) -> Array:
    """alpha x + beta with two roundings and two casts; beyond `end` the result is clamped whatever it is off by."""
    return 2 * shader.eps * (np.minimum(np.abs(product), end + abs(addend)) + abs(addend))


def _softplus_floor(shader: Shader, x: Array) -> Array:
    """ln(exp(x) + 1): exp turned into an error of the logarithm, the sum's rounding, and the logarithm's own."""
    return shader.of_exp(x) * sigmoid(x) + shader.eps + shader.of_log(1 + np.exp(np.minimum(x, 80)))


def _sigmoid_floor(shader: Shader, x: Array) -> Array:
    return shader.of_exp(x) * sigmoid(x) * sigmoid(-x)


def _surround_threshold(threshold: float) -> Callable[[Any], list[float]]:
    """Values of the dtype on both sides of a threshold and of its opposite, and on them."""

    def limits(info: Any) -> list[float]:
        ends = np.array([threshold, -threshold], info.dtype)
        beside = [np.nextafter(ends, ends.dtype.type(toward)) for toward in (np.inf, -np.inf)]
        return [float(value) for value in np.concatenate([ends, *beside])]

    return limits


def _celu(x: Array, alpha: float) -> Array:
    return np.maximum(0, x) + np.minimum(0, alpha * np.expm1(x / alpha))


def _shrink(x: Array, lambd: float, bias: float) -> Array:
    return np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0))


def _hard_swish(x: Array) -> Array:
    return x * np.clip(x / 6 + 0.5, 0, 1)


def _settings(name: str, *values: float) -> dict[str, Numbers]:
    """Settings of one attribute, by readable names: `alpha_minus_0_5`."""
    return {f"{name}_{_write_number(value)}": {name: value} for value in values}


def _write_number(value: float) -> str:
    return f"{value:g}".replace("-", "minus_").replace(".", "_").replace("+", "")


ACTIVATIONS = (
    Activation(
        "Celu",
        _celu,
        18,
        CANCELLATION,
        lambda s, x, _, alpha: abs(alpha) * _expm1_floor(s, x) + s.eps * np.abs(x) * np.exp(np.minimum(x / alpha, 0)),
        attributes=("alpha",),
        settings=_settings("alpha", 0.25, 0.5, 2.0, 16.0, 1000.0),
        domain=Domain(special=NO_NAN, limits=SATURATION),
        describe=activation.Celu,
    ),
    Activation(
        "Elu",
        lambda x, alpha: np.where(x < 0, alpha * np.expm1(x), x),
        18,
        CANCELLATION,
        lambda s, x, _, alpha: abs(alpha) * _expm1_floor(s, x),
        attributes=("alpha",),
        settings=_settings("alpha", 0.0, 0.25, 2.0, -0.5, 1000.0),
        domain=Domain(limits=SATURATION),
        describe=activation.Elu,
    ),
    Activation(
        "HardSigmoid",
        lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
        2,
        ARITHMETIC,
        lambda s, x, _, alpha, beta: _linear_floor(s, alpha * x, beta, 1),
        attributes=("alpha", "beta"),
        settings={
            **_settings("alpha", 0.0, 0.5, -0.5, 4.0),
            **_settings("beta", 0.0, 0.25, -0.25, 2.0, -2.0),
            "alpha_0_5_beta_0_25": {"alpha": 0.5, "beta": 0.25},
        },
        domain=Domain(special=NO_NAN, limits={"corners": lambda _: both_signs(2.4, 2.5, 2.6, 3.0, 1000.0)}),
        describe=activation.HardSigmoid,
    ),
    Activation(
        "HardSwish",
        _hard_swish,
        4,
        ARITHMETIC,
        lambda s, x, _: np.minimum(np.abs(x), 4) * _linear_floor(s, x / 6, 0.5, 1),
        domain=Domain(
            special=(np.nan, np.inf, 0.0, -0.0), limits={"corners": lambda _: both_signs(2.9, 3.0, 3.1, 1000.0)}
        ),
    ),
    Activation(
        "LeakyRelu",
        lambda x, alpha: np.where(x < 0, alpha * x, x),
        1,
        half_ulps=2,
        attributes=("alpha",),
        settings=_settings("alpha", 0.0, 0.25, 1.0, 2.0, -0.5, 1000.0),
        describe=activation.LeakyRelu,
        zeros=zero_signs.LINEAR,
    ),
    Activation(
        "Mish",
        lambda x: x * np.tanh(softplus(x)),
        34,
        LIKE_SIGMOID,
        lambda s, x, _: np.abs(x) * (s.of_tanh(softplus(x)) + _softplus_floor(s, x) / np.cosh(softplus(x)) ** 2),
        domain=Domain(special=(np.nan, np.inf, 0.0, -0.0), limits={**SATURATION, "negative_tail": _negative_tail}),
    ),
    Activation(
        "ParametricSoftplus",
        lambda x, alpha, beta: alpha * softplus(beta * x),
        18,
        CANCELLATION,
        lambda s, x, _, alpha, beta: abs(alpha) * _softplus_floor(s, beta * x),
        attributes=("alpha", "beta"),
        settings={**_settings("alpha", 0.5, 2.0, -1.0), **_settings("beta", 0.5, 2.0, -1.0)},
        required={"alpha": 1.0, "beta": 1.0},
        domain=Domain(limits={**SATURATION, "negative_tail": _negative_tail}),
        describe=activation.ParametricSoftplus,
    ),
    Activation(
        "Relu",
        lambda x: np.maximum(0, x),
        0,
        SELECTION,
        domain=Domain(special=NO_NAN),
        describe=activation.Relu,
    ),
    Activation(
        "ScaledTanh",
        lambda x, alpha, beta: alpha * np.tanh(beta * x),
        7,
        CANCELLATION,
        lambda s, x, _, alpha, beta: abs(alpha) * (s.of_tanh(beta * x) + s.eps),
        attributes=("alpha", "beta"),
        settings={**_settings("alpha", 0.5, 2.0, -1.0), **_settings("beta", 0.5, 2.0, -1.0)},
        required={"alpha": 1.0, "beta": 1.0},
        domain=Domain(limits=SATURATION),
        describe=activation.ScaledTanh,
    ),
    Activation(
        "Selu",
        lambda x, alpha, gamma: gamma * np.where(x > 0, x, alpha * np.expm1(x)),
        18,
        CANCELLATION,
        lambda s, x, _, alpha, gamma: abs(alpha * gamma) * _expm1_floor(s, x),
        attributes=("alpha", "gamma"),
        settings={
            **_settings("alpha", 0.0, 0.5, 4.0, -0.5),
            **_settings("gamma", 0.5, 4.0, -0.5),
            "alpha_2_gamma_3": {"alpha": 2.0, "gamma": 3.0},
        },
        domain=Domain(limits=SATURATION),
        describe=activation.ScaledElu,
    ),
    Activation(
        "Shrink",
        _shrink,
        1,
        attributes=("lambd", "bias"),
        settings={
            **_settings("lambd", 0.0, 1.5, 3.0),
            **_settings("bias", 0.25, -0.25),
            "lambd_1_bias_1": {"lambd": 1.0, "bias": 1.0},
            "lambd_2_bias_3": {"lambd": 2.0, "bias": 3.0},
        },
        domain=Domain(limits={"beside_lambd": _surround_threshold(0.5)}),
        describe=lambda tensor, output, lambd, bias: activation.Shrink(tensor, output, bias=bias, threshold=lambd),
    ),
    Activation(
        "Sigmoid",
        sigmoid,
        34,
        CANCELLATION,
        lambda s, x, _: _sigmoid_floor(s, x),
        half_ulps=3,
        domain=Domain(limits={**SATURATION, "negative_tail": _negative_tail}),
        describe=activation.Sigmoid,
    ),
    Activation(
        "Softplus",
        softplus,
        18,
        CANCELLATION,
        lambda s, x, _: _softplus_floor(s, x),
        domain=Domain(limits={**SATURATION, "negative_tail": _negative_tail}),
        describe=activation.Softplus,
    ),
    Activation(
        "Softsign",
        lambda x: x / (1 + np.abs(x)),
        3,
        domain=Domain(special=NO_INFINITY, limits={"large": lambda info: _list_large(info)[:-2]}),
        describe=activation.Softsign,
    ),
    Activation(
        "Swish",
        lambda x, alpha: x * sigmoid(alpha * x),
        34,
        LIKE_SIGMOID,
        lambda s, x, _, alpha: (
            np.abs(x) * (_sigmoid_floor(s, alpha * x) + s.eps * np.abs(alpha * x) * sigmoid(alpha * x))
        ),
        attributes=("alpha",),
        settings=_settings("alpha", 0.0, 0.5, 2.0, -1.0),
        domain=Domain(special=(np.nan, np.inf, 0.0, -0.0), limits={**SATURATION, "negative_tail": _negative_tail}),
    ),
    Activation(
        "ThresholdedRelu",
        lambda x, alpha: np.where(x > alpha, x, 0),
        0,
        SELECTION,
        attributes=("alpha",),
        settings=_settings("alpha", 0.0, 0.25, 2.0, -0.5, 1000.0),
        domain=Domain(limits={"beside_alpha": _surround_threshold(1.0)}),
        describe=activation.ThresholdedRelu,
    ),
)

OF_INTEGERS: dict[str, dict[str, tuple[tuple[str, float], ...]]] = {
    "Relu": {"integers": ()},
    "Shrink": {
        "integers": (("lambd", 3.0), ("bias", 2.0)),
        "integers_lambd_between": (("lambd", 2.5), ("bias", 2.0)),
    },
}
"""The operators that some version allows integers for -> samples, with attributes that mean the same in every type."""


def samples(row: Activation) -> Iterator[ElementwiseSample]:
    attributes = tuple(row.required.items())
    for sample in elementwise.samples(row.domain):
        yield ElementwiseSample(**{**vars(sample), "attributes": attributes})
    for name, numbers in row.settings.items():
        attributes = tuple({**row.required, **numbers}.items())
        yield ElementwiseSample(name=name, shape=(5, 9), attributes=attributes, every_dtype=True)
        yield ElementwiseSample(name=f"{name}_long", shape=(1031,), attributes=attributes)
    if row.name == "Relu":
        yield ElementwiseSample(name="boundary", values="boundary")
    for name, own in OF_INTEGERS.get(row.name, {}).items():
        yield ElementwiseSample(name=name, values="small_integers", attributes=own)


def node(row: Activation, sample: ElementwiseSample, context: CaseContext) -> Node:
    """One tensor of any shape, and a result of the same type and shape."""
    definition = schema.schema(row.name, context.since_version)
    value = elementwise.values_of(sample, row.domain, context.dtype, context.rng)
    operand = Operand(definition.inputs[0].name, value)
    return Node(row.name, "", context.since_version, (operand,), (definition.outputs[0].name,), dict(sample.attributes))


def numbers_of(row: Activation, node: Node) -> dict[str, float]:
    """The attributes of a node, defaults of its schema included. KeyError for one that is missing without default."""
    return {name: node.number(name, _default(node, name)) for name in row.attributes}


def _default(node: Node, name: str) -> float:
    if name in node.attributes:
        return 0.0
    return float(schema.default_attributes(node.op_type, node.since_version, node.domain)[name])


def truth(row: Activation, node: Node) -> Truth:
    """The formula in float64, rounded once; of integers exactly."""
    (operand,) = node.inputs
    assert operand is not None
    numbers, dtype = numbers_of(row, node), operand.value.dtype
    if dtype.kind != "f":
        return Outputs((Output(node.outputs[0], _shrink_integers(row, operand.value, numbers)),))
    x = elementwise.widen_floats(operand.value)
    with np.errstate(all="ignore"):
        y = np.asarray(row.exact(x, **numbers))
        bound = _bound(row, x, y, dtype, numbers)
    zeros = ZeroSigns(row.zeros) if row.zeros else None
    return Outputs((bounds.round_output(node.outputs[0], y, dtype, bound, zeros),))


def _shrink_integers(row: Activation, x: Array, numbers: Numbers) -> Array:
    if row.name == "Relu":
        return np.asarray(np.maximum(x, x.dtype.type(0)))
    whole = {name: int(value) for name, value in numbers.items()}
    return np.asarray(_shrink(x.astype(np.int64), **whole)).astype(x.dtype)


def _bound(row: Activation, x: Array, y: Array, dtype: np.dtype[Any], numbers: Numbers) -> Ulp:
    ulps = row.half_ulps if row.half_ulps is not None and dtype == np.float16 else row.ulps
    floor = row.floor
    return bound_formula(ulps, row.citations, dtype, None if floor is None else lambda s: floor(s, x, y, **numbers))


def lower(row: Activation, node: Node) -> Lowering | None:
    """Rank padded to 4, attributes as they are; None for the operators without a kernel."""
    (operand,) = node.inputs
    describe = row.describe
    assert operand is not None
    if describe is None:
        return None
    numbers = numbers_of(row, node)
    return elementwise.lower_tensor(operand.value, lambda tensor: describe(tensor, tensor, **numbers))


OPERATORS = tuple(
    ElementwiseOperator(
        row.name,
        partial(samples, row),
        elementwise.bindings,
        partial(node, row),
        partial(truth, row),
        partial(lower, row),
        gives_fractions=row.name == "Shrink",
        propagates=("NaN",),
        interactions=(Interaction(ABOVE_GROUPS, (Random((DISPATCHED, 64)),)),) if row.name == "Relu" else (),
    )
    for row in ACTIVATIONS
)
