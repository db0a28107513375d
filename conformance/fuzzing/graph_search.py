"""The search for faults of graphs: composed of nodes that the provider computes right alone, run with all
optimisations, made small, and tried at each level."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from epcheck.conformance.fuzzing.baseline import Baseline
from epcheck.conformance.fuzzing.fault import Cause, Fault
from epcheck.conformance.fuzzing.rounds import Rounds, RoundsByLevel
from epcheck.conformance.fuzzing.search import Found
from epcheck.conformance.fuzzing.symptom import Symptom, symptom
from epcheck.conformance.records import terms
from epcheck.conformance.records.record import Record
from epcheck.conformance.targets.target import NO_CLAIMS, Target
from epcheck.generators.claims import Claims
from epcheck.generators.fuzzing import drawing
from epcheck.generators.fuzzing.drawing import Drawn
from epcheck.generators.fuzzing.drawn_case import case_of as node_case
from epcheck.generators.fuzzing.graphs import composing, graph_reduction
from epcheck.generators.fuzzing.graphs.composing import Composer
from epcheck.generators.fuzzing.graphs.graph_case import case_of
from epcheck.generators.fuzzing.graphs.graph_document import encode
from epcheck.generators.graphs.graph_model import as_node
from epcheck.generators.graphs.node_graph import NodeGraph
from epcheck.generators.serialization.node_json import SerializedNode

LEVELS = ("disabled", "basic", "extended", "all")
"""Of graph optimisation, the least first."""

TEMPLATES, ROUND = 2000, 200
"""Nodes of which graphs are composed, and graphs of a round."""

AT_ONCE, SHRINK_S, ALIKE = 12, 60.0, 3
"""Smaller graphs that are tried together; seconds for one fault; failures of one kind that are made small."""

FAILING = frozenset({terms.MISMATCH, terms.REFUSED, terms.CRASH, terms.TIMEOUT, terms.FLAKY, terms.ORDER_DEPENDENT})


def at_level(target: Target, level: str) -> Target:
    """The target as it runs sessions at a level of optimisation. Fused and folded nodes have other names or none, so
    their placement is not proved node by node; a provider other than CPU has fallback to CPU disabled."""
    named = f"{target.name} level={level}"
    return replace(
        target, name=named, request_defaults={"level": level}, provider=None, expectations=(), claim_table=NO_CLAIMS
    )


@dataclass
class FoundGraphs(Found):
    """What a search for faults of graphs found. alone: failures that a single node explains. templates: nodes that the
    provider computes right."""

    alone: Counter[str] = field(default_factory=Counter)
    templates: int = 0


class GraphSearch:
    """The search on one target."""

    def __init__(
        self,
        plain: Rounds,
        levels: RoundsByLevel,
        say: Callable[[str], None],
        claims: Claims | None = None,
        baseline: Baseline | None = None,
    ) -> None:
        """plain: judges single nodes. levels: judges graphs, by the level of optimisation. say, baseline: as in
        `Search`. claims: of the target, as in `Source`."""
        self._baseline = baseline or Baseline(None)
        self._plain, self._levels, self._say, self._claims = plain, levels, say, claims
        self._seen: Counter[tuple[str, str]] = Counter()
        self.found = FoundGraphs()

    def run(
        self,
        names: Sequence[str],
        seed: int,
        seconds: float,
        count: int | None = None,
        examples: Sequence[NodeGraph] = (),
    ) -> FoundGraphs:
        """Replay the examples, then compose graphs of these operators until the time is over. Raises TargetDown."""
        started = time.monotonic()
        until = started + seconds
        try:
            for graph in examples:
                self.found.replayed += 1
                self._judge([graph], until, replayed=True)
            composer = None
            while time.monotonic() < until and (count is None or self.found.judged < count):
                composer = composer or Composer(self._vet_nodes(names, seed), seed)
                wanted = ROUND if count is None else min(ROUND, count - self.found.judged)
                if not self._round(composer, wanted, until):
                    break
        finally:
            self.found.seconds = time.monotonic() - started
        return self.found

    def _vet_nodes(self, names: Sequence[str], seed: int) -> list[Drawn]:
        """Nodes that the provider takes and computes right alone."""
        drawn = composing.templates(seed, TEMPLATES, names, self._claims)
        found = [d for d, record in self._plain.judge_drawn(drawn, node_case) if record.status == terms.PASS]
        self.found.templates = len(found)
        return found

    def _round(self, composer: Composer, wanted: int, until: float) -> int:
        started = time.monotonic()
        judged = self._levels["all"].judge_drawn(islice(_compose_graphs(composer, 20 * wanted), wanted), case_of)
        self.found.judging_s += time.monotonic() - started
        for graph, record in judged:
            self.found.judged += 1
            self.found.statuses[record.status] += 1
            if record.status in FAILING:
                self._take(graph, record, until)
        rate = self.found.judged / max(self.found.judging_s, 1e-9)
        self._say(f"{self.found.judged:,} graphs judged, {rate:,.0f} a second; {len(self.found.faults)} faults")
        return len(judged)

    def _judge(self, graphs: list[NodeGraph], until: float, replayed: bool) -> None:
        for graph, record in self._records(graphs, "all"):
            if record.status in FAILING:
                self._take(graph, record, until, replayed)

    def _records(self, graphs: Sequence[NodeGraph], level: str) -> list[tuple[NodeGraph, Record]]:
        return self._levels[level].judge_drawn(graphs, case_of)

    def _take(self, graph: NodeGraph, record: Record, until: float, replayed: bool = False) -> None:
        """A graph that fails: make it small, and see whether one of its nodes fails alone."""
        looks = symptom(record)
        key = (looks.status, looks.words)
        self._seen[key] += 1
        if self._seen[key] > ALIKE * 4:
            return
        if culprit := self._alone(graph):
            self.found.alone[culprit] += 1
            return
        started = time.monotonic()
        end = started + (SHRINK_S if time.monotonic() < until else SHRINK_S / 4)
        (shared,) = self._baseline.shows([(graph, record)], case_of)
        graph, record, rounds = self._shrunk(graph, record, end, shared)
        if len(graph.steps) == 1 or self._alone(graph):
            self.found.alone[graph.operators[-1]] += 1
            return
        looks = symptom(record)
        cause = Cause(Symptom(graph.shape, looks.status, looks.words), (), (), shared)
        if cause in self.found.faults:
            known = self.found.faults[cause]
            self.found.faults[cause] = replace(known, occurrences=known.occurrences + 1)
            return
        self.found.faults[cause] = Fault(
            cause,
            as_node(graph),
            case_of(graph),
            encode(graph),
            record,
            level=next(level for level in LEVELS if level == "all" or self._fails_at(graph, level)),
            replayed=replayed,
            rounds=rounds,
            seconds=time.monotonic() - started,
        )

    def _fails_at(self, graph: NodeGraph, level: str) -> bool:
        return any(record.status in FAILING for _, record in self._records([graph], level))

    def _alone(self, graph: NodeGraph) -> str:
        """The operator of a node of the graph that is wrong alone, with the values that it reads; empty for none."""
        judged = self._plain.judge_drawn(self._draw_steps(graph), node_case)
        return next((drawn.operator.key for drawn, record in judged if record.status in FAILING), "")

    def _draw_steps(self, graph: NodeGraph) -> Iterator[Drawn]:
        for step in graph.steps:
            dtype = next(o.value.dtype.name for o in step.node.inputs if o is not None)
            drawn = drawing.judge_node(SerializedNode(step.node, (dtype,), "runtime"))
            if isinstance(drawn, Drawn):
                yield drawn

    def _shrunk(self, graph: NodeGraph, record: Record, until: float, shared: bool) -> tuple[NodeGraph, Record, int]:
        """The smallest graph that fails with the same status. shared: as in `Cause`, of the smaller graphs too."""
        rounds, tried = 0, {case_of(graph).id}
        while time.monotonic() < until:
            candidates = (g for g in graph_reduction.smaller(graph) if case_of(g).id not in tried)
            better = None
            while better is None and (batch := list(islice(candidates, AT_ONCE))):
                rounds += 1
                tried |= {case_of(g).id for g in batch}
                failing = [pair for pair in self._records(batch, "all") if pair[1].status == record.status]
                shown = self._baseline.shows(failing, case_of)
                failing = [pair for pair, shows in zip(failing, shown, strict=True) if shows == shared]
                better = min(failing, key=lambda pair: graph_reduction.measure(pair[0]), default=None)
            if better is None:
                break
            graph, record = better
        return graph, record, rounds


def _compose_graphs(composer: Composer, attempts: int) -> Iterator[NodeGraph]:
    """The graphs that so many attempts give."""
    for _ in range(attempts):
        if (graph := composer.compose()) is not None:
            yield graph
