"""Mutants of gates and normalizations of com.microsoft: attributes, shapes and operands misread."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Node
from tests.mutants.mutant import Mutant, attribute, inputs, misread, outputs, swapped

SILU, ADD, NORM, BRANCHES, GATE, PRE, POST, ENGRAM = (
    f"com.microsoft::{name}"
    for name in (
        "ScaledSiLU",
        "GatedAdd",
        "GatedRMSNorm",
        "BranchwiseRMSNorm",
        "LinearAttentionGate",
        "HyperConnectionPreMix",
        "HyperConnectionPostMix",
        "EngramGate",
    )
)


def without(operator: str, name: str) -> Mutant:
    """The provider does not read an optional input."""

    def change(node: Node) -> Node:
        return replace(node, inputs=tuple(None if o is not None and o.name == name else o for o in node.inputs))

    return misread(operator, f"{name} is not read", change)


def last_row_lost(value: Array) -> Array:
    """The last row of the output is 0."""
    changed = value.copy()
    changed[..., -1:] = 0
    return changed


def first_row(operator: str, wanted: str) -> Mutant:
    """The first row of an input is read for all."""
    return inputs(
        operator,
        f"the first row of {wanted} is that of all",
        lambda n, v: np.broadcast_to(v[:1], v.shape).copy() if n == wanted and v.ndim else v,
    )


def transposed_mix(name: str, value: Array) -> Array:
    """The mix of streams is transposed."""
    return np.swapaxes(value, -1, -2) if name == "stream_mix" else value


MUTANTS = [
    attribute(SILU, "alpha", 1.0),
    without(SILU, "scale"),
    inputs(SILU, "X is positive", lambda n, v: np.abs(v) if n == "X" else v),
    swapped(ADD, 0, 1),
    first_row(ADD, "gate"),
    inputs(ADD, "the gate is a sigmoid", lambda n, v: 1 / (1 + np.exp(-v)) if n == "gate" else v),
    attribute(NORM, "activation", "sigmoid"),
    attribute(NORM, "activation", "silu"),
    attribute(NORM, "epsilon", None),
    swapped(NORM, 0, 2),
    inputs(NORM, "scale is not read", lambda n, v: np.ones_like(v) if n == "scale" else v),
    attribute(BRANCHES, "epsilon", None),
    without(BRANCHES, "scale"),
    inputs(BRANCHES, "the first element of scale is that of all",
           lambda n, v: np.full_like(v, v.ravel()[0]) if n == "scale" else v),
    inputs(GATE, "dt_bias is not read", lambda n, v: np.zeros_like(v) if n == "dt_bias" else v),
    inputs(GATE, "the first head's scale is that of all",
           lambda n, v: np.full_like(v, v[0]) if n == "decay_scale" else v),
    inputs(GATE, "b is not read", lambda n, v: np.zeros_like(v) if n == "b" else v),
    attribute(PRE, "reduction_scale", 1.0),
    first_row(PRE, "pre_mix"),
    inputs(PRE, "gates are 1", lambda n, v: np.ones_like(v) if n == "pre_mix" else v),
    without(POST, "stream_mix"),
    inputs(POST, "stream_mix is transposed", transposed_mix),
    first_row(POST, "block_output"),
    inputs(POST, "gates are 1", lambda n, v: np.ones_like(v) if n == "post_mix" else v),
    attribute(ENGRAM, "epsilon", None),
    inputs(ENGRAM, "the query's scale is not read", lambda n, v: np.ones_like(v) if n == "query_norm_scale" else v),
    inputs(ENGRAM, "the sign of the product is lost", lambda n, v: np.abs(v) if n in ("key", "query") else v),
    inputs(ENGRAM, "the first branch's scale is that of all",
           lambda n, v: np.broadcast_to(v[:1], v.shape).copy() if n == "key_norm_scale" else v),
    *(outputs(operator, "the last column is 0", last_row_lost)
      for operator in (ADD, NORM, BRANCHES, GATE, PRE, POST, ENGRAM)),
]  # fmt: skip
