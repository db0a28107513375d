"""The cases of parameter spaces: sizes at borders (`border_`), empty dimensions (`empty_`), pairs (`pairs_`), and
values that a kernel may treat alone (`extreme_`).

A name says what differs from the usual values, so that it stays the same when others are added. The truth is that of
the operator. Cases are of float32 and of the version that is tried in every way (`claims.established_version`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any

from onnx.defs import OpSchema

from epcheck.generators import graph, schema
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.claims import established_version
from epcheck.generators.declaration.parameter_space import Extremes, ParameterSpace, Parts, Values
from epcheck.generators.node import Node, Operand
from epcheck.generators.operator import Operator, built_of, random_source
from epcheck.generators.parameter_spaces import (
    attention,
    extremes,
    indexing,
    moving,
    recurrent,
    reducing,
    resampling,
    windows,
)
from epcheck.generators.parameter_spaces.all_pairs import all_pairs

OPTIONAL = OpSchema.FormalParameterOption.Optional

BORDER, EMPTY, PAIRS, EXTREME = "border", "empty", "pairs", "extreme"

KINDS = {
    BORDER: "sizes at which kernels change path, of operators that are not element by element",
    EMPTY: "dimensions without elements, in every position that has a defined result",
    PAIRS: "any two values of two attributes, optional inputs and outputs together",
    EXTREME: "NaN, infinities, zeros and denormals at the first, the last and the odd elements of a row",
}
"""What a case is aimed at -> in words. Names of samples begin with it."""


MODULES = (reducing, windows, moving, recurrent, resampling, indexing, attention)


@cache
def spaces() -> tuple[ParameterSpace, ...]:
    """All of them, in a stable order."""
    return tuple(space for module in MODULES for space in module.spaces())


def cases(operators: Mapping[str, Operator[Any]]) -> dict[str, tuple[Case, ...]]:
    """Key of an operator -> its cases."""
    return {
        space.operator: tuple(_of_space(space, operators[space.operator]))
        for space in spaces()
        if space.operator in operators
    }


def named_values(space: ParameterSpace) -> Iterator[tuple[str, str, Values]]:
    """(one of KINDS, what the name of the sample says behind it, the values of its node)."""
    usual = space.usual()
    for name, lengths in space.borders.items():
        for length in lengths:
            yield BORDER, f"{name}_{length}", {**usual, name: length}
    for name in space.empty:
        yield EMPTY, name, {**usual, name: 0}
    for row in all_pairs(space.choices, space.is_valid) if len(space.choices) > 1 else _each(space):
        values = {**usual, **row}
        words = [f"{name}_{_word(value)}" for name, value in row.items() if value != usual[name]]
        yield PAIRS, "_".join(words or ["usual"]), values


def _each(space: ParameterSpace) -> Iterator[Values]:
    for name, values in space.choices.items():
        yield from ({name: value} for value in values)


def _word(value: Any) -> str:
    """A value in a name: `minus_2`, `0_5`, `1x3`, `on`."""
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return "x".join(_word(each) for each in value) or "empty"
    return str(value).replace("-", "minus_").replace(".", "_").lower()


def _of_space(space: ParameterSpace, operator: Operator[Any]) -> Iterator[Case]:
    version = established_version(operator.name, operator.domain)
    usual = {**space.usual(), space.row: extremes.LENGTH}
    nodes: list[tuple[str, str, Values, Extremes | None]] = [(*each, None) for each in named_values(space)]
    nodes += [(EXTREME, name, usual, extreme) for name, extreme in extremes.named(space)]
    for kind, words, values, extreme in nodes:
        sample, builder = f"{kind}_{words}", partial(_built, space.node, values, operator, extreme)
        yield Case(operator.name, operator.domain, version, "float32", sample, graph.INITIALIZER, builder, kind=kind)


def _built(write: Any, values: Values, operator: Operator[Any], extreme: Extremes | None, case: Case) -> BuiltCase:
    parts = write(values, random_source(case.id))
    if extreme is not None:
        parts = extremes.placed(parts, extreme)
    node = node_of(parts, operator, case.since_version)
    return built_of(operator, node, operator.truth(node), case)


def node_of(parts: Parts, operator: Operator[Any], version: int) -> Node:
    """The node of these parts; inputs and outputs of a variadic operator are numbered."""
    definition = schema.schema(operator.name, version, operator.domain)
    names = [formal.name for formal in definition.inputs]
    if schema.signature(operator.name, version, operator.domain).variadic[0]:
        names = [*names[:-1], *(f"{names[-1]}_{index}" for index in range(len(parts.inputs)))]
    inputs = tuple(
        None if value is None else Operand(name, value, parameter=index in parts.parameters)
        for index, (name, value) in enumerate(zip(names, parts.inputs, strict=False))
    )
    formals = [formal.name for formal in definition.outputs]
    if schema.signature(operator.name, version, operator.domain).variadic[1]:
        formals = [f"output_{index}" for index in range(len(parts.outputs))]
    asked = parts.outputs or (True,) * sum(formal.option != OPTIONAL for formal in definition.outputs)
    outputs = [name if wanted else "" for name, wanted in zip(formals, asked, strict=False)]
    while not outputs[-1]:
        outputs.pop()
    return Node(operator.name, operator.domain, version, inputs, tuple(outputs), dict(parts.attributes))
