"""Faults of reductions, ArgMax, ArgMin, CumSum and Softmax with its kin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.node import Node
from tests.mutants.mutant import Mutant, attribute, by_truth, inputs, misread, outputs, outputs_of

TAKEN_FOR = {
    "ReduceL1": "ReduceSum",
    "ReduceL2": "ReduceSumSquare",
    "ReduceLogSum": "ReduceSum",
    "ReduceLogSumExp": "ReduceLogSum",
    "ReduceMax": "ReduceMin",
    "ReduceMean": "ReduceSum",
    "ReduceMin": "ReduceMax",
    "ReduceProd": "ReduceSum",
    "ReduceSum": "ReduceL1",
    "ReduceSumSquare": "ReduceL2",
}


def last_axis_only(operator: str) -> Mutant:
    def change(node: Node) -> Node:
        read = tuple(o and (replace(o, value=o.value[-1:]) if o.name == "axes" else o) for o in node.inputs)
        listed = node.attributes.get("axes")
        attributes = dict(node.attributes) | ({"axes": listed[-1:]} if isinstance(listed, tuple) else {})
        return replace(node, inputs=read, attributes=attributes)

    return misread(operator, "of several axes only the last one is reduced", change)


def axes_from_the_end(operator: str) -> Mutant:
    def change(name: str, value: Array) -> Array:
        return np.where(value < 0, -value - 1, value) if name == "axes" else value

    return inputs(operator, "a negative axis counts from the front", change)


def computes(operator: str, other: str) -> Mutant:
    return misread(operator, f"computes {other}", lambda node: replace(node, op_type=other))


def nothing_is_one_more(operator: str) -> Mutant:
    """A reduction over nothing leaves what the buffer held."""

    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        right = outputs_of(built.truth)
        empty = built.node.array("data").size == 0
        return right and {name: np.full_like(value, 7) if empty else value for name, value in right.items()}

    return by_truth(operator, "a reduction over nothing writes nothing", answer)


def without_nan(operator: str, instead: float) -> Mutant:
    def change(_: str, value: Array) -> Array:
        return np.where(np.isnan(value), value.dtype.type(instead), value) if value.dtype.kind == "f" else value

    return inputs(operator, "NaN is passed over", change)


def overflows(operator: str, name: str, limit: float) -> Mutant:
    def change(read: str, value: Array) -> Array:
        is_data = read == name and value.dtype.kind == "f"
        return np.where(value > limit, value.dtype.type(np.inf), value) if is_data else value

    return inputs(operator, "exp overflows instead of being shifted", change)


def cut_into_two(operator: str) -> Mutant:
    """Takes the axis of revision 13 as revision 11 does, and the other way around."""

    def change(node: Node) -> Node:
        axis = node.integer("axis", -1 if node.since_version >= 13 else 1)
        version = 11 if node.since_version >= 13 else 13
        return replace(node, since_version=version, attributes={"axis": axis})

    return misread(operator, "the axis means what it means in the other revisions", change)


def every_maximum(built: BuiltCase) -> Mapping[str, Array] | None:
    x = built.node.array("input")
    right = outputs_of(built.truth)
    if right is None or built.node.since_version < 13 or not x.size:
        return right
    axis = built.node.integer("axis", -1)
    return {"output": (x == np.max(x, axis=axis, keepdims=True)).astype(x.dtype)}


def last_maximum(operator: str) -> Mutant:
    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        turned = inputs(operator, "", lambda _, x: np.flip(x)).answer(built)
        return turned and {name: np.flip(value) for name, value in turned.items()}

    return by_truth(operator, "the last of equal maxima is marked", answer)


def _reductions() -> list[Mutant]:
    faults = []
    for operator, other in TAKEN_FOR.items():
        faults += [
            computes(operator, other),
            attribute(operator, "keepdims", 1),
            last_axis_only(operator),
            axes_from_the_end(operator),
            attribute(operator, "noop_with_empty_axes", None),
        ]
        if operator != "ReduceMean":
            faults.append(nothing_is_one_more(operator))
    return faults


MUTANTS = (
    *_reductions(),
    without_nan("ReduceMax", -np.inf),
    without_nan("ReduceMin", np.inf),
    without_nan("ReduceSum", 0),
    overflows("ReduceLogSumExp", "data", 88),
    *(
        fault
        for operator in ("ArgMax", "ArgMin")
        for fault in (
            attribute(operator, "select_last_index", None),
            attribute(operator, "select_last_index", 1),
            attribute(operator, "keepdims", 1),
            attribute(operator, "axis", None),
            inputs(operator, "64-bit integers go through float64", lambda _, x: x.astype(np.float64)),
        )
    ),
    attribute("CumSum", "exclusive", None),
    attribute("CumSum", "reverse", None),
    inputs("CumSum", "the axis is always 0", lambda name, x: np.zeros_like(x) if name == "axis" else x),
    without_nan("CumSum", 0),
    *(attribute(operator, "axis", None) for operator in ("Softmax", "LogSoftmax", "Hardmax")),
    *(cut_into_two(operator) for operator in ("Softmax", "LogSoftmax", "Hardmax")),
    overflows("Softmax", "input", 88),
    overflows("LogSoftmax", "input", 88),
    outputs("LogSoftmax", "the logarithm of a share that has underflowed", lambda y: np.where(y < -104, -np.inf, y)),
    by_truth("Hardmax", "every maximum is marked", every_maximum),
    last_maximum("Hardmax"),
)
