"""An encoder of speech in the manner of Whisper, from the samples on.

STFT, mel bands, logarithm, two convolutions along time, encoder layers.
"""

from __future__ import annotations

import math

import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.models.zoo.architecture import Architecture
from epcheck.models.zoo.graph_builder import GraphBuilder, fan_in_std
from epcheck.models.zoo.layers import encoder_layer, gelu, layer_norm, sinusoids

FRAME, HOP, BANDS, WIDTH, HEADS, LAYERS, POSITIONS = 64, 32, 16, 32, 4, 2, 512
BINS = FRAME // 2 + 1


def _bands() -> Array:
    """Triangular bands that widen upwards, [bins, bands]."""
    edges = (BINS - 1) * (np.exp(np.linspace(0, 2, BANDS + 2)) - 1) / (math.e**2 - 1)
    bins = np.arange(BINS)[:, None]
    rising, falling = (bins - edges[:-2]) / np.diff(edges)[:-1], (edges[2:] - bins) / np.diff(edges)[1:]
    return np.maximum(0.0, np.minimum(rising, falling)).astype(np.float32) + np.float32(1e-3)


def _log_mel(net: GraphBuilder, samples: str) -> str:
    """[batch, samples] -> [batch, bands, frames], within 2 of its greatest value, near zero."""
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)).astype(np.float32)
    signal = net.add("Unsqueeze", samples, net.constant([2]))
    step, length = net.constant(np.int64(HOP), "hop"), net.constant(np.int64(FRAME), "frame")
    spectrum = net.add("STFT", signal, step, net.constant(window, "window"), length, onesided=1)
    power = net.add("ReduceSumSquare", spectrum, axes=[3], keepdims=0)
    mel = net.add("Clip", net.add("MatMul", power, net.constant(_bands(), "mel_filters")), net.constant(1e-10))
    logarithm = net.add("Div", net.add("Log", mel), net.constant(math.log(10)))
    floor = net.add("Sub", net.add("ReduceMax", logarithm, axes=[1, 2], keepdims=1), net.constant(8.0))
    scaled = net.add("Div", net.add("Add", net.add("Max", logarithm, floor), net.constant(4.0)), net.constant(4.0))
    return net.add("Transpose", scaled, perm=[0, 2, 1])


def _conv_along_time(net: GraphBuilder, x: str, channels: tuple[int, int], stride: int) -> str:
    weight = net.weight("weight", (channels[1], channels[0], 3), fan_in_std(channels[0] * 3, math.sqrt(2)))
    bias = net.weight("bias", (channels[1],), 0.1)
    return gelu(net, net.add("Conv", x, weight, bias, kernel_shape=[3], strides=[stride], pads=[1, 1]))


def build() -> onnx.ModelProto:
    """[batch, samples] between -1 and 1 -> [batch, frames, 32]."""
    net = GraphBuilder("whisper_encoder", opset=17)
    with net.scope("log_mel"):
        x = _log_mel(net, net.input("audio", "float32", ("batch", "samples")))
    for name, channels, stride in (("conv1", (BANDS, WIDTH), 1), ("conv2", (WIDTH, WIDTH), 2)):
        with net.scope(name):
            x = _conv_along_time(net, x, channels, stride)
    x = net.add("Transpose", x, perm=[0, 2, 1])
    length = net.add("Slice", net.add("Shape", x), net.constant([1]), net.constant([2]), net.constant([0]))
    table = net.constant(sinusoids(POSITIONS, WIDTH), "embed_positions.weight")
    x = net.add("Add", x, net.add("Slice", table, net.constant([0]), length, net.constant([0])))
    for index in range(LAYERS):
        with net.scope(f"layers.{index}"):
            x = encoder_layer(net, x, WIDTH, HEADS)
    layer_norm(net, x, WIDTH, named="last_hidden_state")
    net.output("last_hidden_state", "float32", ("batch", "frames", WIDTH))
    return net.model()


ARCHITECTURES = (
    Architecture(
        "whisper_encoder",
        "encoder of speech from the samples on: STFT, mel bands, convolutions along time, attention",
        build,
        {"batch": (1, 2), "samples": (640, 1600)},
    ),
)
