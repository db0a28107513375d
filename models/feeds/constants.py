"""The constants of a model, wherever they are: in its main graph, in bodies and in local functions."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import onnx
from onnx import helper, numpy_helper

from epcheck.generators.array import Array
from epcheck.models.graph.skeleton import SMALL
from epcheck.models.graph.values import bodies

_NUMBERS = ("value_float", "value_floats", "value_int", "value_ints")
"""Attributes of a Constant that hold numbers without a tensor."""


def shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """Name -> sizes of every initializer and of every tensor of a Constant. A name that several bodies or functions
    have stands for the first of them."""
    found: dict[str, tuple[int, ...]] = {}
    for name, tensor in _tensors(model):
        found.setdefault(name, tuple(tensor.dims))
    return found


def arrays(model: onnx.ModelProto) -> dict[str, Array]:
    """Name -> value of those with at most SMALL elements, whose data is in the model itself."""
    found: dict[str, Array] = {}
    for name, tensor in _tensors(model):
        is_here = tensor.data_location != onnx.TensorProto.EXTERNAL
        if name not in found and is_here and math.prod(tensor.dims) <= SMALL:
            found[name] = numpy_helper.to_array(tensor)
    return found


def _tensors(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """The main graph's come first."""
    pending: list[onnx.GraphProto | onnx.FunctionProto] = [model.graph, *model.functions]
    for graph in pending:  # which grows on the way
        if isinstance(graph, onnx.GraphProto):
            yield from ((tensor.name, tensor) for tensor in graph.initializer)
        for node in graph.node:
            pending.extend(body for _, body in bodies(node))
            if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
                yield from ((node.output[0], tensor) for tensor in _of_constant(node))


def _of_constant(node: onnx.NodeProto) -> Iterator[onnx.TensorProto]:
    for attribute in node.attribute:
        if attribute.ref_attr_name:  # in a function, whose caller says the value
            continue
        if attribute.name == "value":
            yield attribute.t
        elif attribute.name in _NUMBERS:
            value = helper.get_attribute_value(attribute)
            yield numpy_helper.from_array(np.array(value, np.int64 if "int" in attribute.name else np.float32))
