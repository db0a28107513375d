"""A quantised model of three layers with a planted fault, and the node that has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]

WIDTH, LAYERS, ROWS = 16, 3, 8
LARGEST_WEIGHT = 64
"""7 bits, as `reduce_range` of onnxruntime.quantization makes them: without VNNI the CPU provider adds two products of
uint8 and int8 in 16 bits."""


class Parts:
    """The initializers of the model before it is made, by name: `x0_scale`, `x0_zero`, `w1`, `w1_scale`, ... axis: of
    the weights, by their number."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.feeds = {"x": rng.standard_normal((ROWS, WIDTH)).astype(np.float32)}
        self.values: dict[str, Array] = {"three": np.array(3, np.float32)}
        self.axis = dict.fromkeys(range(LAYERS), 1)
        value = self.feeds["x"]
        for layer in range(LAYERS + 1):
            self.quantize(f"x{layer}", value)
            if layer < LAYERS:
                weight = (rng.standard_normal((WIDTH, WIDTH)) / np.sqrt(WIDTH)).astype(np.float32)
                bias = rng.standard_normal(WIDTH).astype(np.float32)
                scale = (np.abs(weight).max(0) / LARGEST_WEIGHT).astype(np.float32)
                self.values |= {
                    f"w{layer}": np.rint(weight / scale).astype(np.int8), f"w{layer}_scale": scale,
                    f"w{layer}_zero": np.zeros(WIDTH, np.int8),
                    f"b{layer}_scale": np.asarray(self.values[f"x{layer}_scale"] * scale),
                    f"b{layer}_zero": np.zeros(WIDTH, np.int32),
                }  # fmt: skip
                self.values[f"b{layer}"] = np.rint(bias / self.values[f"b{layer}_scale"]).astype(np.int32)
                value = np.tanh(value @ weight + bias) * 3

    def quantize(self, name: str, value: Array) -> None:
        """Scale and zero point of uint8 values."""
        scale = np.array((value.max() - value.min()) / 255, np.float32)
        zero = np.array(round(float(-value.min() / scale)), np.uint8)
        self.values |= {f"{name}_scale": scale, f"{name}_back": scale, f"{name}_zero": zero}

    def model(self, opset: int = 17) -> onnx.ModelProto:
        """The model: Gemm, Tanh and a Mul by 3 for each layer, with Q and DQ between."""
        nodes = []
        value = "x"
        for layer in range(LAYERS + 1):
            nodes.append(self.node("QuantizeLinear", value, f"x{layer}", "scale", f"x{layer}_q"))
            nodes.append(self.node("DequantizeLinear", f"x{layer}_q", f"x{layer}", "back", f"x{layer}_dq"))
            if layer == LAYERS:
                break
            for name, axis in ((f"w{layer}", self.axis[layer]), (f"b{layer}", 0)):
                nodes.append(self.node("DequantizeLinear", name, name, "scale", f"{name}_dq", axis=axis))
            made = [f"x{layer}_dq", f"w{layer}_dq", f"b{layer}_dq"]
            nodes.append(helper.make_node("Gemm", made, [f"g{layer}"], f"gemm{layer}"))
            nodes.append(helper.make_node("Tanh", [f"g{layer}"], [f"t{layer}"], f"tanh{layer}"))
            nodes.append(helper.make_node("Mul", [f"t{layer}", "three"], [f"y{layer}"], f"mul{layer}"))
            value = f"y{layer}"
        kind = onnx.TensorProto.FLOAT
        graph = helper.make_graph(
            nodes, "quantised", [helper.make_tensor_value_info("x", kind, [ROWS, WIDTH])],
            [helper.make_tensor_value_info(nodes[-1].output[0], kind, [ROWS, WIDTH])],
            [numpy_helper.from_array(np.asarray(value), name) for name, value in self.values.items()],
        )  # fmt: skip
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)

    def node(self, op_type: str, source: str, name: str, scale: str, result: str, **attributes: Any) -> onnx.NodeProto:
        parameters = [source, f"{name}_{scale}", f"{name}_zero"]
        return helper.make_node(op_type, parameters, [result], result, **attributes)


Change = Callable[[Parts], None]


def scaled(factor: float, *names: str) -> Change:
    """Scales that are too large or too small."""

    def change(parts: Parts) -> None:
        for name in names:
            parts.values[name] = np.asarray(parts.values[name] * np.float32(factor))

    return change


def activation(layer: int, factor: float) -> Change:
    """The scale of what a layer reads, on both sides, and that of its bias, which follows."""

    def change(parts: Parts) -> None:
        scaled(factor, f"x{layer}_scale", f"x{layer}_back")(parts)
        if layer < LAYERS:
            _rescale_bias(parts, layer, factor)

    return change


def _rescale_bias(parts: Parts, layer: int, factor: float) -> None:
    """The same bias with another scale."""
    scaled(factor, f"b{layer}_scale")(parts)
    parts.values[f"b{layer}"] = np.rint(parts.values[f"b{layer}"] / factor).astype(np.int32)


def weights(layer: int, factor: float) -> Change:
    """Weights whose scale is too large or too small."""

    def change(parts: Parts) -> None:
        scaled(factor, f"w{layer}_scale")(parts)
        _rescale_bias(parts, layer, factor)
        parts.values[f"w{layer}"] = np.clip(np.rint(parts.values[f"w{layer}"] / factor), -127, 127).astype(np.int8)

    return change


def put(**values: Array) -> Change:
    """Other initializers."""
    return lambda parts: parts.values.update(values)


def along(layer: int, axis: int) -> Change:
    """Weights whose scales are said to be along another axis."""
    return lambda parts: parts.axis.update({layer: axis})


FAULTS: Mapping[str, tuple[Change, str, str]] = {
    "activation saturates": (activation(1, 1 / 8), "x1_q", "saturates"),
    "input saturates": (activation(0, 1 / 16), "x0_q", "saturates"),
    "activation wastes its range": (activation(2, 30), "x2_q", "wastes its range"),
    "output wastes its range": (activation(3, 20), "x3_q", "wastes its range"),
    "weights saturate": (weights(1, 1 / 6), "w1_dq", "saturates"),
    "weights waste their range": (weights(2, 12), "w2_dq", "wastes its range"),
    "axis of weights": (along(0, 0), "w0_dq", "axis"),
    "axis that is not there": (along(1, 2), "w1_dq", "axis"),
    "scale of 0": (put(w1_scale=np.zeros(WIDTH, np.float32)), "w1_dq", "scale"),
    "activation scale of 0": (put(x1_scale=np.array(0, np.float32)), "x1_q", "scale"),
    "scale that is not a number": (put(x2_scale=np.array(np.nan, np.float32)), "x2_q", "scale"),
    "zero point of the wrong type": (put(w2_zero=np.zeros(WIDTH, np.uint8)), "w2_dq", "zero point"),
    "zero point of the wrong shape": (put(w0_zero=np.zeros(3, np.int8)), "w0_dq", "zero point"),
    "zero point at the wrong end": (put(x1_zero=np.array(250, np.uint8)), "x1_q", "saturates"),
    "another scale behind": (put(x3_back=np.array(0.05, np.float32)), "x3_dq", "pair"),
    "scale of a bias": (scaled(0.5, "b1_scale"), "b1_dq", "bias scale"),
}
"""Name -> what it changes, the node at fault, its fault."""


def planted(fault: str) -> tuple[onnx.ModelProto, Mapping[str, Array], str, str]:
    """(model, feeds, node, fault); of an empty fault a model without."""
    parts = Parts()
    if not fault:
        return parts.model(), parts.feeds, "", ""
    change, node, kind = FAULTS[fault]
    change(parts)
    return parts.model(), parts.feeds, node, kind
