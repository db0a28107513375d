"""How many elements an operator makes whose outputs do not follow from the sizes of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from epcheck.generators.node import Node


def _integers(node: Node, name: str) -> tuple[int, ...]:
    value = node.value(name)
    listed = node.attributes.get(name, ()) if value is None else value
    return tuple(int(v) for v in np.atleast_1d(np.asarray(listed)).reshape(-1))


def _first_shape(node: Node) -> tuple[int, ...]:
    operand = node.inputs[0]
    return operand.value.shape if operand is not None else ()


def _range(node: Node) -> int:
    start, limit, delta = (float(node.array(name)) for name in ("start", "limit", "delta"))
    return int(min(abs((limit - start) / delta), 1e18)) if delta and np.isfinite(start + limit) else 0


def _count_repeated(node: Node, name: str) -> int:
    return prod(max(size, 0) for size in _integers(node, name)) * max(prod(_first_shape(node)), 1)


def _count_padded(node: Node) -> int:
    pads = _integers(node, "pads")
    total = sum(abs(pad) for pad in pads)
    return prod(size + total for size in _first_shape(node)) if total > 64 else 0


def _count_scaled(node: Node) -> int:
    scales, sizes = node.value("scales"), node.value("sizes")
    if sizes is not None and sizes.size:
        return prod(max(int(size), 1) for size in sizes) * max(1, prod(_first_shape(node)[: -sizes.size]))
    factors = np.asarray(node.attributes.get("scales", ()) if scales is None else scales, np.float64)
    return int(min(np.prod(np.maximum(np.nan_to_num(np.abs(factors)), 1)) * prod(_first_shape(node)), 1e18))


def _largest(node: Node) -> int:
    """The product of the integers that the node has as attributes or 1-element inputs, for windows and lengths."""
    arrays = [o.value.reshape(-1) for o in node.inputs[1:] if o is not None and o.value.dtype.kind in "iu"]
    return max((abs(int(v)) for array in arrays for v in array), default=0)


def _window(node: Node) -> int:
    """Padded inputs and the elements of all windows: kernels, pads, strides and dilations may be any integers."""
    listed = [v for value in node.attributes.values() if isinstance(value, tuple) for v in value if isinstance(v, int)]
    if any(abs(value) > 64 for value in listed):
        return 1 << 40
    spatial = max(len(_first_shape(node)) - 2, 0)
    pads = sum(abs(v) for v in _integers(node, "pads") + _integers(node, "output_padding"))
    operand = node.inputs[1] if len(node.inputs) > 1 else None
    own = operand.value.shape[2:] if operand is not None else ()
    kernel = prod(abs(v) for v in _integers(node, "kernel_shape") or own)
    weights = operand.value.size if operand is not None else 1
    inputs = prod(_first_shape(node)[:2]) * prod(size + pads for size in _first_shape(node)[2:]) if spatial else 0
    return inputs * max(kernel, 1) * max(weights // max(prod(_first_shape(node)[:2]), 1), 1)


def _product(node: Node) -> int:
    """The multiplications of a matrix product, at most."""
    arrays = [o.value for o in node.inputs if o is not None]
    return max((a.size for a in arrays), default=0) * max((max(a.shape, default=1) for a in arrays), default=1) // 16


def _exact_elimination(node: Node) -> int:
    """The digits that an elimination in integers makes, whose numbers grow with every row."""
    shape = _first_shape(node)
    return prod(shape) * max(shape, default=1) ** 2 // 8


def _depth(node: Node) -> int:
    return abs(int(node.array("depth").reshape(-1)[0])) * max(prod(_first_shape(node)), 1)


ELEMENTS: Mapping[str, Callable[[Node], int]] = {
    "Range": _range,
    "Tile": lambda node: _count_repeated(node, "repeats"),
    "Expand": lambda node: _count_repeated(node, "shape"),
    "ConstantOfShape": lambda node: prod(max(int(v), 0) for v in node.array("input").reshape(-1)),
    "Pad": _count_padded,
    "OneHot": _depth,
    "Det": _exact_elimination,
    "CenterCropPad": lambda node: _count_repeated(node, "shape"),
    "Split": lambda node: abs(node.integer("num_outputs", 1)) * 64,
    "RoiAlign": lambda node: node.integer("output_height", 1) * node.integer("output_width", 1)
    * max(node.integer("sampling_ratio", 0), 1) ** 2 * prod(_first_shape(node)[:2]),
    "MaxRoiPool": lambda node: _count_repeated(node, "pooled_shape"),
    "MaxUnpool": lambda node: max(_count_repeated(node, "kernel_shape"), prod(_integers(node, "output_shape") or (1,))),
    **dict.fromkeys(("Resize", "Upsample"), _count_scaled),
    **dict.fromkeys(
        ("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix", "DFT", "STFT", "Col2Im"), _largest
    ),
    **dict.fromkeys(
        (
            "Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "FusedConv", "AveragePool", "MaxPool", "LpPool",
            "QLinearAveragePool", "NhwcConv", "DynamicQuantizeConv", "ConvTransposeWithDynamicPads",
            "CausalConvWithState",
        ),
        _window,
    ),
    **dict.fromkeys(("MatMul", "Gemm", "FusedMatMul", "FusedGemm", "MatMulInteger", "QLinearMatMul",
                     "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "QGemm", "QAttention", "Einsum"), _product),
}  # fmt: skip
"""Operator -> elements that its oracle makes, roughly."""


def elements(node: Node) -> int:
    """How many elements the oracle makes of the node, roughly; 0 where that follows from its inputs."""
    known = ELEMENTS.get(node.op_type)
    return known(node) if known else 0
