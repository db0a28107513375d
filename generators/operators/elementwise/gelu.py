"""Gelu and its kin -> DML_ACTIVATION_GELU_OPERATOR_DESC.

Gelu-20 (no kernel in the DML EP), com.microsoft::Gelu, ::BiasGelu, ::FastGelu, ::QuickGelu, ::BiasSplitGelu.

Sources: the page of Gelu-20 (approximate 'none': 0.5 x (1 + erf(x / sqrt 2)), 'tanh': 0.5 x (1 + tanh(sqrt(2 / pi)
(x + 0.044715 x^3)))) and ONNX Runtime's ContribOperators.md: BiasGelu is Gelu(A + B) with B along the last axis,
FastGelu the tanh form of X + bias, QuickGelu x sigmoid(alpha x) with alpha 1.702 by default, BiasSplitGelu the left
half of the last axis of X + bias times Gelu of the right one. Infinities are left out: 0 times one is no number.
Bounds: WebNN's 18 ULP for gelu, measured where 1 + erf does not cancel, that is of x / 2.
How the DML EP lowers them: Gelu is ACTIVATION_GELU, BiasGelu and FastGelu are ADD1 with that fused (so FastGelu is no
tanh there), the other two are graphs of several operators and have no description here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.bounds.elementary import VULKAN, Shader, bound_formula
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.citation import Citations, statement
from epcheck.generators.directml.descriptions.elementwise import activation
from epcheck.generators.directml.descriptions.elementwise.activation import sigmoid
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.families import elementwise
from epcheck.generators.families.elementwise import Domain, ElementwiseOperator, ElementwiseSample, both_signs
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operators.elementwise.activation import LIKE_SIGMOID
from epcheck.generators.truth import Outputs, Refusal, Truth, Ulp

DECLARES = (
    "Gelu",
    "com.microsoft::Gelu",
    "com.microsoft::FastGelu",
    "com.microsoft::QuickGelu",
    "com.microsoft::BiasGelu",
    "com.microsoft::BiasSplitGelu",
)

MS = "com.microsoft"
WEBNN_GELU = (bounds.WEBNN.cite_row("gelu").add_remark("18 ULP"), statement("cancellation of 1 + erf"))
ULPS = 18
QUICK_ALPHA = 1.702


def _tail(_: Any) -> list[float]:
    """Where 1 + erf or 1 + tanh cancels."""
    return [-float(x) for x in np.linspace(1, 13, 25)]


def _list_large(info: Any) -> list[float]:
    values = (6.0, 9.0, 14.0, 20.0, 40.0, 100.0, 1000.0, 30000.0, float(info.max) / 4)
    return both_signs(*values)


def _list_small(info: Any) -> list[float]:
    values = (float(info.tiny) * 4, float(info.eps), float(info.eps) ** 0.5, 0.01, 0.1)
    return both_signs(*values)


DOMAIN = Domain(special=(np.nan, 0.0, -0.0), limits={"tail": _tail, "large": _list_large, "small": _list_small})


def exact_gelu(x: Array) -> Array:
    """x times the normal distribution function; erfc keeps the tail of negative x."""
    return x * 0.5 * _erfc(-x / np.sqrt(2))


def _erfc(x: Array) -> Array:
    return np.array([math.erfc(value) for value in x.ravel()], np.float64).reshape(x.shape)


def tanh_gelu(x: Array) -> Array:
    """0.5 x (1 + tanh u) = x sigmoid(2 u), which keeps the tail of negative x."""
    return x * sigmoid(2 * _inner(x))


def _inner(x: Array) -> Array:
    return np.asarray(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))


def _exact_floor(shader: Shader, x: Array) -> Array:
    return ULPS * shader.eps * np.abs(x) / 2


def _tanh_floor(shader: Shader, x: Array) -> Array:
    u = _inner(x)
    argument_off = 4 * shader.eps * np.abs(u) / np.cosh(np.clip(u, -300, 300)) ** 2
    return np.asarray(np.abs(x) / 2 * (shader.of_tanh(u) + argument_off + shader.eps))


def _quick_floor(shader: Shader, x: Array, alpha: float) -> Array:
    u = alpha * x
    return np.abs(x) * sigmoid(u) * sigmoid(-u) * (shader.of_exp(u) + 2 * shader.eps * np.abs(u))


@dataclass(frozen=True)
class Form:
    """A form of the function, with the ULP and the floor of its result."""

    exact: Callable[..., Array]
    floor: Callable[..., Array]
    ulps: float
    citations: Citations


FORMS = {
    "none": Form(exact_gelu, _exact_floor, ULPS, WEBNN_GELU),
    "tanh": Form(tanh_gelu, _tanh_floor, ULPS, (*WEBNN_GELU, VULKAN)),
    "quick": Form(lambda x, alpha: x * sigmoid(alpha * x), _quick_floor, 34, LIKE_SIGMOID),
}


@dataclass(frozen=True)
class Member:
    """bias: what the operator does with a second input: 'none', 'optional', 'added' or 'split'."""

    name: str
    domain: str = ""
    form: str = "none"
    bias: str = "none"


MEMBERS = (
    Member("Gelu"),
    Member("Gelu", MS),
    Member("FastGelu", MS, form="tanh", bias="optional"),
    Member("QuickGelu", MS, form="quick"),
    Member("BiasGelu", MS, bias="added"),
    Member("BiasSplitGelu", MS, bias="split"),
)


@dataclass(frozen=True, kw_only=True)
class GeluSample(ElementwiseSample):
    """bias: the size of the second input; None leaves it out."""

    bias: int | None = None


def samples(member: Member) -> Iterator[GeluSample]:
    """With a bias, values are boundary ones where the bias is 0 (the first rows) and the bias ordinary elsewhere."""
    if member.bias in ("none", "optional"):
        for sample in elementwise.samples(DOMAIN):
            yield GeluSample(**vars(sample))
    if member.name == "Gelu" and not member.domain:
        for approximate in ("none", "tanh"):
            for sample in elementwise.value_samples(DOMAIN, f"{approximate}_", approximate=approximate):
                yield GeluSample(**vars(sample))
            yield GeluSample(
                name=approximate, shape=(5, 31), attributes=(("approximate", approximate),), every_dtype=True
            )
    if member.form == "quick":
        for name, alpha in (("alpha_0", 0.0), ("alpha_1", 1.0), ("alpha_minus_1", -1.0), ("alpha_4", 4.0)):
            yield GeluSample(name=name, shape=(5, 31), attributes=(("alpha", alpha),), every_dtype=True)
            yield GeluSample(name=f"{name}_long", shape=(1031,), attributes=(("alpha", alpha),))
    if member.bias != "none":
        yield from _list_biased(member)


def _list_biased(member: Member) -> Iterator[GeluSample]:
    split = member.bias == "split"
    shapes: dict[str, tuple[int, ...]] = {
        "bias": (2, 3, 8),
        "bias_size_2": (3, 1, 2),
        "bias_of_one_row": (1, 1, 64),
        "bias_odd": (3, 5, 22),
        "bias_beyond_a_thread_group": (2, 3, 1026),
        "bias_of_many_rows": (31, 33, 4),
        "bias_and_size_0": (2, 0, 4),
    }
    if not split:
        shapes |= {
            "bias_rank_1": (7,),
            "bias_rank_2": (5, 9),
            "bias_rank_4": (2, 3, 5, 7),
            "bias_rank_5": (2, 1, 3, 2, 5),
        }
    for name, shape in shapes.items():
        rank, is_plain = len(shape) if len(shape) > 3 else None, name == "bias"
        yield GeluSample(
            name=name, rank=rank, shape=shape, bias=shape[-1], every_dtype=is_plain, every_binding=is_plain
        )
    for kind in ("special", "tail", "large", "small"):
        yield GeluSample(name=f"bias_{kind}", shape=(0,), values=kind, bias=0, every_dtype=True)
    yield expect_refusal(GeluSample(name="bias_too_short", shape=(2, 3, 8), bias=4))
    yield expect_refusal(GeluSample(name="bias_too_long", shape=(2, 3, 8), bias=16))


def bindings(sample: GeluSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if sample.bias is None:
        return elementwise.bindings(sample, since_version, dtypes)
    if dtypes != ("float32",) and not sample.every_dtype:
        return ()
    if not sample.every_binding:
        return (graph.INITIALIZER,)
    return tuple(graph.BINDINGS) if dtypes == ("float32",) else (graph.INITIALIZER, graph.RUNTIME)


def node(member: Member, sample: GeluSample, context: CaseContext) -> Node:
    """X of any shape, and where the operator has one a bias of the size of its last axis."""
    formals = schema.schema(member.name, context.since_version, member.domain).inputs
    x, rng = elementwise.values_of(sample, DOMAIN, context.dtype, context.rng), context.rng
    operands = [Operand(formals[0].name, x)]
    if sample.bias is not None:
        size = sample.bias or x.size * (2 if member.bias == "split" else 1)
        bias = rng.uniform(-1, 1, size).astype(context.dtype)
        if sample.values != "ordinary":
            x, bias = _pair_rows(member, x, bias)
        operands = [Operand(formals[0].name, x), Operand(formals[1].name, bias, parameter=True)]
    attributes: dict[str, Attribute] = dict(sample.attributes)
    result = schema.schema(member.name, context.since_version, member.domain).outputs[0].name
    return Node(member.name, member.domain, context.since_version, tuple(operands), (result,), attributes)


def _pair_rows(member: Member, x: Array, bias: Array) -> tuple[Array, Array]:
    """Boundary values as one row with a bias of 0; before them, where halves are split, a row of ordinary factors."""
    if member.bias != "split":
        return x.reshape(1, 1, -1), np.zeros_like(bias)
    left = np.linspace(0.5, 2, x.size).astype(x.dtype)
    return np.concatenate([left, x]).reshape(1, 1, -1), np.zeros_like(bias)


def truth(member: Member, node: Node) -> Truth:
    """The form in float64 on the exact sum of X and bias, rounded once."""
    operands = [operand.value for operand in node.inputs if operand is not None]
    dtype, x = operands[0].dtype, elementwise.widen_floats(operands[0])
    off = 0.0
    if len(operands) == 2:
        bias = elementwise.widen_floats(operands[1])
        if bias.shape != x.shape[-1:]:
            return Refusal(f"the bias has shape {bias.shape} instead of {x.shape[-1:]}, the last axis of the input")
        x, off = x + bias, 1.0
    form = FORMS[node.text("approximate", member.form)]
    numbers = {"alpha": node.number("alpha", QUICK_ALPHA)} if member.form == "quick" else {}
    with np.errstate(all="ignore"):
        factor, x = _halves(x) if member.bias == "split" else (np.float64(1.0), x)
        y = np.asarray(factor * form.exact(x, **numbers))
        bound = _bound(form, x, np.asarray(factor), dtype, off, numbers)
    return Outputs((bounds.round_output(node.outputs[0], y, dtype, bound),))


def _halves(x: Array) -> tuple[Array, Array]:
    half = x.shape[-1] // 2
    return x[..., :half], x[..., half:]


def _bound(form: Form, x: Array, factor: Array, dtype: np.dtype[Any], off: float, numbers: dict[str, float]) -> Ulp:
    """off: how many roundings of x come first; the slope of the function is at most 1.13 beside its own |x|."""

    def floor(shader: Shader) -> Array:
        rounding = off * shader.eps * (np.abs(x) + 1) * 1.13
        value = np.abs(factor) * (form.floor(shader, x, **numbers) + rounding)
        return np.asarray(value + off * shader.eps * np.abs(factor) * np.abs(form.exact(x, **numbers)))

    return bound_formula(form.ulps, form.citations, dtype, floor)


def lower(member: Member, node: Node) -> Lowering | None:
    """DML_ACTIVATION_GELU, which has no FLOAT64, for com.microsoft::Gelu; the others have no kernel or are several."""
    (first, *rest) = node.inputs
    assert first is not None
    if (member.name, member.domain) != ("Gelu", MS) or rest or first.value.dtype == np.float64:
        return None
    return elementwise.lower_tensor(first.value, lambda tensor: activation.Gelu(tensor, tensor))


OPERATORS = tuple(
    ElementwiseOperator(
        member.name,
        partial(samples, member),
        bindings,
        partial(node, member),
        partial(truth, member),
        partial(lower, member),
        domain=member.domain,
        magnitudes=("cubes",),
    )
    for member in MEMBERS
)
