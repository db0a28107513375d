"""Judge the nodes of a model that runs, each alone, in the trial whose values are known best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

from epcheck.models.execution.model_outcome import DONE, RUN, ModelOutcome
from epcheck.models.execution.model_source import LARGE_BYTES
from epcheck.models.execution.runner import Runner, RunResult, make_runner, make_runners
from epcheck.models.execution.session import Level, ModelSessions
from epcheck.models.feeds.trials import Trial
from epcheck.models.graph.feed import Feed
from epcheck.models.oracle import oracle
from epcheck.models.oracle.node import OracleError
from epcheck.models.validation.runnable import RunnableModel
from epcheck.models.validation.truth import ORACLE_S, Truth
from epcheck.models.wrong_nodes.judged_nodes import JudgedNodes, judge_nodes, leave_unjudged
from epcheck.models.wrong_nodes.node_check import IsolatedNode
from epcheck.models.wrong_nodes.options import Limits, SearchOptions
from epcheck.models.wrong_nodes.search import GatheredOutcome

SESSIONS, SECONDS = 60, 60.0
"""Sessions of both targets together, and seconds for each LARGE_BYTES of the model, at least one of these, after which
no further one is begun."""


@dataclass(frozen=True)
class TrialNodes:
    """The nodes as they were judged in a trial. at: its index. truth: as `SearchOptions` has it."""

    judged: JudgedNodes = field(default_factory=lambda: leave_unjudged("it was left out"))
    at: int = -1
    truth: Mapping[str, Feed] = field(default_factory=dict, repr=False)

    def known_in(self, trial: int) -> tuple[Mapping[str, Feed], tuple[IsolatedNode, ...] | None]:
        """What the search in a trial need not find out again: the truth, and the nodes that are wrong alone. Another
        trial may find more than none."""
        if trial == self.at:
            return self.truth, self.judged.wrong
        return {}, self.judged.wrong or None


def judge_trial_nodes(
    model: RunnableModel,
    size: int,
    level: Level,
    tried: Sequence[Trial],
    ran: tuple[Sequence[ModelOutcome], Sequence[ModelOutcome]],
    known: Truth,
    sessions: tuple[ModelSessions, ModelSessions | None],
    seconds: float,
) -> TrialNodes:
    """Judge the nodes on the values of the first trial whose truth is known, else of the first that both targets ran.
    Without a baseline the oracle's values, rounded once, take the place of its own.

    size: of the model in bytes. ran: outcomes of candidate and baseline. sessions: of both. seconds: at most, and never
    more than by SECONDS.
    """
    candidate, baseline = sessions
    pairs = enumerate(zip(*ran, strict=False))
    at = next((at for at, (mine, its) in pairs if mine.is_done and its.is_done), None)
    if known.inner:
        at = known.inner_trial
    if at is None:
        return TrialNodes(leave_unjudged("no trial has values to judge them by"))
    if baseline is None:
        ask = make_runner(candidate, model.data_folder, once=True), _ask_oracle(known.inner, model.data_folder)
    else:
        ask = make_runners(candidate, baseline, model.data_folder, size, once=True)
    limits = Limits(SESSIONS, min(seconds, SECONDS * max(1.0, size / LARGE_BYTES)))
    options = SearchOptions(level=level, limits=limits, folder=model.data_folder, truth=known.inner)
    return TrialNodes(judge_nodes(model.graph, tried[at].inputs, *ask, options), at, known.inner)


def _ask_oracle(known: Mapping[str, Feed], folder: Path | None) -> Runner:
    """The oracle as a target: its values, rounded to the types of those that are known by the same names. folder: where
    the model's external data is; None where it has none."""

    def ask(model: onnx.ModelProto, feeds: Mapping[str, Feed], *, level: Level = "all") -> RunResult:  # noqa: ARG001
        try:
            found = oracle.evaluate(model, feeds, max_seconds=ORACLE_S, substitutes={}, folder=folder).values
        except OracleError as error:
            return GatheredOutcome(RUN, str(error), {}, ())
        with np.errstate(over="ignore"):
            outputs = {
                name: value.astype(like.dtype)
                for name, value in found.items()
                if isinstance(value, np.ndarray) and isinstance(like := known.get(name), np.ndarray)
            }
        return GatheredOutcome(DONE, "", outputs, ())

    return ask
