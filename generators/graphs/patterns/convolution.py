"""Convolutions with what is fused into them, and what only looks so.

Sources: ONNX Runtime, core/optimizer: conv_activation_fusion, conv_add_fusion, conv_mul_fusion, conv_bn_fusion,
pad_fusion, nchwc_transformer; DmlExecutionProvider, GraphTransformer and OperatorUtility (fusable activations).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from epcheck.generators.graphs.graph_sample import GraphSample, Samples
from epcheck.generators.graphs.sketch import Sketch

ACTIVATIONS: dict[str, dict[str, Any]] = {
    "Relu": {},
    "Sigmoid": {},
    "Tanh": {},
    "LeakyRelu": {"alpha": 0.25},
    "HardSigmoid": {"alpha": 0.25, "beta": 0.5},
    "Elu": {"alpha": 0.5},
    "Selu": {},
    "Softplus": {},
    "Softsign": {},
    "ThresholdedRelu": {"alpha": 0.0625},
    "Abs": {},
    "Neg": {},
}
"""Activations that some provider fuses, with their attributes."""


def _conv(sketch: Sketch, channels: int = 3, bias: bool = True, **attributes: Any) -> str:
    inputs = [sketch.input(1, 2, 5, 5), sketch.weight(channels, 2 // attributes.get("group", 1), 3, 3)]
    return sketch.node("Conv", *inputs, *([sketch.weight(channels)] if bias else []), **attributes)


def _activation(operator: str, attributes: dict[str, Any], bias: bool, sketch: Sketch) -> None:
    sketch.leave(sketch.node(operator, _conv(sketch, bias=bias), **attributes))


def _clip(low: float | None, high: float | None, is_input: bool, sketch: Sketch) -> None:
    value = _conv(sketch)
    give = sketch.feed if is_input else sketch.constant
    sketch.leave(sketch.node("Clip", value, *(None if end is None else give(end) for end in (low, high))))


def _binary(operator: str, shape: tuple[int, ...], first: bool, sketch: Sketch) -> None:
    """Conv and a binary operator with an initializer of a shape."""
    value, other = _conv(sketch), sketch.weight(*shape, low=0.5, high=1.5)
    sketch.leave(sketch.node(operator, *((value, other) if first else (other, value))))


def _addition(sketch: Sketch, activation: str = "Relu") -> None:
    """The sum of two convolutions, and an activation: what resnets have."""
    left, right = _conv(sketch), _conv(sketch)
    sketch.leave(sketch.node(activation, sketch.node("Add", left, right)))


def _residual(sketch: Sketch) -> None:
    x = sketch.input(1, 3, 5, 5)
    value = sketch.node("Conv", x, sketch.weight(3, 3, 3, 3), sketch.weight(3), pads=[1, 1, 1, 1])
    sketch.leave(sketch.node("Relu", sketch.node("Add", value, x)))


def _normalization(activation: str, bias: bool, sketch: Sketch) -> None:
    value = sketch.node(
        "BatchNormalization", _conv(sketch, bias=bias), sketch.weight(3, low=0.5, high=1.5), sketch.weight(3),
        sketch.weight(3), sketch.weight(3, low=0.5, high=1.5), epsilon=0.001,
    )  # fmt: skip
    sketch.leave(sketch.node(activation, value) if activation else value)


def _pad(mode: str, pads: tuple[int, ...], value: float, operator: str, sketch: Sketch) -> None:
    """Pad before an operator with a window, whose own pads it may become."""
    inputs = [sketch.input(1, 2, 5, 5), sketch.constant(pads, "int64")]
    if mode == "constant":
        inputs.append(sketch.constant(value))
    padded = sketch.node("Pad", *inputs, mode=mode)
    if operator == "Conv":
        sketch.leave(sketch.node("Conv", padded, sketch.weight(3, 2, 3, 3), pads=[1, 0, 0, 1]))
    else:
        counts: dict[str, Any] = {"count_include_pad": 1} if operator == "AveragePool" else {}
        sketch.leave(sketch.node(operator, padded, kernel_shape=[3, 3], pads=[1, 0, 0, 1], **counts))


def _second_reader(operator: str, sketch: Sketch) -> None:
    """The convolution's result has a second reader, or leaves the graph: it may not be fused away."""
    value = _conv(sketch)
    other = sketch.node("Neg", value)
    sketch.leave(sketch.node(operator, value), other)


def _leaving_value(operator: str, sketch: Sketch) -> None:
    value = _conv(sketch)
    sketch.leave(sketch.node(operator, value), value)


def _kind(attributes: dict[str, Any], activation: str, sketch: Sketch) -> None:
    sketch.leave(sketch.node(activation, _conv(sketch, channels=4, **attributes)))


def _transpose(activation: str, sketch: Sketch) -> None:
    value = sketch.node("ConvTranspose", sketch.input(1, 2, 4, 4), sketch.weight(2, 3, 3, 3), strides=[2, 2])
    sketch.leave(sketch.node(activation, value))


def _two(pooling: str, sketch: Sketch) -> None:
    """Convolution, pooling, convolution: what blocked layouts go through."""
    value = sketch.node("Relu", _conv(sketch, channels=8))
    pooled = sketch.node(pooling, value, kernel_shape=[2, 2])
    sketch.leave(sketch.node("Conv", pooled, sketch.weight(8, 8, 1, 1), sketch.weight(8)))


def _one_dimension(activation: str, sketch: Sketch) -> None:
    value = sketch.node("Conv", sketch.input(2, 3, 9), sketch.weight(4, 3, 3), sketch.weight(4), dilations=[2])
    sketch.leave(sketch.node(activation, value))


def samples() -> Samples:
    """The graphs around a convolution."""
    for operator, attributes in ACTIVATIONS.items():
        name = operator.lower()
        yield GraphSample("fusion", f"conv_{name}", partial(_activation, operator, attributes, True))
        yield GraphSample("fusion", f"conv_without_bias_{name}", partial(_activation, operator, attributes, False))
    for name, low, high in (
        ("clip", -0.5, 0.75),
        ("clip_relu6", 0.0, 6.0),
        ("clip_low", 0.25, None),
        ("clip_high", None, -0.25),
    ):
        yield GraphSample("fusion", f"conv_{name}", partial(_clip, low, high, False))
    yield GraphSample("apart", "conv_clip_by_inputs", partial(_clip, -0.5, 0.75, True))
    for operator in ("Add", "Mul", "Sub", "Div"):
        name = operator.lower()
        yield GraphSample("fusion", f"conv_{name}_channels", partial(_binary, operator, (3, 1, 1), True))
        yield GraphSample("fusion", f"conv_{name}_channels_of_rank_4", partial(_binary, operator, (1, 3, 1, 1), True))
        yield GraphSample("fusion", f"{name}_channels_conv", partial(_binary, operator, (1, 3, 1, 1), False))
        yield GraphSample("apart", f"conv_{name}_columns", partial(_binary, operator, (3,), True))
        yield GraphSample("apart", f"conv_{name}_rows", partial(_binary, operator, (3, 1), True))
        yield GraphSample("apart", f"conv_{name}_batch", partial(_binary, operator, (2, 3, 1, 1), True))
        yield GraphSample("apart", f"conv_{name}_scalar", partial(_binary, operator, (), True))
    yield GraphSample("fusion", "conv_add_conv_relu", _addition)
    yield GraphSample("fusion", "conv_add_conv_leakyrelu", partial(_addition, activation="LeakyRelu"))
    yield GraphSample("fusion", "conv_add_input_relu", _residual)
    for activation in ("", "Relu", "Sigmoid"):
        name = f"_{activation.lower()}" if activation else ""
        yield GraphSample("fusion", f"conv_batchnormalization{name}", partial(_normalization, activation, True))
        yield GraphSample(
            "fusion", f"conv_without_bias_batchnormalization{name}", partial(_normalization, activation, False)
        )
    even, first, channel = (0, 0, 1, 1, 0, 0, 1, 1), (0, 0, 1, 0, 0, 0, 0, 2), (0, 1, 0, 0, 0, 0, 0, 0)
    for operator in ("Conv", "MaxPool", "AveragePool"):
        name = operator.lower()
        yield GraphSample("fusion", f"pad_{name}", partial(_pad, "constant", even, 0.0, operator))
        yield GraphSample("fusion", f"pad_unevenly_{name}", partial(_pad, "constant", first, 0.0, operator))
        yield GraphSample("apart", f"pad_by_1_5_{name}", partial(_pad, "constant", even, 1.5, operator))
        yield GraphSample("apart", f"pad_by_minus_1_5_{name}", partial(_pad, "constant", even, -1.5, operator))
        yield GraphSample("apart", f"pad_reflected_{name}", partial(_pad, "reflect", even, 0.0, operator))
        yield GraphSample("apart", f"pad_edge_{name}", partial(_pad, "edge", even, 0.0, operator))
        yield GraphSample(
            "apart", f"pad_cropped_{name}", partial(_pad, "constant", (0, 0, -1, 0, 0, 0, 1, 1), 0.0, operator)
        )
    yield GraphSample("apart", "pad_channels_maxpool", partial(_pad, "constant", channel, 0.0, "MaxPool"))
    for operator in ("Relu", "Sigmoid", "Tanh"):
        yield GraphSample("apart", f"conv_read_twice_{operator.lower()}", partial(_second_reader, operator))
        yield GraphSample("apart", f"conv_leaves_{operator.lower()}", partial(_leaving_value, operator))
        yield GraphSample("fusion", f"convtranspose_{operator.lower()}", partial(_transpose, operator))
        yield GraphSample("fusion", f"conv_of_one_dimension_{operator.lower()}", partial(_one_dimension, operator))
    kinds: dict[str, dict[str, Any]] = {
        "grouped": {"group": 2}, "strided": {"strides": [2, 2]}, "same_upper": {"auto_pad": "SAME_UPPER"},
        "same_lower": {"auto_pad": "SAME_LOWER", "strides": [2, 2]}, "padded_unevenly": {"pads": [0, 1, 2, 0]},
    }  # fmt: skip
    for name, attributes in kinds.items():
        yield GraphSample("fusion", f"conv_{name}_relu", partial(_kind, attributes, "Relu"))
        yield GraphSample("fusion", f"conv_{name}_leakyrelu", partial(_kind, attributes, "LeakyRelu"))
    for pooling in ("MaxPool", "AveragePool"):
        yield GraphSample("chain", f"conv_relu_{pooling.lower()}_conv", partial(_two, pooling))
