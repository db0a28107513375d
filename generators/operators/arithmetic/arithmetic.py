"""Add, Sub, Mul, Div, Mod, Neg, Abs, Sign, com.microsoft::BiasAdd, com.microsoft.dml::DmlFusedAdd.

DirectML: DML_ELEMENT_WISE_{ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATE, ABS, SIGN}. Mod becomes MODULUS_FLOOR (fmod = 0) or
MODULUS_TRUNCATE, the absolute value of unsigned integers IDENTITY, DmlFusedAdd ADD1. BiasAdd is two additions and has
no single description.

Sources: the operator pages, Broadcasting in ONNX, ContribOperators of ONNX Runtime for BiasAdd, and for DmlFusedAdd the
DML EP's DmlOperatorElementWise.cpp and FusionHelpers. What they leave open has no sample: dividing integers by zero and
the least integer by -1, the negative and the absolute value of the least integer, the sign of NaN, DmlFusedAdd of
integers. They are silent on integers that overflow as well, where every runtime and onnx's own reference evaluator keep
the lower bits; the samples named `wraparound` hold a provider to that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds, zero_signs
from epcheck.generators.case import expect_refusal
from epcheck.generators.declaration.interaction import ABOVE_GROUPS, DISPATCHED, Interaction, Literal, Random
from epcheck.generators.declaration.undefined_sample import Answer, UndefinedSample, UndefinedSamples
from epcheck.generators.directml import OperatorDesc, TensorDesc
from epcheck.generators.directml.descriptions.elementwise import elementwise as dml
from epcheck.generators.families import fused_activation
from epcheck.generators.families.broadcasting import (
    FLOATS,
    INTEGERS,
    ElementwiseSample,
    Rule,
    Shape,
    binary,
    bound_addition,
    bound_one_rounding,
    bound_ulps,
    broadcasts,
    call_plain,
    every_combination,
    integers_within,
    operands,
    operator,
    refused_pairs,
    signs,
    unary,
    unary_shapes,
    whole_range,
)
from epcheck.generators.node import Node
from epcheck.generators.operator import GRAPH, declare
from epcheck.generators.truth import Bound, ZeroSigns

DECLARES = (
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Mod",
    "Neg",
    "Abs",
    "Sign",
    "com.microsoft::BiasAdd",
    "com.microsoft.dml::DmlFusedAdd",
)

Draws = tuple[Array, ...]

BEYOND_FLOAT = ((2**24 + 1, 2), (2**25 + 1, 4), (2**53 + 1, 2), (2**54 + 1, 4), (2**61 + 1, 2))
"""Integers that float32 and then float64 cannot hold."""


def _halves(shapes: tuple[Shape, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Draws:
    """Integers whose sum does not overflow."""
    if dtype.kind == "f":
        return whole_range(shapes, dtype, rng)
    info = np.iinfo(dtype)
    return tuple(integers_within(info.min // 2, info.max // 2, shape, dtype, rng) for shape in shapes)


def _larger_first(shapes: tuple[Shape, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Draws:
    """Integers whose difference does not overflow."""
    if dtype.kind != "u":
        return _halves(shapes, dtype, rng)
    middle = int(np.iinfo(dtype).max) // 2
    low, high = ((middle + 1, 2 * middle + 1), (0, middle))
    return (integers_within(*low, shapes[0], dtype, rng), integers_within(*high, shapes[1], dtype, rng))


def _roots(shapes: tuple[Shape, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Draws:
    """Integers whose product does not overflow."""
    if dtype.kind == "f":
        return whole_range(shapes, dtype, rng)
    root = math.isqrt(int(np.iinfo(dtype).max))
    return tuple(integers_within(-root, root, shape, dtype, rng) for shape in shapes)


def _divisible(shapes: tuple[Shape, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Draws:
    """Divisors that are not zero, half of them small; no least integer."""
    if dtype.kind == "f":
        return whole_range(shapes, dtype, rng)
    info = np.iinfo(dtype)
    a = integers_within(info.min + 1, info.max, shapes[0], dtype, rng)
    small = integers_within(1, 9, shapes[1], dtype, rng)
    large = integers_within(1, info.max, shapes[1], dtype, rng)
    b = np.where(rng.random(shapes[1]) < 0.5, small, large)
    negative = (rng.random(shapes[1]) < 0.5) & (dtype.kind == "i")
    return a, np.where(negative, (0 - b).astype(dtype), b).astype(dtype)


def _negatable(shapes: tuple[Shape, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Draws:
    if dtype.kind != "i":
        return whole_range(shapes, dtype, rng)
    info = np.iinfo(dtype)
    return tuple(integers_within(info.min + 1, info.max, shape, dtype, rng) for shape in shapes)


def _is_negatable(x: Array) -> Any:
    return x != np.iinfo(x.dtype).min if x.dtype.kind == "i" else np.True_


def _is_divisible(a: Array, b: Array) -> Any:
    if a.dtype.kind == "f":
        return np.True_
    overflows = (a == np.iinfo(a.dtype).min) & (b == -1) if a.dtype.kind == "i" else np.False_
    return (b != 0) & ~overflows


def _binary_samples() -> tuple[ElementwiseSample, ...]:
    return (
        *broadcasts(),
        *refused_pairs(),
        ElementwiseSample(name="boundary_values", boundary="boundary", kinds=FLOATS, every_dtype=True),
        ElementwiseSample(
            name="boundary_values_outer", boundary="boundary", outer=True, kinds=FLOATS, every_dtype=True
        ),
        ElementwiseSample(name="nan", rows=((math.nan, 1.0), (1.0, math.nan), (math.nan, math.nan)), kinds=FLOATS),
        ElementwiseSample(
            name="cancellation",
            rows=((1.0009765625, -1.0), (1.5, 1.5), (2048.0, 2047.0)),
            kinds=FLOATS,
            every_dtype=True,
        ),
    )


def _integer_samples() -> tuple[ElementwiseSample, ...]:
    return (
        ElementwiseSample(name="wraparound", boundary="boundary", kinds=INTEGERS, every_dtype=True),
        ElementwiseSample(name="beyond_float", rows=BEYOND_FLOAT, kinds=INTEGERS, every_dtype=True),
    )


SIGNED_DIVISIONS = every_combination((7, -7, 6, -6, 5, 0, 1, -1, 127, -127), (2, -2, 3, -3, 7, -7, 1, -1, 127, -127))
"""Divisions with and without remainder, by sign."""

FRACTIONS = every_combination((5.5, -5.5, 0.75, -0.75, 100.0, -100.0), (2.0, -2.0, 0.5, -0.5, 1.75, -1.75))

LARGE_DIVISIONS = tuple(
    (a, b)
    for bits in (8, 16, 32, 64)
    for a in (2 ** (bits - 1) - 1, 1 - 2 ** (bits - 1), 2**bits - 1, 2**bits - 2)
    for b in (3, -3, 10, 2 ** (bits - 1) - 1, 2 ** (bits - 1) - 2)
)

DIVISION = (
    ElementwiseSample(name="by_sign", rows=SIGNED_DIVISIONS, kinds=INTEGERS, every_dtype=True),
    ElementwiseSample(name="large", rows=LARGE_DIVISIONS, kinds=INTEGERS, every_dtype=True),
    ElementwiseSample(name="boundary_integers", boundary="boundary", kinds=INTEGERS, every_dtype=True),
    ElementwiseSample(name="fractions", rows=FRACTIONS, kinds=FLOATS, every_dtype=True),
    ElementwiseSample(
        name="by_zero",
        rows=every_combination((1.0, -1.0, 0.0, -0.0, math.inf, -math.inf, 2.5), (0.0, -0.0)),
        kinds=FLOATS,
        every_dtype=True,
    ),
)

FMOD = (("fmod", 1),)
FLOOR_TEXT = "For floating-point inputs, the following special cases apply"
"""The words of the version that defines fmod = 0 for floating point."""

ZERO_TEXT = "If `y` is `±0`"
"""The words of the versions that define what a divisor of 0 gives; before, it is platform dependent."""


def _shapes(*names: str) -> tuple[ElementwiseSample, ...]:
    return tuple(sample for sample in broadcasts() if sample.name in names)


def _mod_samples() -> tuple[ElementwiseSample, ...]:
    """Floating point needs fmod = 1; integers have both, and the default."""
    divided_by_zero = ("boundary_values", "by_zero")
    truncated = tuple(
        replace(s, attributes=FMOD, since=ZERO_TEXT if s.name in divided_by_zero else "")
        for s in (*_binary_samples(), *DIVISION)
    )
    floored = tuple(
        replace(s, name=f"{s.name}_floor", kinds=INTEGERS)
        for s in (*_shapes("same_shape", "b_scalar", "both_broadcast", "a_scalar", "b_row"), *DIVISION)
        if s.kinds != FLOATS
    )
    explicit = ElementwiseSample(
        name="by_sign_fmod_0", rows=SIGNED_DIVISIONS, kinds=INTEGERS, every_dtype=True, attributes=(("fmod", 0),)
    )
    floats = tuple(
        replace(s, name=f"{s.name}_floor_of_floats", since=FLOOR_TEXT) for s in DIVISION if s.kinds == FLOATS
    )
    refused = expect_refusal(
        ElementwiseSample(name="floats_without_fmod", rows=FRACTIONS, kinds=FLOATS, every_dtype=True, until=FLOOR_TEXT)
    )
    return (*truncated, *floored, explicit, *floats, refused)


def _mod_rejects(node: Node) -> str | None:
    text = schema.schema("Mod", node.since_version).doc or ""
    first = node.inputs[0]
    if first is not None and first.value.dtype.kind == "f" and not node.integer("fmod", 0) and FLOOR_TEXT not in text:
        return "floating-point inputs need fmod = 1"
    return None


def _remainder(node: Node, values: Draws) -> Array:
    return np.asarray((np.fmod if node.integer("fmod", 0) else np.mod)(*values))


def _describe_mod(node: Node, tensors: tuple[TensorDesc, ...], result: TensorDesc) -> OperatorDesc:
    desc = dml.ElementWiseModulusTruncate if node.integer("fmod", 0) else dml.ElementWiseModulusFloor
    return desc(tensors[0], tensors[1], result)


def _remainder_bound(dtype: np.dtype[Any], _values: Draws) -> Bound:
    """OpenCL gives fmod no error; a floored remainder of the other sign adds the divisor, one rounding of 1/2 ULP."""
    return bounds.ulp(0.5, (bounds.OPENCL.add_remark("fmod 0 ULP, and one rounding"),), dtype)


def _remainder_signs(node: Node, values: Draws) -> ZeroSigns:
    """All but those of fmod for a dividend of -0 and a positive divisor, where either sign may be returned."""
    a, b = values
    is_open = (a == 0) & np.signbit(a) & (b > 0) if node.integer("fmod", 0) and a.dtype.kind == "f" else np.False_
    return ZeroSigns(zero_signs.REMAINDER, np.broadcast_to(~is_open, np.broadcast_shapes(a.shape, b.shape)))


def _quotient(a: Array, b: Array) -> Array:
    """Of integers that of their magnitudes, with the sign of both: rounded toward zero."""
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    unsigned = f"u{a.dtype.itemsize}"
    whole = (np.abs(a).view(unsigned) // np.abs(b).view(unsigned)).view(a.dtype)
    return np.asarray(np.where((a < 0) != (b < 0), 0 - whole, whole))


def _division_bound(dtype: np.dtype[Any], _values: Draws) -> Bound:
    """WebNN has no float64; OpenCL divides it correctly rounded, and IEEE 754 any dtype."""
    bound = bounds.ulp(2.0, (bounds.WEBNN,), dtype) if dtype.itemsize < 8 else bounds.ulp(0.5, (bounds.OPENCL,), dtype)
    return replace(bound, is_one_rounding=True)


def _unary_samples(*further: ElementwiseSample) -> tuple[ElementwiseSample, ...]:
    return (
        *unary_shapes(),
        ElementwiseSample(name="boundary_values", boundary="boundary", every_dtype=True),
        ElementwiseSample(name="denormals", boundary="denormals", kinds=FLOATS, every_dtype=True),
        *further,
    )


NAN = ElementwiseSample(name="nan", rows=((math.nan,), (-math.nan,), (1.5,)), kinds=FLOATS, every_dtype=True)


def _describe_abs(_node: Node, tensors: tuple[TensorDesc, ...], result: TensorDesc) -> OperatorDesc:
    desc = dml.ElementWiseIdentity if tensors[0].data_type.name.startswith("UINT") else dml.ElementWiseAbs
    return desc(tensors[0], result)


def _bias_samples() -> Iterator[ElementwiseSample]:
    """X and skip [N, S, C], bias [C]."""
    shapes = {
        "image": (2, 4, 8), "size_1": (1, 1, 1), "size_1_batch": (1, 6, 5), "one_channel": (2, 6, 1),
        "one_pixel": (3, 1, 4), "size_0_batch": (0, 4, 8), "more_than_a_thread_group": (2, 65, 33),
    }  # fmt: skip
    for name, shape in shapes.items():
        sizes = (shape, shape[-1:], shape)
        yield ElementwiseSample(name=name, shapes=sizes, every_dtype=True, spread=name == "image")
    yield ElementwiseSample(name="infinities", boundary="infinities", every_dtype=True)
    yield expect_refusal(ElementwiseSample(name="bias_length_differs", shapes=((2, 4, 8), (4,), (2, 4, 8))))
    yield expect_refusal(ElementwiseSample(name="skip_shape_differs", shapes=((2, 4, 8), (8,), (2, 5, 8))))


def _bias_edges(_which: str, dtype: np.dtype[Any]) -> Draws:
    x = np.array([[[math.inf, -math.inf, 1.0], [math.nan, 2.0, 0.0]]], dtype)
    return x, np.array([1.0, 2.0, math.inf], dtype), np.array([[[1.0, math.inf, 1.0], [1.0, -math.inf, -2.0]]], dtype)


def _bias_rejects(node: Node) -> str | None:
    x, bias, skip = operands(node)
    if bias.shape != x.shape[-1:]:
        return f"bias has shape {bias.shape} instead of {x.shape[-1:]}, the channels of X"
    if skip.shape != x.shape:
        return f"skip has shape {skip.shape} instead of {x.shape}, that of X"
    return None


def _fused_samples() -> Iterator[ElementwiseSample]:
    """Sums of both signs through each activation that the DML EP fuses into an addition."""
    for sample in broadcasts():
        yield replace(sample, name=f"relu_{sample.name}", attributes=fused_activation.attributes("Relu"), kinds=FLOATS)
    for sample in _shapes("same_shape", "both_broadcast", "bias_of_channels", "size_0"):
        yield replace(
            sample, name=f"leaky_relu_{sample.name}", attributes=fused_activation.attributes("LeakyRelu"), kinds=FLOATS
        )
        for name, alpha in {"0": 0.0, "0_25": 0.25, "minus_1": -1.0, "2": 2.0}.items():
            attributes = fused_activation.attributes("LeakyRelu", alpha)
            yield replace(sample, name=f"leaky_relu_alpha_{name}_{sample.name}", attributes=attributes, kinds=FLOATS)
    infinities = every_combination((math.inf, -math.inf, 1.0, -1.0), (2.0, -3.0, 0.0))
    for name, activation in {"relu": "Relu", "leaky_relu": "LeakyRelu"}.items():
        attributes = fused_activation.attributes(activation)
        yield ElementwiseSample(
            name=f"{name}_infinities", rows=infinities, attributes=attributes, kinds=FLOATS, every_dtype=True
        )
    yield expect_refusal(
        ElementwiseSample(
            name="last_axes_differ",
            shapes=((2, 3), (2, 4)),
            attributes=fused_activation.attributes("Relu"),
            kinds=FLOATS,
            every_dtype=True,
        )
    )


def _binary_rule(name: str, desc: Any, function: Any, samples: Any, **more: Any) -> Rule:
    return Rule(name, samples, describe=binary(desc), compute=call_plain(function), **more)


SUMMABLE = (*_binary_samples(), *_integer_samples())

RULES = (
    _binary_rule(
        "Add", dml.ElementWiseAdd, np.add, SUMMABLE, draw=_halves, bound=bound_one_rounding, zeros=signs(zero_signs.SUM)
    ),
    _binary_rule(
        "Sub",
        dml.ElementWiseSubtract,
        np.subtract,
        SUMMABLE,
        draw=_larger_first,
        bound=bound_one_rounding,
        zeros=signs(zero_signs.SUM),
    ),
    _binary_rule(
        "Mul",
        dml.ElementWiseMultiply,
        np.multiply,
        SUMMABLE,
        draw=_roots,
        bound=bound_one_rounding,
        zeros=signs(zero_signs.PRODUCT),
    ),
    _binary_rule(
        "Div",
        dml.ElementWiseDivide,
        _quotient,
        (*_binary_samples(), *DIVISION),
        draw=_divisible,
        bound=_division_bound,
        admits=_is_divisible,
        zeros=signs(zero_signs.PRODUCT),
    ),
    Rule(
        "Mod",
        _mod_samples(),
        draw=_divisible,
        compute=_remainder,
        describe=_describe_mod,
        bound=_remainder_bound,
        admits=_is_divisible,
        rejects=_mod_rejects,
        zeros=_remainder_signs,
    ),
    Rule(
        "Neg",
        _unary_samples(NAN),
        draw=_negatable,
        compute=call_plain(np.negative),
        describe=unary(dml.ElementWiseNegate),
        admits=_is_negatable,
        arity=1,
    ),
    Rule(
        "Abs",
        _unary_samples(NAN),
        draw=_negatable,
        compute=call_plain(np.abs),
        describe=_describe_abs,
        admits=_is_negatable,
        arity=1,
    ),
    Rule(
        "Sign",
        _unary_samples(),
        draw=whole_range,
        compute=call_plain(np.sign),
        describe=unary(dml.ElementWiseSign),
        bound=bound_ulps(0.0, bounds.WEBNN),
        arity=1,
    ),
    Rule(
        "BiasAdd",
        tuple(_bias_samples()),
        draw=whole_range,
        compute=call_plain(lambda x, bias, skip: x + bias + skip),
        describe=GRAPH,
        bound=bound_addition,
        domain="com.microsoft",
        rejects=_bias_rejects,
        arity=3,
        edges=_bias_edges,
    ),
    Rule(
        "DmlFusedAdd",
        tuple(_fused_samples()),
        draw=whole_range,
        compute=lambda node, values: fused_activation.activate(node, values[0] + values[1]),
        describe=fused_activation.describe_addition,
        bound=bound_ulps(2.0, bounds.WEBNN.add_remark("an addition, 1 ULP, and a product with alpha, 1 ULP")),
        domain="com.microsoft.dml",
    ),
)

INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "Add": (
        Interaction(ABOVE_GROUPS, (Random((DISPATCHED, 64)), Random((64,)))),
    ),
    "Sub": (
        Interaction("one_number_less_many", (Literal([9]), Literal([3, 9, 0])), {}, "uint8"),
    ),
}  # fmt: skip

SIGNED, UNSIGNED = ("int8", "int32", "int64"), ("uint8", "uint32", "uint64")
BY_ZERO = "an integer divided by 0: the page defines no result"
OVERFLOW = "the least integer divided by -1 has no result that fits the dtype"
NEGATED = "the opposite of the least integer does not fit the dtype"


def _undefined_divisions(divide: Callable[[Array, Array], Array], by_minus_1: Sequence[int]) -> UndefinedSamples:
    """by_minus_1: what is right of [least, 6, least, 9] by [-1, 3, -1, -3], 0 where nothing is."""
    for name in (*SIGNED, *UNSIGNED):
        a, b = (np.array(row, name) for row in ((7, 0, 9, 6, 1, 0, 8, 5), (0, 0, 3, 0, 1, 2, 0, 5)))
        bad = b == 0
        right = divide(a, np.where(bad, 1, b).astype(name))
        yield UndefinedSample("divisor_0", name, BY_ZERO, (a, b), (Answer(right, bad),))
    for name in SIGNED:
        least = np.iinfo(name).min
        a, b = np.array([least, 6, least, 9], name), np.array([-1, 3, -1, -3], name)
        answer = Answer(np.array(by_minus_1, name), a == least)
        yield UndefinedSample("least_by_minus_1", name, OVERFLOW, (a, b), (answer,))


def _undefined_signs(right: Sequence[int]) -> UndefinedSamples:
    for name in SIGNED:
        least = np.iinfo(name).min
        a = np.array([least, 6, least, 9], name)
        answer = Answer(np.array(right, name), a == least)
        yield UndefinedSample("least_integer", name, NEGATED, (a,), (answer,))


UNDEFINED = {
    "Div": partial(_undefined_divisions, np.floor_divide, (0, 2, 0, -3)),
    "Mod": partial(_undefined_divisions, np.mod, (0, 0, 0, 0)),
    "Neg": partial(_undefined_signs, (0, -6, 0, -9)),
    "Abs": partial(_undefined_signs, (0, 6, 0, 9)),
}

OPERATORS = declare(tuple(operator(rule) for rule in RULES), interactions=INTERACTIONS, undefined=UNDEFINED)
