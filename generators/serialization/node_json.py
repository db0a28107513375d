"""A node as JSON, so that it can be kept, sent, and pasted into the suite: one line says all that it is.

    {"op_type": "Slice", "domain": "", "since_version": 13, "dtypes": ["float32"], "binding": "runtime",
     "inputs": [{"name": "data", "dtype": "float32", "shape": [2], "values": [1.0, 2.0], "parameter": false}, null],
     "outputs": ["output"], "attributes": {"axis": {"int": 1}}}

Values are listed; NaN and infinities are strings. An input of more than 1,024 elements has `data` instead, its
little-endian bytes in base64. Around a node with surroundings stand serialized protos in base64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from google.protobuf.message import DecodeError, Message  # type: ignore[import-untyped]

from epcheck.generators.array import Array
from epcheck.generators.error import EpcheckError
from epcheck.generators.node import Attribute, Node, Operand, Surroundings, qualified_name

LISTED = 1024
"""Elements up to which values are listed."""

KINDS: Mapping[str, type] = {"int": int, "float": float, "str": str}


class DocumentError(EpcheckError, ValueError):
    """A line is no node; the message says why."""


@dataclass(frozen=True)
class SerializedNode:
    """A node with the dtypes of its varied type constraints and how its inputs enter the model."""

    node: Node
    dtypes: tuple[str, ...]
    binding: str

    @property
    def operator(self) -> str:
        """The key of the operator that it is a node of."""
        return qualified_name(self.node.op_type, self.node.domain)


def encode(written: SerializedNode) -> str:
    """The node as one line of JSON."""
    node = written.node
    fields: dict[str, Any] = {
        "op_type": node.op_type,
        "domain": node.domain,
        "since_version": node.since_version,
        "dtypes": list(written.dtypes),
        "binding": written.binding,
        "inputs": [None if o is None else _operand(o) for o in node.inputs],
        "outputs": list(node.outputs),
        "attributes": {name: attribute_fields(value) for name, value in node.attributes.items()},
    }
    if node.surroundings:
        fields["surroundings"] = _surroundings(node.surroundings)
    return json.dumps(fields, ensure_ascii=True, allow_nan=False)


def decode(line: str) -> SerializedNode:
    """The node that `encode` wrote. Raises DocumentError."""
    try:
        fields = json.loads(line)
        around = fields.get("surroundings")
        node = Node(
            str(fields["op_type"]),
            str(fields["domain"]),
            int(fields["since_version"]),
            tuple(None if o is None else _operand_of(o) for o in fields["inputs"]),
            tuple(map(str, fields["outputs"])),
            {str(name): attribute_of(value) for name, value in fields["attributes"].items()},
            _surroundings_of(around) if around else None,
        )
        return SerializedNode(node, tuple(map(str, fields["dtypes"])), str(fields["binding"]))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, DecodeError) as error:
        raise DocumentError(
            f"not a node: {type(error).__name__}: {error}; the line begins with {line[:60]!r}"
        ) from None


def _operand(operand: Operand) -> dict[str, Any]:
    return {"name": operand.name, **array_fields(operand.value), "parameter": operand.parameter}


def _operand_of(fields: Mapping[str, Any]) -> Operand:
    return Operand(str(fields["name"]), array_of(fields), bool(fields["parameter"]))


def array_fields(value: Array) -> dict[str, Any]:
    """A tensor as JSON: its dtype, shape and values."""
    form = {"dtype": value.dtype.name, "shape": list(value.shape)}
    if value.size > LISTED or value.dtype.kind not in "biuf":
        little = value.astype(value.dtype.newbyteorder("<"))
        return {**form, "data": base64.b64encode(little.tobytes()).decode("ascii")}
    return {**form, "values": [_number(item) for item in value.reshape(-1).tolist()]}


def array_of(fields: Mapping[str, Any]) -> Array:
    """The tensor that `array_fields` wrote. Raises KeyError, TypeError and ValueError."""
    dtype, shape = dtype_of(str(fields["dtype"])), tuple(map(int, fields["shape"]))
    if "data" in fields:
        return np.frombuffer(base64.b64decode(fields["data"], validate=True), dtype).reshape(shape)
    return np.array([_number_of(item) for item in fields["values"]], dtype).reshape(shape)


def dtype_of(name: str) -> np.dtype[Any]:
    """The dtype of numbers of a numpy or ml_dtypes name. Raises TypeError."""
    found = getattr(ml_dtypes, name, None)
    dtype = np.dtype(name if found is None else found)
    if dtype.kind not in ("biufc" if found is None else "biufcV"):
        raise TypeError(f"no dtype of numbers: {name!r}")
    return dtype


def _number(value: Any) -> Any:
    return value if not isinstance(value, float) or np.isfinite(value) else str(value)


def _number_of(value: Any) -> Any:
    return float(value) if isinstance(value, str) else value


def attribute_fields(value: Attribute) -> dict[str, Any]:
    """The value of an attribute as JSON: its kind and itself."""
    if isinstance(value, np.ndarray):
        return {"tensor": array_fields(value)}
    if isinstance(value, tuple):
        kind = _kind(value[0]) if value else "int"
        return {f"{kind}s": [_number(item) for item in value]}
    return {_kind(value): _number(value)}


def _kind(value: Any) -> str:
    return next(name for name, kind in KINDS.items() if isinstance(value, kind))


def attribute_of(fields: Mapping[str, Any]) -> Attribute:
    """The value that `attribute_fields` wrote. Raises KeyError, TypeError, ValueError and AttributeError."""
    ((kind, value),) = fields.items()
    if kind == "tensor":
        return array_of(value)
    if kind.endswith("s"):
        return tuple(KINDS[kind[:-1]](item) for item in value)
    made: Attribute = KINDS[kind](value)
    return made


def _surroundings(around: Surroundings) -> dict[str, Any]:
    def text(proto: Any) -> str:
        return base64.b64encode(proto.SerializeToString(deterministic=True)).decode("ascii")

    return {
        "inputs": list(around.inputs),
        "outputs": list(around.outputs),
        "results": dict(around.results),
        "types": dict(around.types),
        "before": [text(proto) for proto in around.before],
        "after": [text(proto) for proto in around.after],
        "graphs": {name: text(graph) for name, graph in around.graphs.items()},
    }


def _surroundings_of(fields: Mapping[str, Any]) -> Surroundings:
    def node(text: str) -> onnx.NodeProto:
        found: onnx.NodeProto = onnx.NodeProto.FromString(base64.b64decode(text, validate=True))
        _forbid_files(found)
        return found

    def body(text: str) -> onnx.GraphProto:
        found: onnx.GraphProto = onnx.GraphProto.FromString(base64.b64decode(text, validate=True))
        _forbid_files(found)
        return found

    return Surroundings(
        tuple(map(str, fields["inputs"])),
        tuple(map(str, fields["outputs"])),
        {str(k): str(v) for k, v in fields["results"].items()},
        {str(k): str(v) for k, v in fields["types"].items()},
        tuple(map(node, fields["before"])),
        tuple(map(node, fields["after"])),
        {str(name): body(text) for name, text in fields["graphs"].items()},
    )


def _forbid_files(message: Message) -> None:
    """Raises ValueError where a tensor in the message has its values in a file, whose path the line would choose."""
    if isinstance(message, onnx.TensorProto) and (message.data_location or message.external_data):
        raise ValueError(f"the values of the tensor {message.name!r} are in a file")
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in (value,) if isinstance(value, Message) else value:
                _forbid_files(part)
