"""The cases of interactions: their samples' names begin with `conjunction_`. The truth is that of the operator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from epcheck.generators import graph
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.claims import newest_claimed_version
from epcheck.generators.declaration.interaction import Interaction, make_input
from epcheck.generators.declaration.parameter_space import Parts
from epcheck.generators.operator import Operator, build_case, random_source

SOURCE = "interactions"
KIND = "conjunction"
KINDS = {KIND: "several conditions in one node, each of which other cases have alone"}
"""What these cases are called -> what they are aimed at."""


def cases(operator: Operator[Any]) -> Iterator[Case]:
    """A case for each interaction of the operator."""
    for interaction in operator.interactions:
        version = interaction.version or newest_claimed_version(operator.name, operator.domain)
        binding = graph.INITIALIZER if len(interaction.inputs) > 1 else graph.RUNTIME
        sample, builder = f"{KIND}_{interaction.name}", partial(_build, interaction, operator)
        yield Case(
            operator.name,
            operator.domain,
            version,
            interaction.dtype,
            sample,
            binding,
            builder,
            kind=KIND,
            source=SOURCE,
        )


def _build(interaction: Interaction, operator: Operator[Any], case: Case) -> BuiltCase:
    rng, dtype = random_source(case.id), interaction.dtype.partition("-")[0]
    inputs = tuple(None if declared is None else make_input(declared, dtype, rng) for declared in interaction.inputs)
    parts = Parts(inputs, interaction.attributes, tuple(range(1, len(inputs))), (True,) * interaction.outputs)
    node = parts.make_node(operator.name, case.since_version, operator.domain)
    return build_case(operator, node, operator.truth(node), case)
