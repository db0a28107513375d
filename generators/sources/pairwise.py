"""The cases of parameter spaces: sizes at borders (`border_`), empty dimensions (`empty_`), pairs of values (`pairs_`),
and values that a kernel may treat alone (`extreme_`): NaN, infinities, zeros and denormals.

A name says what differs from the usual values, so that it stays the same when others are added. The truth is that of
the operator. Cases are of float32 and of the version that is tried in every way (`claims.newest_claimed_version`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np

from epcheck.generators import graph
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.claims import newest_claimed_version
from epcheck.generators.declaration.parameter_space import ParameterSpace, Parts, Values
from epcheck.generators.operator import Operator, build_case, random_source

SOURCE = "pairwise"
BORDER, EMPTY, PAIRS, EXTREME = "border", "empty", "pairs", "extreme"

KINDS = {
    BORDER: "sizes at which kernels change path, of operators that are not element by element",
    EMPTY: "dimensions without elements, in every position that has a defined result",
    PAIRS: "any two values of two attributes, optional inputs and outputs together",
    EXTREME: "NaN, infinities, zeros and denormals at the first, the last and the odd elements of a row",
}
"""Kind of case -> what it is aimed at. Names of samples begin with the kind."""

Row = Mapping[str, Any]

LENGTH = 19
"""Elements of a row: two vectors of 8 and a rest; four of 4; one of 16."""

VALUES = {"nan": np.nan, "inf": np.inf, "minus_inf": -np.inf, "minus_zero": -0.0, "denormal": 1e-40}

PLACES = {"first": 0, "tail": 16, "last": -1}
"""Indices of the flat first input, whose first row has LENGTH elements."""

COMPUTED = {
    "nan": ("first", "tail", "last"),
    "inf": ("first", "tail"),
    "minus_inf": ("tail", "last"),
    "minus_zero": ("first", "last"),
    "denormal": ("tail", "last"),
}
"""Where each value stands, for operators that compute."""

MOVED = {"nan": ("last",), "inf": ("first",), "minus_inf": ("tail",), "minus_zero": ("last",), "denormal": ("tail",)}
"""For operators that only move data."""


@dataclass(frozen=True)
class Extreme:
    """One of VALUES, at one of PLACES of the first input, which is float32."""

    value: str
    place: str

    def put_into(self, parts: Parts) -> Parts:
        """The parts with the value in the first input."""
        data = np.array(parts.inputs[0])
        data.reshape(-1)[PLACES[self.place]] = VALUES[self.value]
        return replace(parts, inputs=(data, *parts.inputs[1:]))


def cases(operator: Operator[Any]) -> Iterator[Case]:
    """Those of the operator's parameter space; none where it has no space."""
    if (space := operator.parameter_space) is None:
        return
    version = newest_claimed_version(operator.name, operator.domain)
    usual = {**space.usual(), space.row: LENGTH}
    nodes: list[tuple[str, str, Values, Extreme | None]] = [(*named, None) for named in name_values(space)]
    nodes += [(EXTREME, name, usual, extreme) for name, extreme in name_extremes(space)]
    for kind, name, values, extreme in nodes:
        sample, builder = f"{kind}_{name}", partial(_build, values, operator, extreme)
        yield Case(
            operator.name,
            operator.domain,
            version,
            "float32",
            sample,
            graph.INITIALIZER,
            builder,
            kind=kind,
            source=SOURCE,
        )


def name_values(space: ParameterSpace) -> Iterator[tuple[str, str, Values]]:
    """(one of KINDS, what the name of the sample says behind it, the values of its node)."""
    usual = space.usual()
    for name, lengths in space.borders.items():
        for length in lengths:
            yield BORDER, f"{name}_{length}", {**usual, name: length}
    for name in space.empty:
        yield EMPTY, name, {**usual, name: 0}
    for row in all_pairs(space.choices, space.is_valid) if len(space.choices) > 1 else _list_choices(space):
        values = {**usual, **row}
        words = [f"{name}_{_spell(value)}" for name, value in row.items() if value != usual[name]]
        yield PAIRS, "_".join(words or ["usual"]), values


def _list_choices(space: ParameterSpace) -> Iterator[Values]:
    for name, values in space.choices.items():
        yield from ({name: value} for value in values)


def _spell(value: Any) -> str:
    """A value in a name: `minus_2`, `0_5`, `1x3`, `on`."""
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return "x".join(map(_spell, value)) or "empty"
    return str(value).replace("-", "minus_").replace(".", "_").lower()


def name_extremes(space: ParameterSpace) -> Iterator[tuple[str, Extreme]]:
    """What a sample is called after its kind, and the value and its place, of those that the space has."""
    places = MOVED if space.only_moves else COMPUTED
    for value in space.extremes:
        for place in places[value]:
            yield f"{value}_{place}", Extreme(value, place)


def _build(values: Values, operator: Operator[Any], extreme: Extreme | None, case: Case) -> BuiltCase:
    assert operator.parameter_space is not None
    parts = operator.parameter_space.node(values, random_source(case.id))
    if extreme is not None:
        parts = extreme.put_into(parts)
    node = parts.make_node(operator.name, case.since_version, operator.domain)
    return build_case(operator, node, operator.truth(node), case)


def all_pairs(choices: Mapping[str, Sequence[Any]], is_valid: Callable[[Row], bool]) -> tuple[Row, ...]:
    """Rows in a stable order that begins with the first value of each parameter: every pair of values of two parameters
    that some valid row has is in one of them. Each next row is the first of those that have most pairs that are new."""
    names = tuple(choices)
    rows = [dict(zip(names, values, strict=True)) for values in product(*choices.values())]
    valid = [row for row in rows if is_valid(row)]
    if not valid or len(names) < 2:
        return tuple(valid)
    table = np.array([[list(choices[name]).index(row[name]) for name in names] for row in valid])
    columns = [table[:, i] * len(choices[names[j]]) + table[:, j] for i, j in combinations(range(len(names)), 2)]
    missing = [np.isin(np.arange(column.max() + 1), column) for column in columns]
    rows_chosen: list[int] = []
    chosen = 0
    while True:
        rows_chosen.append(chosen)
        for column, absent in zip(columns, missing, strict=True):
            absent[column[chosen]] = False
        gain = np.sum([absent[column] for column, absent in zip(columns, missing, strict=True)], axis=0)
        chosen = int(gain.argmax())
        if not gain[chosen]:
            return tuple(valid[index] for index in rows_chosen)
