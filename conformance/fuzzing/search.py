"""The search for faults: examples are replayed, then nodes are drawn and judged in rounds, and what fails is made
small and told apart by its cause."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from epcheck.conformance.fuzzing import shrinking
from epcheck.conformance.fuzzing.baseline import Baseline
from epcheck.conformance.fuzzing.fault import Cause, Fault, cause_of, of_node
from epcheck.conformance.fuzzing.rounds import Rounds
from epcheck.conformance.fuzzing.shrinking import Failing
from epcheck.conformance.fuzzing.symptom import Symptom, resembling, symptom
from epcheck.conformance.records import terms
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.terms import FAILURE
from epcheck.conformance.targets.expectation import Expectation
from epcheck.conformance.targets.target import Target
from epcheck.generators.fuzzing import drawing
from epcheck.generators.fuzzing.drawing import Drawn, Source, Tally
from epcheck.generators.fuzzing.drawn_case import case_of
from epcheck.generators.fuzzing.history import SearchHistory
from epcheck.generators.operator import Operator
from epcheck.generators.serialization.node_json import SerializedNode

FIRST_ROUND, LARGEST_ROUND = 100, 1000
"""Nodes of the first round, and of later ones at most."""

ROUND_S = 2.0
"""How long a round should take, in seconds."""

ALIKE = 3
"""Failures with one symptom that are made small: one symptom may have several causes."""

SHRINK_S = 60.0
"""Seconds that making one fault small may take."""

NO_FAULTS = frozenset({terms.SKIPPED, terms.UNPLACED})
"""Statuses that are no faults here: no model could be made; the provider leaves the node to others, of which `epcheck
probe` and `epcheck coverage` tell."""


@dataclass
class Found:
    """What a search has found so far.

    judged: nodes that ran. statuses: how many have each. drawn: what became of the draws. seconds: how long it took;
    judging_s: of which nodes were drawn and judged, before anything was made small. open_examples: examples that the
    oracle cannot judge any more.
    """

    faults: dict[Cause, Fault] = field(default_factory=dict)
    judged: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    tally: Tally = field(default_factory=Tally)
    seconds: float = 0.0
    judging_s: float = 0.0
    replayed: int = 0
    open_examples: int = 0

    @property
    def ran(self) -> int:
        """The nodes that ran on the target: all but those that it did not take and those without a model."""
        return self.judged - self.statuses[terms.UNPLACED] - self.statuses[terms.SKIPPED]


@dataclass(frozen=True)
class Limits:
    """seconds: how long to search. count: nodes to judge at most; None for as many as there is time for."""

    seconds: float
    count: int | None = None


class Search:
    """The search on one target, in rounds."""

    def __init__(
        self,
        rounds: Rounds,
        target: Target,
        say: Callable[[str], None],
        baseline: Baseline | None = None,
        history: SearchHistory | None = None,
    ) -> None:
        """target: with the expectations and claims that apply on this machine. say: takes how far it is, in words.
        baseline: is asked about failures. history: of earlier searches, to which this one is added."""
        self._rounds = rounds
        self._baseline = baseline or Baseline(None)
        self._history = history
        self._expectations = target.expectations
        self._claims = target.claims
        self._say = say
        self._seen: Counter[tuple[Symptom, bool]] = Counter()
        self._small: dict[tuple[Symptom, bool], Cause] = {}
        self.found = Found()

    def run(
        self, operators: Sequence[Operator[Any]], seed: int, limits: Limits, examples: Sequence[SerializedNode]
    ) -> Found:
        """Replay the examples of these operators, then draw until the limits are reached. Raises TargetDown; what was
        found until then is in `found`."""
        started = time.monotonic()
        until = started + limits.seconds
        source = Source(operators, seed, claims=self._claims, history=self._history)
        self.found.tally = source.tally
        try:
            self._replay(operators, examples, until)
            size = FIRST_ROUND
            while time.monotonic() < until:
                left = size if limits.count is None else min(size, limits.count - self.found.judged)
                if left <= 0 or not (taken := self._round(source, left, until)):
                    break
                size = max(FIRST_ROUND, min(LARGEST_ROUND, int(left * ROUND_S / max(taken, 0.01))))
        finally:
            self.found.seconds = time.monotonic() - started
        return self.found

    def _replay(self, operators: Sequence[Operator[Any]], examples: Sequence[SerializedNode], until: float) -> None:
        keys = {operator.key for operator in operators}
        for written in examples:
            drawn = drawing.judge_node(written)
            if not isinstance(drawn, Drawn):
                self.found.open_examples += 1
            elif drawn.operator.key in keys:
                self.found.replayed += 1
                self._take_failures(self._rounds.judge_drawn([drawn], case_of), until, replayed=True)

    def _round(self, source: Source, count: int, until: float) -> float:
        """One round of drawn nodes; the seconds that drawing and judging them took, 0 where nothing is drawn."""
        started = time.monotonic()
        judged = self._rounds.judge_drawn(source.draw_each(count), case_of)
        if not judged:
            return 0.0
        taken = time.monotonic() - started
        self.found.judging_s += taken
        for node, record in judged:
            self.found.judged += 1
            self.found.statuses[record.status] += 1
            if record.status == terms.UNPLACED and record.reading != FAILURE:
                source.note_untaken(node)
            elif record.status == terms.PASS:
                source.note_taken(node)
                if self._history is not None:
                    self._history.add(node.node, node.binding)
            elif record.status in (terms.CRASH, terms.TIMEOUT):
                source.note_costly(node)
        self._take_failures(judged, until)
        faults = sum(fault.is_new for fault in self.found.faults.values())
        rate = self.found.judged / self.found.judging_s
        self._say(f"{self.found.judged:,} nodes judged, {rate:,.0f} a second; {faults} faults")
        return taken

    def _take_failures(self, judged: Sequence[tuple[Drawn, Record]], until: float, replayed: bool = False) -> None:
        """Count each failure to its cause. The baseline is asked about those that resemble no recorded deviation."""
        unknown = []
        for drawn, record in judged:
            if _fails(record):
                if similar := resembling(record, self._expectations):
                    self._take_known(drawn, record, similar, replayed)
                else:
                    unknown.append((drawn, record))
        for (drawn, record), shared in zip(unknown, self._baseline.shows(unknown, case_of), strict=True):
            self._take(drawn, record, until, replayed, shared)

    def _take_known(self, drawn: Drawn, record: Record, similar: Expectation, replayed: bool) -> None:
        """A failure that resembles a recorded deviation stays as large as it is: there are many of them, and they are
        understood."""
        cause = Cause(symptom(record), (), ())
        if cause in self.found.faults:
            self._count(cause)
        else:
            words = f"{similar.case}: {similar.reason}"
            self.found.faults[cause] = replace(of_node(cause, drawn, record), known=words, replayed=replayed)

    def _take(self, drawn: Drawn, record: Record, until: float, replayed: bool, shared: bool) -> None:
        """Another failure: make it small, unless enough that look like it were, and count it to its cause. shared: the
        baseline fails in the same way; the smaller nodes have to be alike in that, too."""
        looks = (symptom(record), shared)
        self._seen[looks] += 1
        refused = record.status in (terms.REFUSED, terms.UNPLACED)
        if looks in self._small and (refused or self._seen[looks] > ALIKE):
            self._count(self._small[looks])
            return

        def keep(failing: Failing) -> Failing:
            shown = self._baseline.shows(failing, case_of)
            return [pair for pair, shows in zip(failing, shown, strict=True) if shows == shared]

        started = time.monotonic()
        end = started + SHRINK_S if replayed else _end(until)
        shrunk = shrinking.shrink(self._rounds, drawn, record, end, keep)
        cause = cause_of(shrunk.drawn, shrunk.record, shared)
        self._small.setdefault(looks, cause)
        if cause in self.found.faults:
            self._count(cause)
            return
        self.found.faults[cause] = replace(
            of_node(cause, shrunk.drawn, shrunk.record),
            replayed=replayed,
            rounds=shrunk.rounds,
            seconds=time.monotonic() - started,
        )

    def _count(self, cause: Cause) -> None:
        fault = self.found.faults[cause]
        self.found.faults[cause] = replace(fault, occurrences=fault.occurrences + 1)


def _fails(record: Record) -> bool:
    return record.reading == FAILURE and record.status not in NO_FAULTS


def _end(until: float) -> float:
    """A fault is made small also when the time is over: up to SHRINK_S after its start."""
    now = time.monotonic()
    return now + (SHRINK_S if now < until else SHRINK_S / 4)
