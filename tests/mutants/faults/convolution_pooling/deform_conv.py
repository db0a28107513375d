"""Faults in DeformConv."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from epcheck.generators.node import Node, Operand
from tests.mutants.mutant import attribute, inputs, misread, outputs

OPERATOR = "DeformConv"


def without(name: str) -> object:
    def change(node: Node) -> Node:
        return replace(node, inputs=tuple(None if o is None or o.name == name else o for o in node.inputs))

    return change


def offsets(node: Node, change: object) -> Node:
    """[N, groups, taps, axes, o...] changed."""
    value, w = node.array("offset"), node.array("W")
    axes = w.ndim - 2
    apart = value.reshape(value.shape[0], -1, int(np.prod(w.shape[2:])), axes, *value.shape[2:])
    changed = np.ascontiguousarray(change(apart)).reshape(value.shape)  # type: ignore[operator]
    operands = tuple(Operand("offset", changed) if o is not None and o.name == "offset" else o for o in node.inputs)
    return replace(node, inputs=operands)


def planes(value: np.ndarray) -> np.ndarray:
    """All offsets of one axis come before those of the next."""
    return value.reshape(*value.shape[:2], value.shape[3], value.shape[2], *value.shape[4:]).swapaxes(2, 3)


MUTANTS = [
    *(attribute(OPERATOR, name, None) for name in ("strides", "pads", "dilations", "group", "offset_group")),
    misread(OPERATOR, "the bias is ignored", without("B")),
    misread(OPERATOR, "the mask is ignored", without("mask")),
    misread(OPERATOR, "offsets are x before y", lambda n: offsets(n, lambda v: v[:, :, :, ::-1])),
    misread(OPERATOR, "offsets of an axis lie together", lambda n: offsets(n, planes)),
    misread(OPERATOR, "offsets are subtracted", lambda n: offsets(n, np.negative)),
    misread(OPERATOR, "offsets are rounded", lambda n: offsets(n, np.rint)),
    misread(OPERATOR, "offsets are rounded down", lambda n: offsets(n, np.floor)),
    misread(OPERATOR, "the offsets of the first group serve all",
            lambda n: offsets(n, lambda v: np.broadcast_to(v[:, :1], v.shape))),
    misread(OPERATOR, "the taps are reversed", lambda n: offsets(n, lambda v: v[:, :, ::-1])),
    misread(OPERATOR, "offsets end at 50", lambda n: offsets(n, lambda v: np.clip(v, -3, 3))),
    inputs(OPERATOR, "the kernel is flipped", lambda n, v: v[..., ::-1] if n == "W" else v),
    inputs(OPERATOR, "the last channel is not read",
           lambda n, v: np.where((np.arange(v.shape[1]) < v.shape[1] - 1).reshape(-1, *(1,) * (v.ndim - 2)), v, 0)
           if n == "X" else v),
    inputs(OPERATOR, "the mask is at most 1024 taps long",
           lambda n, v: np.where(np.arange(v.shape[1]).reshape(-1, *(1,) * (v.ndim - 2)) < 60, v, 1)
           if n == "mask" else v),
    outputs(OPERATOR, "what lies 1024 elements in is not written",
            lambda v: np.where(np.arange(v.size).reshape(v.shape) < 1024, v, 0)),
    outputs(OPERATOR, "the result is a thousandth off", lambda v: v * v.dtype.type(1.001)),
]  # fmt: skip
