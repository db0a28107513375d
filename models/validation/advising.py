"""Advice in a validation: on nodes that are not on the provider, and on those that it refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import onnx

from epcheck.models.execution.model_outcome import ModelOutcome
from epcheck.models.execution.model_source import LARGE_BYTES
from epcheck.models.execution.session import Level, ModelSessions
from epcheck.models.feeds.trials import Trial
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.subgraph import SubgraphError
from epcheck.models.graph.wiring import wire
from epcheck.models.placement.advise import Subject, advice_on, advise_placement, lone_node
from epcheck.models.placement.graphs import Run
from epcheck.models.placement.placement import Placement
from epcheck.models.validation.runnable import RunnableModel
from epcheck.models.validation.validation import Validation
from epcheck.models.wrong_nodes.culprit import Culprit, Kind


@dataclass(frozen=True)
class Adviser:
    """Tries changes of nodes on a candidate. baseline: says what is right; without it the candidate does. size: of the
    model in bytes; a large one is never in two sessions at once."""

    candidate: ModelSessions
    baseline: ModelSessions | None
    model: RunnableModel
    level: Level
    size: int

    def on_placement(self, placed: Placement, tried: Sequence[Trial], outcomes: Sequence[ModelOutcome]) -> Placement:
        """The placement with advice. tried, outcomes: the trials, and what the candidate made of them."""
        at = next((at for at, outcome in enumerate(outcomes) if outcome.is_done), 0)
        outcome = outcomes[at] if outcomes and outcomes[at].is_done else None
        subject = Subject(self.model.graph, tried[at].inputs, self.level, outcome)
        return advise_placement(placed, subject, self._run(self.candidate), self._run(self.baseline or self.candidate))

    def on_culprits(self, found: Validation) -> Validation:
        """The validation with advice on each node that the candidate refuses."""
        first, *further = found.culprits or (None,)
        return replace(found, culprit=first and self._of(first, found),
                       other_culprits=tuple(self._of(culprit, found) for culprit in further if culprit))  # fmt: skip

    def _of(self, culprit: Culprit, found: Validation) -> Culprit:
        provider = found.provider
        if culprit.kind != Kind.REFUSED or len(culprit.parts[0]) != 1 or provider is None or self.baseline is None:
            return culprit
        node = culprit.nodes[0]
        placed = found.placement.elsewhere if found.placement else ()
        known = next((each.advice for each in placed if each.name == node.name and not each.scope), None)
        if known is not None and known.change:
            return replace(culprit, advice=known)
        try:
            alone = lone_node(wire(self.model.graph), node.index, culprit.received)
        except SubgraphError:
            return culprit
        return replace(culprit, advice=advice_on(alone, provider, self._run(self.candidate), self._run(self.baseline)))

    def _run(self, sessions: ModelSessions) -> Run:
        folder = self.model.data_folder
        other = self.baseline if sessions is self.candidate else self.candidate

        def run(model: onnx.ModelProto, feeds: Mapping[str, Feed], level: Level) -> ModelOutcome:
            if self.size > LARGE_BYTES and other is not None:
                other.end_worker()
            return sessions.run(model, feeds, level=level, folder=folder)

        return run
