"""ResNet: convolutions with batch normalisation, shortcuts, a projection where the size changes."""

from __future__ import annotations

import onnx

from epcheck.models.zoo.architecture import Architecture
from epcheck.models.zoo.graph_builder import GraphBuilder, fan_in_std
from epcheck.models.zoo.layers import RELU_GAIN, conv

CLASSES = 10


def _normalised_conv(net: GraphBuilder, x: str, channels: tuple[int, int], kernel: int = 3, stride: int = 1) -> str:
    """Conv and BatchNormalization whose statistics are near those of what comes out of the Conv."""
    size = (channels[1],)
    convolved = conv(net, x, channels, kernel, stride, gain=RELU_GAIN)
    scale, bias = net.weight("bn.weight", size, 0.1, mean=0.7), net.weight("bn.bias", size, 0.1)
    mean, spread = net.weight("bn.running_mean", size, 0.1), abs(1 + 0.1 * net.random(size))
    variance = net.constant(spread.astype(net.dtype), "bn.running_var")
    return net.add("BatchNormalization", convolved, scale, bias, mean, variance, epsilon=1e-5)


def _basic_block(net: GraphBuilder, x: str, channels: tuple[int, int], stride: int) -> str:
    with net.scope("conv1"):
        hidden = net.add("Relu", _normalised_conv(net, x, channels, stride=stride))
    with net.scope("conv2"):
        hidden = _normalised_conv(net, hidden, (channels[1], channels[1]))
    if stride > 1:
        with net.scope("downsample"):
            x = _normalised_conv(net, x, channels, kernel=1, stride=stride)
    return net.add("Relu", net.add("Add", hidden, x))


def build(name: str = "resnet", dtype: str = "float32") -> onnx.ModelProto:
    """[batch, 3, 64, 64] -> [batch, 10]."""
    net = GraphBuilder(name, opset=17, dtype=dtype, seed="resnet")
    x = net.input("input", dtype, ("batch", 3, 64, 64))
    with net.scope("stem"):
        x = net.add("Relu", _normalised_conv(net, x, (3, 16), kernel=7, stride=2))
        x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for index, (channels, stride) in enumerate((((16, 16), 1), ((16, 32), 2), ((32, 64), 2))):
        with net.scope(f"layer{index}"):
            x = _basic_block(net, x, channels, stride)
    flat = net.add("Flatten", net.add("GlobalAveragePool", x))
    weight, bias = net.weight("fc.weight", (CLASSES, 64), fan_in_std(64)), net.weight("fc.bias", (CLASSES,), 0.1)
    net.add("Gemm", flat, weight, bias, transB=1, named="logits")
    net.output("logits", dtype, ("batch", CLASSES))
    return net.model()


def build_half() -> onnx.ModelProto:
    """The same in float16."""
    return build("resnet_float16", "float16")


ARCHITECTURES = (
    Architecture("resnet", "ResNet with batch normalisation, basic blocks and projections", build, {"batch": (1, 3)}),
    Architecture("resnet_float16", "the ResNet in float16, weights and all", build_half, {"batch": (1, 3)}),
)
