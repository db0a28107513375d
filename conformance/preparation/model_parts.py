"""A model in two parts, shell and graph, so that the graphs of many cases become one model by concatenation.

Protobuf merges messages that are written one after the other: repeated fields are concatenated
(https://protobuf.dev/programming-guides/encoding/#last-one-wins). So the bytes of a pack's model are those of one shell
and of the graphs, and no model is parsed or serialized when a pack is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx

GRAPH_FIELD = b"\x3a"
"""Field 7 of ModelProto, `graph`, as protobuf writes the start of a message."""

GRAPH_NAME = b"\x12\x04pack"
"""Field 2 of GraphProto, `name`, which a model must have."""

PLAIN = {"node", "name", "initializer", "input", "output", "doc_string"}
"""What a graph may have to be taken apart, and each in its nodes' attributes: names stand in other fields, too."""


def parts(model: bytes, prefix: str) -> tuple[bytes, bytes]:
    """A model as its shell (all but the graph) and its graph with the prefix before every name.

    Graphs of equal shells are put into one model by writing them one after the other: so protobuf merges messages.
    The graph is empty where a name may stand in a place that is not known here.
    """
    proto = onnx.ModelProto.FromString(model)
    graph, written = proto.graph, b""
    graphs = [graph, *_inner(graph)]
    if not proto.functions and not any({field.name for field, _ in each.ListFields()} - PLAIN for each in graphs):
        graph.ClearField("name")
        for each in graphs:
            _put_before_names(prefix, each)
        written = graph.SerializeToString(deterministic=True)
    proto.ClearField("graph")
    shell: bytes = proto.SerializeToString()
    return shell, written


def _inner(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graphs in the attributes of its nodes, and in those of theirs."""
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
                yield inner
                yield from _inner(inner)


def _put_before_names(prefix: str, graph: onnx.GraphProto) -> None:
    """Before those of its own nodes and values, in place."""
    for node in graph.node:
        node.name = prefix + node.name
        node.input[:] = [prefix + name if name else "" for name in node.input]
        node.output[:] = [prefix + name if name else "" for name in node.output]
    for value in (*graph.input, *graph.output, *graph.initializer):
        value.name = prefix + value.name
    for value in (*graph.input, *graph.output):
        for dim in _dims(value.type):
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


def joined(shell: bytes, graphs: Iterable[bytes]) -> bytes:
    """The serialized ModelProto of one shell and all graphs; its graph is called `pack`."""
    graph = b"".join(graphs) + GRAPH_NAME
    return shell + GRAPH_FIELD + _varint(len(graph)) + graph


def _varint(number: int) -> bytes:
    """A number as protobuf writes it: seven bits a byte, the lowest first."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)
