"""Smaller graphs: fewer outputs, nodes and unread sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from epcheck.generators.fuzzing.graphs import graph_truth
from epcheck.generators.graphs.node_graph import NodeGraph, Step
from epcheck.generators.node import Operand


def measure(graph: NodeGraph) -> tuple[int, int, int, int]:
    """Nodes, outputs, sources, elements: a smaller graph is one that compares less."""
    elements = sum(operand.value.size for operand in graph.sources)
    return len(graph.steps), len(graph.outputs), len(graph.sources), elements


def smaller(graph: NodeGraph) -> Iterator[NodeGraph]:
    """Graphs that are one step smaller and that the oracles can judge, the largest steps first."""
    size = measure(graph)
    for steps, sources, outputs in _steps(graph):
        live = _live(steps, outputs)
        read = {name for step in live for name in step.inputs if name}
        kept = [operand for operand in sources if operand.name in read]
        if live:
            found = graph_truth.judge_graph(live, kept, outputs)
            if isinstance(found, NodeGraph) and measure(found) < size:
                yield found


_Parts = tuple[Sequence[Step], Sequence[Operand], Sequence[str]]


def _steps(graph: NodeGraph) -> Iterator[_Parts]:
    yield graph.steps, graph.sources, graph.outputs  # without what nobody reads
    for name in graph.outputs:  # one output alone
        if len(graph.outputs) > 1:
            yield graph.steps, graph.sources, [name]
    for index in reversed(range(len(graph.steps))):  # what a node makes enters the graph instead
        yield _feed_left_out(graph, {index})
    for count in range(1, len(graph.steps)):  # all but the last nodes
        yield _feed_left_out(graph, set(range(count)))
    for index, step in enumerate(graph.steps):  # the outputs end before a node
        before = [name for name in step.inputs if name and any(name in other.outputs for other in graph.steps[:index])]
        if before and step.outputs[0] in graph.outputs:
            yield graph.steps[:index], graph.sources, [before[0]]
    for name in graph.outputs:
        if len(graph.outputs) > 1:
            yield graph.steps, graph.sources, [other for other in graph.outputs if other != name]


def _feed_left_out(graph: NodeGraph, left_out: set[int]) -> _Parts:
    """Without these nodes; what they make enters the graph."""
    made = [name for index in sorted(left_out) for name in graph.steps[index].outputs if name]
    steps = [step for index, step in enumerate(graph.steps) if index not in left_out]
    sources = [*graph.sources, *(Operand(name, graph.values[name]) for name in made)]
    return steps, sources, [name for name in graph.outputs if name not in made]


def _live(steps: Sequence[Step], outputs: Sequence[str]) -> list[Step]:
    """The nodes on which an output depends."""
    wanted, found = set(outputs), list[Step]()
    for step in reversed(steps):
        if wanted & set(step.outputs):
            found.append(replace(step))
            wanted |= {name for name in step.inputs if name}
    return found[::-1] if outputs else []
