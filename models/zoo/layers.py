"""Layers that several architectures share, as PyTorch's exporter writes them.

Weights are scaled so that activations keep a variance near one through depth.
"""

from __future__ import annotations

import math

import numpy as np

from epcheck.models.zoo.graph_builder import GraphBuilder, fan_in_std

RELU_GAIN = math.sqrt(2)


def conv(
    net: GraphBuilder,
    x: str,
    channels: tuple[int, int],
    kernel: int = 3,
    stride: int = 1,
    group: int = 1,
    gain: float = 1.0,
) -> str:
    """A 2-d convolution that keeps the size (a stride divides it), with bias. channels: (in, out)."""
    inner, outer = channels
    weight = net.weight("weight", (outer, inner // group, kernel, kernel), fan_in_std(inner // group * kernel**2, gain))
    bias = net.weight("bias", (outer,), 0.1)
    return net.add(
        "Conv", x, weight, bias, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4, group=group
    )


def linear(net: GraphBuilder, x: str, sizes: tuple[int, int], gain: float = 1.0, named: str = "") -> str:
    """MatMul and Add on the last dimension. sizes: (in, out)."""
    inner, outer = sizes
    product = net.add("MatMul", x, net.weight("weight", (inner, outer), fan_in_std(inner, gain)))
    return net.add("Add", product, net.weight("bias", (outer,), 0.1), named=named)


def layer_norm(net: GraphBuilder, x: str, size: int, named: str = "") -> str:
    """LayerNormalization over the last dimension, with scale near one."""
    scale, bias = net.weight("weight", (size,), 0.1, mean=1.0), net.weight("bias", (size,), 0.1)
    return net.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5, named=named)


def gelu(net: GraphBuilder, x: str, operator: bool = False) -> str:
    """Gelu: one node (since opset 20), or Div, Erf, Add, Mul, Mul, as it was exported before."""
    if operator:
        return net.add("Gelu", x)
    erf = net.add("Erf", net.add("Div", x, net.constant(math.sqrt(2))))
    return net.add("Mul", net.add("Mul", x, net.add("Add", erf, net.constant(1.0))), net.constant(0.5))


def split_heads(net: GraphBuilder, x: str, heads: int, size: int) -> str:
    """[batch, length, heads * size] -> [batch, heads, length, size]."""
    return net.add("Transpose", net.add("Reshape", x, net.constant([0, 0, heads, size])), perm=[0, 2, 1, 3])


def merge_heads(net: GraphBuilder, x: str, width: int) -> str:
    """[batch, heads, length, size] -> [batch, length, width]."""
    return net.add("Reshape", net.add("Transpose", x, perm=[0, 2, 1, 3]), net.constant([0, 0, width]))


def attend(net: GraphBuilder, query: str, key: str, value: str, size: int, bias: str = "") -> str:
    """Scaled dot-product attention of [batch, heads, length, size]. bias: is added to the scores."""
    transposed = net.add("Transpose", key, perm=[0, 1, 3, 2])
    scores = net.add("Div", net.add("MatMul", query, transposed), net.constant(math.sqrt(size)))
    weights = net.add("Softmax", net.add("Add", scores, bias) if bias else scores, axis=-1)
    return net.add("MatMul", weights, value)


def self_attention(net: GraphBuilder, x: str, width: int, heads: int, bias: str = "") -> str:
    """Multi-head self-attention of [batch, length, width] in its parts."""
    parts = []
    for name in ("query", "key", "value"):
        with net.scope(name):
            parts.append(split_heads(net, linear(net, x, (width, width)), heads, width // heads))
    query, key, value = parts
    with net.scope("output"):
        merged = merge_heads(net, attend(net, query, key, value, width // heads, bias), width)
        return linear(net, merged, (width, width))


def feed_forward(net: GraphBuilder, x: str, width: int, gelu_operator: bool = False) -> str:
    """Two linear layers, four times as wide between, with Gelu."""
    with net.scope("intermediate"):
        hidden = gelu(net, linear(net, x, (width, 4 * width)), gelu_operator)
    with net.scope("output"):
        return linear(net, hidden, (4 * width, width), gain=RELU_GAIN)


def encoder_layer(net: GraphBuilder, x: str, width: int, heads: int, bias: str = "") -> str:
    """A transformer layer that normalises first, as ViT and Whisper have it."""
    with net.scope("attention"):
        x = net.add("Add", x, self_attention(net, layer_norm(net, x, width), width, heads, bias))
    with net.scope("mlp"):
        return net.add("Add", x, feed_forward(net, layer_norm(net, x, width), width))


def sinusoids(length: int, width: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Sine and cosine position embeddings, [length, width]."""
    angles = np.arange(length)[:, None] / 10000.0 ** (np.arange(width // 2)[None] / (width // 2))
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)
