"""Faults by the oracle itself: the right implementation is the operator's own truth, a fault is that of another node.

A provider with the fault answers each case with what the standard says of the node as it misread it, or with the right
outputs changed by one step. The suite finds a fault when at least one case fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epcheck.generators import suite
from epcheck.generators.case import BuiltCase
from epcheck.generators.node import Attribute, Node
from epcheck.generators.truth import Outputs, Selection, Truth

Array = np.ndarray[Any, np.dtype[Any]]
Answer = Callable[[BuiltCase], Mapping[str, Array] | None]
"""What a provider says; None where it refuses."""


@dataclass(frozen=True)
class Fault:
    """operator: `Operator.key`. what: the fault in words."""

    operator: str
    what: str
    answer: Answer


def outputs_of(truth: Truth) -> dict[str, Array] | None:
    """The outputs that the truth prefers; None for a refusal."""
    if isinstance(truth, Outputs):
        return {output.name: output.value for output in truth.outputs}
    if isinstance(truth, Selection):
        return dict(zip(truth.names, truth.accepted[0], strict=True))
    return None


def misread(operator: str, what: str, change: Callable[[Node], Node]) -> Fault:
    """The provider takes the node for another one, and does that right."""
    return Fault(operator, what, lambda built: outputs_of(suite.all_operators()[operator].truth(change(built.node))))


def attribute(operator: str, name: str, value: Attribute | None, what: str = "") -> Fault:
    """The provider takes an attribute for another value, or does not see it (None)."""

    def change(node: Node) -> Node:
        others = {key: kept for key, kept in node.attributes.items() if key != name}
        return replace(node, attributes=others if value is None else {**others, name: value})

    return misread(operator, what or f"{name} is always {value}" if value is not None else f"{name} is ignored", change)


def inputs(operator: str, what: str, change: Callable[[str, Array], Array]) -> Fault:
    """The provider changes what it reads: (input name, value) -> value."""
    return misread(
        operator,
        what,
        lambda node: replace(
            node, inputs=tuple(None if o is None else replace(o, value=change(o.name, o.value)) for o in node.inputs)
        ),
    )


def swapped(operator: str, one: int = 0, other: int = 1) -> Fault:
    """The provider exchanges two inputs."""

    def change(node: Node) -> Node:
        given = list(node.inputs)
        first, second = given[one], given[other]
        assert first is not None
        assert second is not None
        given[one], given[other] = replace(first, value=second.value), replace(second, value=first.value)
        return replace(node, inputs=tuple(given))

    return misread(operator, f"inputs {one} and {other} are exchanged", change)


def outputs(operator: str, what: str, change: Callable[[Array], Array]) -> Fault:
    """The provider does the last step wrong: every right output, changed."""

    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        right = outputs_of(built.truth)
        return None if right is None else {name: change(value) for name, value in right.items()}

    return Fault(operator, what, answer)
