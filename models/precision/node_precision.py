"""What float16 does to each node: its range from true values, its error alone and inside the model from real runs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np

from epcheck.conformance.test_data import model_file
from epcheck.generators.array import Array
from epcheck.models.accuracy.metrics import Metrics, measure, portion
from epcheck.models.execution.model_outcome import DONE
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.subgraph import disconnect_nodes
from epcheck.models.precision.ranges import LARGEST, LEAST, Range, digits, join_ranges
from epcheck.models.precision.subject import Subject
from epcheck.models.wrong_nodes.culprit import GraphNode, graph_node
from epcheck.models.wrong_nodes.node_check import is_random
from epcheck.models.wrong_nodes.search import Search

FEW_DIGITS = 2.0
"""A node loses digits where fewer decimal digits than that are right in its result, of the 3.3 of float16."""

UNDERFLOW_SHARE = 0.01
"""A node underflows where at least so many of its values become 0: single ones are usual behind a Softmax."""


class PrecisionFault(StrEnum):
    """What float16 does to a node."""

    OVERFLOWS = "overflows"
    UNDERFLOWS = "underflows"
    LOSES_DIGITS = "loses digits"


@dataclass(frozen=True)
class Observed:
    """What the provider made of a value. nonfinite: share of elements that are NaN or infinite where the true value is
    a number of float16. error: `Metrics.relative`, of the others."""

    nonfinite: float
    error: float


@dataclass(frozen=True)
class NodePrecision:
    """A node in float16.

    values: the range of its true results. reads: of what it receives from other nodes. weights: largest magnitude of
    its weights. alone: its result on true values, rounded to float16; inside: its result inside the model; None where
    they were not seen. keeps: whether it has to stay in float32.
    """

    node: GraphNode
    values: Range
    reads: Range
    weights: float
    alone: Observed | None
    inside: Observed | None
    keeps: bool = False

    @property
    def fault(self) -> PrecisionFault | None:
        """What is worst; None where float16 does it no harm."""
        if self.values.overflow or self.weights > LARGEST or (self.alone and self.alone.nonfinite):
            return PrecisionFault.OVERFLOWS
        if self.alone and digits(self.alone.error) < FEW_DIGITS:
            return PrecisionFault.UNDERFLOWS if self.values.underflow else PrecisionFault.LOSES_DIGITS
        return PrecisionFault.UNDERFLOWS if self.values.underflow >= UNDERFLOW_SHARE else None

    @property
    def words(self) -> str:
        """What is wrong with it, as a part of a sentence."""
        match self.fault:
            case PrecisionFault.OVERFLOWS if self.values.overflow:
                share = f"{portion(self.values.overflow)} of its values are beyond {LARGEST:g}"
                return f"overflows: {share}, the largest is {self.values.largest:.3g}"
            case PrecisionFault.OVERFLOWS if self.weights > LARGEST:
                return f"overflows: its weights reach {self.weights:.3g}"
            case PrecisionFault.OVERFLOWS if self.reads.overflow:
                return f"its inputs overflow: {portion(self.reads.overflow)} of the values are beyond {LARGEST:g}"
            case PrecisionFault.OVERFLOWS:
                return f"overflows internally: its true values only reach {self.values.largest:.3g} only"
            case PrecisionFault.UNDERFLOWS:
                return (
                    f"underflows: {portion(self.values.underflow)} of its values are below {LEAST / 2:.2g} and become 0"
                )
            case PrecisionFault.LOSES_DIGITS:
                assert self.alone is not None
                left = max(0.0, digits(self.alone.error))
                few = f"{left:.1f} of {digits(0):.1f} digits are right"
                return f"loses digits: alone, on true values rounded to float16, {few}"
        return "stays within float16"


def observe_value(got: Array | None, truth: Feed) -> Observed | None:
    """What the provider made of a value whose truth is known in float64."""
    if got is None or not isinstance(truth, np.ndarray) or got.shape != truth.shape or got.dtype.kind != "f":
        return None
    with np.errstate(over="ignore", under="ignore"):
        narrow = truth.astype(np.float16).astype(np.float64)
    found: Metrics = measure(got, np.where(np.isfinite(narrow), truth, narrow))
    return Observed(found.nonfinite / max(found.elements, 1), found.relative)


def alone(subject: Subject, search: Search, truth: Mapping[str, Feed]) -> dict[str, Observed]:
    """Value -> what its node makes of it on true values, rounded to float16; all nodes in as few sessions as can be.

    search: of the float16 model. truth: of its values, by the names in the model of the file. Raises LimitsReached.
    """
    values = subject.in_narrow(truth)
    wiring = subject.narrow_wiring
    known = values.keys() | wiring.constants
    producers = {wiring.producer[name]: None for name in subject.values.values() if name in wiring.producer}
    nodes = [node for node in producers if known >= set(wiring.reads[node]) and not is_random(wiring, node)
             and not any(attribute.HasField("g") for attribute in wiring.model.graph.node[node].attribute)]  # fmt: skip
    got = dict(_run(search, nodes, values))
    return _observe_values(subject, got, truth)


def _run(search: Search, nodes: Sequence[int], values: Mapping[str, Feed]) -> Iterator[tuple[str, Feed]]:
    """The outputs of the nodes. Those of a session that fails are divided between two."""
    if not nodes:
        return
    outcome = search.candidate(*disconnect_nodes(search.wiring, nodes, values))
    if outcome.stage == DONE:
        yield from outcome.outputs.items()
    elif len(nodes) > 1:
        half = len(nodes) // 2
        yield from _run(search, nodes[:half], values)
        yield from _run(search, nodes[half:], values)


def inside(subject: Subject, search: Search, truth: Mapping[str, Feed]) -> dict[str, Observed]:
    """Value -> what the provider makes of it inside the float16 model. Empty where the session is refused that has
    these values as outputs. Raises LimitsReached."""
    wanted = [name for value, name in subject.values.items() if value in truth and search.wiring.can_be_output(name)]
    outcome = search.run_whole(wanted)
    return _observe_values(subject, outcome.outputs, truth) if outcome.stage == DONE else {}


def _observe_values(subject: Subject, got: Mapping[str, Feed], truth: Mapping[str, Feed]) -> dict[str, Observed]:
    found = {}
    for value, name in subject.values.items():
        array = got.get(name)
        seen = observe_value(array if isinstance(array, np.ndarray) else None, truth.get(value))
        if seen is not None:
            found[value] = seen
    return found


def of_nodes(
    subject: Subject,
    ranges: Mapping[str, Range],
    single: Mapping[str, Observed],
    whole: Mapping[str, Observed],
) -> tuple[NodePrecision, ...]:
    """Each node in float16, in the order of the graph. ranges, single, whole: of values, by the names of the model of
    the file: their ranges, and what `alone` and `inside` saw."""
    weights = _weights(subject)
    found = []
    for at in subject.nodes:
        made = subject.wiring.list_outputs(at)
        found.append(
            NodePrecision(
                graph_node(subject.model, at),
                join_ranges(ranges[name] for name in made if name in ranges),
                join_ranges(ranges[name] for name in subject.wiring.list_received_values(at) if name in ranges),
                max((weights.get(name, 0.0) for name in subject.wiring.reads[at]), default=0.0),
                _worst([single[name] for name in made if name in single]),
                _worst([whole[name] for name in made if name in whole]),
            )
        )
    return tuple(found)


def _weights(subject: Subject) -> dict[str, float]:
    """The largest magnitude of each weight that would be float16: in a float16 model there is none beyond its range."""
    if not subject.converted:
        return {}
    found = {}
    for tensor in subject.model.graph.initializer:
        if tensor.data_type == subject.retyping.old:
            value = model_file.array_of(tensor, subject.folder or Path())
            found[tensor.name] = float(np.max(np.abs(value), initial=0.0, where=np.isfinite(value)))
    return found


def _worst(seen: Sequence[Observed]) -> Observed | None:
    if not seen:
        return None
    return Observed(max(each.nonfinite for each in seen), max(each.error for each in seen))


def worse(first: Mapping[str, Observed], second: Mapping[str, Observed]) -> dict[str, Observed]:
    """The worse of what two trials saw, by value."""
    names = {*first, *second}
    pairs = {name: [seen[name] for seen in (first, second) if name in seen] for name in names}
    return {name: found for name, pair in pairs.items() if (found := _worst(pair)) is not None}


def suspects(subject: Subject, nodes: Collection[NodePrecision]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The nodes to try in float32 first, and all others by their distance from them. First come nodes that float16
    harms, and those that make what these read or read what these make: a value is wide only where both ends are."""
    harmed = [each for each in nodes if each.fault is not None and each.fault != PrecisionFault.UNDERFLOWS]
    harmed = harmed or [each for each in nodes if each.fault is not None]
    first = {each.node.index for each in harmed}
    if not first:
        ordered = sorted(nodes, key=lambda each: -_severity(each))
        return (), tuple(each.node.index for each in ordered)
    movable = set(subject.nodes)
    reached, edge, order = set(first), set(first), [sorted(first)]
    while edge:
        edge = {node for at in edge for node in _neighbours(subject, at)} - reached
        reached |= edge
        order.append(sorted(edge & movable))
    rest = sorted(movable - reached)
    return (*order[0], *order[1]), tuple(node for step in (*order[2:], rest) for node in step)


def _severity(node: NodePrecision) -> float:
    if node.inside is None:
        return 0.0
    return math.inf if node.inside.nonfinite else node.inside.error


def _neighbours(subject: Subject, node: int) -> Iterator[int]:
    wiring = subject.wiring
    yield from (wiring.producer[name] for name in wiring.list_received_values(node) if name in wiring.producer)
    made = set(wiring.list_outputs(node))
    yield from (at for at in range(node + 1, wiring.nodes) if made.intersection(wiring.reads[at]))
