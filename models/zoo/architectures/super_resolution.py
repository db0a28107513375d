"""Super-resolution: convolutions at the small size, then channels become pixels (ESPCN)."""

from __future__ import annotations

import onnx

from epcheck.models.zoo.architecture import Architecture
from epcheck.models.zoo.graph_builder import GraphBuilder
from epcheck.models.zoo.layers import RELU_GAIN, conv

FACTOR = 3


def build() -> onnx.ModelProto:
    """[batch, 1, height, width] -> three times as high and wide, between 0 and 1."""
    net = GraphBuilder("super_resolution", opset=17)
    image = x = net.input("image", "float32", ("batch", 1, "height", "width"))
    with net.scope("conv0"):
        x = net.add("PRelu", conv(net, x, (1, 16), kernel=5, gain=RELU_GAIN), net.weight("slope", (16, 1, 1), 0.1, 0.2))
    with net.scope("conv1"):
        x = net.add("Tanh", conv(net, x, (16, 16)))
    with net.scope("upscale"):
        x = conv(net, x, (16, FACTOR**2), gain=0.5)
        x = net.add("DepthToSpace", x, blocksize=FACTOR, mode="CRD")
        scales = net.constant([1.0, 1.0, float(FACTOR), float(FACTOR)], "scales")
        enlarged = net.add("Resize", image, "", scales, mode="cubic", coordinate_transformation_mode="half_pixel")
        net.add("Clip", net.add("Add", x, enlarged), net.constant(0.0), net.constant(1.0), named="enlarged")
    net.output("enlarged", "float32", ("batch", 1, f"{FACTOR}*height", f"{FACTOR}*width"))
    return net.model()


ARCHITECTURES = (
    Architecture(
        "super_resolution",
        "super-resolution: DepthToSpace on top of a bicubic Resize",
        build,
        {"batch": (1, 2), "height": (16, 21), "width": (24,)},
    ),
)
