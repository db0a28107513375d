"""The parameters of an operator: what values each has, which are sizes, and the node that values make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Attribute

Values = Mapping[str, Any]
"""Parameter -> its value in a node."""


@dataclass(frozen=True)
class Parts:
    """inputs: in the order of the schema, None for an omitted one. parameters: indices of those that exporters write as
    initializers. outputs: in the order of the schema, whether each is asked for; all where it is empty."""

    inputs: tuple[Array | None, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    parameters: tuple[int, ...] = ()
    outputs: tuple[bool, ...] = ()


ANY_NUMBER = ("minus_zero", "denormal")
"""Extremes that are defined wherever numbers are."""

ANY_VALUE = ("nan", "inf", "minus_inf", *ANY_NUMBER)


def always(_values: Values) -> bool:
    """Any values make a valid node."""
    return True


@dataclass(frozen=True)
class Extremes:
    """A value that a kernel may treat alone, and where it stands: see `extremes`."""

    value: str
    place: str


@dataclass(frozen=True)
class ParameterSpace:
    """One operator, in float32.

    sizes: of dimensions, as they are where nothing is said of them. choices: the values of every other parameter, the
    usual one first; pairs are made of these. borders: sizes at which kernels change path, by the parameter that has
    them. empty: the sizes that may be 0 with a defined result. node: the parts of a node of all values.
    is_valid: whether a node of these choices is one. row: the size that is the length of a row where single values are
    placed. extremes: the values that may stand in the first input with a defined result; only_moves: the operator
    computes nothing of them.
    """

    operator: str
    sizes: Mapping[str, int]
    node: Callable[[Values, np.random.Generator], Parts]
    choices: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    borders: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    empty: tuple[str, ...] = ()
    is_valid: Callable[[Values], bool] = always
    row: str = "length"
    extremes: tuple[str, ...] = ()
    only_moves: bool = False

    def usual(self) -> Values:
        """Every parameter at its usual value."""
        return {**self.sizes, **{name: values[0] for name, values in self.choices.items()}}
