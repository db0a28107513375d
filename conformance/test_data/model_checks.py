"""What a parsed model must keep to before anything is made of it: protobuf itself takes negative sizes, bytes for text
and element types that nobody knows. Nothing is allocated here, and sizes are products of Python's integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]
from onnx import TensorProto

MOST_ELEMENTS = 1 << 48

MOST_CALLS = 100
"""How deep functions may call each other: onnx's inliner takes no more."""

MOST_NODES = 1 << 20
"""Of a model with each call of a function replaced by what is called."""

_BITS = {
    **dict.fromkeys(("DOUBLE", "INT64", "UINT64", "COMPLEX64"), 64),
    **dict.fromkeys(("FLOAT", "INT32", "UINT32"), 32),
    **dict.fromkeys(("FLOAT16", "BFLOAT16", "INT16", "UINT16"), 16),
    "COMPLEX128": 128,
}
"""Element types by their size in `raw_data`; those that are not here have what their names end with, or 8."""

_FIELDS = {
    **dict.fromkeys(("FLOAT", "COMPLEX64"), "float_data"),
    **dict.fromkeys(("DOUBLE", "COMPLEX128"), "double_data"),
    **dict.fromkeys(("UINT32", "UINT64"), "uint64_data"),
    "INT64": "int64_data",
    "STRING": "string_data",
}
"""Where a tensor without `raw_data` has its elements (onnx.proto); otherwise in int32_data."""


def complaint(model: onnx.ModelProto, tensors: Iterator[TensorProto]) -> str:
    """What keeps a model from being looked at, in words; empty for nothing. tensors: all that it has."""
    try:
        _check_text(model)
        for tensor in tensors:
            _check_tensor(tensor)
        _check_nodes(model)
        _check_calls(model)
    except _ComplaintError as found:
        return str(found)
    return ""


class _ComplaintError(Exception):
    pass


def _check_text(message: Any) -> None:
    """Every string is text (of one that is no UTF-8 protobuf gives the bytes), every element type is one of ONNX's."""
    pending = [message]
    while pending:
        message = pending.pop()
        for field, value in message.ListFields():
            if field.message_type is not None:
                pending += value if hasattr(value, "__len__") else [value]
            elif field.name == "elem_type" and value not in _NAMES:
                raise _ComplaintError(f"a value has the element type {value}, which ONNX does not have")
            elif field.type == FieldDescriptor.TYPE_STRING:
                for text in [value] if isinstance(value, str | bytes) else value:
                    if isinstance(text, bytes):
                        raise _ComplaintError(f"a {field.name} of {message.DESCRIPTOR.name} is not text: {text[:40]!r}")


def _check_tensor(tensor: TensorProto) -> None:
    if not tensor.ByteSize():  # of an attribute that has none
        return
    where = f"tensor '{tensor.name}'"
    if any(size < 0 for size in tensor.dims):
        raise _ComplaintError(f"{where} has the dimensions {_listed(tensor.dims)}")
    count = math.prod(int(size) for size in tensor.dims)
    if count > MOST_ELEMENTS:
        raise _ComplaintError(f"{where} has the dimensions {_listed(tensor.dims)}, which is too large")
    if tensor.data_type not in _NAMES or not tensor.data_type:
        raise _ComplaintError(f"{where} has the element type {tensor.data_type}, which ONNX does not have")
    if tensor.data_location == TensorProto.EXTERNAL:
        return  # whose place is checked where it is read
    if tensor.HasField("segment"):
        raise _ComplaintError(f"{where} is a segment of another, which is not supported")
    name = _NAMES[tensor.data_type]
    if tensor.HasField("raw_data") and name != "STRING":
        wanted, found, what = -(-count * _bits(name) // 8), len(tensor.raw_data), "bytes"
    else:
        wanted, found, what = _elements(name, count), len(getattr(tensor, _FIELDS.get(name, "int32_data"))), "numbers"
    if wanted != found:
        raise _ComplaintError(
            f"{where} has {found:,} {what} of data; {_listed(tensor.dims)} of {name} needs {wanted:,}"
        )


def _check_nodes(model: onnx.ModelProto) -> None:
    pending: list[Any] = [model.graph, *model.functions]
    while pending:
        graph = pending.pop()
        for tensor in getattr(graph, "initializer", ()):
            if not tensor.data_type:
                raise _ComplaintError(f"tensor '{tensor.name}' has no element type")
        for node in graph.node:
            where = f"node '{node.name}' ({node.op_type})"
            if not any(node.output):
                raise _ComplaintError(f"{where} has no output")
            for attribute in node.attribute:
                if _is_tensor(node, attribute) and not attribute.t.data_type:
                    raise _ComplaintError(f"{where} has a tensor without an element type in '{attribute.name}'")
                pending += [body for body in (attribute.g, *attribute.graphs) if body.ByteSize()]


def _is_tensor(node: onnx.NodeProto, attribute: onnx.AttributeProto) -> bool:
    """Whether an attribute is read as a tensor."""
    is_value = node.op_type == "Constant" and attribute.name == "value"
    return is_value or (attribute.type == onnx.AttributeProto.TENSOR and not attribute.ref_attr_name)


def _check_calls(model: onnx.ModelProto) -> None:
    """No function calls itself, not through others either; and a model with each call replaced by what is called has a
    bounded size."""
    calls = {
        (function.domain, function.name): [(node.domain, node.op_type) for node in _nodes(function)]
        for function in model.functions
    }
    sizes: dict[tuple[str, str], int] = {}
    for _ in range(MOST_CALLS):
        left = calls.keys() - sizes.keys()
        ready = [name for name in left if left.isdisjoint(calls[name])]
        if left and not ready:
            raise _ComplaintError(f"its function '{min(left)[1]}' calls itself")
        sizes |= {name: sum(sizes.get(called, 1) for called in calls[name]) for name in ready}
    if len(sizes) < len(calls):
        raise _ComplaintError(f"its functions call each other more than {MOST_CALLS} deep")
    nodes = sum(sizes.get((node.domain, node.op_type), 1) for node in _nodes(model.graph)) if sizes else 0
    if nodes > MOST_NODES:
        raise _ComplaintError(f"it has more than {MOST_NODES:,} nodes, with those of the functions that it calls")


def _nodes(graph: Any) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _nodes(body)


def _bits(name: str) -> int:
    """Of an element in `raw_data`."""
    if name in _BITS:
        return _BITS[name]
    return 4 if name.endswith(("INT4", "4E2M1")) else 2 if name.endswith("INT2") else 8


def _elements(name: str, count: int) -> int:
    """How many numbers stand for so many elements."""
    if name.startswith("COMPLEX"):
        return 2 * count
    return -(-count * _bits(name) // 8) if _bits(name) < 8 else count


def _listed(dims: Sequence[int]) -> str:
    return f"[{', '.join(map(str, dims[:16]))}{', …' if len(dims) > 16 else ''}]"


_NAMES = {number: name for name, number in TensorProto.DataType.items()}
