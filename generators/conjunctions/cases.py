"""The cases of conjunctions: their samples' names begin with `conjunction_`. The truth is that of the operator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from epcheck.generators import graph
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.claims import established_version
from epcheck.generators.conjunctions import computing, moving, windows
from epcheck.generators.conjunctions.conjunction import Conjunction, made
from epcheck.generators.operator import Operator, built_of, random_source
from epcheck.generators.parameter_spaces.cases import node_of
from epcheck.generators.parameter_spaces.parameter_space import Parts

KIND = "conjunction"
KINDS = {KIND: "several conditions in one node, each of which other cases have alone"}
"""What these cases are called -> what they are aimed at."""


@cache
def conjunctions() -> tuple[Conjunction, ...]:
    """All of them, in a stable order."""
    return (*moving.NODES, *computing.NODES, *windows.NODES)


def cases(operators: Mapping[str, Operator[Any]]) -> dict[str, tuple[Case, ...]]:
    """Key of an operator -> its cases."""
    found: dict[str, list[Case]] = {}
    for each in conjunctions():
        operator = operators.get(each.operator)
        if operator is not None:
            found.setdefault(each.operator, []).append(_case(each, operator))
    return {key: tuple(own) for key, own in found.items()}


def _case(each: Conjunction, operator: Operator[Any]) -> Case:
    version = each.version or established_version(operator.name, operator.domain)
    binding = graph.INITIALIZER if len(each.inputs) > 1 else graph.RUNTIME
    sample = f"{KIND}_{each.name}"
    builder = partial(_built, each, operator)
    return Case(operator.name, operator.domain, version, each.dtype, sample, binding, builder, kind=KIND)


def _built(each: Conjunction, operator: Operator[Any], case: Case) -> BuiltCase:
    rng, dtype = random_source(case.id), each.dtype.partition("-")[0]
    inputs = tuple(None if source is None else made(source, dtype, rng) for source in each.inputs)
    parts = Parts(inputs, each.attributes, tuple(range(1, len(inputs))), (True,) * each.outputs)
    node = node_of(parts, operator, case.since_version)
    return built_of(operator, node, operator.truth(node), case)
