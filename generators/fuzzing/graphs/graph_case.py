"""A graph as a case: its model, its feeds, and what stands around the node that its id names."""

from __future__ import annotations

import hashlib
from functools import partial

import onnx
from onnx import helper, numpy_helper

from epcheck.generators import graph as graphs
from epcheck.generators import schema
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.fuzzing.drawn_case import PREFIX, digest
from epcheck.generators.fuzzing.graphs.composing import OPSET
from epcheck.generators.fuzzing.graphs.drawn_graph import DrawnGraph, Step
from epcheck.generators.node import Node, Surroundings


def case_of(graph: DrawnGraph) -> Case:
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
        partial(_built, graph),
    )


def _digest(graph: DrawnGraph) -> str:
    found = hashlib.sha256(repr(graph.outputs).encode())
    for step in graph.steps:
        found.update(f"{digest(step.node)}{step.inputs}{step.outputs}".encode())
    for operand in graph.sources:
        found.update(f"{operand.name}{operand.parameter}".encode())
    return found.hexdigest()[:12]


def _built(graph: DrawnGraph, case: Case) -> BuiltCase:
    feeds = {operand.name: operand.value for operand in graph.sources if not operand.parameter}
    return BuiltCase(case, as_node(graph), OPSET, model(graph), feeds, graph.truth, {}, None)


def as_node(graph: DrawnGraph) -> Node:
    """The last node of the graph, and the others around it."""
    *others, last = graph.steps
    results = {output.name: schema.dtype_name(output.value.dtype) for output in graph.truth.outputs}
    around = Surroundings(
        tuple(name or "" for name in last.inputs),
        last.outputs,
        results,
        {},
        before=tuple(_proto(step, number) for number, step in enumerate(others)),
    )
    node = last.node
    return Node(node.op_type, node.domain, node.since_version, graph.sources, graph.outputs, node.attributes, around)


def _proto(step: Step, number: int) -> onnx.NodeProto:
    node = step.node
    return graphs.node_proto(
        node.op_type,
        [name or "" for name in step.inputs],
        step.outputs,
        f"node_{number}",
        node.domain,
        node.attributes,
    )


def model(graph: DrawnGraph) -> bytes:
    """The serialized ModelProto of the graph."""
    fed = [operand for operand in graph.sources if not operand.parameter]
    inputs = [graphs.value_info(o.name, schema.dtype_name(o.value.dtype), o.value.shape) for o in fed]
    outputs = [
        graphs.value_info(o.name, schema.dtype_name(o.value.dtype), (None,) * o.value.ndim) for o in graph.truth.outputs
    ]
    initializers = [numpy_helper.from_array(o.value, o.name) for o in graph.sources if o.parameter]
    nodes = [_proto(step, number) for number, step in enumerate(graph.steps)]
    domains = sorted({step.node.domain for step in graph.steps} - {""})
    imports = [helper.make_opsetid("", OPSET), *(helper.make_opsetid(domain, 1) for domain in domains)]
    made: onnx.GraphProto = helper.make_graph(nodes, "graph", inputs, outputs, initializers)
    built: onnx.ModelProto = helper.make_model(
        made, opset_imports=imports, ir_version=graphs.ir_version_for(OPSET), producer_name="epcheck"
    )
    serialized: bytes = built.SerializeToString(deterministic=True)
    return serialized
