"""BERT: three embeddings, a padding mask, encoder layers that normalise afterwards, a pooled output."""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx

from epcheck.models.zoo.architecture import Architecture
from epcheck.models.zoo.graph_builder import GraphBuilder
from epcheck.models.zoo.layers import feed_forward, layer_norm, linear, self_attention

VOCABULARY, POSITIONS, WIDTH, HEADS, LAYERS = 97, 64, 32, 4, 3
DIMS = {"batch": (1, 2), "sequence": (1, 7, 16)}


def build(name: str, opset: int, gelu_operator: bool) -> onnx.ModelProto:
    """input_ids, attention_mask, token_type_ids [batch, sequence] -> last_hidden_state, pooler_output."""
    net = GraphBuilder(name, opset, seed="bert")
    ids, mask, kinds = (
        net.input(input_, "int64", ("batch", "sequence"))
        for input_ in ("input_ids", "attention_mask", "token_type_ids")
    )
    with net.scope("embeddings"):
        x = _embeddings(net, ids, kinds)
    bias = _mask_bias(net, mask)
    for index in range(LAYERS):
        with net.scope(f"layer.{index}"):
            x = _layer(net, x, bias, gelu_operator, named="last_hidden_state" if index == LAYERS - 1 else "")
    with net.scope("pooler"):
        first = net.add("Gather", x, net.constant(np.int64(0)), axis=1)
        net.add("Tanh", linear(net, first, (WIDTH, WIDTH)), named="pooler_output")
    net.output("last_hidden_state", "float32", ("batch", "sequence", WIDTH))
    net.output("pooler_output", "float32", ("batch", WIDTH))
    return net.model()


def _embeddings(net: GraphBuilder, ids: str, kinds: str) -> str:
    words = net.add("Gather", net.weight("word.weight", (VOCABULARY, WIDTH), 0.5), ids)
    types = net.add("Gather", net.weight("token_type.weight", (2, WIDTH), 0.5), kinds)
    length = net.add("Gather", net.add("Shape", ids), net.constant(np.int64(1)), axis=0)
    table = net.constant(np.arange(POSITIONS, dtype=np.int64)[None], "position_ids")
    start, end, axis = net.constant([0]), net.add("Unsqueeze", length, net.constant([0])), net.constant([1])
    positions = net.add("Gather", net.weight("position.weight", (POSITIONS, WIDTH), 0.5),
                        net.add("Slice", table, start, end, axis))  # fmt: skip
    return layer_norm(net, net.add("Add", net.add("Add", words, types), positions), WIDTH)


def _mask_bias(net: GraphBuilder, mask: str) -> str:
    """0 where the mask is 1, -10000 where it is 0, as [batch, 1, 1, sequence]."""
    wide = net.add("Unsqueeze", mask, net.constant([1, 2]))
    kept = net.add("Cast", wide, to=onnx.TensorProto.FLOAT)
    return net.add("Mul", net.add("Sub", net.constant(1.0), kept), net.constant(-10000.0))


def _layer(net: GraphBuilder, x: str, bias: str, gelu_operator: bool, named: str) -> str:
    with net.scope("attention"):
        x = layer_norm(net, net.add("Add", x, self_attention(net, x, WIDTH, HEADS, bias)), WIDTH)
    with net.scope("mlp"):
        return layer_norm(net, net.add("Add", x, feed_forward(net, x, WIDTH, gelu_operator)), WIDTH, named)


ARCHITECTURES = (
    Architecture(
        "bert", "BERT encoder as older exporters write it: Gelu in its parts", partial(build, "bert", 17, False), DIMS
    ),
    Architecture(
        "bert_gelu", "BERT encoder with Gelu as an operator (opset 20)", partial(build, "bert_gelu", 20, True), DIMS
    ),
)
