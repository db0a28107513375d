"""Affine-1 -> DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC with a DML_SCALE_BIAS, ImageScaler-1 -> DML_VALUE_SCALE_2D.

ONNX Runtime's own operators in the domain of ONNX: Affine is alpha x + beta, by default 1 and 0; ImageScaler takes
[N, C, H, W] and is scale x + bias[c], scale 1 by default, bias one number for each channel (contrib_defs.cc).
Bound: WebNN conformance tests, linear, 2 ULP, and two roundings of each term where the sum cancels; float16 attributes
are rounded first. Infinities are left out where 0 times infinity arises.
How the DML EP lowers them: DmlOperatorAffine.cpp and DmlOperatorValueScale2D.cpp in ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.bounds.elementary import bound_formula
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.directml.descriptions.elementwise.unary import ElementWiseIdentity
from epcheck.generators.directml.descriptions.elementwise.value_scale_2d import ValueScale2D
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.families import elementwise
from epcheck.generators.families.elementwise import Domain, ElementwiseOperator, ElementwiseSample
from epcheck.generators.node import Node, Operand
from epcheck.generators.truth import Outputs, Refusal, Truth, Ulp

DECLARES = (
    "Affine",
    "ImageScaler",
)

WEBNN_LINEAR = bounds.WEBNN.cite_row("linear")
DOMAIN = Domain(reach=1e4, special=(np.nan, np.inf, -np.inf, 0.0, -0.0))

SETTINGS: dict[str, tuple[tuple[str, float], ...]] = {
    "alpha_2": (("alpha", 2.0),),
    "alpha_minus_0_5": (("alpha", -0.5),),
    "beta_3": (("beta", 3.0),),
    "beta_minus_0_25": (("beta", -0.25),),
    "alpha_0_beta_5": (("alpha", 0.0), ("beta", 5.0)),
    "alpha_3_beta_minus_1": (("alpha", 3.0), ("beta", -1.0)),
    "alpha_1000_beta_1000": (("alpha", 1000.0), ("beta", 1000.0)),
    "alpha_1_beta_0": (("alpha", 1.0), ("beta", 0.0)),
}


def affine_samples() -> Iterator[ElementwiseSample]:
    both = (("alpha", 0.75), ("beta", 1.5))
    for sample in elementwise.samples(DOMAIN):
        yield replace(sample, attributes=both)
    yield ElementwiseSample(name="defaults", shape=(5, 9), every_dtype=True)
    for name, attributes in SETTINGS.items():
        yield ElementwiseSample(name=name, shape=(5, 9), attributes=attributes, every_dtype=True)


def affine_node(sample: ElementwiseSample, context: CaseContext) -> Node:
    """X of any shape, Y of the same."""
    value = elementwise.values_of(sample, DOMAIN, context.dtype, context.rng)
    return Node("Affine", "", context.since_version, (Operand("X", value),), ("Y",), dict(sample.attributes))


def affine_truth(node: Node) -> Truth:
    """alpha x + beta in float64, rounded once."""
    x = elementwise.widen_floats(node.array("X"))
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 0.0)
    y = alpha * x + beta
    return Outputs(
        (bounds.round_output("Y", y, node.array("X").dtype, _bound(alpha * x, beta, node.array("X").dtype)),)
    )


def _bound(product: Array, addend: float | Array, dtype: np.dtype[Any]) -> Ulp:
    return bound_formula(2, (WEBNN_LINEAR,), dtype, lambda s: 2 * s.eps * (np.abs(product) + np.abs(addend)))


def affine_lower(node: Node) -> Lowering | None:
    """Rank padded to 4; the identity with scale and bias."""
    scale_bias = (node.number("alpha", 1.0), node.number("beta", 0.0))
    return elementwise.lower_tensor(node.array("X"), lambda tensor: ElementWiseIdentity(tensor, tensor, scale_bias))


@dataclass(frozen=True, kw_only=True)
class ScalerSample(ElementwiseSample):
    """bias: of each channel; None takes as many different ones as there are channels."""

    bias: tuple[float, ...] | None = None


def scaler_samples() -> Iterator[ScalerSample]:
    yield ScalerSample(name="ordinary", shape=(2, 3, 4, 5), every_dtype=True, every_binding=True)
    shapes: dict[str, tuple[int, ...]] = {
        "one_channel": (2, 1, 3, 4),
        "two_channels": (1, 2, 3, 3),
        "many_channels": (1, 37, 2, 3),
        "one_pixel": (2, 3, 1, 1),
        "beyond_a_thread_group": (1, 3, 19, 23),
        "size_0": (0, 3, 2, 2),
    }
    for name, shape in shapes.items():
        yield ScalerSample(name=name, shape=shape)
        yield ScalerSample(name=f"{name}_scale_2", shape=shape, attributes=(("scale", 2.0),), every_dtype=True)
    for name, scale in (("scale_0", 0.0), ("scale_minus_1", -1.0), ("scale_1", 1.0), ("scale_0_125", 0.125)):
        yield ScalerSample(name=name, shape=(2, 3, 4, 5), attributes=(("scale", scale),), every_dtype=True)
    yield ScalerSample(name="bias_0", shape=(2, 3, 4, 5), bias=(0.0, 0.0, 0.0))
    yield ScalerSample(name="bias_of_both_signs", shape=(2, 3, 4, 5), bias=(-100.0, 0.5, 100.0), every_dtype=True)
    yield ScalerSample(name="special", shape=(1, 1, 1, 5), values="special", bias=(1.0,), every_dtype=True)
    yield expect_refusal(ScalerSample(name="bias_too_short", shape=(2, 3, 4, 5), bias=(1.0, 2.0)))
    yield expect_refusal(ScalerSample(name="bias_too_long", shape=(2, 3, 4, 5), bias=(1.0, 2.0, 3.0, 4.0)))
    yield expect_refusal(ScalerSample(name="rank_3", rank=3, shape=(3, 4, 5), bias=(1.0, 2.0, 3.0)))


def scaler_node(sample: ScalerSample, context: CaseContext) -> Node:
    """input [N, C, H, W], output of the same shape."""
    value = elementwise.values_of(sample, DOMAIN, context.dtype, context.rng)
    if sample.values != "ordinary":
        value = value.reshape(sample.shape)
    bias = tuple(1.5 * c - 2.0 for c in range(sample.shape[1])) if sample.bias is None else sample.bias
    attributes = {**dict(sample.attributes), "bias": bias}
    return Node("ImageScaler", "", context.since_version, (Operand("input", value),), ("output",), attributes)


def _bias(node: Node) -> tuple[float, ...]:
    bias = node.attributes["bias"]
    assert isinstance(bias, tuple)
    return tuple(float(np.float32(value)) for value in bias)


def scaler_truth(node: Node) -> Truth:
    """scale x + bias[c] in float64, rounded once."""
    dtype, x, bias = node.array("input").dtype, elementwise.widen_floats(node.array("input")), _bias(node)
    if x.ndim != 4:
        return Refusal(f"the input must be [N, C, H, W]; it has rank {x.ndim}")
    if len(bias) != x.shape[1]:
        return Refusal(f"bias has {len(bias)} numbers for {x.shape[1]} channels")
    product, addend = node.number("scale", 1.0) * x, np.array(bias).reshape(-1, 1, 1)
    return Outputs((bounds.round_output("output", product + addend, dtype, _bound(product, addend, dtype)),))


def scaler_lower(node: Node) -> Lowering | None:
    """The operator of the same name; None for what must be refused."""
    value, bias = node.array("input"), _bias(node)
    if value.ndim != 4 or len(bias) != value.shape[1]:
        return None
    scale = node.number("scale", 1.0)
    return elementwise.lower_tensor(value, lambda tensor: ValueScale2D(tensor, tensor, scale, bias))


OPERATORS = (
    ElementwiseOperator("Affine", affine_samples, elementwise.bindings, affine_node, affine_truth, affine_lower),
    ElementwiseOperator("ImageScaler", scaler_samples, elementwise.bindings, scaler_node, scaler_truth, scaler_lower),
)
