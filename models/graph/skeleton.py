"""A model without its weights: enough for shape inference, and small for a model of any size."""

from __future__ import annotations

import math
from collections.abc import Mapping

import onnx
from onnx import checker, helper, numpy_helper, shape_inference

from epcheck.generators.array import Array

SMALL = 1024
"""Largest number of elements of a tensor whose values shape inference may need: shapes, axes, sizes, scales."""

Shape = tuple[int | None, ...]


def without_weights(model: onnx.ModelProto, shapes: Mapping[str, Shape]) -> onnx.ModelProto:
    """A copy in which larger initializers are inputs of their type, and inputs have these shapes.

    shapes: input name -> sizes; other inputs keep their own.
    """
    source = model.graph
    graph = onnx.GraphProto(name=source.name)
    graph.node.extend(source.node)
    graph.output.extend(source.output)
    weights = {tensor.name for tensor in source.initializer}
    for value in source.input:
        if value.name not in weights:
            graph.input.add().CopyFrom(value)
            if value.name in shapes:
                _set_shape(graph.input[-1], shapes[value.name])
    for tensor in source.initializer:
        if math.prod(tensor.dims) <= SMALL and tensor.data_location != onnx.TensorProto.EXTERNAL:
            graph.initializer.append(tensor)
        else:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    for sparse in source.sparse_initializer:
        name, kind = sparse.values.name, sparse.values.data_type
        graph.input.append(helper.make_tensor_value_info(name, kind, list(sparse.dims)))
    return onnx.ModelProto(
        ir_version=max(model.ir_version, 4), opset_import=model.opset_import, functions=model.functions, graph=graph
    )


def with_shapes(model: onnx.ModelProto, shapes: Mapping[str, Shape]) -> onnx.ModelProto:
    """A copy with its weights, in which inputs have these shapes and inner values none that is declared; the model
    itself where its inputs have these shapes."""
    known = {value.name: value for value in model.graph.input}
    if all(_sizes(known[name]) == shape for name, shape in shapes.items() if name in known):
        return model
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    changed.graph.ClearField("value_info")
    for value in changed.graph.input:
        if value.name in shapes:
            _set_shape(value, shapes[value.name])
    return changed


def _sizes(value: onnx.ValueInfoProto) -> Shape | None:
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    return tuple(d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None for d in tensor.shape.dim)


def infer_shapes(skeleton: onnx.ModelProto) -> dict[str, Shape]:
    """Value name -> sizes, None where they are not known, of every value of the main graph whose rank is known."""
    try:
        graph = shape_inference.infer_shapes(skeleton, data_prop=True).graph
    except (shape_inference.InferenceError, checker.ValidationError, ValueError, RuntimeError):  # it contradicts itself
        graph = skeleton.graph
    shapes: dict[str, Shape] = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        if (sizes := _sizes(value)) is not None:
            shapes[value.name] = sizes
    return shapes


def constants(model: onnx.ModelProto) -> dict[str, Array]:
    """Name -> value of the small tensors that the main graph holds: initializers and Constant nodes."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                tensors[node.output[0]] = attribute.t
    return {
        name: numpy_helper.to_array(tensor)
        for name, tensor in tensors.items()
        if math.prod(tensor.dims) <= SMALL and tensor.data_location != onnx.TensorProto.EXTERNAL
    }


def _set_shape(value: onnx.ValueInfoProto, shape: Shape) -> None:
    tensor = value.type.tensor_type
    tensor.ClearField("shape")
    tensor.shape.dim.extend(
        onnx.TensorShapeProto.Dimension() if size is None else onnx.TensorShapeProto.Dimension(dim_value=size)
        for size in shape
    )
    if not shape:
        tensor.shape.SetInParent()
