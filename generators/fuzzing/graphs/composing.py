"""Composing graphs: chains, diamonds and dead ends of nodes whose operators a provider takes one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

import numpy as np
import onnx.defs

from epcheck.generators import registry
from epcheck.generators.array import Array
from epcheck.generators.claims import Claims
from epcheck.generators.fuzzing import oracle
from epcheck.generators.fuzzing.drawing import Drawn, Source
from epcheck.generators.fuzzing.graphs import graph_truth
from epcheck.generators.graphs.graph_truth import is_moderate, name_outputs
from epcheck.generators.graphs.node_graph import OPSET, NodeGraph, Step
from epcheck.generators.node import Operand
from epcheck.generators.truth import Output, Outputs

MOST_STEPS, MOST_ELEMENTS = 12, 128
"""Nodes of a graph, and elements of a value, at most."""

TRIES = 12
"""Templates that are tried for each node."""

RANDOM = frozenset({"Dropout", "RandomNormal", "RandomUniform", "Bernoulli", "Multinomial", "ImageDecoder"})
"""Operators whose nodes have no place in a graph: what they give is random."""


def is_of_opset(drawn: Drawn) -> bool:
    """Whether a graph of OPSET may have the node."""
    node = drawn.node
    if node.surroundings or node.op_type in RANDOM or not isinstance(drawn.truth, Outputs):
        return False
    if node.domain:
        return node.domain == "com.microsoft"
    return _is_current(node.op_type, node.since_version)


@cache
def _is_current(op_type: str, since_version: int) -> bool:
    """Whether the revision is that of OPSET: some operators ended before it."""
    try:
        found = onnx.defs.get_schema(op_type, OPSET, "")
    except onnx.defs.SchemaError:
        return False
    return not found.deprecated and found.since_version == since_version


def templates(seed: int, count: int, names: Sequence[str] = (), claims: Claims | None = None) -> list[Drawn]:
    """Nodes of which graphs are made: small, of one opset, with ordinary values, of every operator or of these. claims:
    of the provider that they are for, as in `drawing.Space`."""
    chosen = [registry.operator_of(name) for name in names] if names else list(registry.all_operators().values())
    source, found = Source(chosen, seed, OPSET, claims), list[Drawn]()
    for _ in range(40):
        found += [drawn for drawn in source.draw(count) if is_of_opset(drawn) and _is_small(drawn)]
        if len(found) >= count:
            break
    return found[:count]


def _is_small(drawn: Drawn) -> bool:
    assert isinstance(drawn.truth, Outputs)
    arrays = [o.value for o in drawn.node.inputs if o is not None] + [o.value for o in drawn.truth.outputs]
    return all(0 < a.size <= MOST_ELEMENTS and (a.dtype.kind != "f" or np.isfinite(a).all()) for a in arrays)


@dataclass
class _Growing:
    """A graph while nodes are added to it."""

    steps: list[Step]
    sources: list[Operand]
    values: dict[str, Array]
    read: set[str]
    known: dict[str, Output]


class Composer:
    """Makes graphs of templates."""

    def __init__(self, drawn: Sequence[Drawn], seed: int) -> None:
        """drawn: nodes that the provider takes and computes alone."""
        self._random = Random(seed)
        self._fitting: dict[tuple[str, int], list[Drawn]] = {}
        for template in drawn:
            first = template.node.inputs[0] if template.node.inputs else None
            if first is not None and not first.parameter:
                self._fitting.setdefault((first.value.dtype.name, first.value.ndim), []).append(template)
        self._starts = [template for group in self._fitting.values() for template in group]

    def compose(self) -> NodeGraph | None:
        """A graph that the oracles can judge; None where this attempt gives none."""
        if not self._starts:
            return None
        random = self._random
        growing = _Growing([], [], {}, set(), {})
        self._add(growing, random.choice(self._starts), None)
        for _ in range(random.choice((1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 8, MOST_STEPS - 1))):
            self._grow(growing)
        if len(growing.steps) < 2:
            return None
        outputs, seed = self._outputs(growing), random.getrandbits(32)
        graph = graph_truth.judge_graph(growing.steps, growing.sources, outputs, seed, growing.known)
        return graph if isinstance(graph, NodeGraph) else None

    def _grow(self, growing: _Growing) -> None:
        """Add a node that reads a value of the graph: mostly what the last node made."""
        random = self._random
        made = [name for step in growing.steps for name in step.outputs if name in growing.values]
        if not made:
            return
        base = growing.steps[-1].outputs[0] if random.random() < 0.7 else random.choice(made)
        value = growing.values.get(base)
        if value is None:
            return
        fitting = self._fitting.get((value.dtype.name, value.ndim), [])
        for _ in range(TRIES if fitting else 0):
            if self._add(growing, random.choice(fitting), base):
                return

    def _add(self, growing: _Growing, template: Drawn, base: str | None) -> bool:
        """Add the template, its first input read from `base`; whether its oracle knows the result."""
        number = len(growing.steps)
        names: list[str | None] = []
        entering: list[Operand] = []
        for place, operand in enumerate(template.node.inputs):
            if operand is None:
                names.append(None)
            elif base is not None and place == 0:
                names.append(base)
            else:
                name = self._find_other(growing, operand)
                if name is None:
                    name = f"s{number}_{operand.name}"
                    entering.append(replace(operand, name=name, parameter=self._is_initializer(operand)))
                names.append(name)
        values = {**growing.values, **{operand.name: operand.value for operand in entering}}
        outputs = tuple(f"v{number}_{name}" if name else "" for name in template.node.outputs)
        step = Step(template.operator.key, template.node, tuple(names), outputs)
        truth = oracle.judge(template.operator, step.reading(values))
        if not isinstance(truth, Outputs) or not self._is_worth(truth):
            return False
        made = name_outputs(step, truth)
        values |= {name: output.value for name, output in made.items()}
        growing.known |= made
        growing.steps.append(replace(step, node=step.reading(values)))
        growing.sources += entering
        growing.values = values
        growing.read |= {name for name in names if name}
        return True

    def _is_worth(self, truth: Outputs) -> bool:
        return all(0 < o.value.size <= MOST_ELEMENTS and is_moderate(o) for o in truth.outputs)

    def _find_other(self, growing: _Growing, operand: Operand) -> str | None:
        """A value of the graph for a further input, where one has its dtype and shape: what a node made, or an
        initializer that another node reads, too."""
        if self._random.random() < 0.5:
            return None
        fitting = [
            name
            for name, value in growing.values.items()
            if value.dtype == operand.value.dtype and value.shape == operand.value.shape and value.dtype.kind == "f"
        ]
        return self._random.choice(fitting) if fitting and not operand.parameter else None

    def _is_initializer(self, operand: Operand) -> bool:
        return operand.parameter or self._random.random() < 0.3

    def _outputs(self, growing: _Growing) -> list[str]:
        """What nobody reads, but for a dead end now and then; and sometimes what is read as well."""
        random = self._random
        made = [name for step in growing.steps for name in step.outputs if name]
        ends = [name for name in made if name not in growing.read]
        kept = [name for name in ends if random.random() > 0.15] or ends[-1:]
        return kept + [name for name in made if name in growing.read and random.random() < 0.12]
