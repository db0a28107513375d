"""The fixed graphs of the suite as cases: each has the name of its last node, and its sample's begins with `graph_`.

Their sessions run with all graph optimisations, since what they are aimed at is what optimisers and providers make of
several nodes. The truth is that of each node (`graph_truth`), never what a fused operator of some provider would give.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from epcheck.generators import graph as graphs
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.error import EpcheckError
from epcheck.generators.node import Node, qualified_name
from epcheck.generators.operator import Operator, random_source
from epcheck.generators.several_nodes import graph_truth
from epcheck.generators.several_nodes.graph_model import as_node, model
from epcheck.generators.several_nodes.graph_sample import GraphSample
from epcheck.generators.several_nodes.node_graph import NodeGraph
from epcheck.generators.several_nodes.patterns import (
    convolution,
    functions,
    matmul,
    movement,
    one_tensor,
    quantized,
    structure,
)
from epcheck.generators.several_nodes.sketch import Sketch
from epcheck.generators.truth import Open, Output, Outputs, Selection, Truth

LEVEL = "all"
"""Of graph optimisation, at which the sessions of these cases run."""

TRIES = 40
"""Draws of a graph's data: with some, an integer depends on the last bit of a sum, and nothing can be judged."""

Operators = Mapping[str, Operator[Any]]


class GraphError(EpcheckError, ValueError):
    """A fixed graph cannot be judged; the message says why."""


@cache
def samples() -> tuple[GraphSample, ...]:
    """All fixed graphs, in a stable order."""
    return tuple(
        sample
        for module in (structure, convolution, matmul, functions, movement, quantized, one_tensor)
        for sample in module.samples()
    )


def cases(operators: Operators) -> dict[str, tuple[Case, ...]]:
    """Key of the last node's operator -> the cases of graphs that end with it."""
    found: dict[str, list[Case]] = {}
    for sample in samples():
        for case in _of_sample(sample, operators):
            found.setdefault(case.operator_key, []).append(case)
    return {key: tuple(own) for key, own in found.items()}


def _of_sample(sample: GraphSample, operators: Operators) -> Iterator[Case]:
    for dtype in sample.dtypes:
        sketch = Sketch(np.dtype(dtype), np.random.default_rng(0), sample.opset)
        sample.write(sketch)
        last = sketch.steps[-1].node
        needed = {step.key: operators[step.key] for step in sketch.steps}
        yield Case(
            last.op_type,
            last.domain,
            last.since_version,
            dtype,
            sample.sample,
            graphs.RUNTIME,
            partial(_built, sample, tuple(needed.values())),
            kind=sample.kind,
        )


def judged(sample: GraphSample, dtype: str, operators: Operators, case_id: str) -> NodeGraph:
    """The graph with the data of its case. Raises GraphError."""
    rng = random_source(case_id)
    reason = ""
    for _ in range(TRIES):
        sketch = Sketch(np.dtype(dtype), rng, sample.opset)
        sample.write(sketch)
        seed = int.from_bytes(hashlib.sha256(case_id.encode()).digest()[:4], "little")
        judge = partial(truth_of, operators)
        graph = graph_truth.judged(judge, sketch.steps, sketch.sources, sketch.outputs, seed)
        if not isinstance(graph, Open):
            return replace(graph, opset=sample.opset)
        reason = graph.reason
    raise GraphError(f"the graph {sample.sample} cannot be judged: {reason}")


def truth_of(operators: Operators, key: str, node: Node) -> Truth | Open:
    """What the suite's oracle says of a node with these inputs; a selection in order is its one answer."""
    with np.errstate(all="ignore"):
        truth = operators[key].truth(node)
    if isinstance(truth, Selection) and truth.ordered and len(truth.accepted) == 1:
        return Outputs(tuple(map(Output, truth.names, truth.accepted[0])))
    return truth


def _built(sample: GraphSample, operators: tuple[Operator[Any], ...], case: Case) -> BuiltCase:
    by_key = {qualified_name(operator.name, operator.domain): operator for operator in operators}
    graph = judged(sample, case.dtype, by_key, case.id)
    node = as_node(graph)
    assert node.surroundings is not None
    last = graph.steps[-1].node
    types = {**graphs.type_bindings(last), **_results(graph)}
    around = replace(node.surroundings, types=types, level=LEVEL, elsewhere=sample.elsewhere)
    feeds = {operand.name: operand.value for operand in graph.sources if not operand.parameter}
    return BuiltCase(
        case, replace(node, surroundings=around), graph.opset, model(graph), feeds, graph.truth, types, None
    )


def _results(graph: NodeGraph) -> Mapping[str, str]:
    """Type constraint -> numpy dtype name, of the outputs of the last node."""
    last = graph.steps[-1]
    named = zip(last.node.outputs, last.outputs, strict=True)
    return graphs.value_bindings(last.node, {own: graph.values[name] for own, name in named if name in graph.values})
