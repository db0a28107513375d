"""A model in two parts, shell and graph, so that the graphs of many cases become one model by concatenation.

Protobuf merges messages that are written one after the other: repeated fields are concatenated
(https://protobuf.dev/programming-guides/encoding/#last-one-wins). So the bytes of a pack's model are those of one shell
and of the graphs, and no model is parsed or serialized when a pack is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import onnx

from epcheck.generators.serialization import wire

GRAPH, FUNCTIONS = 7, 25
"""Fields of ModelProto."""

NODE, NAME, INITIALIZER, DOC_STRING, INPUT, OUTPUT = 1, 2, 5, 10, 11, 12
"""Fields of GraphProto: all that a graph may have to be taken apart. Names stand in others, too."""

NAMED: Mapping[int, Any] = {
    NODE: onnx.NodeProto,
    INITIALIZER: onnx.TensorProto,
    INPUT: onnx.ValueInfoProto,
    OUTPUT: onnx.ValueInfoProto,
}
"""What of a graph has names."""

STAND_IN = "\0instead of\0/"
"""A prefix in the place of another one of its length."""

SHORT = 4096
"""Bytes of a node or a value of which it is kept how it is written with a prefix."""


def parts(model: bytes, prefix: str) -> tuple[bytes, bytes]:
    """A model as its shell (all but the graph) and its graph with the prefix before every name.

    Graphs of equal shells are put into one model by writing them one after the other: so protobuf merges messages.
    The graph is empty where a name may stand in a place that is not known here.
    """
    fields = [*wire.fields(model)]
    shell = b"".join([whole for number, whole, _ in fields if number != GRAPH])
    if any(number == FUNCTIONS for number, _, _ in fields):
        return shell, b""
    graph = b"".join([content for number, _, content in fields if number == GRAPH])
    written = []
    for number, whole, content in wire.fields(graph):
        if number == DOC_STRING:
            written.append(whole)
        elif number != NAME:
            renamed = _prefix_names(number, content, prefix)
            if renamed is None:
                return shell, b""
            written.append(renamed)
    return shell, b"".join(written)


def _prefix_names(number: int, content: bytes, prefix: str) -> bytes | None:
    """A field of a graph with the prefix before its names; None where one may stand in a place that is not known.

    Cases share most of their nodes and values, but no prefix, so these are kept with another one.
    """
    if number == INITIALIZER or len(content) > SHORT or len(prefix) != len(STAND_IN) or STAND_IN.encode() in content:
        return _rename_field(number, content, prefix)
    kept = _rename_to_stand_in(number, content)
    return kept and kept.replace(STAND_IN.encode(), prefix.encode())


@lru_cache(maxsize=4096)
def _rename_to_stand_in(number: int, content: bytes) -> bytes | None:
    return _rename_field(number, content, STAND_IN)


def _rename_field(number: int, content: bytes, prefix: str) -> bytes | None:
    if number not in NAMED:
        return None
    part = NAMED[number].FromString(content)
    if number != NODE:
        _put_before_value(prefix, part)
    elif not _put_before_node(prefix, part):
        return None
    return wire.field(number, part.SerializeToString(deterministic=True))


def _put_before_node(prefix: str, node: onnx.NodeProto) -> bool:
    """Before its own name, those that it reads and writes, and those in the graphs of its attributes, in place; whether
    these have names in known places only."""
    node.name = prefix + node.name
    node.input[:] = [prefix + name if name else "" for name in node.input]
    node.output[:] = [prefix + name if name else "" for name in node.output]
    graphs = [
        graph
        for attribute in node.attribute
        for graph in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs)
    ]
    return all(_put_before_graph(prefix, graph) for graph in graphs)


def _put_before_graph(prefix: str, graph: onnx.GraphProto) -> bool:
    """As `_put_before_node`."""
    for value in (*graph.input, *graph.output, *graph.initializer):
        _put_before_value(prefix, value)
    is_plain = {field.number for field, _ in graph.ListFields()} <= {*NAMED, NAME, DOC_STRING}
    return is_plain and all(_put_before_node(prefix, node) for node in graph.node)


def _put_before_value(prefix: str, value: onnx.ValueInfoProto | onnx.TensorProto) -> None:
    """Before its name and those of its dimensions, in place."""
    value.name = prefix + value.name
    for dim in _dims(value.type) if isinstance(value, onnx.ValueInfoProto) else ():
        if dim.dim_param:
            dim.dim_param = prefix + dim.dim_param


def _dims(value_type: onnx.TypeProto) -> Iterator[onnx.TensorShapeProto.Dimension]:
    """The dimensions of a tensor, or of the tensors in a sequence or an optional."""
    match value_type.WhichOneof("value"):
        case "tensor_type":
            yield from value_type.tensor_type.shape.dim
        case "sequence_type":
            yield from _dims(value_type.sequence_type.elem_type)
        case "optional_type":
            yield from _dims(value_type.optional_type.elem_type)


def join_graphs(shell: bytes, graphs: Iterable[bytes]) -> bytes:
    """The serialized ModelProto of one shell and all graphs; its graph is called `pack`."""
    return shell + wire.field(GRAPH, b"".join([*graphs, wire.field(NAME, b"pack")]))
