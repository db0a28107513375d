"""Judge the outputs of a candidate in every trial, beside the truth, the baseline, and what the user's files expect."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial

import onnx

from epcheck.conformance.test_data import model_file
from epcheck.generators.array import Array
from epcheck.models.accuracy import verdict
from epcheck.models.accuracy.thresholds import Override, Threshold, ThresholdSource, of_outputs
from epcheck.models.accuracy.verdict import Verdict
from epcheck.models.execution.model_outcome import ModelOutcome
from epcheck.models.execution.session import ModelSessions
from epcheck.models.feeds.trials import Trial
from epcheck.models.graph import values
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.subgraph import with_outputs
from epcheck.models.graph.wiring import wire
from epcheck.models.inspection.inspect import Inspection
from epcheck.models.validation import truth
from epcheck.models.validation.runnable import RunnableModel, has_external_data
from epcheck.models.validation.truth import Truth
from epcheck.models.wrong_nodes.node_check import is_random

Outputs = Mapping[str, Feed]

Asked = tuple[str, Mapping[str, Array], Mapping[str, Array] | None, Outputs | None, Mapping[str, Threshold]]
"""The arguments of `verdict.judge` that a comparison begins with."""


def judge_outputs(asked: Asked, evaluate: Callable[[bool], Iterator[Outputs]]) -> list[Verdict]:
    """The verdicts on outputs. Where one is not right, or far off by a coarse threshold, the model's sensitivity or
    noise is measured. evaluate: the oracle's outputs with random rounding, each when it is asked for; True: each node
    rounds once."""
    judged = list(verdict.judge(*asked))
    noisy = list(evaluate(True)) if any(each.is_far_off for each in judged) else []
    if noisy:
        judged = list(verdict.judge(*asked, noisy=noisy))
    if any(not each.right and each.against == verdict.ORACLE and _can_be_extended(each) for each in judged):
        rounded: list[Outputs] = []
        for outputs in evaluate(False):
            rounded.append(outputs)
            judged = list(verdict.judge(*asked, rounded, noisy))
            if all(each.right for each in judged):
                break  # further runs can but extend the thresholds further
    return judged


def _can_be_extended(judged: Verdict) -> bool:
    """Whether the sensitivity of the model may extend the threshold of an output: the noise of the model is its own."""
    return judged.metrics is not None and judged.threshold.source is not ThresholdSource.NOISE


class OutputJudge:
    """Judges the outputs of one model. whole: the model as an oracle needs it, its small weights in it."""

    def __init__(self, model: RunnableModel, tried: Sequence[Trial], override: Override) -> None:
        """tried: the trials, whose list may grow."""
        self.whole = model.graph
        self._model, self._trials, self._override = model, tried, override
        self._chance: set[str] = set()

    @property
    def random(self) -> tuple[str, ...]:
        """Outputs that differ, and depend on random numbers."""
        return tuple(sorted(self._chance))

    def find_truth(
        self, inspection: Inspection, outcomes: Sequence[ModelOutcome], baseline: ModelSessions | None
    ) -> Truth:
        """The truth of the trials that the candidate ran."""
        if not any(outcome.is_done for outcome in outcomes):
            return truth.make_unknown_truth(
                len(outcomes), "the model has no outputs on the candidate, so that none were computed"
            )
        if has_external_data(self.whole):
            self.whole = onnx.ModelProto()
            self.whole.CopyFrom(self._model.graph)
            try:
                model_file.embed_data(self.whole, inspection.path, model_file.MAPPED_BYTES)
            except model_file.ModelFileError as error:
                return truth.make_unknown_truth(len(outcomes), f"no oracle for this model: {error}")
        done = {at: self._trials[at] for at, outcome in enumerate(outcomes) if outcome.is_done}

        def ask(trial: Trial, names: Sequence[str]) -> Mapping[str, Feed]:
            assert baseline is not None
            model = with_outputs(wire(self._model.graph, trial.inputs), names)
            outcome = baseline.run(model, trial.inputs, level="disabled", folder=self._model.data_folder, once=True)
            return {name: value for name, value in outcome.outputs.items() if name in names}

        return truth.of_trials(self.whole, done, len(outcomes), ask if baseline else None, self._model.data_folder)

    def judge(
        self, outcomes: Sequence[ModelOutcome], expected: Sequence[ModelOutcome], known: Truth
    ) -> tuple[Verdict, ...]:
        """expected: of the baseline, fewer where it failed, none without one. Where a trial is not right, or far off by
        a coarse threshold, the model's sensitivity or noise is measured, and the trial judged again."""
        found: list[Verdict] = []
        seconds = truth.ORACLE_S
        for at, candidate in enumerate(outcomes):
            if not candidate.is_done:
                continue
            trial, substitutes = self._trials[at], known.substitutes[at] if known.substitutes else {}
            baseline = expected[at].outputs if at < len(expected) and expected[at].is_done else None
            asked = trial.name, candidate.outputs, baseline, known.values[at], self.thresholds
            started = time.monotonic()
            judged = judge_outputs(asked, partial(self.evaluate_with_rounding, trial, substitutes, seconds))
            seconds -= time.monotonic() - started
            if trial.expected:
                known_values = baseline, known.values[at]
                judged += self._compare_expected(trial, candidate.outputs, known_values, substitutes, seconds)
            found += (each for each in judged if each.right or not self._differs_by_chance(each.output))
        return tuple(found)

    def evaluate_with_rounding(
        self, trial: Trial, substitutes: Mapping[str, Feed], seconds: float, once: bool = False
    ) -> Iterator[Mapping[str, Feed]]:
        """As `truth.evaluate_with_rounding`, of this model."""
        return truth.evaluate_with_rounding(self.whole, trial, substitutes, seconds, once, self._model.data_folder)

    def _compare_expected(
        self,
        trial: Trial,
        outputs: Mapping[str, Array],
        known: tuple[Mapping[str, Array] | None, Mapping[str, Feed] | None],
        substitutes: Mapping[str, Feed],
        seconds: float,
    ) -> list[Verdict]:
        """The outputs of the candidate beside those that the user's files expect. known: of baseline and oracle."""
        renamed = {self._model.cast.get(name, name): value for name, value in trial.expected.items()}
        asked = trial.name, outputs, dict(truth.tensors_by_name(renamed)), known, self.thresholds
        judged = list(verdict.judge_expected(*asked))
        if any(each.is_far_off for each in judged):
            noisy = list(self.evaluate_with_rounding(trial, substitutes, seconds, once=True))
            judged = list(verdict.judge_expected(*asked, noisy))
        return judged

    def find_changed_outputs(self, outcome: ModelOutcome) -> tuple[str, ...]:
        """The outputs that a second run changed, but for those that depend on random numbers."""
        return tuple(name for name in outcome.repeat_differs if not self._differs_by_chance(name))

    def _differs_by_chance(self, output: str) -> bool:
        """Whether an output that differs depends on random numbers: then nothing is wrong, and it is kept in mind."""
        if output in self._may_differ:
            self._chance.add(output)
        return output in self._may_differ

    @cached_property
    def _may_differ(self) -> frozenset[str]:
        """The outputs that depend on random numbers."""
        wiring = wire(self._model.graph)
        reached: set[str] = set()
        for at in range(wiring.nodes):
            if not reached.isdisjoint(wiring.reads[at]) or is_random(wiring, at):
                reached.update(wiring.list_outputs(at))
        return frozenset(reached.intersection(wiring.outputs))

    @cached_property
    def thresholds(self) -> dict[str, Threshold]:
        """Output -> its threshold."""
        inferred = values.infer_types(self._model.graph, self._trials[0].shapes)
        return {name: self._override.apply(bound) for name, bound in of_outputs(inferred).items()}
