"""Mutants of CausalConvWithState: a kernel that is turned or looks ahead, a state that is lost or cut wrongly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.node import Node
from epcheck.generators.operators.convolution_pooling import causal_convolution
from tests.mutants.mutant import Mutant, attribute, by_truth, inputs, misread, outputs_of

OPERATOR = "CausalConvWithState"


def without(name: str) -> Callable[[Node], Node]:
    """An optional input is not read."""
    return lambda node: replace(
        node, inputs=tuple(None if o is not None and o.name == name else o for o in node.inputs)
    )


def state(fault: str, change: Callable[[BuiltCase, Array], Array]) -> Mutant:
    """present_state is another one."""

    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        right = outputs_of(built.truth)
        return right and {**right, "present_state": change(built, right["present_state"])}

    return by_truth(OPERATOR, fault, answer)


def of_the_input_alone(built: BuiltCase, right: Array) -> Array:
    """Zeros before a short input, instead of what past_state had."""
    x, size = built.node.array("input"), right.shape[2]
    padded = np.concatenate([np.zeros_like(right), x], 2)
    return padded[:, :, padded.shape[2] - size :]


def centred(built: BuiltCase) -> Mapping[str, Array] | None:
    """Half of the padding is behind the input: later positions are seen."""
    right = outputs_of(built.truth)
    shift = built.node.array("weight").shape[-1] // 2
    return right and {**right, "output": np.roll(right["output"], -shift, 2)}


def any_activation(built: BuiltCase) -> Mapping[str, Array] | None:
    """An activation that nobody knows is none."""
    right = outputs_of(built.truth)
    unknown = built.node.text("activation", "none") == "relu"
    return outputs_of(causal_convolution.truth(replace(built.node, attributes={}))) if unknown else right


def tails(built: BuiltCase) -> Mapping[str, Array] | None:
    """Of a state that is too long, the end is read."""
    past = built.node.value("past_state")
    if "past_state_too_long" not in built.case.sample or past is None:
        return outputs_of(built.truth)
    return outputs_of(causal_convolution.truth(_with(built.node, "past_state", past[:, :, 1:])))


def _with(node: Node, name: str, value: Array) -> Node:
    return replace(node, inputs=tuple(replace(o, value=value) if o and o.name == name else o for o in node.inputs))


MUTANTS = [
    attribute(OPERATOR, "activation", None),
    attribute(OPERATOR, "activation", "silu"),
    inputs(OPERATOR, "the kernel is turned round", lambda n, v: v[..., ::-1] if n == "weight" else v),
    inputs(
        OPERATOR,
        "the first kernel is that of all channels",
        lambda n, v: np.broadcast_to(v[:1], v.shape) if n == "weight" else v,
    ),
    inputs(OPERATOR, "past_state is read from its end", lambda n, v: v[..., ::-1] if n == "past_state" else v),
    inputs(
        OPERATOR,
        "the first bias is that of all channels",
        lambda n, v: np.broadcast_to(v[:1], v.shape) if n == "bias" else v,
    ),
    misread(OPERATOR, "past_state is ignored", without("past_state")),
    misread(OPERATOR, "bias is ignored", without("bias")),
    by_truth(OPERATOR, "later positions are seen", centred),
    state(
        "present_state is past_state",
        lambda b, right: right if b.node.value("past_state") is None else b.node.array("past_state"),
    ),
    state("present_state is zero before a short input", of_the_input_alone),
    state("present_state begins one position early", lambda _, right: np.roll(right, 1, 2)),
    state("present_state is empty", lambda _, right: right[:, :, :0]),
    Mutant(OPERATOR, "an unknown activation is none", any_activation),
    Mutant(OPERATOR, "the end of a long past_state is read", tails),
]
