"""The cases of interactions: their samples' names begin with `conjunction_`. The truth is that of the operator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from epcheck.generators import graph
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.claims import established_version
from epcheck.generators.declaration.interaction import Interaction, make_input
from epcheck.generators.declaration.parameter_space import Parts
from epcheck.generators.operator import Operator, built_of, random_source
from epcheck.generators.parameter_spaces.cases import node_of

KIND = "conjunction"
KINDS = {KIND: "several conditions in one node, each of which other cases have alone"}
"""What these cases are called -> what they are aimed at."""


def cases(operators: Mapping[str, Operator[Any]]) -> dict[str, tuple[Case, ...]]:
    """Key of an operator -> its cases."""
    return {key: tuple(_case(each, operator) for each in operator.interactions) for key, operator in operators.items()}


def _case(each: Interaction, operator: Operator[Any]) -> Case:
    version = each.version or established_version(operator.name, operator.domain)
    binding = graph.INITIALIZER if len(each.inputs) > 1 else graph.RUNTIME
    builder = partial(_built, each, operator)
    sample = f"{KIND}_{each.name}"
    return Case(operator.name, operator.domain, version, each.dtype, sample, binding, builder, kind=KIND)


def _built(each: Interaction, operator: Operator[Any], case: Case) -> BuiltCase:
    rng, dtype = random_source(case.id), each.dtype.partition("-")[0]
    inputs = tuple(None if declared is None else make_input(declared, dtype, rng) for declared in each.inputs)
    parts = Parts(inputs, each.attributes, tuple(range(1, len(inputs))), (True,) * each.outputs)
    node = node_of(parts, operator, case.since_version)
    return built_of(operator, node, operator.truth(node), case)
