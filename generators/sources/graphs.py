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
from epcheck.generators.graphs import graph_truth
from epcheck.generators.graphs.graph_model import LEVEL, as_node, model
from epcheck.generators.graphs.graph_sample import KINDS as KINDS
from epcheck.generators.graphs.graph_sample import GraphSample
from epcheck.generators.graphs.node_graph import NodeGraph
from epcheck.generators.graphs.patterns import (
    convolution,
    functions,
    matmul,
    movement,
    one_tensor,
    quantized,
    structure,
)
from epcheck.generators.graphs.rules import data_movement, neighbours, numbers, products, quantizers
from epcheck.generators.graphs.sketch import Sketch, find_version
from epcheck.generators.node import qualified_name
from epcheck.generators.operator import Operator, random_source
from epcheck.generators.truth import Open, Output

SOURCE = "graphs"

TRIES = 40
"""Draws of a graph's data: with some, an integer depends on the last bit of a sum, and nothing can be judged."""


class GraphError(EpcheckError, ValueError):
    """A fixed graph cannot be judged; the message says why."""


@cache
def samples() -> tuple[GraphSample, ...]:
    """All fixed graphs, in a stable order."""
    rules = (data_movement, numbers, products, quantizers, neighbours)
    patterns = (structure, convolution, matmul, functions, movement, quantized, one_tensor)
    written = (sample for module in patterns for sample in module.samples())
    ruled = (sample for module in rules for rule in module.rules() for sample in rule.samples())
    return (*written, *ruled)


def cases(operator: Operator[Any]) -> Iterator[Case]:
    """Those of the fixed graphs that end with the operator."""
    for sample, dtype, version in _group_by_last_operator().get(operator.key, ()):
        yield Case(
            operator.name,
            operator.domain,
            version,
            dtype,
            sample.sample,
            graphs.RUNTIME,
            partial(_build, sample),
            kind=sample.kind,
            source=SOURCE,
        )


@cache
def _group_by_last_operator() -> Mapping[str, list[tuple[GraphSample, str, int]]]:
    """Key of the last node's operator -> fixed graphs, each with a dtype and the version of the last node."""
    by_operator: dict[str, list[tuple[GraphSample, str, int]]] = {}
    rng = np.random.default_rng(0)
    for sample in samples():
        for dtype in sample.dtypes:
            name, domain = sample.last or _find_last(sample, dtype, rng)
            version = find_version(name, domain, sample.opset)
            by_operator.setdefault(qualified_name(name, domain), []).append((sample, dtype, version))
    return by_operator


def _find_last(sample: GraphSample, dtype: str, rng: np.random.Generator) -> tuple[str, str]:
    """Operator and domain of the last node of the graph, which is written for that, with any data."""
    sketch = Sketch(np.dtype(dtype), rng, sample.opset)
    sample.write(sketch)
    last = sketch.steps[-1].node
    return last.op_type, last.domain


def judge_sample(sample: GraphSample, dtype: str, case_id: str) -> NodeGraph:
    """The graph with the data of its case. Raises GraphError."""
    rng = random_source(case_id)
    reason = ""
    for _ in range(TRIES):
        sketch = Sketch(np.dtype(dtype), rng, sample.opset)
        sample.write(sketch)
        seed = int.from_bytes(hashlib.sha256(case_id.encode()).digest()[:4], "little")
        accept = _accept_any if sample.special else None
        graph = graph_truth.judge_graph(
            graph_truth.judge_node, sketch.steps, sketch.sources, sketch.outputs, seed, accept=accept
        )
        if not isinstance(graph, Open):
            return replace(graph, opset=sample.opset)
        reason = graph.reason
    raise GraphError(f"the graph {sample.sample} cannot be judged: {reason}")


def _accept_any(_value: Output) -> bool:
    return True


def _build(sample: GraphSample, case: Case) -> BuiltCase:
    graph = judge_sample(sample, case.dtype, case.id)
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
