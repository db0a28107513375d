"""Mutants of LinearAttention: rules taken for one another, gates misread, heads mixed up, a state that is not kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.node import Node, Operand
from epcheck.generators.operators.attention import linear_attention
from tests.mutants.mutant import Mutant, attribute, by_truth, inputs, misread, outputs_of

OPERATOR = "LinearAttention"


def without(name: str) -> Callable[[Node], Node]:
    """An optional input is not read."""
    return lambda node: replace(
        node, inputs=tuple(None if o is not None and o.name == name else o for o in node.inputs)
    )


def heads_last(name: str, heads: str) -> Mutant:
    """The packed dimension is read as [D, H] instead of [H, D]."""

    def change(node: Node) -> Node:
        count = node.integer(heads, 1)

        def turned(operand: Operand | None) -> Operand | None:
            if operand is None or operand.name != name:
                return operand
            batch, length, size = operand.value.shape
            value = operand.value.reshape(batch, length, size // count, count).transpose(0, 1, 3, 2)
            return replace(operand, value=value.reshape(batch, length, size))

        return replace(node, inputs=tuple(map(turned, node.inputs)))

    return misread(OPERATOR, f"the heads of {name} come last", change)


def state(fault: str, change: Callable[[BuiltCase, Array], Array]) -> Mutant:
    """present_state is another one."""

    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        right = outputs_of(built.truth)
        return right and {**right, "present_state": change(built, right["present_state"])}

    return by_truth(OPERATOR, fault, answer)


def rule(wrong: str, taken: str) -> Mutant:
    """One rule is computed as another that reads no more inputs."""

    def change(node: Node) -> Node:
        found = node.text("update_rule", "gated_delta")
        return replace(node, attributes={**node.attributes, "update_rule": taken if found == wrong else found})

    return misread(OPERATOR, f"{wrong} is computed as {taken}", change)


def chunks(built: BuiltCase) -> Mapping[str, Array] | None:
    """Each chunk begins with an empty state."""
    right, length = outputs_of(built.truth), built.node.array("query").shape[1]
    size = built.node.integer("chunk_size", 64)
    if right is None or length <= size:
        return right
    y = right["output"].copy()
    y[:, size:] = 0
    return {**right, "output": y}


def interleaved(node: Node) -> Node:
    """Query head h reads the state of head h modulo H_kv."""
    q_heads, heads = node.integer("q_num_heads", 1), node.integer("kv_num_heads", 1)
    query = node.array("query")
    batch, length, size = query.shape
    groups = query.reshape(batch, length, heads, q_heads // heads, size // q_heads).swapaxes(2, 3)
    turned = Operand("query", groups.reshape(query.shape))
    return replace(node, inputs=(turned, *node.inputs[1:]))


def any_rule(built: BuiltCase) -> Mapping[str, Array] | None:
    """A rule that nobody knows is linear."""
    node = built.node
    if built.case.sample == "refused_update_rule":
        node = replace(node, attributes={**node.attributes, "update_rule": "linear"})
    return outputs_of(linear_attention.truth(node))


MUTANTS = [
    attribute(OPERATOR, "scale", None),
    attribute(OPERATOR, "scale", 1.0),
    attribute(OPERATOR, "update_rule", "linear"),
    attribute(OPERATOR, "update_rule", None),
    rule("gated_delta", "gated"),
    rule("gated_delta", "delta"),
    rule("delta", "linear"),
    rule("gated", "linear"),
    misread(OPERATOR, "past_state is ignored", without("past_state")),
    misread(OPERATOR, "query heads are interleaved", interleaved),
    heads_last("query", "q_num_heads"),
    heads_last("key", "kv_num_heads"),
    heads_last("value", "kv_num_heads"),
    inputs(OPERATOR, "past_state is transposed", lambda n, v: v.swapaxes(2, 3) if n == "past_state" else v),
    inputs(
        OPERATOR,
        "the decay is its own factor",
        lambda n, v: np.log1p(v.astype(np.float64) / 40).astype(v.dtype) if n == "decay" else v,
    ),
    inputs(OPERATOR, "the decay is positive", lambda n, v: -v if n == "decay" else v),
    inputs(
        OPERATOR,
        "the first decay is that of all heads",
        lambda n, v: np.broadcast_to(v[..., :1], v.shape) if n == "decay" else v,
    ),
    inputs(
        OPERATOR,
        "beta goes through a sigmoid again",
        lambda n, v: (1 / (1 + np.exp(-v))).astype(v.dtype) if n == "beta" else v,
    ),
    inputs(
        OPERATOR,
        "the first beta is that of all heads",
        lambda n, v: np.broadcast_to(v[..., :1], v.shape) if n == "beta" else v,
    ),
    by_truth(OPERATOR, "each chunk begins anew", chunks),
    state(
        "present_state is past_state",
        lambda b, right: right if b.node.value("past_state") is None else b.node.array("past_state"),
    ),
    state("present_state is transposed", lambda _, right: right.swapaxes(2, 3)),
    state("present_state has the type of query", lambda b, right: right.astype(b.node.array("query").dtype)),
    Mutant(OPERATOR, "an unknown rule is linear", any_rule),
]
