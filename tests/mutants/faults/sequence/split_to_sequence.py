"""Faults in SplitToSequence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from epcheck.generators.case import BuiltCase
from epcheck.generators.node import Node
from tests.mutants.mutant import attribute, by_truth, inputs, misread, outputs_of

OPERATOR = "SplitToSequence"


def without_split(node: Node) -> Node:
    return replace(node, inputs=node.inputs[:1])


def always_squeezed(built: BuiltCase) -> dict[str, np.ndarray] | None:
    """keepdims = 0 counts, too, where `split` is there."""
    right = outputs_of(built.truth)
    if right is None or built.node.integer("keepdims", 1):
        return right
    axis = built.node.integer("axis", 0)
    return {name: v.squeeze(axis) if v.ndim and v.shape[axis] == 1 and len(built.node.inputs) > 1 else v
            for name, v in right.items()}  # fmt: skip


def backwards(built: BuiltCase) -> dict[str, np.ndarray] | None:
    right = outputs_of(built.truth) or {}
    (length, *parts), names = right.values(), list(right)
    return dict(zip(names, [length, *parts[::-1]], strict=True))


def counted(built: BuiltCase) -> dict[str, np.ndarray] | None:
    """An empty sequence has a part."""
    right = outputs_of(built.truth) or {}
    return {name: np.maximum(v, 1) if name == "length" else v for name, v in right.items()}


MUTANTS = [
    attribute(OPERATOR, "axis", None),
    attribute(OPERATOR, "axis", 0),
    attribute(OPERATOR, "axis", -1),
    attribute(OPERATOR, "keepdims", None),
    attribute(OPERATOR, "keepdims", 0),
    misread(OPERATOR, "split is ignored", without_split),
    by_truth(OPERATOR, "keepdims counts beside split", always_squeezed),
    by_truth(OPERATOR, "the parts are reversed", backwards),
    by_truth(OPERATOR, "nothing is split into one part", counted),
    inputs(OPERATOR, "lengths are read in reverse", lambda n, v: v[::-1] if n == "split" and v.ndim else v),
    inputs(OPERATOR, "a scalar split is one longer", lambda n, v: v + 1 if n == "split" and not v.ndim else v),
    inputs(OPERATOR, "split goes through int32",
           lambda n, v: v.astype(np.int32).astype(v.dtype) if n == "split" else v),
    inputs(OPERATOR, "elements behind 1024 are lost", lambda n, v: np.where(np.arange(v.shape[-1]) < 1024, v, 0)
           if n == "input" and v.ndim else v),
]  # fmt: skip
