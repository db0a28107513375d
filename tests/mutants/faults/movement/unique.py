"""Faults in Unique."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.node import Node
from tests.mutants.mutant import Mutant, attribute, by_truth, misread, outputs_of

OPERATOR = "Unique"


def changed(fault: str, name: str, change: Callable[[Array, Node], Array]) -> Mutant:
    """One output is wrong, where it is there."""

    def answer(built: BuiltCase) -> dict[str, Array]:
        right = outputs_of(built.truth) or {}
        return {key: change(value, built.node) if key == name else value for key, value in right.items()}

    return by_truth(OPERATOR, fault, answer)


def absolute_axis(node: Node) -> Node:
    return replace(node, attributes={**node.attributes, "axis": abs(node.integer("axis", 0))} if "axis" in
                   node.attributes else node.attributes)  # fmt: skip


def of_magnitudes(node: Node) -> Node:
    """-1 and 1 are the same value."""
    (x,) = node.inputs
    assert x is not None
    return replace(node, inputs=(replace(x, value=np.abs(x.value)),))


def as_unsigned(node: Node) -> Node:
    """Values are sorted by their bits."""
    (x,) = node.inputs
    assert x is not None
    if x.value.dtype.kind == "b":
        return node
    return replace(node, inputs=(replace(x, value=x.value.view(f"u{x.value.dtype.itemsize}")),))


def last_places(indices: Array, node: Node) -> Array:
    """Where each value stands last, counted from the front."""
    size = node.array("X").size if "axis" not in node.attributes else node.array("X").shape[node.integer("axis", 0)]
    return size - 1 - indices


MUTANTS = [
    attribute(OPERATOR, "axis", None),
    attribute(OPERATOR, "axis", 0),
    attribute(OPERATOR, "sorted", None),
    attribute(OPERATOR, "sorted", 0),
    misread(OPERATOR, "a negative axis is absolute", absolute_axis),
    misread(OPERATOR, "values are compared by their size", of_magnitudes),
    misread(OPERATOR, "values are sorted by their bits", as_unsigned),
    changed("the values are reversed", "Y", lambda v, _: v[::-1]),
    changed("the indices are the last ones", "indices", last_places),
    changed("the indices count from 1", "indices", lambda v, _: v + 1),
    changed("the inverse counts from the end", "inverse_indices", lambda v, _: v.max(initial=0) - v),
    changed("the counts are reversed", "counts", lambda v, _: v[::-1]),
    changed("every value is there once", "counts", lambda v, _: np.ones_like(v)),
    changed("the counts end at 255", "counts", lambda v, _: np.minimum(v, 255)),
    changed("an empty input has a value", "Y", lambda v, _: v if v.size else np.zeros((1, *v.shape[1:]), v.dtype)),
]
