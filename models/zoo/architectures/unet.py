"""U-Net for images of any size: what was pooled is resized to the size of what it is joined with."""

from __future__ import annotations

import onnx

from epcheck.models.zoo.architecture import Architecture
from epcheck.models.zoo.graph_builder import GraphBuilder
from epcheck.models.zoo.layers import RELU_GAIN, conv

WIDTHS = (8, 16, 32)
CLASSES = 2


def _double_conv(net: GraphBuilder, x: str, channels: tuple[int, int]) -> str:
    for name, sizes in (("0", channels), ("1", (channels[1], channels[1]))):
        with net.scope(name):
            x = net.add("Relu", conv(net, x, sizes, gain=RELU_GAIN))
    return x


def _resize_like(net: GraphBuilder, x: str, like: str) -> str:
    """x with the height and width of `like`, which exporters compute at run time: Shape, Slice, Concat, Resize."""
    zero, two, four = net.constant([0]), net.constant([2]), net.constant([4])
    own = net.add("Slice", net.add("Shape", x), zero, two, zero)
    size = net.add("Slice", net.add("Shape", like), two, four, zero)
    sizes = net.add("Concat", own, size, axis=0)
    return net.add("Resize", x, "", "", sizes, mode="linear", coordinate_transformation_mode="half_pixel")


def build() -> onnx.ModelProto:
    """[batch, 3, height, width] -> probabilities [batch, 2, height, width]."""
    net = GraphBuilder("unet", opset=17)
    x = net.input("image", "float32", ("batch", 3, "height", "width"))
    skips, channels = [], 3
    for index, width in enumerate(WIDTHS):
        with net.scope(f"down{index}"):
            x, channels = _double_conv(net, x, (channels, width)), width
            if index < len(WIDTHS) - 1:
                skips.append(x)
                x = net.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    for index, width in reversed(tuple(enumerate(WIDTHS[:-1]))):
        with net.scope(f"up{index}"):
            skip = skips[index]
            joined = net.add("Concat", skip, _resize_like(net, x, skip), axis=1)
            x, channels = _double_conv(net, joined, (channels + width, width)), width
    with net.scope("head"):
        net.add("Softmax", conv(net, x, (channels, CLASSES), kernel=1), axis=1, named="probabilities")
    net.output("probabilities", "float32", ("batch", CLASSES, "height", "width"))
    return net.model()


ARCHITECTURES = (
    Architecture(
        "unet",
        "U-Net with Resize to sizes that are computed, for images of any size",
        build,
        {"batch": (1, 2), "height": (32, 45), "width": (32, 40)},
    ),
)
