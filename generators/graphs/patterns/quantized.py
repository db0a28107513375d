"""Groups of DequantizeLinear, an operator and QuantizeLinear, and what providers make of them.

Sources: ONNX Runtime, core/optimizer/qdq_transformer: selectors_actions (groups to QLinear operators),
relu_quantizelinear, clip_quantizelinear, qdq_propagation, qdq_s8_to_u8, double_qdq_pairs_remover,
ensure_unique_dq_for_node_unit.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import onnx

from epcheck.generators.graphs.graph_sample import GraphSample, Samples
from epcheck.generators.graphs.sketch import Sketch

STEP = 0.0625
"""The scale of inputs: a power of two, by which quantised numbers are dequantised exactly."""
WIDER, FINER = 1.5 * STEP, 0.75 * STEP
"""Scales of outputs by which no multiple of STEP, half or quarter of one lies halfway between two quantised numbers."""


def _real(sketch: Sketch, *shape: int, dtype: str = "uint8", zero: int = 128, is_input: bool = True) -> str:
    """Quantised numbers that are dequantised."""
    value = sketch.bytes(*shape, dtype=dtype, is_input=is_input)
    return sketch.node("DequantizeLinear", value, sketch.constant(STEP), sketch.constant(zero, dtype))


def _quantize(sketch: Sketch, value: str, scale: float, dtype: str = "uint8", zero: int = 128) -> str:
    return sketch.node("QuantizeLinear", value, sketch.constant(scale), sketch.constant(zero, dtype))


def _unary(operator: str, attributes: dict[str, Any], scale: float, dtype: str, zero: int, sketch: Sketch) -> None:
    value = sketch.node(operator, _real(sketch, 1, 2, 4, 4, dtype=dtype, zero=zero), **attributes)
    sketch.leave(_quantize(sketch, value, scale, dtype, zero))


def _binary(operator: str, scale: float, dtype: str, zero: int, sketch: Sketch) -> None:
    left, right = (_real(sketch, 3, 4, dtype=dtype, zero=zero) for _ in range(2))
    attributes: dict[str, Any] = {"axis": 1} if operator == "Concat" else {}
    sketch.leave(_quantize(sketch, sketch.node(operator, left, right, **attributes), scale, dtype, zero))


def _conv(bias: bool, activation: str, dtype: str, sketch: Sketch) -> None:
    zero = 128 if dtype == "uint8" else 0
    x, weight = (
        _real(sketch, 1, 2, 5, 5, dtype=dtype, zero=zero),
        _real(sketch, 3, 2, 3, 3, dtype="int8", zero=0, is_input=False),
    )
    inputs = [x, weight]
    if bias:
        values = sketch.constant(sketch.rng.integers(-999, 1000, 3), "int32")
        inputs.append(
            sketch.node("DequantizeLinear", values, sketch.constant(STEP * STEP), sketch.constant(0, "int32"))
        )
    value = sketch.node("Conv", *inputs)
    sketch.leave(_quantize(sketch, sketch.node(activation, value) if activation else value, 2.0, dtype, zero))


def _product(operator: str, dtype: str, sketch: Sketch) -> None:
    zero = 128 if dtype == "uint8" else 0
    left, right = _real(sketch, 3, 4, dtype=dtype, zero=zero), _real(sketch, 4, 5, dtype="int8", zero=0, is_input=False)
    sketch.leave(_quantize(sketch, sketch.node(operator, left, right), 1.0, dtype, zero))


def _float_result(sketch: Sketch) -> None:
    """The product's result is not quantised again: MatMulInteger, at most."""
    left, right = _real(sketch, 3, 4), _real(sketch, 4, 5, dtype="int8", zero=0, is_input=False)
    sketch.leave(sketch.node("Neg", sketch.node("MatMul", left, right)))


def _movement(operator: str, scales: tuple[float, float], sketch: Sketch) -> None:
    """Data movement between a pair: the pair moves past it where its parameters agree."""
    value = sketch.node(
        "DequantizeLinear", sketch.bytes(2, 3, 4), sketch.constant(scales[0]), sketch.constant(128, "uint8")
    )
    if operator == "Reshape":
        value = sketch.node("Reshape", value, sketch.constant([6, 4], "int64"))
    elif operator == "Transpose":
        value = sketch.node("Transpose", value, perm=[2, 0, 1])
    elif operator == "Slice":
        value = sketch.node("Slice", value, *(sketch.constant([end], "int64") for end in (1, 3, 2)))
    else:
        value = sketch.node("Gather", value, sketch.constant([1, 0, 1], "int64"), axis=1)
    sketch.leave(sketch.node("QuantizeLinear", value, sketch.constant(scales[1]), sketch.constant(128, "uint8")))


def _integer_movement(operator: str, sketch: Sketch) -> None:
    """Data movement of int32 before QuantizeLinear, which takes them as well: qdq_propagation makes a pair of float32
    around the movement, whose own tensors stay int32."""
    value = sketch.feed(sketch.rng.integers(-99, 99, (3, 4)), "int32")
    if operator == "Reshape":
        value = sketch.node("Reshape", value, sketch.constant([4, 3], "int64"))
    else:
        value = sketch.node(operator, value)
    sketch.leave(_quantize(sketch, value, 0.5))


def _pairs(first: float, second: float, zeros: tuple[int, int], sketch: Sketch) -> None:
    """Two pairs after one another: one, where they agree."""
    value = sketch.input(3, 5, low=-6.0, high=6.0)
    for scale, zero in zip((first, second), zeros, strict=True):
        value = _quantize(sketch, value, scale, zero=zero)
        value = sketch.node("DequantizeLinear", value, sketch.constant(scale), sketch.constant(zero, "uint8"))
    sketch.leave(sketch.node("Neg", value))


def _clip(operator: str, zero: int, dtype: str, sketch: Sketch) -> None:
    """Relu or Clip before QuantizeLinear: nothing to do where the quantised range begins at 0."""
    value = sketch.input(3, 5, low=-6.0, high=6.0)
    if operator == "Relu":
        value = sketch.node("Relu", value)
    else:
        value = sketch.node("Clip", value, sketch.constant(-1.0), sketch.constant(4.0))
    sketch.leave(_quantize(sketch, value, STEP, dtype, zero))


def _second_reader(sketch: Sketch) -> None:
    """One DequantizeLinear that two groups read, and the graph's output."""
    value = _real(sketch, 3, 4)
    sketch.leave(
        value, _quantize(sketch, sketch.node("Relu", value), STEP), _quantize(sketch, sketch.node("Neg", value), STEP)
    )


def _row_scales(dtype: str, sketch: Sketch) -> None:
    """Quantised by one scale with a zero point of 0, dequantised by a scale of each row and no zero point."""
    value = _quantize(sketch, sketch.input(3, 5, low=-6.0, high=6.0), STEP, dtype, 0)
    scales = sketch.constant([STEP * 2.0**row for row in range(3)])
    sketch.leave(sketch.node("DequantizeLinear", value, scales, axis=0))


def _channels(axis: int, sketch: Sketch) -> None:
    """Weights with a scale for each channel."""
    length = (4, 5)[axis]
    scales = sketch.constant([STEP * 2.0 ** (index % 3) for index in range(length)])
    weight = sketch.node("DequantizeLinear", sketch.bytes(4, 5, dtype="int8", is_input=False), scales, axis=axis)
    sketch.leave(_quantize(sketch, sketch.node("MatMul", _real(sketch, 3, 4), weight), 2.0))


def _rescaling(scales: tuple[int, ...], is_biased: bool, sketch: Sketch) -> None:
    """A product of integers, cast, times the product of two scales, and perhaps a bias: one node where the second
    scale is one number, or one of each column. scales: shape of the second scale."""
    zeros = sketch.constant(7, "uint8"), sketch.constant(3, "uint8")
    left, right = (sketch.rng.integers(0, 24, shape) for shape in ((2, 3), (3, 4)))
    product = sketch.node("MatMulInteger", sketch.feed(left, "uint8"), sketch.constant(right, "uint8"), *zeros)
    scale = sketch.node("Mul", sketch.feed(0.25), sketch.weight(*scales, low=0.5, high=1.0))
    found = sketch.node("Mul", sketch.node("Cast", product, to=onnx.TensorProto.FLOAT), scale)
    sketch.leave(sketch.node("Add", found, sketch.weight(4)) if is_biased else found)


def samples() -> Samples:
    """The quantised graphs."""
    unary: dict[str, tuple[dict[str, Any], float]] = {
        "Relu": ({}, STEP), "LeakyRelu": ({"alpha": 0.25}, FINER), "Sigmoid": ({}, 1 / 256), "Tanh": ({}, 1 / 128),
        "MaxPool": ({"kernel_shape": [2, 2]}, STEP), "AveragePool": ({"kernel_shape": [2, 2]}, FINER),
        "GlobalAveragePool": ({}, STEP), "Softmax": ({"axis": -1}, 1 / 256), "Abs": ({}, STEP), "Neg": ({}, STEP),
        "Identity": ({}, STEP), "ReduceMean": ({"axes": [2, 3]}, STEP),
    }  # fmt: skip
    for operator, (attributes, scale) in unary.items():
        name = operator.lower()
        yield GraphSample("quantized", f"{name}_uint8", partial(_unary, operator, attributes, scale, "uint8", 128))
        yield GraphSample("quantized", f"{name}_int8", partial(_unary, operator, attributes, scale, "int8", 3))
    for operator, scale in (("Add", WIDER), ("Mul", 0.5), ("Sub", WIDER), ("Concat", STEP), ("Max", STEP)):
        yield GraphSample("quantized", f"{operator.lower()}_uint8", partial(_binary, operator, scale, "uint8", 128))
        yield GraphSample("quantized", f"{operator.lower()}_int8", partial(_binary, operator, scale, "int8", -3))
    for dtype in ("uint8", "int8"):
        for bias in (True, False):
            for activation in ("", "Relu"):
                name = f"conv{'' if bias else '_without_bias'}{'_relu' if activation else ''}_{dtype}"
                yield GraphSample("quantized", name, partial(_conv, bias, activation, dtype))
        yield GraphSample("quantized", f"matmul_{dtype}", partial(_product, "MatMul", dtype))
        yield GraphSample("quantized", f"gemm_{dtype}", partial(_product, "Gemm", dtype))
    yield GraphSample("quantized", "matmul_float_result", _float_result)
    for operator in ("Reshape", "Transpose", "Slice", "Gather"):
        yield GraphSample("quantized", f"{operator.lower()}_of_one_scale", partial(_movement, operator, (STEP, STEP)))
        yield GraphSample("quantized", f"{operator.lower()}_of_two_scales", partial(_movement, operator, (STEP, WIDER)))
    for operator in ("Reshape", "Transpose", "Identity"):
        yield GraphSample("quantized", f"{operator.lower()}_of_int32", partial(_integer_movement, operator))
    yield GraphSample("quantized", "two_pairs_alike", partial(_pairs, STEP, STEP, (128, 128)))
    yield GraphSample("quantized", "two_pairs_of_two_scales", partial(_pairs, STEP, WIDER, (128, 128)))
    yield GraphSample("quantized", "two_pairs_of_two_zero_points", partial(_pairs, STEP, STEP, (128, 96)))
    for dtype in ("uint8", "int8"):
        yield GraphSample("quantized", f"one_scale_then_scales_of_rows_{dtype}", partial(_row_scales, dtype))
    for operator in ("Relu", "Clip"):
        for dtype, zero in (("uint8", 0), ("uint8", 128), ("int8", -128), ("int8", 0)):
            name = f"{operator.lower()}_quantizelinear_{dtype}_zero_{zero}".replace("-", "minus_")
            yield GraphSample("quantized", name, partial(_clip, operator, zero, dtype))
    yield GraphSample("quantized", "dequantizelinear_read_twice", _second_reader)
    for axis in (0, 1):
        yield GraphSample("quantized", f"weights_by_channel_axis_{axis}", partial(_channels, axis))
    for name, shape in {"scale": (), "column_scales": (4,)}.items():
        yield GraphSample("fusion", f"integer_product_{name}_bias", partial(_rescaling, shape, True))
    yield GraphSample("apart", "integer_product_row_scales_bias", partial(_rescaling, (2, 1), True))
    yield GraphSample("apart", "integer_product_scale_of_rank_3", partial(_rescaling, (1, 1, 1), False))
