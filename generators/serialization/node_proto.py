"""Nodes of models in the form that oracles read: `NodeProto` and values to `Node`."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from epcheck.generators.node import Node, Operand


def read_node(proto: onnx.NodeProto, definition: onnx.defs.OpSchema, inputs: Any) -> Node:
    """The node as a family of the suite would write it: inputs and outputs named as in the schema.

    inputs: the values of those that are not omitted, in order.
    """
    present = iter(inputs)
    values = [np.asarray(next(present)) if name else None for name in proto.input]
    names = _number_names([formal.name for formal in definition.inputs], len(values))
    results = _number_names([formal.name for formal in definition.outputs], len(proto.output))
    return Node(
        proto.op_type,
        proto.domain,
        definition.since_version,
        tuple(None if v is None else Operand(n, v) for n, v in zip(names, values, strict=True)),
        tuple(name if asked else "" for name, asked in zip(results, proto.output, strict=True)),
        {a.name: _read_attribute(onnx.helper.get_attribute_value(a)) for a in proto.attribute},
    )


def _number_names(formals: list[str], count: int) -> list[str]:
    """A variadic input or output, the last of the schema, is numbered."""
    if count <= len(formals):
        return formals[:count]
    first = len(formals) - 1
    return [*formals[:-1], *(f"{formals[-1]}_{index - first}" for index in range(first, count))]


def _read_attribute(value: Any) -> Any:
    match value:
        case bytes():
            return value.decode()
        case onnx.TensorProto():
            return onnx.numpy_helper.to_array(value)
        case str() | int() | float():
            return value
    return tuple(_read_attribute(item) for item in value)
