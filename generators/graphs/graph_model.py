"""A graph of several nodes as a model, and as its last node with the others around it."""

from __future__ import annotations

from dataclasses import replace

import onnx
from onnx import helper, numpy_helper

from epcheck.generators import graph as graphs
from epcheck.generators import schema
from epcheck.generators.graphs.node_graph import NodeGraph, Step
from epcheck.generators.node import EvaluatedNode, Node, Operand, Surroundings

LEVEL = "all"
"""Of graph optimisation, at which the sessions of these cases run."""


def as_node(graph: NodeGraph) -> Node:
    """The last node of the graph, and the others around it."""
    *others, last = graph.steps
    results = {output.name: schema.dtype_name(output.value.dtype) for output in graph.truth.outputs}
    around = Surroundings(
        tuple(name or "" for name in last.inputs),
        last.outputs,
        results,
        {},
        before=tuple(_proto(step, number) for number, step in enumerate(others)),
        evaluated=tuple(_describe_step(graph, step) for step in graph.steps),
    )
    node = last.node
    return Node(node.op_type, node.domain, node.since_version, graph.sources, graph.outputs, node.attributes, around)


def _describe_step(graph: NodeGraph, step: Step) -> EvaluatedNode:
    constant = {operand.name for operand in graph.sources if operand.parameter}
    read = [
        None if operand is None or name is None else Operand(operand.name, graph.values[name], name in constant)
        for operand, name in zip(step.node.inputs, step.inputs, strict=True)
    ]
    made = zip(step.node.outputs, step.outputs, strict=True)
    outputs = tuple(Operand(own, graph.values[name]) for own, name in made if name in graph.values)
    return EvaluatedNode(replace(step.node, inputs=tuple(read)), outputs)


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


def model(graph: NodeGraph) -> bytes:
    """The serialized ModelProto of the graph."""
    fed = [operand for operand in graph.sources if not operand.parameter]
    inputs = [graphs.value_info(o.name, schema.dtype_name(o.value.dtype), o.value.shape) for o in fed]
    outputs = [
        graphs.value_info(o.name, schema.dtype_name(o.value.dtype), (None,) * o.value.ndim) for o in graph.truth.outputs
    ]
    initializers = [numpy_helper.from_array(o.value, o.name) for o in graph.sources if o.parameter]
    nodes = [_proto(step, number) for number, step in enumerate(graph.steps)]
    domains = sorted({step.node.domain for step in graph.steps} - {""})
    imports = [helper.make_opsetid("", graph.opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    made: onnx.GraphProto = helper.make_graph(nodes, "graph", inputs, outputs, initializers)
    built: onnx.ModelProto = helper.make_model(
        made, opset_imports=imports, ir_version=graphs.ir_version_for(graph.opset), producer_name="epcheck"
    )
    serialized: bytes = built.SerializeToString(deterministic=True)
    return serialized
