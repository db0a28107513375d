"""Faults in sequences, optionals and If."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from epcheck.generators import registry
from epcheck.generators.case import BuiltCase
from epcheck.generators.node import Node
from epcheck.generators.operators.sequence.sequence import ELEMENT
from tests.mutants.mutant import Mutant, attribute, by_truth, inputs, misread, outputs, outputs_of


def elements(operator: str, what: str, order: Callable[[list[np.ndarray]], list[np.ndarray]]) -> Mutant:
    """The provider puts other tensors at the places of the sequence's."""

    def change(node: Node) -> Node:
        operands = [o for o in node.inputs if o is not None]
        values = iter(order([o.value for o in operands if o.name.startswith(ELEMENT)]))
        changed = (replace(o, value=next(values)) if o.name.startswith(ELEMENT) else o for o in operands)
        return replace(node, inputs=tuple(changed))

    def answer(built: BuiltCase) -> dict[str, np.ndarray] | None:
        return outputs_of(registry.all_operators()[operator].truth(change(built.node)))

    return by_truth(operator, what, answer)


def backwards(values: list[np.ndarray]) -> list[np.ndarray]:
    return values[::-1]


def first_again(values: list[np.ndarray]) -> list[np.ndarray]:
    return values[:1] * len(values)


def no_position(node: Node) -> Node:
    return replace(node, inputs=tuple(o for o in node.inputs if o is None or o.name != "position"))


def from_the_front(name: str, value: np.ndarray) -> np.ndarray:
    return np.abs(value) if name == "position" else value


def off_by_one(name: str, value: np.ndarray) -> np.ndarray:
    """A negative position counts from the last element as 0."""
    return value + (value < 0).astype(value.dtype) if name == "position" else value


def inverted(name: str, value: np.ndarray) -> np.ndarray:
    return ~value if name == "cond" else value


def always(name: str, value: np.ndarray) -> np.ndarray:
    return np.ones_like(value) if name == "cond" else value


def exchanged(built: BuiltCase) -> dict[str, np.ndarray] | None:
    right = outputs_of(built.truth)
    return None if right is None else dict(zip(right, list(right.values())[::-1], strict=True))


MUTANTS = (
    elements("SequenceConstruct", "the tensors stand in reverse", backwards),
    elements("SequenceConstruct", "every tensor is the first", first_again),
    outputs("SequenceEmpty", "there is one tensor too many", lambda v: v + v.dtype.type(1) if v.ndim == 0 else v),
    outputs("SequenceEmpty", "what is inserted is lost", np.zeros_like),
    misread("SequenceInsert", "position is ignored", no_position),
    inputs("SequenceInsert", "a negative position counts from the front", from_the_front),
    inputs("SequenceInsert", "a negative position is one too far", off_by_one),
    misread("SequenceErase", "position is ignored", no_position),
    inputs("SequenceErase", "a negative position counts from the front", from_the_front),
    inputs("SequenceErase", "a negative position is one too far", off_by_one),
    inputs("SequenceAt", "a negative position counts from the front", from_the_front),
    inputs("SequenceAt", "a negative position is one too far", off_by_one),
    elements("SequenceAt", "positions count from the back", backwards),
    outputs("SequenceLength", "the last tensor is not counted", lambda v: np.maximum(v - 1, 0)),
    outputs("SequenceLength", "an empty sequence has one tensor", lambda v: np.maximum(v, 1)),
    attribute("ConcatFromSequence", "axis", 0),
    attribute("ConcatFromSequence", "new_axis", None),
    elements("ConcatFromSequence", "the tensors stand in reverse", backwards),
    outputs("OptionalHasElement", "there is always an element", np.ones_like),
    outputs("OptionalHasElement", "there is never an element", np.zeros_like),
    outputs("OptionalGetElement", "the element is not copied", np.zeros_like),
    elements("OptionalGetElement", "the tensors stand in reverse", backwards),
    inputs("If", "the other branch runs", inverted),
    inputs("If", "then_branch always runs", always),
    by_truth("If", "the outputs are exchanged", exchanged),
)
