"""A tagger of words: embedding, two bidirectional LSTM over sequences of different lengths, a label for each word."""

from __future__ import annotations

import onnx

from epcheck.models.zoo.architecture import Architecture
from epcheck.models.zoo.graph_builder import GraphBuilder, fan_in_std
from epcheck.models.zoo.layers import linear

VOCABULARY, WIDTH, HIDDEN, TAGS = 53, 12, 16, 7


def _bidirectional(net: GraphBuilder, x: str, lengths: str, width: int) -> str:
    """[sequence, batch, width] -> [sequence, batch, 2 * HIDDEN]."""
    inputs = net.weight("weight_ih", (2, 4 * HIDDEN, width), fan_in_std(width))
    hidden = net.weight("weight_hh", (2, 4 * HIDDEN, HIDDEN), fan_in_std(HIDDEN))
    bias = net.weight("bias", (2, 8 * HIDDEN), 0.1)
    every, _, _ = net.add_all(
        "LSTM", x, inputs, hidden, bias, lengths, named=("", "", ""), hidden_size=HIDDEN, direction="bidirectional"
    )
    return net.add("Reshape", net.add("Transpose", every, perm=[0, 2, 1, 3]), net.constant([0, 0, 2 * HIDDEN]))


def build() -> onnx.ModelProto:
    """words [batch, sequence], lengths [batch] -> log probabilities [batch, sequence, 7] and the tags."""
    net = GraphBuilder("lstm_tagger", opset=17)
    words = net.input("words", "int64", ("batch", "sequence"))
    lengths = net.input("lengths", "int32", ("batch",))
    embedded = net.add("Gather", net.weight("embedding.weight", (VOCABULARY, WIDTH), 1.0), words)
    x, width = net.add("Transpose", embedded, perm=[1, 0, 2]), WIDTH
    for index in range(2):
        with net.scope(f"lstm{index}"):
            x, width = _bidirectional(net, x, lengths, width), 2 * HIDDEN
    with net.scope("tags"):
        logits = linear(net, net.add("Transpose", x, perm=[1, 0, 2]), (width, TAGS), gain=3.0)
        net.add("LogSoftmax", logits, axis=-1, named="log_probabilities")
        net.add("ArgMax", "log_probabilities", axis=-1, keepdims=0, named="tags")
    net.output("log_probabilities", "float32", ("batch", "sequence", TAGS))
    net.output("tags", "int64", ("batch", "sequence"))
    return net.model()


ARCHITECTURES = (
    Architecture(
        "lstm_tagger",
        "two bidirectional LSTM over sequences of different lengths, a label for each word",
        build,
        {"batch": (1, 3), "sequence": (1, 11)},
    ),
)
