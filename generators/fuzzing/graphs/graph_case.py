"""A graph that was drawn, as a case like any other."""

from __future__ import annotations

import hashlib
from functools import partial

from epcheck.generators import graph as graphs
from epcheck.generators import schema
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.fuzzing.drawn_case import PREFIX
from epcheck.generators.fuzzing.node_digest import digest
from epcheck.generators.graphs.graph_model import as_node, model
from epcheck.generators.graphs.node_graph import NodeGraph


def case_of(graph: NodeGraph) -> Case:
    """The case of a graph, by the name of its last node: `Relu-14/float32/fuzz_graph_1a2b3c4d5e6f[runtime]`."""
    last = graph.steps[-1].node
    value = graph.truth.outputs[-1].value
    return Case(
        last.op_type,
        last.domain,
        last.since_version,
        schema.dtype_name(value.dtype),
        f"{PREFIX}graph_{_digest(graph)}",
        graphs.RUNTIME,
        partial(_build, graph),
    )


def _digest(graph: NodeGraph) -> str:
    found = hashlib.sha256(repr(graph.outputs).encode())
    for step in graph.steps:
        found.update(f"{digest(step.node)}{step.inputs}{step.outputs}".encode())
    for operand in graph.sources:
        found.update(f"{operand.name}{operand.parameter}".encode())
    return found.hexdigest()[:12]


def _build(graph: NodeGraph, case: Case) -> BuiltCase:
    feeds = {operand.name: operand.value for operand in graph.sources if not operand.parameter}
    return BuiltCase(case, as_node(graph), graph.opset, model(graph), feeds, graph.truth, {}, None)
