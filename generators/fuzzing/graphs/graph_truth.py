"""The truth of a graph that was drawn: what the fuzzer's oracle says of each node, which is nothing of some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from epcheck.generators import registry
from epcheck.generators.fuzzing import oracle
from epcheck.generators.graphs import graph_truth
from epcheck.generators.graphs.node_graph import NodeGraph, Step
from epcheck.generators.node import Node, Operand
from epcheck.generators.truth import Open, Output, Truth


def judge_graph(
    steps: Sequence[Step],
    sources: Sequence[Operand],
    outputs: Sequence[str],
    seed: int = 0,
    known: Mapping[str, Output] | None = None,
) -> NodeGraph | Open:
    """The graph with its truth, or why it is open. known: as in `graphs.graph_truth.judge_graph`."""
    return graph_truth.judge_graph(_judge, steps, sources, outputs, seed, known, _judge_moved)


def _judge(key: str, node: Node) -> Truth | Open:
    return oracle.judge(registry.operator_of(key), node)


def _judge_moved(key: str, node: Node) -> Truth | Open:
    return oracle.judge_moved(registry.operator_of(key), node)
