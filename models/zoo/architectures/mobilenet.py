"""MobileNet, quantised: inverted residual blocks with one scale per channel of the weights.

With the same weights, once of operators that compute in integers (QLinearConv and those of com.microsoft), once with
QuantizeLinear and DequantizeLinear around those that compute in floats, as quantisers have written it since 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.models.zoo.architecture import Architecture
from epcheck.models.zoo.graph_builder import GraphBuilder, fan_in_std
from epcheck.models.zoo.layers import RELU_GAIN

MICROSOFT = "com.microsoft"
CLASSES = 10


@dataclass(frozen=True)
class Steps:
    """How uint8 stands for numbers: (q - zero_point) * scale."""

    scale: float
    zero_point: int


IMAGE = Steps(1 / 255, 0)
RELU6 = Steps(6 / 255, 0)
LINEAR = Steps(8 / 255, 128)
"""Of a Relu6, which saturation does without a node, and of a layer that ends without one: three or four deviations."""


@dataclass(frozen=True)
class Tensor:
    """A uint8 value of the graph and what it stands for."""

    name: str
    steps: Steps


class _Quantised:
    """Layers between uint8 tensors. qdq: in floats, between DequantizeLinear and QuantizeLinear."""

    def __init__(self, net: GraphBuilder, qdq: bool) -> None:
        self.net, self.qdq = net, qdq

    def quantize(self, x: str, steps: Steps) -> Tensor:
        return Tensor(self.net.add("QuantizeLinear", x, *self._parameters(steps)), steps)

    def dequantize(self, x: Tensor, named: str = "") -> str:
        return self.net.add("DequantizeLinear", x.name, *self._parameters(x.steps), named=named)

    def conv(
        self, x: Tensor, channels: tuple[int, int], steps: Steps, kernel: int = 1, stride: int = 1, group: int = 1
    ) -> Tensor:
        shape = (channels[1], channels[0] // group, kernel, kernel)
        gain = RELU_GAIN if steps == RELU6 else 1.0
        floats = fan_in_std(shape[1] * kernel**2, gain) * self.net.random(shape)
        scales = (np.abs(floats).max(axis=(1, 2, 3)) / 127).astype(np.float32)
        levels = np.rint(floats / scales[:, None, None, None]).astype(np.int8)
        weight = self.net.constant(levels, "weight_quantized")
        scale = self.net.constant(scales, "weight_scale")
        zero_point = self.net.constant(np.zeros(channels[1], np.int8), "weight_zero_point")
        bias_scale = (scales * np.float32(x.steps.scale)).astype(np.float32)
        levels_of_bias = np.rint(0.1 * self.net.random((channels[1],)) / bias_scale).astype(np.int32)
        bias = self.net.constant(levels_of_bias, "bias_quantized")
        attributes: dict[str, Any] = {
            "kernel_shape": [kernel] * 2,
            "strides": [stride] * 2,
            "pads": [kernel // 2] * 4,
            "group": group,
        }
        if not self.qdq:
            inputs = (x.name, *self._parameters(x.steps), weight, scale, zero_point, *self._parameters(steps), bias)
            return Tensor(self.net.add("QLinearConv", *inputs, **attributes), steps)
        weights = self.net.add("DequantizeLinear", weight, scale, zero_point, axis=0)
        biases = self.net.add("DequantizeLinear", bias, self.net.constant(bias_scale, "bias_scale"), axis=0)
        return self.quantize(self.net.add("Conv", self.dequantize(x), weights, biases, **attributes), steps)

    def sum(self, a: Tensor, b: Tensor, steps: Steps, dims: tuple[int | str, ...]) -> Tensor:
        if self.qdq:
            return self.quantize(self.net.add("Add", self.dequantize(a), self.dequantize(b)), steps)
        inputs = (part for x in (a, b) for part in (x.name, *self._parameters(x.steps)))
        name = self.net.add("QLinearAdd", *inputs, *self._parameters(steps), domain=MICROSOFT)
        return Tensor(self.net.describe(name, "uint8", dims), steps)

    def global_average(self, x: Tensor, channels: int) -> Tensor:
        if self.qdq:
            return self.quantize(self.net.add("GlobalAveragePool", self.dequantize(x)), x.steps)
        inputs = (x.name, *self._parameters(x.steps), *self._parameters(x.steps))
        name = self.net.add("QLinearGlobalAveragePool", *inputs, domain=MICROSOFT, channels_last=0)
        return Tensor(self.net.describe(name, "uint8", ("batch", channels, 1, 1)), x.steps)

    def classify(self, x: Tensor, sizes: tuple[int, int], steps: Steps) -> Tensor:
        floats = fan_in_std(sizes[0], 3.0) * self.net.random(sizes)
        scale = float(np.abs(floats).max() / 127)
        levels: Array = np.rint(floats / scale).astype(np.int8)
        flat = Tensor(self.net.add("Flatten", x.name), x.steps)
        weight = (self.net.constant(levels, "weight_quantized"), self.net.constant(scale, "weight_scale"),
                  self.net.constant(np.int8(0), "weight_zero_point"))  # fmt: skip
        if not self.qdq:
            inputs = (flat.name, *self._parameters(flat.steps), *weight, *self._parameters(steps))
            return Tensor(self.net.add("QLinearMatMul", *inputs), steps)
        return self.quantize(
            self.net.add("MatMul", self.dequantize(flat), self.net.add("DequantizeLinear", *weight)), steps
        )

    def _parameters(self, steps: Steps) -> tuple[str, str]:
        return self.net.constant(steps.scale, "scale"), self.net.constant(np.uint8(steps.zero_point), "zero_point")


def _inverted_residual(layers: _Quantised, x: Tensor, channels: tuple[int, int], stride: int, size: int) -> Tensor:
    """1x1 to four times as many channels, 3x3 in each, 1x1 back; the input is added where the shape is kept."""
    net, wide = layers.net, 4 * channels[0]
    with net.scope("expand"):
        hidden = layers.conv(x, (channels[0], wide), RELU6)
    with net.scope("depthwise"):
        hidden = layers.conv(hidden, (wide, wide), RELU6, kernel=3, stride=stride, group=wide)
    with net.scope("project"):
        hidden = layers.conv(hidden, (wide, channels[1]), LINEAR)
    if stride > 1 or channels[0] != channels[1]:
        return hidden
    return layers.sum(x, hidden, LINEAR, ("batch", channels[1], size, size))


def build(name: str, qdq: bool) -> onnx.ModelProto:
    """[batch, 3, 32, 32] -> [batch, 10]."""
    net = GraphBuilder(name, opset=17, domains=() if qdq else (MICROSOFT,), seed="mobilenet")
    layers = _Quantised(net, qdq)
    x = layers.quantize(net.input("image", "float32", ("batch", 3, 32, 32)), IMAGE)
    with net.scope("stem"):
        x = layers.conv(x, (3, 8), LINEAR, kernel=3, stride=2)
    for index, (channels, stride, size) in enumerate((((8, 8), 1, 16), ((8, 16), 2, 8), ((16, 16), 1, 8))):
        with net.scope(f"block{index}"):
            x = _inverted_residual(layers, x, channels, stride, size)
    with net.scope("classifier"):
        x = layers.classify(layers.global_average(x, 16), (16, CLASSES), LINEAR)
        layers.dequantize(x, named="logits")
    net.output("logits", "float32", ("batch", CLASSES))
    return net.model()


DIMS = {"batch": (1, 3)}
ARCHITECTURES = (
    Architecture(
        "mobilenet_qlinear",
        "quantised MobileNet blocks: QLinearConv with a scale per channel, QLinearAdd",
        partial(build, "mobilenet_qlinear", False),
        DIMS,
    ),
    Architecture(
        "mobilenet_qdq",
        "quantised MobileNet blocks between QuantizeLinear and DequantizeLinear",
        partial(build, "mobilenet_qdq", True),
        DIMS,
    ),
)
