"""SwiGLU-28: Swish of one tensor times another, a sigmoid(alpha a) b.

Source: the SwiGLU page. Both inputs have one shape, without broadcasting; alpha is 1 by default. Infinities are left
out where infinity times 0 arises: a of -inf, and a b of 0 or infinity beside what Swish makes of a.

Bound: that of Swish, `activation.py`, and one more rounding for the product with b; what Swish's cancellation may
cause is as much larger as b is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.bounds.elementary import Shader, bound_formula
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.families import elementwise
from epcheck.generators.families.elementwise import Domain, ElementwiseOperator, ElementwiseSample
from epcheck.generators.node import Node, Operand
from epcheck.generators.operator import NO_KERNEL
from epcheck.generators.operators.elementwise.activation import LIKE_SIGMOID, SATURATION
from epcheck.generators.oracle_math.activations import sigmoid
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = ("SwiGLU",)

DOMAIN = Domain(
    special=(np.nan, np.inf, 0.0, -0.0),
    limits={
        **SATURATION,
        "negative_tail": lambda info: [-float(x) for x in np.linspace(1, -np.log(np.float64(info.tiny)) - 2, 24)],
    },
)

SWISH_ULPS = 34
"""WebNN conformance tests: sigmoid within 34 ULP."""

SETTINGS = {"alpha_0": 0.0, "alpha_0_5": 0.5, "alpha_1": 1.0, "alpha_1_702": 1.702, "alpha_minus_1": -1.0}


@dataclass(frozen=True, kw_only=True)
class SwiGLUSample(ElementwiseSample):
    """b_shape: None is that of a. factor: 'ordinary' values of b, 'nan', 'zeros' of both signs, or 'large'."""

    b_shape: tuple[int, ...] | None = None
    factor: str = "ordinary"


def samples() -> Iterator[SwiGLUSample]:
    for sample in elementwise.samples(DOMAIN):
        yield SwiGLUSample(**vars(sample))
    for name, alpha in SETTINGS.items():
        sample = SwiGLUSample(name=name, shape=(5, 9), attributes=(("alpha", alpha),), every_dtype=True)
        yield sample
        yield replace(sample, name=f"{name}_long", shape=(1031,), every_dtype=False)
    for factor in ("nan", "zeros", "large"):
        yield SwiGLUSample(name=f"b_{factor}", factor=factor, every_dtype=True)
    for name, b_shape in (("row", (7,)), ("scalar", ()), ("column", (3, 1)), ("longer", (3, 8)), ("outer", (1, 3, 7))):
        yield expect_refusal(SwiGLUSample(name=f"b_{name}", b_shape=b_shape))


def bindings(sample: SwiGLUSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """b is data, as a is, so that an initializer would be the constant binding. What is refused for its shapes is so
    when the model is loaded, where they are static."""
    ways = elementwise.bindings(sample, since_version, dtypes)
    is_first = sample.b_shape is not None and dtypes == ("float32",)
    return (*ways, graph.CONSTANT) if is_first else ways


def node(sample: SwiGLUSample, context: CaseContext) -> Node:
    """A and B of any shape, the same, and Y of it."""
    a = elementwise.values_of(sample, DOMAIN, context.dtype, context.rng)
    b = _factors(sample, a.shape if sample.b_shape is None else sample.b_shape, context.dtype, context.rng)
    operands = (Operand("A", a), Operand("B", b))
    return Node("SwiGLU", "", context.since_version, operands, ("Y",), dict(sample.attributes))


def _factors(sample: SwiGLUSample, shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Ordinary ones are neither 0 nor so large that a product with the range of a overflows and comes back."""
    if sample.values != "ordinary":
        return np.asarray(rng.choice([-1.0, -0.5, 0.5, 1.0], shape)).astype(dtype)
    values = np.asarray(rng.uniform(0.25, 4, shape) * rng.choice([-1.0, 1.0], shape))
    match sample.factor:
        case "nan":
            values.flat[::3] = np.nan
        case "zeros":
            values.flat[::3], values.flat[1::3] = 0.0, -0.0
        case "large":
            values = values * (float(np.finfo(dtype).max) / 64)
    return values.astype(dtype)


def truth(node: Node) -> Truth:
    """The formula in float64, rounded once."""
    left, right = node.array("A"), node.array("B")
    if left.shape != right.shape:
        return Refusal(f"A has shape {left.shape} and B {right.shape}; they must be identical, without broadcasting")
    a, b, alpha = elementwise.widen_floats(left), elementwise.widen_floats(right), node.number("alpha", 1.0)

    def floor(shader: Shader) -> Array:
        x = alpha * a
        off = shader.of_exp(x) * sigmoid(x) * sigmoid(-x) + shader.eps * np.abs(x) * sigmoid(x)
        return np.asarray((np.abs(a) * off + _flush_denormals(a, left.dtype)) * np.abs(b))

    with np.errstate(all="ignore"):
        y = a * sigmoid(alpha * a) * b
        bound = bound_formula(SWISH_ULPS + 1, LIKE_SIGMOID, left.dtype, floor)
    return Outputs((bounds.round_output("Y", y, left.dtype, bound),))


def _flush_denormals(a: Array, dtype: np.dtype[Any]) -> Array:
    """A denormal sigmoid or Swish may be zero (D3D), and what follows multiplies that."""
    return np.asarray(float(bounds.finfo(dtype).tiny) * np.maximum(np.nan_to_num(np.abs(a), nan=0.0, posinf=0.0), 1.0))


OPERATORS = (ElementwiseOperator("SwiGLU", samples, bindings, node, truth, NO_KERNEL),)
