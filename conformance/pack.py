"""Packs: many cases as disjoint subgraphs of one model and one session, where sessions cost more than nodes.

Every name of a case gets a prefix of its own, symbolic dimensions too, so that no two cases share anything but the
session. A pack that succeeds gives each case the outcome it would have had; a pack that fails in any way says nothing
of any case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import onnx

from epcheck.conformance.outcome import Outcome
from epcheck.generators.case import Array

if TYPE_CHECKING:
    from epcheck.conformance.prepare import Prepared

GRAPH_FIELD = b"\x3a"
"""Field 7 of ModelProto, `graph`, as protobuf writes the start of a message."""

PLAIN = {"node", "name", "initializer", "input", "output", "doc_string"}
"""What a graph may have to be taken apart: names stand in other fields, too."""


def parts(model: bytes, prefix: str) -> tuple[bytes, bytes]:
    """A model as its shell (all but the graph) and its graph with the prefix before every name.

    Graphs of equal shells are put into one model by writing them one after the other: so protobuf merges messages.
    The graph is empty where a name may stand in a place that is not known here.
    """
    proto = onnx.ModelProto.FromString(model)
    graph = onnx.GraphProto()
    graph.CopyFrom(proto.graph)
    proto.ClearField("graph")
    shell: bytes = proto.SerializeToString()
    known = {descriptor.name for descriptor, _ in graph.ListFields()} <= PLAIN
    if not known or proto.functions or any(a.HasField("g") or a.graphs for n in graph.node for a in n.attribute):
        return shell, b""
    graph.ClearField("name")
    for node in graph.node:
        node.name = prefix + node.name
        node.input[:] = [prefix + name if name else "" for name in node.input]
        node.output[:] = [prefix + name if name else "" for name in node.output]
    for value in (*graph.input, *graph.output, *graph.initializer):
        value.name = prefix + value.name
    for value in (*graph.input, *graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = prefix + dim.dim_param
    written: bytes = graph.SerializeToString(deterministic=True)
    return shell, written


def model(cases: Sequence[Prepared]) -> bytes:
    """The serialized ModelProto that holds all of these cases, whose shells are equal; one case is its own pack."""
    if len(cases) == 1:
        return cases[0].model
    graphs = b"".join(case.graph for case in cases) + b"\x12\x04pack"
    return cases[0].shell + GRAPH_FIELD + _varint(len(graphs)) + graphs


def prefixes(cases: Sequence[Prepared]) -> tuple[str, ...]:
    """What stands before the names of each case in the model of all."""
    return ("",) if len(cases) == 1 else tuple(case.prefix for case in cases)


def unpack(
    cases: Sequence[Prepared],
    outcome: Outcome,
    outputs: Mapping[str, Array],
    nodes: Sequence[tuple[str, str, str]] | None,
) -> Iterator[Outcome]:
    """The outcome of each case of a pack that is done; the seconds are the session's, shared out evenly.

    outputs: all of the session's. nodes: (provider, operator, node name) of each node that was assigned; a case is
    assigned what bears its prefix.
    """
    count = len(cases)
    own_nodes: dict[str, list[tuple[str, str]]] = {}
    for provider, operator, name in nodes or ():
        own_nodes.setdefault(name.partition("/")[0], []).append((provider, operator))
    create_s = None if outcome.create_s is None else outcome.create_s / count
    run_s = None if outcome.run_s is None else outcome.run_s / count
    for case in cases:
        prefix = case.prefix
        assigned = None if nodes is None else tuple(own_nodes.get(prefix[:-1], ()))
        yield replace(
            outcome,
            outputs={name: outputs[prefix + name] for name in case.outputs if prefix + name in outputs},
            assignment=assigned,
            unwritten=_own(outcome.unwritten, prefix),
            repeat_differs=_own(outcome.repeat_differs, prefix),
            create_s=create_s,
            run_s=run_s,
            shared=count,
        )


def _own(names: Sequence[str], prefix: str) -> tuple[str, ...]:
    return tuple(name.removeprefix(prefix) for name in names if name.startswith(prefix))


def _varint(number: int) -> bytes:
    """A number as protobuf writes it: seven bits a byte, the lowest first."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)
