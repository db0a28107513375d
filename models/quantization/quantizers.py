"""The QuantizeLinear and DequantizeLinear nodes of a model, with their scales and zero points.

Source: the pages QuantizeLinear and DequantizeLinear of ONNX, every version; ContribOperators.md of ONNX Runtime for
com.microsoft.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

from epcheck.generators.array import Array
from epcheck.generators.oracle_math import quantization
from epcheck.models.graph import values
from epcheck.models.graph.values import Type
from epcheck.models.graph.wiring import Wiring
from epcheck.models.wrong_nodes.culprit import GraphNode, graph_node

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
DOMAINS = ("", "ai.onnx", "com.microsoft")

DEFAULT_AXIS = 1
"""Of the operators of ONNX. Those of com.microsoft have none: they then take one scale for all."""


@dataclass(frozen=True)
class Quantizer:
    """A QuantizeLinear or DequantizeLinear whose scale is a constant.

    scale: float64, of one element or a vector, or of the rank of x where it is blocked. zero_point: its value; None
    where it is left out or no constant. dtype: of the quantised side; None where it is no integer or not known. axis:
    as the node has it. blocked: whether the scale is of blocks. rank, sizes: of x; None where they are not known.
    source, result: names of x and of what the node makes.
    """

    node: GraphNode
    scale: Array
    zero_point: Array | None
    dtype: np.dtype[Any] | None
    axis: int
    blocked: bool
    sizes: tuple[int | None, ...] | None
    source: str
    result: str

    @property
    def quantizes(self) -> bool:
        """Whether it is a QuantizeLinear."""
        return self.node.op_type == QUANTIZE

    @property
    def per_axis(self) -> bool:
        """Whether each slice along the axis has a scale of its own."""
        return self.scale.size > 1 and not self.blocked

    @cached_property
    def zero(self) -> Array:
        """The zero point in float64; 0 where there is none."""
        return np.zeros(()) if self.zero_point is None else self.zero_point.astype(np.float64)

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The lowest and the highest level. Only where `dtype` is known."""
        assert self.dtype is not None
        return quantization.ends(self.dtype)

    def along(self, parameter: Array, rank: int) -> Array:
        """A scale or zero point that broadcasts over a tensor of a rank."""
        if parameter.size == 1:
            return parameter.reshape(())
        shape = [1] * rank
        shape[self.axis] = parameter.size
        return parameter.reshape(shape)


def quantizers(wiring: Wiring) -> tuple[Quantizer, ...]:
    """Those of the main graph whose scale is a constant, in its order."""
    graph = wiring.model.graph
    if not any(node.op_type in (QUANTIZE, DEQUANTIZE) for node in graph.node):
        return ()
    types, declared = values.of_graph(values.infer_types(wiring.model, {}).graph), values.of_graph(graph)
    types |= {tensor.name: declared[tensor.name] for tensor in graph.initializer}
    constants = _constants(wiring)
    return tuple(_find_quantizers(wiring, types, constants))


def _find_quantizers(wiring: Wiring, types: Mapping[str, Type], constants: Mapping[str, Array]) -> Iterator[Quantizer]:
    for index, node in enumerate(wiring.model.graph.node):
        if node.op_type not in (QUANTIZE, DEQUANTIZE) or node.domain not in DOMAINS or len(node.input) < 2:
            continue
        scale = constants.get(node.input[1])
        if scale is None or scale.dtype.kind not in "fV":
            continue
        zero = constants.get(node.input[2]) if len(node.input) > 2 and node.input[2] else None
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        known = types.get(node.input[0])
        yield Quantizer(
            graph_node(wiring.model, index),
            scale.astype(np.float64),
            zero,
            _dtype(node, attributes, zero, types),
            int(attributes.get("axis", DEFAULT_AXIS)),
            bool(attributes.get("block_size", 0)),
            known.shape if known else None,
            node.input[0],
            node.output[0],
        )


def _constants(wiring: Wiring) -> dict[str, Array]:
    """The scales and zero points that are constants."""
    names = {name for node in wiring.model.graph.node if node.op_type in (QUANTIZE, DEQUANTIZE)
             for name in node.input[1:3] if name in wiring.constants}  # fmt: skip
    stored = {tensor.name: tensor for tensor in wiring.model.graph.initializer if tensor.name in names}
    found = {}
    for name in names:
        in_model = name in stored and stored[name].data_location != onnx.TensorProto.EXTERNAL
        value = numpy_helper.to_array(stored[name]) if in_model else wiring.constant(name)
        if value is not None:
            found[name] = value
    return found


def _dtype(
    node: onnx.NodeProto, attributes: Mapping[str, Any], zero: Array | None, types: Mapping[str, Type]
) -> np.dtype[Any] | None:
    """Of the quantised side, where it is an integer: that of x, or that of what is made."""
    if node.op_type == DEQUANTIZE:
        known = types.get(node.input[0])
        found = _integer(known.dtype if known else "")
        return found if found is not None or zero is None else _integer(zero.dtype.name)
    if zero is not None:
        return _integer(zero.dtype.name)
    chosen = int(attributes.get("output_dtype", 0))
    if chosen:
        return _integer(helper.tensor_dtype_to_np_dtype(chosen).name)
    return np.dtype(np.uint8) if len(node.input) < 3 or not node.input[2] else None


def _integer(name: str) -> np.dtype[Any] | None:
    if name in quantization.NARROW:
        found: np.dtype[Any] | None = np.dtype(getattr(ml_dtypes, name))
        return found
    try:
        found = np.dtype(name) if name else None
    except TypeError:
        return None
    return found if found is not None and found.kind in "iu" else None
