"""Faults in Loop, Scan, SequenceMap and Optional."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from epcheck.generators import registry
from epcheck.generators.case import BuiltCase
from epcheck.generators.node import Node, Operand
from tests.mutants.mutant import Mutant, attribute, by_truth, inputs, misread, outputs, outputs_of


def with_cond(node: Node, value: bool) -> Node:
    return replace(
        node,
        inputs=tuple(
            Operand(o.name, np.array(value)) if o is not None and o.name == "cond" else o for o in node.inputs
        ),
    )


def cond_added(node: Node) -> Node:
    """What the body says counts although `cond` is left out."""
    if node.value("cond") is not None:
        return node
    return replace(node, inputs=(*node.inputs, Operand("cond", np.array(True))))


def capped(node: Node) -> Node:
    """The count is taken for 5 where it is left out."""
    if node.value("M") is not None:
        return node
    return replace(node, inputs=(Operand("M", np.array(3, np.int64)), *node.inputs))


def reversed_stack(built: BuiltCase) -> dict[str, np.ndarray] | None:
    """The rows of the last output are in reverse."""
    right = outputs_of(built.truth)
    if right is None:
        return None
    last = list(right)[-1]
    return {name: v[::-1] if name == last and v.ndim else v for name, v in right.items()}


def exchanged(operator: str, fault: str, left: str, right: str) -> Mutant:
    """Two tensors that enter the model are exchanged."""

    def change(node: Node) -> Node:
        values = {left: node.value(right), right: node.value(left)}
        if any(value is None for value in values.values()):
            return node
        return replace(
            node,
            inputs=tuple(replace(o, value=values.get(o.name, o.value)) if o is not None else o for o in node.inputs),
        )

    return misread(operator, fault, change)


def turned(name: str) -> object:
    """Each axis counts from the other end."""

    def change(node: Node) -> Node:
        axes = node.attributes.get(name)
        if axes is None:
            return node
        return replace(node, attributes={**node.attributes, name: tuple(-1 - n for n in axes)})  # type: ignore[union-attr,operator]

    return change


def lengthened(built: BuiltCase) -> dict[str, np.ndarray] | None:
    """The lengths of the batches do not count."""
    node = built.node
    if node.value("sequence_lens") is None:
        return outputs_of(built.truth)
    full = np.full_like(node.array("sequence_lens"), node.array("X").shape[1])
    changed = tuple(Operand(o.name, full) if o is not None and o.name == "sequence_lens" else o for o in node.inputs)
    return outputs_of(registry.operator_of("Scan").truth(replace(node, inputs=changed)))


def first_for_all(built: BuiltCase) -> dict[str, np.ndarray] | None:
    """Every tensor of a result is its first."""
    right = outputs_of(built.truth) or {}
    return {name: right.get(f"{name.partition('_tensor_')[0]}_tensor_0", v) if "_tensor_" in name else v
            for name, v in right.items()}  # fmt: skip


def results_exchanged(built: BuiltCase) -> dict[str, np.ndarray] | None:
    right = outputs_of(built.truth)
    return None if right is None else dict(zip(right, list(right.values())[::-1], strict=True))


MUTANTS = (
    misread("Loop", "a condition that is false at first does not count", lambda n: with_cond(n, True)),
    misread("Loop", "the body's condition counts although cond is left out", cond_added),
    misread("Loop", "without a count there are three iterations", capped),
    inputs("Loop", "there is an iteration more", lambda n, v: v + (v > 0) if n == "M" else v),
    inputs("Loop", "there is an iteration at least", lambda n, v: np.maximum(v, 1) if n == "M" else v),
    inputs("Loop", "a negative count is taken for a positive one", lambda n, v: np.abs(v) if n == "M" else v),
    inputs("Loop", "the count goes through int32",
           lambda n, v: v.astype(np.int32).astype(np.int64) if n == "M" else v),
    inputs("Loop", "the limit is one less", lambda n, v: v - 1 if n == "limit" else v),
    exchanged("Loop", "the carried values are exchanged", "X", "Y"),
    by_truth("Loop", "the rows are stacked in reverse", reversed_stack),
    outputs("Loop", "rows behind 1024 are lost", lambda v: v[:1024] if v.ndim == 1 else v),
    attribute("Scan", "scan_input_axes", None),
    attribute("Scan", "scan_output_axes", None),
    attribute("Scan", "scan_input_directions", None),
    attribute("Scan", "scan_output_directions", None),
    attribute("Scan", "directions", None),
    misread("Scan", "input axes count from the other end", turned("scan_input_axes")),
    misread("Scan", "output axes count from the other end", turned("scan_output_axes")),
    by_truth("Scan", "the lengths of the batches do not count", lengthened),
    by_truth("Scan", "the rows are stacked in reverse", reversed_stack),
    exchanged("Scan", "the states are exchanged", "S", "R"),
    exchanged("Scan", "the scanned inputs are exchanged", "X", "Z"),
    outputs("Scan", "the first batch serves all", lambda v: np.broadcast_to(v[:1], v.shape) if v.ndim else v),
    outputs("Scan", "sums start at 0", np.zeros_like),
    by_truth("SequenceMap", "every tensor is the first", first_for_all),
    by_truth("SequenceMap", "the results are exchanged", results_exchanged),
    outputs("SequenceMap", "the last tensor is not counted",
            lambda v: v if v.ndim else np.maximum(v - 1, 0).astype(v.dtype)),
    exchanged("SequenceMap", "the second sequence is the first", "second_0", "first_0"),
    outputs("Optional", "what is inside is not copied", np.zeros_like),
    outputs("Optional", "an empty optional has something inside", lambda v: np.ones_like(v) if v.dtype == bool else v),
    outputs("Optional", "a scalar gets a dimension", lambda v: v.reshape(1) if v.ndim == 0 else v),
    by_truth("Optional", "the tensors stand in reverse", results_exchanged),
)  # fmt: skip
