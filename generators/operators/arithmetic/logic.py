"""And, Or, Xor, Not; BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, BitShift.

DirectML: DML_ELEMENT_WISE_LOGICAL_{AND, OR, XOR, NOT} on UINT8, DML_ELEMENT_WISE_BIT_{AND, OR, XOR, NOT}, and
DML_ELEMENT_WISE_BIT_SHIFT_{LEFT, RIGHT} by the attribute `direction`.

Sources: the operator pages. A shift by the width of the type or more, or by a negative amount, is undefined up to
BitShift-11 and has samples only where the text defines it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from epcheck.generators import data
from epcheck.generators.array import Array
from epcheck.generators.case import expect_refusal
from epcheck.generators.declaration.undefined_sample import Answer, UndefinedSample, UndefinedSamples
from epcheck.generators.directml import OperatorDesc, TensorDesc
from epcheck.generators.directml.descriptions.elementwise import elementwise as dml
from epcheck.generators.families.broadcasting import (
    Attributes,
    ElementwiseSample,
    Rule,
    Shape,
    binary,
    broadcasts,
    call_plain,
    every_combination,
    operator,
    refused_pairs,
    unary,
    unary_shapes,
    whole_range,
)
from epcheck.generators.node import Node
from epcheck.generators.operator import declare

DECLARES = (
    "And",
    "Or",
    "Xor",
    "Not",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "BitwiseNot",
    "BitShift",
)

TRUTH_TABLE = ElementwiseSample(name="truth_table", rows=every_combination((False, True), (False, True)), spread=True)

PATTERNS = every_combination(
    (0, 1, 0x55, 0x0F, 0x5555, 0x0F0F0F0F, 0x5555555555555555, -1), (0, 0x33, 0x3333, 0x7F, -1)
)

BINARY_SAMPLES = (*broadcasts(), *refused_pairs())

BITWISE_SAMPLES = (
    *BINARY_SAMPLES,
    ElementwiseSample(name="boundary_values", boundary="boundary", every_dtype=True),
    ElementwiseSample(name="patterns", rows=PATTERNS, every_dtype=True),
)

LEFT: Attributes = (("direction", "LEFT"),)
RIGHT: Attributes = (("direction", "RIGHT"),)

AMOUNTS = (0, 1, 2, 7, 8, 15, 16, 31, 32, 63)
SHIFTED = (0, 1, 3, 0x80, 0xFF, 0x8001, 0xFFFF, 0x80000001, 0xFFFFFFFF, 0x8000000000000001, 0xFFFFFFFFFFFFFFFF)

BEYOND_WIDTH_TEXT = "greater than or equal to the number of bits"


def _shift_samples() -> Iterator[ElementwiseSample]:
    shifted = every_combination(SHIFTED, AMOUNTS)
    signed = every_combination((-1, -2, -128, -0x8000, -0x80000000, -(2**63), 127), AMOUNTS)
    beyond = every_combination((1, 3, 127, -1, -128), (8, 16, 32, 64, 65, 127, -1, -8))
    for name, direction in {"left": LEFT, "right": RIGHT}.items():
        for sample in broadcasts():
            yield replace(sample, name=f"{name}_{sample.name}", attributes=direction)
        yield ElementwiseSample(name=f"{name}_edges", rows=shifted, attributes=direction, every_dtype=True)
        yield ElementwiseSample(name=f"{name}_signed", rows=signed, attributes=direction, kinds="i", every_dtype=True)
        yield ElementwiseSample(
            name=f"{name}_beyond_width",
            rows=beyond,
            attributes=direction,
            every_dtype=True,
            unchecked=True,
            since=BEYOND_WIDTH_TEXT,
        )
    for sample in refused_pairs():
        yield replace(sample, attributes=LEFT)
    yield expect_refusal(
        ElementwiseSample(name="direction_unknown", shapes=((3, 5), (3, 5)), attributes=(("direction", "UP"),))
    )


def _bits(dtype: np.dtype[Any]) -> int:
    return 8 * dtype.itemsize


def _shifts(shapes: tuple[Shape, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> tuple[Array, ...]:
    amounts = rng.integers(0, _bits(dtype), shapes[1]).astype(dtype)
    return data.distinct(shapes[0], dtype, rng), amounts


def _is_within_width(_x: Array, amount: Array) -> Any:
    return (amount >= 0) & (amount < _bits(amount.dtype))


def _shift(node: Node, values: tuple[Array, ...]) -> Array:
    """Beyond the width nothing is left but the sign, on the right of a negative number."""
    x, amount = values
    inside = np.asarray(_is_within_width(x, amount))
    shift = np.where(inside, amount, 0).astype(x.dtype)
    if node.text("direction", "") == "LEFT":
        return np.where(inside, np.left_shift(x, shift), 0)
    return np.where(inside, np.right_shift(x, shift), np.where(x < 0, -1, 0).astype(x.dtype))


def _shift_rejects(node: Node) -> str | None:
    if node.text("direction", "") not in ("LEFT", "RIGHT"):
        return "direction must be given, LEFT or RIGHT"
    return None


def _describe_shift(node: Node, tensors: tuple[TensorDesc, ...], result: TensorDesc) -> OperatorDesc:
    left = node.text("direction", "") == "LEFT"
    return (dml.ElementWiseBitShiftLeft if left else dml.ElementWiseBitShiftRight)(tensors[0], tensors[1], result)


def _rule(name: str, desc: Any, function: Any, samples: tuple[ElementwiseSample, ...]) -> Rule:
    return Rule(name, samples, draw=whole_range, compute=call_plain(function), describe=binary(desc))


LOGICAL_SAMPLES = (*BINARY_SAMPLES, TRUTH_TABLE)

RULES = (
    _rule("And", dml.ElementWiseLogicalAnd, np.logical_and, LOGICAL_SAMPLES),
    _rule("Or", dml.ElementWiseLogicalOr, np.logical_or, LOGICAL_SAMPLES),
    _rule("Xor", dml.ElementWiseLogicalXor, np.logical_xor, LOGICAL_SAMPLES),
    Rule(
        "Not",
        tuple(unary_shapes()),
        draw=whole_range,
        compute=call_plain(np.logical_not),
        describe=unary(dml.ElementWiseLogicalNot),
        arity=1,
    ),
    _rule("BitwiseAnd", dml.ElementWiseBitAnd, np.bitwise_and, BITWISE_SAMPLES),
    _rule("BitwiseOr", dml.ElementWiseBitOr, np.bitwise_or, BITWISE_SAMPLES),
    _rule("BitwiseXor", dml.ElementWiseBitXor, np.bitwise_xor, BITWISE_SAMPLES),
    Rule(
        "BitwiseNot",
        (*unary_shapes(), ElementwiseSample(name="boundary_values", boundary="boundary", every_dtype=True)),
        draw=whole_range,
        compute=call_plain(np.bitwise_not),
        describe=unary(dml.ElementWiseBitNot),
        arity=1,
    ),
    Rule(
        "BitShift",
        tuple(_shift_samples()),
        draw=_shifts,
        compute=_shift,
        describe=_describe_shift,
        admits=_is_within_width,
        rejects=_shift_rejects,
    ),
)

BY_THE_WIDTH = "a shift by the width of the dtype or more: the page defines none, and C leaves it undefined"


def _undefined_shifts() -> UndefinedSamples:
    for name in ("uint8", "uint32", "uint64"):
        width = 8 * np.dtype(name).itemsize
        a = np.array([1, 3, 1, 200, 5, 7], name)
        b = np.array([width, 1, width + 1, 0, 2 * width, np.iinfo(name).max], name)
        bad = b >= width
        for direction, shift in (("LEFT", np.left_shift), ("RIGHT", np.right_shift)):
            answer = Answer(shift(a, np.where(bad, 0, b).astype(name)), bad)
            sample = f"by_the_width_{direction.lower()}"
            yield UndefinedSample(sample, name, BY_THE_WIDTH, (a, b), (answer,), {"direction": direction})


UNDEFINED = {"BitShift": _undefined_shifts}

OPERATORS = declare(tuple(operator(rule) for rule in RULES), undefined=UNDEFINED)
