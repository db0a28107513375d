"""A network for the frames of a clip, one after the other, as a script with a list is exported.

A tensor is split into a sequence, a Loop takes from it and appends to another, which is joined again.
"""

from __future__ import annotations

import onnx

from epcheck.models.zoo.architecture import Architecture
from epcheck.models.zoo.graph_builder import GraphBuilder
from epcheck.models.zoo.layers import RELU_GAIN, conv

CHANNELS, SIZE = 8, 12
FRAME = (1, CHANNELS, SIZE, SIZE)


def _step(net: GraphBuilder, frames: str) -> onnx.GraphProto:
    """(index, condition, state, list) -> (condition, state, list): the state is blended with each frame."""
    body = net.body("step")
    index = body.input("index", "int64", ())
    condition = body.input("condition", "bool", ())
    state = body.input("state", "float32", FRAME)
    collected = body.input_sequence("collected", "float32", FRAME)
    frame = body.add("SequenceAt", frames, index)
    mixed = conv(body, body.add("Concat", state, frame, axis=1), (CHANNELS + 3, CHANNELS))
    body.add("Tanh", mixed, named="next_state")
    body.add("SequenceInsert", collected, "next_state", named="next_collected")
    body.add("Identity", condition, named="next_condition")
    body.output("next_condition", "bool", ())
    body.output("next_state", "float32", FRAME)
    body.output_sequence("next_collected", "float32", FRAME)
    return body.graph()


def build() -> onnx.ModelProto:
    """clip [frames, 3, 12, 12] -> features of each frame [frames, 8, 12, 12], the last state, the count of frames."""
    net = GraphBuilder("sequences", opset=17)
    clip = net.input("clip", "float32", ("frames", 3, SIZE, SIZE))
    frames = net.add("SplitToSequence", clip, axis=0, keepdims=1)
    count = net.add("SequenceLength", frames, named="count")
    with net.scope("start"):
        first = net.add("SequenceAt", frames, net.constant(0, "first"))
        state = net.add("Relu", conv(net, first, (3, CHANNELS), gain=RELU_GAIN))
    empty = net.add("SequenceEmpty", dtype=onnx.TensorProto.FLOAT)
    last, collected = net.add_all("Loop", count, "", state, empty, named=("last", ""), body=_step(net, frames))
    net.add("ConcatFromSequence", collected, axis=0, named="features")
    net.output("features", "float32", ("frames", CHANNELS, SIZE, SIZE))
    net.output(last, "float32", FRAME)
    net.output("count", "int64", ())
    return net.model()


ARCHITECTURES = (
    Architecture(
        "sequences", "a network over the frames of a clip that keeps them in sequences", build, {"frames": (1, 4)}
    ),
)
