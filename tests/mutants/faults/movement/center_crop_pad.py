"""Mutants of CenterCropPad: a middle that is rounded the other way, axes misread, something else than zeros."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.node import Node
from tests.mutants.mutant import Mutant, attribute, by_truth, inputs, misread, outputs_of

OPERATOR = "CenterCropPad"


def turned(built: BuiltCase) -> Mapping[str, Array] | None:
    """The middle of an odd difference is rounded up: what is right of the tensor turned round."""
    backwards = inputs(OPERATOR, "", lambda n, v: np.flip(v) if n == "input_data" else v).answer(built)
    return backwards and {name: np.flip(value) for name, value in backwards.items()}


def sorted_axes(node: Node) -> Node:
    """The sizes are those of the axes in rising order."""
    axes = node.integers("axes", ())
    return replace(node, attributes={"axes": tuple(sorted(axes))}) if axes else node


def absolute_axes(node: Node) -> Node:
    """-1 is read as 1."""
    axes = node.integers("axes", ())
    return replace(node, attributes={"axes": tuple(map(abs, axes))}) if axes else node


def padded_with(what: str) -> Mutant:
    """Something else than 0 stands around what is padded: 1, or the elements at the edge."""

    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        right = outputs_of(built.truth)
        source, target = built.node.array("input_data"), built.node.array("shape")
        if right is None or built.node.attributes or source.ndim != 1 or target[0] <= source.size:
            return right
        more = int(target[0]) - source.size
        width = (more // 2, more - more // 2)
        wrong = np.pad(source, width, mode="edge") if what == "the edge" else np.pad(source, width, constant_values=1)
        return dict.fromkeys(right, wrong)

    return by_truth(OPERATOR, f"is padded with {what}", answer)


MUTANTS = [
    attribute(OPERATOR, "axes", None),
    attribute(OPERATOR, "axes", (0,)),
    misread(OPERATOR, "axes are sorted", sorted_axes),
    misread(OPERATOR, "a negative axis is absolute", absolute_axes),
    by_truth(OPERATOR, "the middle is rounded the other way", turned),
    padded_with("the edge"),
    padded_with("1"),
    inputs(OPERATOR, "at most 1024 are asked for", lambda n, v: np.minimum(v, 1024) if n == "shape" else v),
    inputs(OPERATOR, "nothing is padded", lambda n, v: np.minimum(v, 8) if n == "shape" else v),
    inputs(OPERATOR, "nothing is cut out", lambda n, v: np.maximum(v, 2) if n == "shape" else v),
]
