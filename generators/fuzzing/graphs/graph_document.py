"""A graph as one line of JSON: its steps, each a node with the names of what it reads and makes."""

from __future__ import annotations

import json

from epcheck.generators.fuzzing.graphs import graph_truth
from epcheck.generators.fuzzing.oracle import Open
from epcheck.generators.graphs.node_graph import NodeGraph, Step
from epcheck.generators.node import Node
from epcheck.generators.serialization import node_json
from epcheck.generators.serialization.node_json import DocumentError, SerializedNode


def encode(graph: NodeGraph) -> str:
    """The graph as one line. What enters it is written as the inputs of a node called Graph."""
    sources = Node("Graph", "", 1, graph.sources, graph.outputs)
    fields = {
        "graph": json.loads(node_json.encode(SerializedNode(sources, (), "runtime"))),
        "steps": [
            {
                "key": step.key,
                "node": json.loads(node_json.encode(SerializedNode(step.node, (), "runtime"))),
                "inputs": step.inputs,
                "outputs": step.outputs,
            }
            for step in graph.steps
        ],
    }
    return json.dumps(fields, ensure_ascii=True, allow_nan=False)


def decode(line: str) -> NodeGraph | Open:
    """The graph that `encode` wrote, judged anew; why it is open where the oracles cannot judge it. Raises
    DocumentError."""
    try:
        fields = json.loads(line)
        outer = node_json.decode(json.dumps(fields["graph"])).node
        steps = [
            Step(
                str(step["key"]),
                node_json.decode(json.dumps(step["node"])).node,
                tuple(None if name is None else str(name) for name in step["inputs"]),
                tuple(map(str, step["outputs"])),
            )
            for step in fields["steps"]
        ]
        sources = [operand for operand in outer.inputs if operand is not None]
        return graph_truth.judge_graph(steps, sources, outer.outputs)
    except DocumentError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise DocumentError(
            f"not a graph: {type(error).__name__}: {error}; the line begins with {line[:60]!r}"
        ) from None
