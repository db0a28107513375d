"""NaN, infinities, zeros and denormals at the places that a kernel may treat alone: the first element, the last one,
and the first after the whole vectors of a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from epcheck.generators.declaration.parameter_space import Extremes, ParameterSpace, Parts

LENGTH = 19
"""Elements of a row: two vectors of 8 and a rest; four of 4; one of 16."""

VALUES = {"nan": np.nan, "inf": np.inf, "minus_inf": -np.inf, "minus_zero": -0.0, "denormal": 1e-40}

PLACES = {"first": 0, "tail": 16, "last": -1}
"""Indices of the flat first input, whose first row has LENGTH elements."""

OF_EACH = {
    "nan": ("first", "tail", "last"),
    "inf": ("first", "tail"),
    "minus_inf": ("tail", "last"),
    "minus_zero": ("first", "last"),
    "denormal": ("tail", "last"),
}
"""Where each value stands, for operators that compute."""

OF_MOVED = {"nan": ("last",), "inf": ("first",), "minus_inf": ("tail",), "minus_zero": ("last",), "denormal": ("tail",)}
"""For operators that only move data."""


def named(space: ParameterSpace) -> Iterator[tuple[str, Extremes]]:
    """What a sample is called after its kind -> the value and its place, of those that the space has."""
    places = OF_MOVED if space.only_moves else OF_EACH
    for value in space.extremes:
        for place in places[value]:
            yield f"{value}_{place}", Extremes(value, place)


def placed(parts: Parts, extreme: Extremes) -> Parts:
    """The parts with the value in the first input, which is float32."""
    data = np.array(parts.inputs[0])
    data.reshape(-1)[PLACES[extreme.place]] = VALUES[extreme.value]
    return replace(parts, inputs=(data, *parts.inputs[1:]))
