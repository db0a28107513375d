"""Vision transformer: patches by a convolution, a class token that is expanded to the batch, encoder layers."""

from __future__ import annotations

import numpy as np
import onnx

from epcheck.models.zoo.architecture import Architecture
from epcheck.models.zoo.graph_builder import GraphBuilder, fan_in_std
from epcheck.models.zoo.layers import encoder_layer, layer_norm

SIZE, PATCH, WIDTH, HEADS, LAYERS, CLASSES = 32, 8, 48, 4, 4, 10
PATCHES = (SIZE // PATCH) ** 2


def build() -> onnx.ModelProto:
    """[batch, 3, 32, 32] -> [batch, 10]."""
    net = GraphBuilder("vit", opset=17)
    x = net.input("pixel_values", "float32", ("batch", 3, SIZE, SIZE))
    with net.scope("embeddings"):
        x = _embeddings(net, x)
    for index in range(LAYERS):
        with net.scope(f"layer.{index}"):
            x = encoder_layer(net, x, WIDTH, HEADS)
    with net.scope("head"):
        first = net.add("Gather", layer_norm(net, x, WIDTH), net.constant(np.int64(0)), axis=1)
        weight, bias = net.weight("weight", (CLASSES, WIDTH), fan_in_std(WIDTH)), net.weight("bias", (CLASSES,), 0.1)
        net.add("Gemm", first, weight, bias, transB=1, named="logits")
    net.output("logits", "float32", ("batch", CLASSES))
    return net.model()


def _embeddings(net: GraphBuilder, image: str) -> str:
    weight = net.weight("projection.weight", (WIDTH, 3, PATCH, PATCH), fan_in_std(3 * PATCH**2, 2.0))
    bias = net.weight("projection.bias", (WIDTH,), 0.1)
    projected = net.add("Conv", image, weight, bias, kernel_shape=[PATCH] * 2, strides=[PATCH] * 2)
    batch = net.add("Slice", net.add("Shape", projected), net.constant([0]), net.constant([1]), net.constant([0]))
    flat = net.add("Reshape", projected, net.constant([0, WIDTH, PATCHES]))
    patches = net.add("Transpose", flat, perm=[0, 2, 1])
    sizes = net.add("Concat", batch, net.constant([1, WIDTH]), axis=0)
    token = net.add("Expand", net.weight("cls_token", (1, 1, WIDTH), 0.5), sizes)
    joined = net.add("Concat", token, patches, axis=1)
    return net.add("Add", joined, net.weight("position_embeddings", (1, PATCHES + 1, WIDTH), 0.5))


ARCHITECTURES = (Architecture("vit", "vision transformer that normalises before each part", build, {"batch": (1, 3)}),)
