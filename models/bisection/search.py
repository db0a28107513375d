"""The state of one bisection: what was asked, what came back, and what that cost."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path

import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.models.accuracy import closeness
from epcheck.models.bisection.culprit import Culprit, Kind, Place, Point, place
from epcheck.models.execution.asking import Answered, Ask
from epcheck.models.execution.session import CREATE, DONE, Level
from epcheck.models.graph import feed
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.subgraph import TAPPED, behind_identities, extract, received, with_outputs
from epcheck.models.graph.wiring import Wiring, wire


@dataclass(frozen=True)
class Limits:
    """When to give up. sessions: of candidate and baseline together. seconds: of all of them. bytes: of intermediate
    values that one session is asked for."""

    sessions: int = 400
    seconds: float = 1800.0
    bytes: int = 1 << 28


@dataclass(frozen=True)
class Heard:
    """An answer whose sequences are in one piece."""

    stage: str
    message: str
    outputs: Mapping[str, Feed]
    repeat_differs: tuple[str, ...]
    during: str = ""


class Spent(Exception):  # noqa: N818  (it is a state of the search)
    """The limits are reached."""


class Unanswered(Exception):  # noqa: N818  (it is a state of the search)
    """A session that was to give values gave none. answer: what came instead."""

    def __init__(self, answer: Answered) -> None:
        super().__init__(answer.message)
        self.answer = answer


class Search:
    """A model, its feeds, and the two that are asked about it.

    seen: values of the whole model as the candidate made them. expected: the same of the baseline.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        feeds: Mapping[str, Feed],
        candidate: Ask,
        baseline: Ask,
        level: Level,
        limits: Limits,
        folder: Path | None,
    ) -> None:
        self.wiring: Wiring = wire(model, feeds)
        self.feeds, self.level, self.limits, self.folder = dict(feeds), level, limits, folder
        self.seen: dict[str, Feed] = dict(feeds)
        self.expected: dict[str, Feed] = dict(feeds)
        self.points: dict[str, Point] = {}
        self.tolerance = 0.0
        self.sessions = [0, 0]
        self._candidate, self._baseline = candidate, baseline
        self._until = time.monotonic() + limits.seconds

    def candidate(self, model: onnx.ModelProto, feeds: Mapping[str, Feed], level: Level | None = None) -> Answered:
        """Ask the candidate, at the level of the search where none is named. Raises Spent.

        A session that is refused because of outputs that the whole model does not have is asked in another way.
        """
        answer = self._ask(0, self._candidate, model, feeds, level or self.level)
        if answer.stage == CREATE and (tapped := behind_identities(self.wiring, model)) is not None:
            again = self._ask(0, self._candidate, tapped, feeds, level or self.level)
            if again.stage == DONE:
                outputs = {name.removeprefix(TAPPED): value for name, value in again.outputs.items()}
                differs = tuple(name.removeprefix(TAPPED) for name in again.repeat_differs)
                return Heard(again.stage, again.message, outputs, differs)
        return answer

    def baseline(self, model: onnx.ModelProto, feeds: Mapping[str, Feed]) -> Answered:
        """Ask the baseline, without graph optimisation: its fusions are not what is looked at. Raises Spent."""
        return self._ask(1, self._baseline, model, feeds, "disabled")

    def whole(self, names: Iterable[str] = (), level: Level | None = None) -> Answered:
        """What the candidate does with the whole model when these values are outputs as well; they are noted."""
        answer = self.candidate(with_outputs(self.wiring, names), self.feeds, level)
        if answer.stage == DONE and level in (None, self.level):
            self.seen.update(answer.outputs)
        return answer

    def prefix(self, cut: int, names: Sequence[str] | None = None) -> Answered:
        """What the candidate does with the nodes before a cut alone; what comes out of them is noted. names: by default
        what the model has as an output or none of these nodes reads, so that they are fused as they were."""
        if names is None:
            read = {name for node in range(cut) for name in self.wiring.reads[node]} - set(self.wiring.outputs)
            names = [name for name in self.wiring.frontier(cut) if name not in read]
        answer = self.candidate(extract(self.wiring, range(cut), {}, names), self.feeds)
        self.seen.update(answer.outputs if answer.stage == DONE else {})
        return answer

    def reach(self, nodes: Sequence[int]) -> None:
        """Note what these nodes receive: of the candidate, as far as the nodes before them run, else of the baseline.
        Raises Unanswered."""
        inside = {name for node in nodes for name in self.wiring.made_by(node)}
        names = {name for node in nodes for name in self.wiring.received_by(node)} - inside
        missing = sorted(names - self.seen.keys())
        if missing and self.prefix(min(nodes), missing).stage != DONE:
            self.seen.update(self.expect(missing))

    def expect(self, names: Iterable[str]) -> dict[str, Feed]:
        """The baseline's values of these names. All that the graph can be asked for come with the first question, as
        far as they are not too large. Raises Unanswered."""
        wanted = list(dict.fromkeys(names))
        missing = [name for name in wanted if name not in self.expected]
        if missing:
            more = [name for name in self.tensors() if name not in self.expected and name not in missing]
            sizes = self.sizes()
            room = self.limits.bytes - sum(sizes.get(name, 0) for name in missing)
            taken = more if sum(sizes.get(name, 0) for name in more) <= room else []
            answer = self.baseline(with_outputs(self.wiring, [*missing, *taken]), self.feeds)
            if answer.stage != DONE:
                raise Unanswered(answer)
            self.expected.update(answer.outputs)
        return {name: self.expected[name] for name in wanted if name in self.expected}

    def look(self, names: Sequence[str], answer: Answered) -> float:
        """The largest distance of these values of an answer from the baseline's; each becomes a point."""
        expected = self.expect(names)
        for name in names:
            got = answer.outputs.get(name)
            error = math.inf if got is None or name not in expected else closeness.distance(expected[name], got)
            self.points[name] = Point(self.wiring.producer.get(name, -1), name, error)
        return max((self.points[name].error for name in names), default=0.0)

    def part(self, nodes: Sequence[int], values: Mapping[str, Feed]) -> tuple[onnx.ModelProto, dict[str, Feed]]:
        """The nodes as a model, and its feeds. Raises SubgraphError."""
        return extract(self.wiring, nodes, values), received(self.wiring, nodes, values)

    def constants(self, nodes: Iterable[int]) -> dict[str, Array]:
        """The constants that these nodes read, as far as they are there."""
        names = {name for node in nodes for name in self.wiring.reads[node] if name in self.wiring.constants}
        found = ((name, self.wiring.constant(name, self.folder)) for name in sorted(names))
        return {name: value for name, value in found if value is not None}

    def tensors(self) -> list[str]:
        """Every value that a session can be asked for: what nodes other than constants make, as far as it is a
        tensor."""
        return [
            name
            for name in self.wiring.producer
            if name not in self.wiring.constants
            and name in self.wiring.last_read
            and self.wiring.can_be_asked_for(name)
        ]

    def sizes(self) -> dict[str, int]:
        """Bytes of each value; of one whose shape is not known, as many as of the largest feed."""
        fed = [value for value in self.feeds.values() if isinstance(value, np.ndarray)]
        unknown = max((value.nbytes for value in fed), default=0)
        known = self.wiring.sizes(feed.shapes(self.feeds))
        return {name: unknown if known.get(name) is None else known[name] or 0 for name in self.tensors()}

    def places(self, nodes: Iterable[int]) -> tuple[Place, ...]:
        """The nodes as they are named, without constants."""
        return tuple(place(self.wiring.model, node) for node in nodes if not self.is_constant(node))

    def is_constant(self, node: int) -> bool:
        """Whether the node is a `Constant`."""
        return bool(self.wiring.model.graph.node[node].op_type == "Constant")

    def found(self, kind: Kind, nodes: Iterable[int], words: str, **more: object) -> Culprit:
        """The result, with what the search has gathered."""
        points = tuple(sorted(self.points.values(), key=lambda point: (point.node, point.value)))
        return Culprit(
            kind, self.places(nodes), words, points=points, tolerance=self.tolerance,
            sessions=(self.sessions[0], self.sessions[1]), **more,  # type: ignore[arg-type]
        )  # fmt: skip

    def _ask(self, who: int, ask: Ask, model: onnx.ModelProto, feeds: Mapping[str, Feed], level: Level) -> Answered:
        if sum(self.sessions) >= self.limits.sessions or time.monotonic() > self._until:
            raise Spent
        self.sessions[who] += 1
        return self._gathered(ask(model, feeds, level=level), [output.name for output in model.graph.output])

    def _gathered(self, answer: Answered, names: Sequence[str]) -> Answered:
        """The answer with each sequence `s` in one piece, where its tensors came as `s[0]`, `s[1]`, ..."""
        sequences = [name for name in names if self.wiring.is_sequence(name) and name not in answer.outputs]
        if answer.stage != DONE or not sequences:
            return answer
        outputs = dict(answer.outputs)
        for name in sequences:
            parts = takewhile(outputs.__contains__, (f"{name}[{index}]" for index in count()))
            outputs[name] = [np.asarray(outputs[part]) for part in parts]
        differs = {re.sub(r"\[\d+\]$", "", name) if name not in names else name for name in answer.repeat_differs}
        return Heard(answer.stage, answer.message, outputs, tuple(sorted(differs)))
