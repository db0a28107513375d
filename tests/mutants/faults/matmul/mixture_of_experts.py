"""Mutants of MoE and QMoE: routing, activations, layers and quantised weights misread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Node
from tests.mutants.mutant import Mutant, attribute, inputs, misread, outputs

MOE, QMOE = "com.microsoft::MoE", "com.microsoft::QMoE"


def without(operator: str, *names: str) -> Mutant:
    """The provider does not read some inputs."""

    def change(node: Node) -> Node:
        return replace(node, inputs=tuple(None if o is not None and o.name in names else o for o in node.inputs))

    return misread(operator, f"{' and '.join(names)} not read", change)


def on(suffix: str, change: Callable[[Array], Array]) -> Callable[[str, Array], Array]:
    """A change of the inputs whose names end so."""
    return lambda name, value: change(value) if name.endswith(suffix) else value


def halves_for_pairs(node: Node) -> Node:
    """Gate and linear part are read as halves where they alternate."""
    fusion = node.integer("swiglu_fusion", 0)
    return replace(node, attributes={**node.attributes, "swiglu_fusion": {0: 0, 1: 2, 2: 1}[fusion]})


def exchange_gate(name: str, value: Array) -> Array:
    """The linear part stands before the gate."""
    if not name.startswith("fc1") or value.ndim < 2 or value.shape[1] % 2:
        return value
    return np.stack([value[:, 1::2], value[:, ::2]], 2).reshape(value.shape)


def list_common(operator: str) -> list[Mutant]:
    """What can be wrong in both."""
    return [
        attribute(operator, "k", 1),
        attribute(operator, "k", None),
        attribute(operator, "normalize_routing_weights", None),
        attribute(operator, "normalize_routing_weights", 1),
        attribute(operator, "activation_type", None),
        attribute(operator, "activation_alpha", 1.0),
        attribute(operator, "activation_beta", 1.0),
        attribute(operator, "swiglu_limit", None),
        misread(operator, "gate and linear part are halves where they alternate", halves_for_pairs),
        without(operator, "fc1_experts_bias"),
        without(operator, "fc2_experts_bias"),
        inputs(operator, "the linear part stands before the gate", exchange_gate),
        inputs(operator, "the first expert's bias is that of all",
               on("_bias", lambda v: np.broadcast_to(v[:1], v.shape).copy())),
        inputs(operator, "the first expert's weight is that of all",
               on("_weights", lambda v: np.broadcast_to(v[:1], v.shape).copy() if v.ndim == 3 else v)),
        inputs(operator, "the lowest rates are chosen", on("router_probs", lambda v: -v)),
        inputs(operator, "the first token's rates are those of all",
               on("router_probs", lambda v: np.broadcast_to(v[:1], v.shape).copy())),
        inputs(operator, "rates are halved before softmax", on("router_probs", lambda v: v / 2)),
        outputs(operator, "the last token is 0",
                lambda v: np.concatenate([v[..., :-1, :], np.zeros_like(v[..., -1:, :])], -2)),
    ]  # fmt: skip


MUTANTS = [
    *list_common(MOE),
    *list_common(QMOE),
    without(QMOE, "fc1_zero_points"),
    without(QMOE, "fc2_zero_points"),
    without(QMOE, "router_weights"),
    inputs(QMOE, "the first element lies in the high bits",
           lambda n, v: v << 4 | v >> 4 if n in ("fc1_experts_weights", "fc2_experts_weights") else v),
    inputs(QMOE, "the first row's scale is that of all",
           on("_scales", lambda v: np.broadcast_to(v[:, :1], v.shape).copy())),
    inputs(QMOE, "the first block's scale is that of all",
           on("_scales", lambda v: np.broadcast_to(v[..., :1], v.shape).copy() if v.ndim == 3 else v)),
    inputs(QMOE, "zero points are those of the block before", on("_zero_points", lambda v: np.roll(v, 1, -1))),
]  # fmt: skip
