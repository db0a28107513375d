"""The state of one search: its sessions, the values that they returned, and how many there were."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, takewhile

import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.models.accuracy import closeness
from epcheck.models.execution.model_outcome import CREATE, DONE
from epcheck.models.execution.runner import Runner, RunResult
from epcheck.models.execution.session import Level
from epcheck.models.graph import feed
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.subgraph import IDENTITY_OF, behind_identities, extract, select_feeds, with_outputs
from epcheck.models.graph.wiring import Wiring, wire
from epcheck.models.wrong_nodes.culprit import Culprit, ErrorPoint, GraphNode, Kind, graph_node
from epcheck.models.wrong_nodes.options import SearchOptions


@dataclass(frozen=True)
class GatheredOutcome:
    """A model outcome in which every sequence is one output."""

    stage: str
    message: str
    outputs: Mapping[str, Feed]
    repeat_differs: tuple[str, ...]
    during: str = ""


class LimitsReached(Exception):  # noqa: N818  (it is a state of the search)
    """The limits of the search are reached."""


class SessionFailed(Exception):  # noqa: N818  (it is a state of the search)
    """A session whose values are needed has none. outcome: how it failed."""

    def __init__(self, outcome: RunResult) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


class Search:
    """One model, its feeds, and the two targets that run it.

    candidate_values: values of the whole model as the candidate computed them. expected: as the baseline did. points:
    value -> its error, of those that were compared. tolerance: the `closeness.distance` up to which a value is right.
    sessions: numbers of sessions, of candidate and baseline.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        feeds: Mapping[str, Feed],
        candidate: Runner,
        baseline: Runner,
        options: SearchOptions,
    ) -> None:
        self.wiring: Wiring = wire(model, feeds, options.folder)
        self.feeds, self.options = dict(feeds), options
        self.candidate_values: dict[str, Feed] = dict(feeds)
        self.expected: dict[str, Feed] = dict(feeds)
        self.points: dict[str, ErrorPoint] = {}
        self.tolerance = 0.0
        self.sessions = [0, 0]
        self._candidate, self._baseline = candidate, baseline
        self._until = time.monotonic() + options.limits.seconds
        self._numbers: Mapping[int, int] = {}

    def without(self, nodes: Collection[int]) -> Search | None:
        """A search of the rest of the model, in which the baseline's values replace those of these nodes. It reports
        nodes by their indices here, and the limits are those of both. Its outputs are the model's, and what these nodes
        received. None where there are none.

        Raises SessionFailed, SubgraphError.
        """
        rest = [node for node in range(self.wiring.nodes) if node not in nodes and not self.is_constant(node)]
        made = {name for node in rest for name in self.wiring.list_outputs(node)}
        ends = [
            *self.wiring.outputs,
            *(name for node in sorted(nodes) for name in self.wiring.list_received_values(node)),
        ]
        outputs = [name for name in dict.fromkeys(ends) if name in made and self.wiring.can_be_output(name)]
        if not outputs:
            return None
        self.expect(name for node in rest for name in self.wiring.list_received_values(node) if name not in made)
        model = extract(self.wiring, rest, self.expected, outputs)
        options = replace(self.options, wrong_alone=None if self.options.wrong_alone is None else ())
        found = Search(model, select_feeds(self.wiring, rest, self.expected), self._candidate, self._baseline, options)
        found.expected.update(self.expected)
        found.sessions, found._until = self.sessions, self._until
        places = ((at, next(filter(None, node.output), "")) for at, node in enumerate(model.graph.node))
        found._numbers = {at: self._numbers.get(old, old) for at, name in places
                          if (old := self.wiring.producer.get(name, -1)) >= 0}  # fmt: skip
        return found

    def of_body(self, model: onnx.ModelProto, feeds: Mapping[str, Feed]) -> Search:
        """A search of a body of one of the nodes, as a model of its own; the limits are those of both."""
        options = replace(self.options, thresholds=None, truth={}, wrong_alone=None)
        found = Search(model, feeds, self._candidate, self._baseline, options)
        found.sessions, found._until = self.sessions, self._until
        return found

    def candidate(self, model: onnx.ModelProto, feeds: Mapping[str, Feed], level: Level | None = None) -> RunResult:
        """Run a model on the candidate. level: by default that of the options. Raises LimitsReached.

        Where the session is refused and the model has outputs that the whole model does not have, they are placed
        behind Identity nodes for a second attempt.
        """
        level = level or self.options.level
        outcome = self._ask(0, self._candidate, model, feeds, level)
        if outcome.stage == CREATE and (changed := behind_identities(self.wiring, model)) is not None:
            second = self._ask(0, self._candidate, changed, feeds, level)
            if second.stage == DONE:
                outputs = {name.removeprefix(IDENTITY_OF): value for name, value in second.outputs.items()}
                differs = tuple(name.removeprefix(IDENTITY_OF) for name in second.repeat_differs)
                return GatheredOutcome(second.stage, second.message, outputs, differs)
        return outcome

    def baseline(self, model: onnx.ModelProto, feeds: Mapping[str, Feed]) -> RunResult:
        """Run a model on the baseline, without graph optimisation: its own fusions are not tested. Raises
        LimitsReached."""
        return self._ask(1, self._baseline, model, feeds, "disabled")

    def run_whole(self, names: Iterable[str] = (), level: Level | None = None) -> RunResult:
        """Run the whole model, with these values as further outputs, on the candidate. Its values are kept."""
        outcome = self.candidate(with_outputs(self.wiring, names), self.feeds, level)
        if outcome.stage == DONE and level in (None, self.options.level):
            self.candidate_values.update(outcome.outputs)
        return outcome

    def run_prefix(self, cut: int, names: Sequence[str] | None = None) -> RunResult:
        """Run the nodes before a cut on the candidate. Their outputs are kept.

        names: the outputs; by default those of the whole model and the values that none of these nodes reads, so that
        the nodes are fused as in the whole model.
        """
        if names is None:
            read = {name for node in range(cut) for name in self.wiring.reads[node]} - set(self.wiring.outputs)
            names = [name for name in self.wiring.frontier(cut) if name not in read]
        outcome = self.candidate(extract(self.wiring, range(cut), {}, names), self.feeds)
        self.candidate_values.update(outcome.outputs if outcome.stage == DONE else {})
        return outcome

    def note_received(self, nodes: Sequence[int]) -> None:
        """Keep the values that these nodes receive: the candidate's where the nodes before them run, else the
        baseline's. Raises SessionFailed."""
        inside = {name for node in nodes for name in self.wiring.list_outputs(node)}
        names = {name for node in nodes for name in self.wiring.list_received_values(node)} - inside
        missing = sorted(names - self.candidate_values.keys())
        if missing and self.run_prefix(min(nodes), missing).stage != DONE:
            self.candidate_values.update(self.expect(missing))

    def expect(self, names: Iterable[str]) -> dict[str, Feed]:
        """The baseline's values of these names. The first call returns all possible outputs from one session, if they
        are not too large together. Raises SessionFailed."""
        wanted = list(dict.fromkeys(names))
        missing = [name for name in wanted if name not in self.expected]
        if missing:
            more = [name for name in self.possible_outputs() if name not in self.expected and name not in missing]
            sizes = self.sizes()
            room = self.options.limits.bytes - sum(sizes.get(name, 0) for name in missing)
            taken = more if sum(sizes.get(name, 0) for name in more) <= room else []
            outcome = self.baseline(with_outputs(self.wiring, [*missing, *taken]), self.feeds)
            if outcome.stage != DONE:
                raise SessionFailed(outcome)
            self.expected.update(outcome.outputs)
        return {name: self.expected[name] for name in wanted if name in self.expected}

    def compare(self, names: Sequence[str], outcome: RunResult) -> float:
        """The largest distance of these outputs from the baseline's. Each becomes a point."""
        expected = self.expect(names)
        for name in names:
            got = outcome.outputs.get(name)
            error = math.inf if got is None or name not in expected else closeness.distance(expected[name], got)
            node = self.wiring.producer.get(name, -1)
            self.points[name] = ErrorPoint(self._numbers.get(node, node), name, error)
        return max((self.points[name].error for name in names), default=0.0)

    def part(self, nodes: Sequence[int], values: Mapping[str, Feed]) -> tuple[onnx.ModelProto, dict[str, Feed]]:
        """These nodes as a model, and its feeds, taken from `values`. Raises SubgraphError."""
        return extract(self.wiring, nodes, values), select_feeds(self.wiring, nodes, values)

    def constants(self, nodes: Iterable[int]) -> dict[str, Array]:
        """The constants that these nodes read, as far as their values can be loaded."""
        names = {name for node in nodes for name in self.wiring.reads[node] if name in self.wiring.constants}
        found = ((name, self.wiring.constant(name)) for name in sorted(names))
        return {name: value for name, value in found if value is not None}

    def possible_outputs(self) -> list[str]:
        """Every value that a session can return: what nodes other than constants make, where the type allows it."""
        return [
            name
            for name in self.wiring.producer
            if name not in self.wiring.constants and name in self.wiring.last_read and self.wiring.can_be_output(name)
        ]

    def sizes(self) -> dict[str, int]:
        """Bytes of each possible output; of one whose shape is not known, those of the largest feed."""
        fed = [value for value in self.feeds.values() if isinstance(value, np.ndarray)]
        unknown = max((value.nbytes for value in fed), default=0)
        known = self.wiring.sizes(feed.shapes(self.feeds))
        return {name: unknown if known.get(name) is None else known[name] or 0 for name in self.possible_outputs()}

    def graph_nodes(self, nodes: Iterable[int]) -> tuple[GraphNode, ...]:
        """What is reported of these nodes; constants are left out."""
        found = (graph_node(self.wiring.model, node) for node in nodes if not self.is_constant(node))
        return tuple(replace(node, index=self._numbers.get(node.index, node.index)) for node in found)

    def named(self, nodes: Iterable[int]) -> str:
        """These nodes in a sentence."""
        return ", ".join(map(str, self.graph_nodes(nodes)))

    def is_constant(self, node: int) -> bool:
        """Whether the node is a `Constant`."""
        return bool(self.wiring.model.graph.node[node].op_type == "Constant")

    def culprit(self, kind: Kind, nodes: Iterable[int], words: str, **more: object) -> Culprit:
        """The result, with the points, the tolerance and the number of sessions of this search."""
        points = tuple(sorted(self.points.values(), key=lambda point: (point.node, point.value)))
        return Culprit(
            kind, self.graph_nodes(nodes), words, points=points, tolerance=self.tolerance,
            sessions=(self.sessions[0], self.sessions[1]), **more,  # type: ignore[arg-type]
        )  # fmt: skip

    def _ask(self, who: int, ask: Runner, model: onnx.ModelProto, feeds: Mapping[str, Feed], level: Level) -> RunResult:
        if sum(self.sessions) >= self.options.limits.sessions or time.monotonic() > self._until:
            raise LimitsReached
        self.sessions[who] += 1
        return self._gather_sequences(ask(model, feeds, level=level), [output.name for output in model.graph.output])

    def _gather_sequences(self, outcome: RunResult, names: Sequence[str]) -> RunResult:
        """The outcome with each sequence `s` as one output, whose tensors come as `s[0]`, `s[1]`, ..."""
        sequences = [name for name in names if self.wiring.is_sequence(name) and name not in outcome.outputs]
        if outcome.stage != DONE or not sequences:
            return outcome
        outputs = dict(outcome.outputs)
        for name in sequences:
            parts = takewhile(outputs.__contains__, (f"{name}[{index}]" for index in count()))
            outputs[name] = [np.asarray(outputs[part]) for part in parts]
        differs = {re.sub(r"\[\d+\]$", "", name) if name not in names else name for name in outcome.repeat_differs}
        return GatheredOutcome(outcome.stage, outcome.message, outputs, tuple(sorted(differs)))
