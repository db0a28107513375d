"""Equal, Greater, GreaterOrEqual, Less, LessOrEqual -> DML_ELEMENT_WISE_LOGICAL_{EQUALS, GREATER_THAN, ...}.

Sources: the operator pages; of floating point they say nothing further, so it is IEEE 754's: a comparison with NaN is
false, and -0 equals +0. Equal of strings is left out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.descriptions.elementwise import elementwise as dml
from epcheck.generators.families.broadcasting import (
    FLOATS,
    INTEGERS,
    ElementwiseSample,
    Rule,
    Shape,
    binary,
    broadcasts,
    call_plain,
    every_combination,
    operator,
    refused_pairs,
)

DECLARES = (
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
)

NUMBERS = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf)

NEIGHBOURS = every_combination(
    (2**24, 2**24 + 1, 2**31 - 1, 2**32 - 1, 2**53, 2**53 + 1, 2**63 - 1),
    (2**24, 2**24 + 1, 2**31 - 2, 2**32 - 2, 2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1),
)
"""Integers that are equal once they went through float32, float64 or 32 bits."""

SAMPLES = (
    *broadcasts(),
    *refused_pairs(),
    ElementwiseSample(name="boundary_values", boundary="boundary", every_dtype=True),
    ElementwiseSample(name="boundary_values_outer", boundary="boundary", outer=True, kinds=FLOATS, every_dtype=True),
    ElementwiseSample(name="denormals", boundary="denormals", kinds=FLOATS, every_dtype=True),
    ElementwiseSample(
        name="nan",
        rows=(*every_combination((math.nan,), (*NUMBERS, math.nan)), *every_combination(NUMBERS, (math.nan,))),
        kinds=FLOATS,
        every_dtype=True,
    ),
    ElementwiseSample(
        name="signed_zeros", rows=every_combination((0.0, -0.0), (0.0, -0.0)), kinds=FLOATS, every_dtype=True
    ),
    ElementwiseSample(name="beyond_float", rows=NEIGHBOURS, kinds=INTEGERS, every_dtype=True),
    ElementwiseSample(
        name="signs", rows=every_combination((-128, -1, 0, 1, 127), (-128, -1, 0, 1, 127)), kinds="i", every_dtype=True
    ),
)


def _draw_often_equal(shapes: tuple[Shape, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> tuple[Array, ...]:
    """Few different values, so that less, equal and greater all occur."""
    low = -2 if dtype.kind in "if" else 0
    return tuple(rng.integers(low, 3, shape).astype(dtype) for shape in shapes)


def _rule(name: str, desc: Any, function: Any) -> Rule:
    return Rule(
        name,
        SAMPLES,
        draw=_draw_often_equal,
        compute=call_plain(function),
        describe=binary(desc),
        result=np.dtype(np.bool_),
    )


RULES = (
    _rule("Equal", dml.ElementWiseLogicalEquals, np.equal),
    _rule("Greater", dml.ElementWiseLogicalGreaterThan, np.greater),
    _rule("GreaterOrEqual", dml.ElementWiseLogicalGreaterThanOrEqual, np.greater_equal),
    _rule("Less", dml.ElementWiseLogicalLessThan, np.less),
    _rule("LessOrEqual", dml.ElementWiseLogicalLessThanOrEqual, np.less_equal),
)

OPERATORS = tuple(operator(rule) for rule in RULES)
