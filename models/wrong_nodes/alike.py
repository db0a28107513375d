"""One finding for one pattern: nodes, or groups of fused nodes, that are wrong alike.

Nodes are alike where operator, attributes, and the dtypes and ranks of their inputs are equal. A node that ends the
session is searched for by halving, which names one of them. The others of its pattern are run alone. Nodes that are the
same model alone, with equal shapes and parameters, count as alike once two of them have failed alike and none has not:
a session that ends its process, or hangs, takes long.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx

from epcheck.models.execution.model_outcome import DONE
from epcheck.models.graph import feed, values
from epcheck.models.graph.subgraph import SubgraphError
from epcheck.models.graph.values import Type
from epcheck.models.wrong_nodes.culprit import Culprit, Kind, join_alike
from epcheck.models.wrong_nodes.fusion import behave_together, is_beyond_rounding
from epcheck.models.wrong_nodes.search import Search

ENDS_SESSIONS = (Kind.CRASH, Kind.TIMEOUT, Kind.REFUSED)

PARAMETERS = 1024
"""Elements up to which an integer input acts as a parameter: a shape, axes, indices."""

Pattern = tuple[object, ...]
SAME = 2
"""Nodes that are the same model alone, after whose equal failures no further one is run."""

Part = tuple[int, ...]
"""Indices of nodes that are wrong alone or together, in the order of the graph."""


class Patterns:
    """The patterns of the nodes of a search."""

    def __init__(self, search: Search) -> None:
        self._search = search
        inferred = values.infer_types(search.wiring.model, feed.shapes(search.feeds))
        self._types: Mapping[str, Type] = values.of_graph(inferred.graph)

    def of_node(self, node: int) -> Pattern:
        """Operator, attributes, and the dtypes and ranks of the inputs; that of a node that holds graphs is its own."""
        proto = self._search.wiring.model.graph.node[node]
        if any(values.bodies(proto)):
            return (node,)
        inputs = (self._types.get(name, values.UNKNOWN) if name else None for name in proto.input)
        kinds = tuple(each and (each.dtype, None if each.shape is None else len(each.shape)) for each in inputs)
        return (proto.domain, proto.op_type, _attributes(proto), kinds)

    def of_part(self, part: Part) -> Pattern:
        """The patterns of its nodes, and which of them reads from which."""
        return (*map(self.of_node, part), tuple(self._edges(part)))

    def find_parts(self, part: Part, others: Collection[int]) -> Iterator[Part]:
        """The parts of the same pattern among other nodes, in the order of the graph."""
        wanted = self.of_part(part)
        patterns = [self.of_node(node) for node in part]
        for last in sorted(others):
            if self.of_node(last) != patterns[-1]:
                continue
            found = self._follow(part, last)
            if found is not None and found.issubset(others) and self.of_part(tuple(sorted(found))) == wanted:
                yield tuple(sorted(found))

    def name_run(self, node: int) -> str:
        """A digest that two nodes share which are the same model alone: shapes and parameters are equal as well."""
        search = self._search
        digest = hashlib.sha256(repr(self.of_node(node)).encode())
        known = {**search.expected, **search.constants([node])}
        for name in search.wiring.model.graph.node[node].input:
            value = known.get(name) if name else None
            if not isinstance(value, np.ndarray):
                digest.update(f"|{self._types.get(name, '')}".encode())
                continue
            digest.update(f"|{value.dtype}{value.shape}{name in search.wiring.constants}".encode())
            if value.dtype.kind in "biu" and value.size <= PARAMETERS:
                digest.update(value.tobytes())
        return digest.hexdigest()

    def _edges(self, part: Part) -> Iterator[tuple[int, int, int, int]]:
        """(reader, its input, maker, its output) of the values between nodes of a part, by their places in it."""
        wiring = self._search.wiring
        for at, node in enumerate(part):
            for slot, name in enumerate(wiring.model.graph.node[node].input):
                maker = wiring.producer.get(name, -1) if name else -1
                if maker in part:
                    output = list(wiring.model.graph.node[maker].output).index(name)
                    yield at, slot, part.index(maker), output

    def _follow(self, part: Part, last: int) -> set[int] | None:
        """The nodes that stand to `last` as those of the part stand to its last one; None where one is missing."""
        wiring, places = self._search.wiring, {len(part) - 1: last}
        for reader, slot, maker, _output in sorted(self._edges(part), reverse=True):
            inputs = wiring.model.graph.node[places[reader]].input if reader in places else ()
            made_by = wiring.producer.get(inputs[slot], -1) if slot < len(inputs) else -1
            if made_by < 0 or places.setdefault(maker, made_by) != made_by:
                return None
        return set(places.values()) if len(places) == len(part) else None


def _attributes(proto: onnx.NodeProto) -> tuple[bytes, ...]:
    return tuple(sorted(attribute.SerializeToString(deterministic=True) for attribute in proto.attribute))


def find_alike(search: Search, culprit: Culprit, named: Collection[int]) -> Iterator[Culprit]:
    """The other nodes, or groups, of the pattern of a culprit that fail as it does. named: nodes that have a finding.
    Raises LimitsReached, SessionFailed."""
    part = tuple(node.index for node in culprit.nodes)
    others = {node for node in range(search.wiring.nodes) if node not in named and not search.is_constant(node)}
    if not part or culprit.kind not in (*ENDS_SESSIONS, Kind.FUSION, Kind.UNEXPLAINED):
        return
    patterns = Patterns(search)
    candidates = list(patterns.find_parts(part, others))
    if not candidates:
        return
    search.expect(search.possible_outputs())
    search.tolerance = search.tolerance or culprit.tolerance
    ends = culprit.kind in ENDS_SESSIONS
    own = tuple(map(patterns.name_run, part))
    known = {own: [True]}
    for each in candidates:
        run = tuple(map(patterns.name_run, each))
        if culprit.kind == Kind.TIMEOUT and run != own:
            continue  # each would take as long
        failed = known.setdefault(run, [])
        if not ends or len(failed) < SAME or not all(failed):
            failed.append(_fails_alike(search, culprit, each))
        if failed[-1]:
            yield replace(culprit, nodes=search.graph_nodes(each), received=_received(search, each))


def _received(search: Search, part: Part) -> Mapping[str, feed.Feed]:
    try:
        return search.part(part, search.expected)[1]
    except SubgraphError:
        return {}


def _fails_alike(search: Search, culprit: Culprit, part: Part) -> bool:
    """Whether a part of the same pattern fails in the same way."""
    level = search.options.level
    wanted = culprit.levels.get(level, culprit.difference)
    found = behave_together(search, part, None, DONE if wanted == "wrong" else wanted)
    return found == wanted and (wanted != "wrong" or is_beyond_rounding(search, part))


def group_alike(search: Search, culprits: Sequence[Culprit]) -> tuple[Culprit, ...]:
    """The culprits in the order of the graph, those of one pattern and one kind of error as one."""
    if len(culprits) < 2:
        return tuple(culprits)
    patterns = Patterns(search)
    groups: dict[Pattern, list[Culprit]] = {}
    for culprit in sorted(culprits, key=lambda each: [node.index for node in each.nodes]):
        part = tuple(node.index for node in culprit.nodes)
        levels = tuple(culprit.levels.items()) if len(part) > 1 else ()  # of a node they tell how it was found
        key = (culprit.kind, culprit.difference, levels, patterns.of_part(part) if part else ())
        groups.setdefault(key, []).append(culprit)
    return tuple(map(join_alike, groups.values()))
