"""Does a model run on a provider, where does each node run, and are its outputs right.

validation = validate(Path("model.onnx"), ValidateOptions(target="dml"))
validation.status                     # "right", "wrong", "fails", "refused"
validation.placement.elsewhere        # nodes that are not on the provider, and why
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from epcheck.conformance.targets.target import Target
from epcheck.conformance.test_data import model_file
from epcheck.models.accuracy import thresholds, verdict
from epcheck.models.accuracy.verdict import Verdict
from epcheck.models.execution.asking import askers
from epcheck.models.execution.evaluators import LARGE_BYTES, Evaluators, choose
from epcheck.models.execution.model_outcome import CREATE, ModelOutcome
from epcheck.models.execution.session import Level, ModelSessions
from epcheck.models.feeds.trials import Trial, trials
from epcheck.models.graph import values
from epcheck.models.graph.feed import Feed
from epcheck.models.inspection import inspect
from epcheck.models.inspection.inspect import Inspection
from epcheck.models.oracle import oracle
from epcheck.models.oracle.node import OracleError
from epcheck.models.placement import placement
from epcheck.models.placement.placement import Placement
from epcheck.models.validation.options import ValidateOptions
from epcheck.models.validation.runnable import RunnableModel, has_external_data, runnable
from epcheck.models.validation.validation import RIGHT, Step, Validation
from epcheck.models.wrong_nodes.culprit import Culprit
from epcheck.models.wrong_nodes.first_wrong_node import first_wrong_node
from epcheck.models.wrong_nodes.options import SearchOptions

ORACLE_OPERATIONS = 200_000_000
"""Multiplications and additions of the largest model that the oracle is asked about; it takes seconds for so many."""


def validate(
    model: Path, options: ValidateOptions | None = None, report: Callable[[str], None] = lambda _phase: None
) -> Validation:
    """Inspect a model, run it on two targets, place its nodes, judge its outputs, and find the node at fault.

    model: an ONNX file; its external data lies beside it. report: called with the name of each phase as it begins.

    Raises ModelFileError, FeedError and DimsError for files and options that cannot be used, TargetError for a target
    that does not exist, and TargetDown for one that cannot be started.
    """
    options = options or ValidateOptions()
    evaluators = choose(options.target, options.baseline, options.vulkan)
    path = model.absolute()
    proto = model_file.parse(path)
    phases = _Phases(report)
    with phases.timed("looking at the file"):
        inspection = inspect.inspect(path, proto)
        subject = runnable(path, proto)
        tried = tuple(trials(subject.graph, options.feeds, options.seeds, options.dims))
    with ExitStack() as resources:
        evaluators = evaluators.for_size(inspection.bytes)
        return _Validator(options, evaluators, subject, tried, phases, resources).validation(inspection)


class _Phases:
    """Reports each phase as it begins and keeps how long it took."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.seconds: dict[str, float] = {}
        self._report = report

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        self._report(phase)
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[phase] = time.monotonic() - started


class _Validator:
    """One validation. resources: end the workers of both targets."""

    def __init__(
        self,
        options: ValidateOptions,
        evaluators: Evaluators,
        model: RunnableModel,
        tried: Sequence[Trial],
        phases: _Phases,
        resources: ExitStack,
    ) -> None:
        self._options, self._evaluators, self._model, self._trials = options, evaluators, model, tried
        self._phases, self._resources = phases, resources
        self._steps: list[Step] = []

    def validation(self, inspection: Inspection) -> Validation:
        """The result. inspection: of the file; what the candidate's runtime adds to it is in the result."""
        candidate, level = self._evaluators.candidate, self._options.level
        sessions = self._sessions(candidate)
        with self._phases.timed(f"running on {candidate.name}"):
            outcomes = self._run(sessions, self._trials, level)
            inspection = _with_runtime_findings(inspection, sessions, self._model)
            _free_memory(sessions, inspection)
        facts = {candidate.name: sessions.facts}
        baseline, baseline_level = self._evaluators.unlike(level)
        baseline_sessions, expected = None, []
        if baseline is not None:
            baseline_sessions = self._sessions(baseline)
            with self._phases.timed(f"running on {baseline.name}"):
                expected = self._run(baseline_sessions, self._trials[: len(outcomes)], baseline_level)
            facts[baseline.name] = baseline_sessions.facts
            _free_memory(baseline_sessions, inspection)
        with self._phases.timed("computing the truth"):
            truth, about_truth = self._truth(inspection)
        with self._phases.timed("judging"):
            placed, verdicts = self._placement(outcomes), self._verdicts(outcomes, expected, truth)
        found = Validation(
            inspection.path, candidate.name, baseline.name if baseline else None, candidate.provider, level, facts,
            inspection, placed, tuple(self._steps), verdicts, about_truth, None, seconds=self._phases.seconds,
        )  # fmt: skip
        if found.status == RIGHT or baseline_sessions is None:
            return found
        return self._explained(found, outcomes, sessions, baseline_sessions)

    def _sessions(self, target: Target) -> ModelSessions:
        return self._resources.enter_context(ModelSessions(target, self._options.deadline_s))

    def _run(self, sessions: ModelSessions, tried: Sequence[Trial], level: Level) -> list[ModelOutcome]:
        """The outcomes of the trials, up to the first whose session is refused or lost: the next would end alike."""
        outcomes: list[ModelOutcome] = []
        for trial in tried:
            outcome = sessions.run(self._model.run, trial.inputs, level=level, folder=self._model.folder)
            outcomes.append(outcome)
            self._steps.append(_step(trial, sessions.target, outcome))
            if outcome.stage == CREATE or not sessions.has_worker:
                break
        return outcomes

    def _truth(self, inspection: Inspection) -> tuple[Mapping[str, Feed] | None, str]:
        """The oracle's values of the first trial, None where it is not quick enough, and a sentence about it."""
        if inspection.bytes > LARGE_BYTES:
            return None, "the model is too large for an oracle"
        try:
            model = self._model.graph
            if has_external_data(model):
                model = model_file.load(inspection.path)
            evaluation = oracle.evaluate(model, self._trials[0].inputs, max_operations=ORACLE_OPERATIONS)
        except (OracleError, model_file.ModelFileError) as error:
            return None, f"no oracle knows the truth of this model: {error}"
        return evaluation.values, (
            f"an oracle in float64 computed the truth of the first trial ({evaluation.operations:.2g} operations)"
        )

    def _placement(self, outcomes: Sequence[ModelOutcome]) -> Placement | None:
        provider = self._evaluators.candidate.provider
        if provider is None:
            return None
        assignment = next((outcome.assignment for outcome in outcomes if outcome.assignment is not None), None)
        return placement.place(self._model.graph, provider, assignment, self._trials[0].shapes)

    def _verdicts(
        self, outcomes: Sequence[ModelOutcome], expected: Sequence[ModelOutcome], truth: Mapping[str, Feed] | None
    ) -> tuple[Verdict, ...]:
        """truth: of the first trial."""
        bounds = {
            name: self._options.override.apply(threshold)
            for name, threshold in thresholds.of_outputs(
                values.inferred(self._model.graph, self._trials[0].shapes)
            ).items()
        }
        truths = [truth, *[None] * len(self._trials)]
        return tuple(
            judged
            for trial, candidate, baseline, true in zip(self._trials, outcomes, expected, truths, strict=False)
            if candidate.is_done and baseline.is_done
            for judged in verdict.judge(trial.name, candidate.outputs, baseline.outputs, true, bounds)
        )

    def _explained(
        self, found: Validation, outcomes: Sequence[ModelOutcome], candidate: ModelSessions, baseline: ModelSessions
    ) -> Validation:
        """The validation of a model that is not right, with the node at fault and how to show the failure again."""
        at = _first_failing(found, self._trials, outcomes)
        found = replace(found, again=self._reduce_arguments(self._trials[at]))
        if not self._options.culprit:
            return found
        with self._phases.timed("looking for the node at fault"):
            culprit = self._culprit(self._trials[at], outcomes[at], candidate, baseline, found.inspection.bytes)
        return replace(found, culprit=culprit)

    def _culprit(
        self, trial: Trial, outcome: ModelOutcome, candidate: ModelSessions, baseline: ModelSessions, size: int
    ) -> Culprit:
        model, folder = self._model.graph, self._model.data_folder
        ask = askers(candidate, baseline, folder, size)
        options = SearchOptions(level=self._options.level, folder=folder)
        return first_wrong_node(model, trial.inputs, *ask, options, outcome)

    def _reduce_arguments(self, trial: Trial) -> tuple[str, ...]:
        """Arguments of `epcheck reduce` for the failure of a trial."""
        arguments = ["--target", self._evaluators.candidate.name]
        if self._evaluators.baseline is not None:
            arguments += ["--baseline", self._evaluators.baseline.name]
        if self._options.level != "all":
            arguments += ["--level", self._options.level]
        if self._options.vulkan is not None:
            arguments += ["--vulkan", str(self._options.vulkan)]
        return (*arguments, *trial.arguments)


def _with_runtime_findings(inspection: Inspection, sessions: ModelSessions, model: RunnableModel) -> Inspection:
    """The inspection with what the candidate's runtime and provider say of the model; a callable says nothing."""
    provider = sessions.target.provider
    if not provider:
        return inspection
    inspection = inspection.with_findings(inspect.against(inspection, inspect.limits(sessions)))
    inspection = inspection.with_findings(inspect.cost_of_dimensions(inspection, provider))
    return inspection.with_findings(inspect.unresolved_reshapes(model.graph, provider))


def _free_memory(sessions: ModelSessions, inspection: Inspection) -> None:
    """End the session of a large model, so that there is memory for the next one."""
    if inspection.bytes > LARGE_BYTES:
        sessions.end_worker()


def _step(trial: Trial, target: Target, outcome: ModelOutcome) -> Step:
    return Step(trial.name, target.name, outcome.stage, outcome.during, outcome.message, outcome.create_s,
                outcome.run_s, outcome.unwritten, outcome.repeat_differs)  # fmt: skip


def _first_failing(found: Validation, tried: Sequence[Trial], outcomes: Sequence[ModelOutcome]) -> int:
    """The index of the first trial that is not right."""
    wrong = {judged.trial for judged in found.verdicts if not judged.right}
    return next(
        index
        for index, outcome in enumerate(outcomes)
        if not outcome.is_done or outcome.repeat_differs or outcome.unwritten or tried[index].name in wrong
    )
