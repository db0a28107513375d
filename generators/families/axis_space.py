"""The parameter spaces of operators along one axis: reductions, Softmax and its like, CumSum, TopK, LpNormalization."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.declaration.parameter_space import ParameterSpace, Parts, Values

LENGTHS = (7, 16, 17, 33, 129, 257, 513, 4097, 65_537)
"""Of an axis whose elements are neighbours."""

STRIDED = (17, 257, 1025)
"""Of an axis whose elements are not."""

AXES = (1, 0, -1, 2)


def make_axis_space(
    node: Callable[[Values, np.random.Generator], Parts],
    choices: Mapping[str, tuple[Any, ...]],
    extremes: tuple[str, ...],
) -> ParameterSpace:
    """The space of [outer, length, inner], whose second axis is the one. `strided`, where it is not 0, is the length of
    an axis beside 3 others instead."""
    return ParameterSpace(
        {"outer": 2, "length": 5, "strided": 0, "inner": 1},
        node,
        choices,
        {"length": LENGTHS, "strided": STRIDED},
        ("outer", "inner"),
        extremes=extremes,
    )


def make_shape(values: Values) -> tuple[int, ...]:
    """[outer, length, inner], or [2, strided, 3]."""
    if values["strided"]:
        return (2, values["strided"], 3)
    return (values["outer"], values["length"], values["inner"])


def draw_data(values: Values, rng: np.random.Generator) -> Array:
    """float32, of that shape for the second axis; of a fixed one of rank 3 for the others."""
    shape = make_shape(values) if values["axis"] == 1 else (3, 4, 5)
    return rng.uniform(-2, 2, shape).astype(np.float32)


def select_attributes(values: Values, *names: str) -> dict[str, int]:
    """Those of the names that the space has."""
    return {name: values[name] for name in names if name in values}


def make_axis_parts(values: Values, rng: np.random.Generator) -> Parts:
    """One input; everything else is an attribute."""
    return Parts((draw_data(values, rng),), select_attributes(values, "axis", "keepdims", "select_last_index", "p"))
