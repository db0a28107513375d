"""A text generator with its loop inside: Loop until a token or a count ends it, and an If that chooses how to end."""

from __future__ import annotations

import numpy as np
import onnx

from epcheck.models.zoo.architecture import Architecture
from epcheck.models.zoo.graph_builder import GraphBuilder, fan_in_std
from epcheck.models.zoo.layers import layer_norm, linear

VOCABULARY, WIDTH, LAST = 31, 24, 0
"""LAST: the token that ends the text."""


def _step(net: GraphBuilder, embedding: str) -> onnx.GraphProto:
    """(index, condition, state [1, WIDTH]) -> (condition, state, token, logits)."""
    body = net.body("step")
    body.input("index", "int64", ())
    body.input("condition", "bool", ())
    state = body.input("state", "float32", (1, WIDTH))
    logits = linear(body, state, (WIDTH, VOCABULARY), gain=2.0, named="step_logits")
    token = body.add("ArgMax", logits, axis=1, keepdims=0, named="step_token")
    read = body.add("Gather", embedding, token)
    with body.scope("recurrent"):
        body.add("Tanh", body.add("Add", linear(body, state, (WIDTH, WIDTH)), read), named="next_state")
    ended = body.add("Equal", body.add("Squeeze", token), body.constant(np.int64(LAST)))
    body.add("Not", ended, named="next_condition")
    for name, dtype, dims in (("next_condition", "bool", ()), ("next_state", "float32", (1, WIDTH)),
                              ("step_token", "int64", (1,)), ("step_logits", "float32", (1, VOCABULARY))):  # fmt: skip
        body.output(name, dtype, dims)
    return body.graph()


def _branch(net: GraphBuilder, name: str, state: str) -> onnx.GraphProto:
    body = net.body(name)
    if name == "normalised":
        layer_norm(body, state, WIDTH, named=f"{name}_state")
    else:
        body.add("Mul", state, body.constant(0.5), named=f"{name}_state")
    body.output(f"{name}_state", "float32", (1, WIDTH))
    return body.graph()


def build() -> onnx.ModelProto:
    """prompt [sequence], max_steps, normalise -> tokens, their logits, the last state."""
    net = GraphBuilder("control_flow", opset=17)
    prompt = net.input("prompt", "int64", ("sequence",))
    steps = net.input("max_steps", "int64", ())
    normalise = net.input("normalise", "bool", ())
    embedding = net.weight("embedding.weight", (VOCABULARY, WIDTH), fan_in_std(1))
    start = net.add("ReduceMean", net.add("Gather", embedding, prompt), axes=[0], keepdims=1)
    going = net.constant(np.bool_(True), "going")
    final, _, _ = net.add_all("Loop", steps, going, start, named=("", "tokens", "logits"), body=_step(net, embedding))
    branches = {"then_branch": _branch(net, "normalised", final), "else_branch": _branch(net, "halved", final)}
    net.add("If", normalise, named="state", **branches)
    net.output("tokens", "int64", ("steps", 1))
    net.output("logits", "float32", ("steps", 1, VOCABULARY))
    net.output("state", "float32", (1, WIDTH))
    return net.model()


ARCHITECTURES = (
    Architecture(
        "control_flow", "a generator with a Loop that a token ends, and an If on an input", build, {"sequence": (1, 6)}
    ),
)
