"""Pow -> DML_ELEMENT_WISE_POW, or DML_ELEMENT_WISE_CONSTANT_POW where the exponent is an initializer of one element.

Sources: the operator page; since Pow-12 the exponent has a type of its own. What powers of zeros, infinities, NaN and
negative numbers are follows IEEE 754, as in C, numpy and onnx's own reference evaluator. The result has the type of the
base ("one output data (Tensor<T>)"), so 4 to the power of 0.5 is the integer 2. The page does not say how a power that
is no integer is rounded: of integers such powers, those that overflow and negative exponents are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds, zero_signs
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.declaration.interaction import Interaction, Literal
from epcheck.generators.declaration.undefined_sample import Answer, UndefinedSample, UndefinedSamples
from epcheck.generators.directml import OperatorDesc, TensorDesc
from epcheck.generators.directml.descriptions.elementwise.elementwise import ElementWiseConstantPow, ElementWisePow
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.families import broadcasting
from epcheck.generators.families.broadcasting import (
    FLOATS,
    ElementwiseSample,
    Rule,
    Shape,
    broadcasts,
    call_plain,
    every_combination,
    integers_within,
    refused_pairs,
)
from epcheck.generators.node import Node
from epcheck.generators.operator import Operator, declare
from epcheck.generators.truth import Bound

DECLARES = ("Pow",)


@dataclass(frozen=True, kw_only=True)
class PowSample(ElementwiseSample):
    """exponent: dtype name of the exponent where it is not that of the base. power: the value of every exponent.

    exponents: the values of all where the dtype of the base, which that of the rows is, does not have them.
    """

    exponent: str = ""
    power: float | None = None
    exponents: tuple[float, ...] = ()


def samples() -> Iterator[PowSample]:
    yield from _shapes()
    yield from _constant_exponents()
    yield from _special_values()
    yield from _types()


def _shapes() -> Iterator[PowSample]:
    for sample in (*broadcasts(), *refused_pairs()):
        if not sample.mixed:
            yield PowSample(**vars(sample))
    yield expect_refusal(PowSample(name="two_dtypes", shapes=((3, 5), (3, 5)), exponent="int32", rows=CUBES))


CUBES = ((2, 3), (3, 3), (-2, 3), (1, 3))


def _constant_exponents() -> Iterator[PowSample]:
    """Exponents of one element; as initializers they are read when the session is made."""
    powers = {
        "0": 0,
        "1": 1,
        "2": 2,
        "3": 3,
        "4": 4,
        "7": 7,
        "minus_1": -1,
        "minus_2": -2,
        "0_5": 0.5,
        "minus_0_5": -0.5,
    }
    for name, power in powers.items():
        whole = power >= 0 and power == int(power)
        yield PowSample(
            name=f"to_the_{name}",
            shapes=((3, 5), ()),
            power=power,
            kinds="fi" if whole and power in (0, 1, 2, 4) else FLOATS,
            every_dtype=power in (0, 2, 3, 0.5, -1),
            spread=True,
        )
    for power in (2, 0.5, 2.7):
        name = str(power).replace(".", "_")
        yield PowSample(name=f"one_element_{name}", shapes=((3, 5), (1,)), power=power, kinds=FLOATS, spread=True)
        yield PowSample(name=f"one_element_of_higher_rank_{name}", shapes=((5,), (1, 1)), power=power, kinds=FLOATS)
    yield PowSample(name="length_1025_squared", shapes=((1025,), ()), power=2, kinds="fi")


def _special_values() -> Iterator[PowSample]:
    rows: dict[str, tuple[tuple[float, ...], ...]] = {
        "zero_exponent": every_combination((0.0, -0.0, 1.0, -1.0, 2.5, -2.5, math.inf, -math.inf), (0.0, -0.0)),
        "negative_base": every_combination((-1.0, -2.0, -0.5, -3.0), (-3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0)),
        "negative_base_fractional_exponent": every_combination((-1.0, -2.0, -8.0), (0.5, -0.5, 2.5, 0.25)),
        "zero_base": every_combination((0.0, -0.0), (1.0, 2.0, 3.0, 0.5, -1.0, -2.0, -3.0, -0.5)),
        "infinite_base": every_combination((math.inf, -math.inf), (1.0, 2.0, 3.0, -1.0, -2.0, 0.5)),
        "infinite_exponent": every_combination((0.5, 2.0, -0.5, -2.0, 0.0), (math.inf, -math.inf)),
        "one_to_infinity": every_combination((1.0, -1.0), (math.inf, -math.inf)),
        "nan": ((math.nan, 1.0), (math.nan, 2.0), (2.0, math.nan), (-1.0, math.nan), (math.nan, math.nan)),
        "nan_to_the_0_and_1_to_nan": ((math.nan, 0.0), (math.nan, -0.0), (1.0, math.nan)),
        "overflow": ((2.0, 1100.0), (10.0, 400.0), (-10.0, 401.0), (0.5, -1100.0)),
        "underflow": ((2.0, -1200.0), (10.0, -400.0), (0.5, 1200.0)),
        "powers_of_two": every_combination((2.0,), tuple(float(p) for p in range(-14, 16))),
        "near_one": every_combination((1.0009765625, 0.9990234375), (100.0, 1000.0, -1000.0)),
    }
    for name, values in rows.items():
        yield PowSample(name=name, rows=values, kinds=FLOATS, every_dtype=True)
    small = every_combination((0, 1, -1, 2, -2, 3, -3, 7, -10), (0, 1, 2, 3, 4, 5))
    yield PowSample(name="small_integers", rows=small, kinds="i", every_dtype=True)
    ends = ((2, 30), (-2, 31), (3, 19), (-3, 19), (46340, 2), (1290, 3), (1, 1000), (-1, 1001), (0, 1000))
    yield PowSample(name="int32_ends", rows=ends, kinds="i", every_dtype=True)
    beyond = ((2, 62), (-2, 63), (3, 39), (94906267, 2), (3037000499, 2), (7, 22))
    yield PowSample(name="beyond_float", rows=beyond, dtypes=("int64",), every_dtype=True)


def _types() -> Iterator[PowSample]:
    """Every dtype of the exponent; values that all of them hold."""
    small = every_combination((0, 1, 2, 3, 5), (0, 1, 2, 3))
    negative = every_combination((1, 2, 4), (-1, -2, -3))
    signed = every_combination((-2, 3, 1, -1), (1, 2, 3))
    for name in sorted(set(schema.NUMPY_NAMES.values()) - {"bool"}):
        yield PowSample(name=f"exponent_{name}", rows=small, exponent=name, every_dtype=True)
        yield PowSample(name=f"exponent_{name}_of_negative_bases", rows=signed, exponent=name, every_dtype=True)
        if np.dtype(name).kind != "u":
            yield PowSample(
                name=f"negative_exponent_{name}", rows=negative, exponent=name, kinds=FLOATS, every_dtype=True
            )
    for name in ("float16", "float32", "float64"):
        fractions = {"": ROOTS, "_half": ((9, 0.5),), "_2_5": ((4, 2.5),)}
        for word, pairs in fractions.items():
            yield PowSample(name=f"fractional_exponent_{name}{word}", rows=tuple((base, 1) for base, _ in pairs),
                            exponents=tuple(power for _, power in pairs), exponent=name, kinds="i",
                            every_dtype=True)  # fmt: skip
    for name in ("int32", "int64", "float32"):
        yield PowSample(
            name=f"constant_exponent_{name}", shapes=((3, 5), ()), power=3, exponent=name, every_dtype=True, spread=True
        )


ROOTS = (
    (0, 0.5), (1, 0.5), (4, 0.5), (9, 0.5), (49, 0.5), (100, 0.5), (16, 0.25), (81, 0.75), (256, 0.125), (0, 1.5),
    (4, 1.5), (25, 1.5), (16, 1.25), (9, 2.5), (1, 0.375), (5, 2.0),
)  # fmt: skip
"""Integers, and exponents that every floating-point type has, most of them fractions, whose powers are integers."""


def has_two_types(since_version: int) -> bool:
    """Whether the exponent has a type constraint of its own."""
    return schema.schema("Pow", since_version).inputs[1].type_str != "T"


def bindings(sample: PowSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if sample.refused and sample.exponent:
        return (graph.RUNTIME,) if not has_two_types(since_version) and dtypes == ("float32",) else ()
    if sample.exponent and (not has_two_types(since_version) or sample.exponent == dtypes[0]):
        return ()
    return broadcasting.bindings(RULE, sample, since_version, dtypes)


def _draw(shapes: tuple[Shape, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> tuple[Array, ...]:
    """Positive bases from 1/4 to 4 with exponents from -3 to 3; integers of 3 at most to the 4th at most."""
    if dtype.kind == "f":
        bases = np.exp2(rng.uniform(-2, 2, shapes[0])).astype(dtype)
        return bases, rng.uniform(-3, 3, shapes[1]).astype(dtype)
    return integers_within(-3, 3, shapes[0], dtype, rng), integers_within(0, 4, shapes[1], dtype, rng)


def node(sample: PowSample, context: CaseContext) -> Node:
    """X of dtype T, Y of dtype T, or T1 from Pow-12 on; their shapes broadcast."""
    made = broadcasting.node(RULE, sample, context)
    base, exponent = made.inputs
    assert exponent is not None
    value = exponent.value if sample.power is None else np.full(exponent.value.shape, sample.power, context.dtype)
    if sample.exponent:
        value = value.astype(sample.exponent)
    if sample.exponents:
        value = np.array(sample.exponents, sample.exponent)
    return replace(made, inputs=(base, replace(exponent, value=value)))


def _power(x: Array, y: Array) -> Array:
    """Of integers exactly; of floats in float64."""
    if x.dtype.kind == "f":
        return np.asarray(np.power(x, y.astype(np.float64)))
    pairs = np.broadcast(x, y)
    return np.array([_raise(int(base), float(power)) for base, power in pairs], x.dtype).reshape(pairs.shape)


def _raise(base: int, power: float) -> int:
    """An integer power exactly; what is none, which no sample has, cut off as ReferenceEvaluator does."""
    if power == int(power):
        exact: int = base ** int(power)
        return exact
    over, under = power.as_integer_ratio()
    result = float(np.power(float(base), power))
    if under <= MOST_ROOT and round(result) ** under == base**over:
        return round(result)
    return int(result)


MOST_ROOT = 64
"""No further root of a 64-bit integer but 0 and 1 is an integer."""


def _bound(dtype: np.dtype[Any], _values: tuple[Array, ...]) -> Bound:
    if dtype.itemsize == 8:
        return bounds.ulp(16.0, (bounds.OPENCL.add_remark("pow"),), dtype)
    return bounds.ulp(32.0 if dtype.itemsize == 4 else 2.0, (bounds.WEBNN,), dtype)


def _rejects(node: Node) -> str | None:
    base, exponent = broadcasting.operands(node)
    if base.dtype != exponent.dtype and not has_two_types(node.since_version):
        return f"X and Y of Pow-{node.since_version} have one type, not {base.dtype} and {exponent.dtype}"
    return None


def _describe(_node: Node, tensors: tuple[TensorDesc, ...], result: TensorDesc) -> OperatorDesc:
    return ElementWisePow(tensors[0], tensors[1], result)


def lower(node: Node) -> Lowering | None:
    """An exponent of one element stands for an initializer, as exporters write it; a node does not say which it is."""
    general = broadcasting.lower(RULE, node)
    exponent = broadcasting.operands(node)[-1]
    power = float(exponent.reshape(-1)[0]) if exponent.size == 1 else math.nan
    if general is None or np.float32(power) != power:
        return general
    description = general.description
    assert isinstance(description, ElementWisePow)
    constant = ElementWiseConstantPow(description.input_tensor, description.output_tensor, None, power)
    return Lowering(constant, general.feeds[:1])


RULE = Rule(
    "Pow",
    (),
    draw=_draw,
    compute=call_plain(_power),
    describe=_describe,
    bound=_bound,
    rejects=_rejects,
    one_type=False,
    zeros=broadcasting.signs(zero_signs.POWER),
)

INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "Pow": (
        Interaction("negative_base_and_negative_whole_exponent",
                (Literal([-2.0, -0.5, 3.0]), Literal([-3, -2, -1], "int64")), {}, "float32-int64"),
    ),
}  # fmt: skip

NEGATIVE_POWER = "an integer to a negative power is no integer, or is 1 / 0"


def _undefined_powers() -> UndefinedSamples:
    for name in ("int32", "int64"):
        a, b = np.array([0, 2, 3, -3], name), np.array([-1, -2, 2, -1], name)
        answer = Answer(np.array([0, 0, 9, 0], name), b < 0)
        yield UndefinedSample("negative_exponent", name, NEGATIVE_POWER, (a, b), (answer,))


UNDEFINED = {"Pow": _undefined_powers}

OPERATORS = declare(
    (Operator("Pow", samples, bindings, node, partial(broadcasting.truth, RULE), lower),),
    interactions=INTERACTIONS,
    undefined=UNDEFINED,
)
