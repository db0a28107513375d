"""A single-shot detector: boxes and scores from maps of two sizes; the best are kept, overlapping ones suppressed."""

from __future__ import annotations

import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.models.zoo.architecture import Architecture
from epcheck.models.zoo.graph_builder import GraphBuilder
from epcheck.models.zoo.layers import RELU_GAIN, conv

CLASSES, SHAPES = 4, ((1.0, 1.0), (1.4, 0.7), (0.7, 1.4))
MAPS = (8, 4)
KEPT, BEST = 40, 8
"""Boxes that TopK keeps; boxes of each class that NonMaxSuppression keeps at most."""


def _anchors() -> Array:
    """Centre, height and width of every anchor, [1, boxes, 4], in the order of the heads' outputs."""
    boxes = [
        ((row + 0.5) / size, (column + 0.5) / size, 1.5 / size * height, 1.5 / size * width)
        for size in MAPS
        for row in range(size)
        for column in range(size)
        for height, width in SHAPES
    ]
    return np.array([boxes], np.float32)


def _head(net: GraphBuilder, x: str, channels: int, values: int, gain: float) -> str:
    """[batch, channels, size, size] -> [batch, boxes, values]."""
    maps = conv(net, x, (channels, len(SHAPES) * values), gain=gain)
    return net.add("Reshape", net.add("Transpose", maps, perm=[0, 2, 3, 1]), net.constant([0, -1, values]))


def _decode_boxes(net: GraphBuilder, offsets: str) -> str:
    """Corners [y1, x1, y2, x2] from offsets to the anchors, [batch, boxes, 4]."""
    anchors = _anchors()
    start, middle, end, axis = (net.constant([value]) for value in (0, 2, 4, 2))
    moved = net.add("Mul", net.add("Slice", offsets, start, middle, axis), net.constant(anchors[..., 2:] * 0.1, "step"))
    centre = net.add("Add", moved, net.constant(anchors[..., :2], "centre"))
    grown = net.add("Exp", net.add("Mul", net.add("Slice", offsets, middle, end, axis), net.constant(0.2)))
    half = net.add("Mul", grown, net.constant(anchors[..., 2:] / 2, "half"))
    return net.add("Concat", net.add("Sub", centre, half), net.add("Add", centre, half), axis=2)


def _best(net: GraphBuilder, boxes: str, scores: str) -> tuple[str, str]:
    """The KEPT boxes with the highest score of any class but the background, [batch, kept, 4] and [batch, kept, 3]."""
    start, end, axis = net.constant([1]), net.constant([CLASSES]), net.constant([2])
    objects = net.add("Slice", scores, start, end, axis)
    highest = net.add("ReduceMax", objects, axes=[2], keepdims=0)
    _, order = net.add_all("TopK", highest, net.constant([KEPT]), named=("", ""), axis=1)
    rows = net.add("Unsqueeze", order, net.constant([2]))
    front = net.add("Shape", order)
    parts = []
    for name, value, width in (("boxes", boxes, 4), ("scores", objects, CLASSES - 1)):
        sizes = net.add("Concat", front, net.constant([width]), axis=0)
        named = f"kept_{name}" if name == "boxes" else ""
        parts.append(net.add("GatherElements", value, net.add("Expand", rows, sizes), axis=1, named=named))
    return parts[0], parts[1]


def build() -> onnx.ModelProto:
    """[batch, 3, 64, 64] -> the kept boxes and their scores by class, and (batch, class, box) of what is detected."""
    net = GraphBuilder("ssd", opset=17)
    x, channels = net.input("image", "float32", ("batch", 3, 64, 64)), 3
    offsets, scores = [], []
    for index, width in enumerate((8, 16, 24, 32)):
        with net.scope(f"backbone{index}"):
            x, channels = net.add("LeakyRelu", conv(net, x, (channels, width), 3, 2, gain=RELU_GAIN), alpha=0.1), width
        if index >= 2:
            with net.scope(f"box_head{index}"):
                offsets.append(_head(net, x, channels, 4, 1.0))
            with net.scope(f"class_head{index}"):
                scores.append(_head(net, x, channels, CLASSES, 3.0))
    with net.scope("decode"):
        boxes = _decode_boxes(net, net.add("Concat", *offsets, axis=1))
        probabilities = net.add("Softmax", net.add("Concat", *scores, axis=1), axis=2)
    with net.scope("select"):
        kept, likely = _best(net, boxes, probabilities)
        by_class = net.add("Transpose", likely, perm=[0, 2, 1], named="kept_scores")
        limits = net.constant([BEST]), net.constant([0.5]), net.constant([0.2])
        selected = net.add("NonMaxSuppression", kept, by_class, *limits, named="selected")
        columns = net.add("Gather", selected, net.constant([0, 2]), axis=1)
        net.add("GatherND", kept, columns, named="detections")
    net.output("kept_boxes", "float32", ("batch", KEPT, 4))
    net.output("kept_scores", "float32", ("batch", CLASSES - 1, KEPT))
    net.output("selected", "int64", ("detected", 3))
    net.output("detections", "float32", ("detected", 4))
    return net.model()


ARCHITECTURES = (
    Architecture("ssd", "single-shot detector with TopK and NonMaxSuppression at its end", build, {"batch": (1, 2)}),
)
