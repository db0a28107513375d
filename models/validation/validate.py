"""Does a model run on a provider, where does each node run, and are its outputs right.

validation = validate_model(ValidationRequest(Path("model.onnx"), choose("dml", None)))
validation.status                     # "right", "wrong", "fails", "refused", "unjudged"
validation.placement.elsewhere        # nodes that are not on the provider, and why
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from epcheck.conformance.targets.target import Target
from epcheck.conformance.test_data import model_file
from epcheck.models.accuracy import verdict
from epcheck.models.accuracy.thresholds import Override, Threshold, ThresholdSource
from epcheck.models.execution.evaluators import Evaluators
from epcheck.models.execution.model_outcome import CREATE, DONE, RUN, ModelOutcome
from epcheck.models.execution.model_source import LARGE_BYTES
from epcheck.models.execution.runner import make_runners
from epcheck.models.execution.session import DEADLINE_S, Level, ModelSessions
from epcheck.models.feeds.decoder import find_decoder, find_open_sizes
from epcheck.models.feeds.trials import SEEDS, Feeding, Trial, trials
from epcheck.models.inspection import inspect
from epcheck.models.inspection.inspect import Inspection
from epcheck.models.placement import placement
from epcheck.models.placement.placement import Placement
from epcheck.models.validation import speed, truth
from epcheck.models.validation.advising import Adviser
from epcheck.models.validation.decoding import DecodingRequest, decode_model
from epcheck.models.validation.departures import Comparison, compare_with_reference
from epcheck.models.validation.judging import OutputJudge
from epcheck.models.validation.licences import Licences
from epcheck.models.validation.node_judging import TrialNodes, judge_trial_nodes
from epcheck.models.validation.phases import (
    ADVICE,
    GENERATION,
    JUDGING,
    NODE_ADVICE,
    NODES,
    REFERENCE,
    SEARCH,
    SPEED,
    TRUTH,
    Phases,
)
from epcheck.models.validation.runnable import RunnableModel, runnable
from epcheck.models.validation.speed import Speed, Speeds
from epcheck.models.validation.truth import Truth
from epcheck.models.validation.validation import Step, Validation
from epcheck.models.wrong_nodes.all_wrong_nodes import all_wrong_nodes
from epcheck.models.wrong_nodes.culprit import Culprit, Kind
from epcheck.models.wrong_nodes.options import Limits, SearchOptions


@dataclass(frozen=True)
class ValidationRequest:
    """A model, the targets that it runs on, and how it is run and judged.

    model: an ONNX file; its external data lies beside it. level: of graph optimisation. override: of thresholds.
    culprit: whether to look for the node at fault. deadline_s: seconds for each step of a session: its creation, its
    first run, its second. speed: whether to measure how fast both targets are. advice: whether to try what would place
    nodes that are not on the provider. reference: the model that this one was made from; None without one. budget_s:
    seconds after which no further step begins; None for no end. known: what an earlier validation of the same model
    found out, whose finished steps are not repeated. generate: tokens that a decoder with a cache generates behind a
    prompt, in every mode; None for a model that is run as it is fed alone.
    """

    model: Path
    evaluators: Evaluators
    feeding: Feeding = field(default_factory=Feeding)
    level: Level = "all"
    override: Override = field(default_factory=Override)
    culprit: bool = True
    deadline_s: float = DEADLINE_S
    speed: bool = False
    advice: bool = True
    reference: Path | None = None
    budget_s: float | None = None
    known: Validation | None = field(default=None, repr=False)
    generate: int | None = None


def validate_model(
    request: ValidationRequest,
    report: Callable[[str], None] = lambda _phase: None,
    keep: Callable[[Validation], None] = lambda _known: None,
) -> Validation:
    """Inspect a model, run it on two targets, place its nodes, judge its outputs, and find the node at fault.

    report: called with the name of each step as it begins. keep: called after each step with what is known, but for
    the values that nodes at fault received; `left_out` has the steps that are still to do.

    Raises ModelFileError, FeedError, DimsError and NotADecoderError for files and options that cannot be used, and
    TargetDown for a target that cannot be started.
    """
    path = request.model.absolute()
    phases = Phases(report, request.budget_s)
    proto = model_file.parse(path)
    with ExitStack() as resources:
        sessions = resources.enter_context(ModelSessions(request.evaluators.candidate, request.deadline_s))
        sessions.begin_start()  # takes about as long as the inspection, which has a worker of its own
        with phases.time_phase("inspecting the file"):
            inspection = inspect.inspect(path, proto)
            subject = runnable(path, proto)
            feeding = request.feeding
            if request.generate is not None:
                sizes = find_open_sizes(subject.graph, find_decoder(subject.graph))
                feeding = replace(feeding, dims={**sizes, **feeding.dims})
            tried = tuple(trials(subject.graph, feeding))
        validator = _Validator(request, subject, tried, phases, resources, sessions)
        return validator.run(inspection, lambda known: keep(known.plain))


def validate_changed(
    request: ValidationRequest,
    models: tuple[RunnableModel, RunnableModel],
    tried: Sequence[Trial],
    report: Callable[[str], None] = lambda _phase: None,
) -> Validation:
    """Validate a changed model on the truth of the original one: the candidate runs the changed model, the baseline and
    the oracle compute the original. models: the original, which is that of the request's file, and the changed one.
    tried: feeds that both take. Raises as `validate_model`."""
    original, changed = models
    phases, path = Phases(report, None), request.model.absolute()
    with phases.time_phase("inspecting the changed model"):
        inspection = inspect.inspect(path, changed.graph)
    with ExitStack() as resources:
        sessions = resources.enter_context(ModelSessions(request.evaluators.candidate, request.deadline_s))
        validator = _Validator(request, changed, tried, phases, resources, sessions, original)
        return validator.run(inspection, lambda _known: None)


class _Validator:
    """One validation. resources: end the workers of both targets. sessions: of the candidate. original: the model that
    baseline and oracle compute, where `model` was made from another; by default `model` itself."""

    def __init__(
        self, request: ValidationRequest, model: RunnableModel, tried: Sequence[Trial], phases: Phases,
        resources: ExitStack, sessions: ModelSessions, original: RunnableModel | None = None,
    ) -> None:  # fmt: skip
        self._request, self._model, self._trials = request, model, list(tried)
        self._phases, self._resources, self._sessions = phases, resources, sessions
        self._steps: list[Step] = []
        self._original = original or model
        self._judge = OutputJudge(self._original, self._trials, request.override)

    def run(self, inspection: Inspection, keep: Callable[[Validation], None]) -> Validation:
        """The result. inspection: of the file. keep: takes what is known after each step."""
        found = self._begin(inspection)
        keep(found)
        sessions = self._sessions
        found, outcomes = self._run_candidate(found, sessions, lambda: keep(self._noted(found)))
        keep(found)
        baseline, _ = self._request.evaluators.unlike(self._request.level)
        baseline_sessions: ModelSessions | None = None
        expected: list[ModelOutcome] = []
        if baseline is not None and not self._phases.is_spent:
            baseline_sessions = self._resources.enter_context(ModelSessions(baseline, self._request.deadline_s))
            found, expected = self._run_baseline(found, baseline_sessions, outcomes)
            keep(found)
        known = truth.make_unknown_truth(len(outcomes), "the budget is spent")
        if not self._phases.is_spent:
            with self._phases.time_phase(TRUTH):
                known = self._judge.find_truth(found.inspection, outcomes, baseline_sessions)
        if not self._phases.is_spent:
            with self._phases.time_phase(JUDGING):
                verdicts = self._judge.judge(outcomes, expected, known)
            found = replace(found, verdicts=verdicts, truth=known.words, random=self._judge.random)
            keep(found := self._noted(found))
        if self._request.reference is not None and not self._phases.is_spent:
            keep(found := self._noted(replace(found, reference=self._compare_with_reference())))
        keep(found := self._decode(found, sessions, baseline_sessions, _can_run(outcomes)))
        found, nodes = self._judge_nodes(found, (outcomes, expected), known, (sessions, baseline_sessions))
        keep(found)
        licences = Licences(self._judge.whole, self._judge.thresholds, nodes.judged, sessions, self._model.data_folder)
        found = licences.explain(found, self._trials, outcomes, self._phases.remaining_s)
        found = self._explain_failure(found, outcomes, sessions, baseline_sessions, nodes, keep)
        keep(found)
        return self._advise(found, outcomes, sessions, baseline_sessions)

    def _begin(self, inspection: Inspection) -> Validation:
        """What is known before anything has run, and all steps that are planned."""
        request, (baseline, _) = self._request, self._request.evaluators.unlike(self._request.level)
        candidate = request.evaluators.candidate
        self._phases.plan(_list_steps(request, baseline))
        return self._noted(Validation(
            inspection.path, candidate.name, baseline.name if baseline else None, candidate.provider, request.level, {},
            inspection, None, (), (), "no oracle was asked", None, feeds_generated=self._trials[0].is_generated,
            same_runtime=request.evaluators.compares_with_itself, configuration=request.evaluators.configuration,
            validate_args=validate_arguments(request),
        ))  # fmt: skip

    def _noted(self, found: Validation) -> Validation:
        """The validation with the steps of trials, the times, and what is left to do."""
        return replace(found, steps=tuple(self._steps), seconds=dict(self._phases.seconds),
                       left_out=tuple(self._phases.planned))  # fmt: skip

    def _run_candidate(
        self, found: Validation, sessions: ModelSessions, keep: Callable[[], None]
    ) -> tuple[Validation, list[ModelOutcome]]:
        """The validation with what the candidate did. keep: called after each trial."""
        candidate, level, inspection = sessions.target, self._request.level, found.inspection
        with self._phases.time_phase(f"running on {candidate.name}"):
            outcomes = self._run(sessions, self._model, self._trials, level, keep)  # which may add trials
            inspection = _with_runtime_findings(inspection, sessions, self._model)
            inspection = inspection.with_findings(inspect.casts(self._model.cast))
            inspection = inspection.with_findings(inspect.undeclared_shapes(self._model.graph, _shapes(outcomes)))
        fast = _measure_speed(self._phases, sessions, self._model, self._trials, outcomes, level)
        _free_memory(sessions, inspection)
        speeds = Speeds(_name_timed_trial(self._trials, outcomes), fast, None) if fast else None
        return self._noted(replace(
            found, inspection=inspection, facts={candidate.name: sessions.facts}, speeds=speeds,
            placement=_place(self._model, candidate.provider, outcomes, self._trials[0]), random=self._judge.random,
        )), outcomes  # fmt: skip

    def _run_baseline(
        self, found: Validation, sessions: ModelSessions, outcomes: Sequence[ModelOutcome]
    ) -> tuple[Validation, list[ModelOutcome]]:
        """The validation with what the baseline did in the trials of the candidate."""
        _, level = self._request.evaluators.unlike(self._request.level)
        with self._phases.time_phase(f"running on {sessions.target.name}"):
            expected = self._run(sessions, self._original, self._trials[: len(outcomes)], level)
            if self._model is not self._original and not any(outcome.is_done for outcome in expected):
                expected = self._run(sessions, self._model, self._trials[: len(outcomes)], level)  # better than none
        fast = _measure_speed(self._phases, sessions, self._model, self._trials, outcomes, level)
        speeds = replace(found.speeds, baseline=fast) if found.speeds and fast else found.speeds
        if not self._phases.is_spent:
            self._phases.drop(SPEED)
        _free_memory(sessions, found.inspection)
        facts = {**found.facts, sessions.target.name: sessions.facts}
        return self._noted(replace(found, facts=facts, speeds=speeds, random=self._judge.random)), expected

    def _judge_nodes(
        self,
        found: Validation,
        ran: tuple[Sequence[ModelOutcome], Sequence[ModelOutcome]],
        known: Truth,
        sessions: tuple[ModelSessions, ModelSessions | None],
    ) -> tuple[Validation, TrialNodes]:
        """The validation with the nodes that are wrong alone."""
        earlier = self._earlier(NODES)
        if earlier is not None and (found.is_settled or self._earlier(SEARCH)):
            self._phases.drop(NODES)
            found = replace(found, wrong_nodes=earlier.wrong_nodes, nodes_judged=earlier.nodes_judged)
            return self._noted(found), TrialNodes()
        if self._phases.is_spent:
            return found, TrialNodes()
        with self._phases.time_phase(NODES):
            nodes = judge_trial_nodes(
                self._model, found.inspection.bytes, self._request.level, self._trials, ran, known, sessions,
                self._phases.remaining_s,
            )  # fmt: skip
        if self._phases.is_spent:
            self._phases.plan([NODES])
        found = replace(found, wrong_nodes=nodes.judged.culprits, nodes_judged=nodes.judged.words)
        return self._noted(found), nodes

    def _earlier(self, step: str) -> Validation | None:
        """What an earlier validation found in a step that it finished; None where there is none."""
        known = self._request.known
        return known if known is not None and step not in known.left_out else None

    def _advise(
        self,
        found: Validation,
        outcomes: Sequence[ModelOutcome],
        sessions: ModelSessions,
        baseline: ModelSessions | None,
    ) -> Validation:
        """The validation with advice on nodes that are not on the provider, or are refused."""
        adviser = Adviser(sessions, baseline, self._model, self._request.level, found.inspection.bytes)
        placed = found.placement
        if placed is None or not placed.elsewhere:
            self._phases.drop(ADVICE)
        elif ADVICE in self._phases.planned and not self._phases.is_spent:
            earlier = self._earlier(ADVICE)
            if earlier is not None and earlier.placement is not None:
                placed = earlier.placement
                self._phases.drop(ADVICE)
            else:
                with self._phases.time_phase(ADVICE):
                    placed = adviser.on_placement(placed, self._trials, outcomes)
            found = replace(found, placement=placed)
        if SEARCH not in self._phases.planned and all(culprit.kind != Kind.REFUSED for culprit in found.culprits):
            self._phases.drop(NODE_ADVICE)
        elif NODE_ADVICE in self._phases.planned and not self._phases.is_spent:
            with self._phases.time_phase(NODE_ADVICE):
                found = adviser.on_culprits(found)
        return self._noted(found)

    def _run(
        self, sessions: ModelSessions, model: RunnableModel, tried: Sequence[Trial], level: Level,
        keep: Callable[[], None] = lambda: None,
    ) -> list[ModelOutcome]:  # fmt: skip
        """The outcomes of the trials, up to the first whose session is refused or lost: the next would end alike. What
        is tried instead of a trial that fails follows it in `tried`. keep: called after each trial."""
        outcomes: list[ModelOutcome] = []
        for at, trial in enumerate(tried):  # which grows on the way
            if outcomes and self._phases.is_spent:
                self._phases.plan([f"{trial.name} on {sessions.target.name}" for trial in tried[at:]])
                break
            outcome = sessions.run(model.run, trial.inputs, level=level, folder=model.folder)
            outcomes.append(outcome)
            self._steps.append(_step(trial, sessions.target, outcome, self._judge.find_changed_outputs(outcome)))
            if outcome.stage == RUN and trial.instead is not None and tried is self._trials:
                self._trials.insert(at + 1, trial.instead)
            keep()
            if outcome.stage == CREATE or not sessions.has_worker:
                break
        return outcomes

    def _decode(
        self, found: Validation, sessions: ModelSessions, baseline: ModelSessions | None, runs: bool
    ) -> Validation:
        """The validation with what came of decoding with the cache. runs: whether a session of the model can be had."""
        if GENERATION not in self._phases.planned or self._phases.is_spent:
            return found
        if runs:
            request = _request_decoding(self._request, self._model, self._original, self._trials[0])
            with self._phases.time_phase(GENERATION):
                both, is_spent = (sessions, baseline), lambda: self._phases.is_spent
                found = replace(found, generation=decode_model(request, found.inspection, both, is_spent))
        if runs and self._phases.is_spent:
            self._phases.plan([GENERATION])
        else:
            self._phases.drop(GENERATION)
        return self._noted(found)

    def _compare_with_reference(self) -> Comparison:
        """The model beside the one that it was made from, in the first trial."""
        assert self._request.reference is not None
        earlier = self._earlier(REFERENCE)
        if earlier is not None and earlier.reference is not None:
            self._phases.drop(REFERENCE)
            return earlier.reference
        with self._phases.time_phase(REFERENCE):
            where = self._request.reference, self._original.data_folder
            return compare_with_reference(self._judge.whole, self._trials[0], *where)

    def _explain_failure(
        self,
        found: Validation,
        outcomes: Sequence[ModelOutcome],
        candidate: ModelSessions,
        baseline: ModelSessions | None,
        nodes: TrialNodes,
        keep: Callable[[Validation], None],
    ) -> Validation:
        """The validation of a model that is not right, with the node at fault and how to show the failure again."""
        if found.is_settled:
            self._phases.drop(*(() if JUDGING in self._phases.planned else (SEARCH, NODE_ADVICE)))
            return self._noted(found)
        at = _first_failing(found, self._trials, outcomes)
        arguments = reduce_arguments(self._request.evaluators, self._request.level, self._request.deadline_s)
        found = replace(found, reduce_args=(*arguments, *self._trials[at].arguments))
        if not self._request.culprit or baseline is None or self._phases.is_spent:
            return self._noted(found)
        earlier = self._earlier(SEARCH)
        if earlier is not None and earlier.culprit is not None and earlier.culprit.kind != Kind.REFUSED:
            self._phases.drop(SEARCH)
            return self._noted(replace(found, culprit=earlier.culprit, other_culprits=earlier.other_culprits,
                                       benign_nodes=earlier.benign_nodes, unexplained=earlier.unexplained))  # fmt: skip

        def keep_culprits(culprits: Sequence[Culprit]) -> None:
            first, *further = culprits
            keep(self._noted(replace(found, culprit=first, other_culprits=tuple(further))))

        with self._phases.time_phase(SEARCH):
            allowed = _extend_thresholds(found, self._trials[at], self._judge.thresholds)
            inner, alone = nodes.known_in(at)
            limits = Limits(seconds=min(Limits.seconds, self._phases.remaining_s))
            options = SearchOptions(level=self._request.level, folder=self._model.data_folder, thresholds=allowed,
                                    truth=inner, wrong_alone=alone, limits=limits)  # fmt: skip
            ask = make_runners(candidate, baseline, self._model.data_folder, found.inspection.bytes)
            wrong = all_wrong_nodes(self._model.graph, self._trials[at].inputs, *ask, options, outcomes[at],
                                    keep_culprits)  # fmt: skip
        if self._phases.is_spent:
            self._phases.plan([SEARCH])
        first, *further = wrong.culprits
        return self._noted(replace(found, culprit=in_agreement(first, found), benign_nodes=wrong.harmless,
                                   other_culprits=tuple(further), unexplained=wrong.remainder))  # fmt: skip


def reduce_arguments(evaluators: Evaluators, level: Level, deadline_s: float) -> tuple[str, ...]:
    """Arguments of `epcheck reduce`, without those of a trial, that ask what a validation asks. deadline_s: seconds of
    a step."""
    arguments = ["--target", evaluators.candidate.name]
    if evaluators.baseline is not None:
        arguments += ["--baseline", evaluators.baseline.name]
    if level != "all":
        arguments += ["--level", level]
    if deadline_s != DEADLINE_S:
        arguments += ["--timeout", f"{deadline_s:g}"]
    if evaluators.vulkan is not None:
        arguments += ["--vulkan", str(evaluators.vulkan)]
    return tuple(arguments)


def validate_arguments(request: ValidationRequest) -> tuple[str, ...]:
    """Arguments of `epcheck validate` that ask what the request asks."""
    feeding, override = request.feeding, request.override
    options = {
        "--feeds": feeding.path, "--expect": feeding.expect, "--reference": request.reference,
        "--rtol": override.relative, "--atol": override.absolute, "--snr": override.snr_db,
        "--agreement": override.agreement,
    }  # fmt: skip
    arguments = list(reduce_arguments(request.evaluators, request.level, request.deadline_s))
    if request.evaluators.baseline is None:
        arguments += ("--baseline", "none")
    arguments += (text for flag, value in options.items() if value is not None for text in (flag, str(value)))
    if feeding.path is None and tuple(feeding.seeds) != SEEDS:
        arguments += (text for seed in feeding.seeds for text in ("--seed", str(seed)))
    for name, sizes in feeding.dims.items():
        arguments += ("--dim", f"{name}={','.join(map(str, sizes))}")
    if request.generate is not None:
        arguments += ("--generate", str(request.generate))
    return tuple(arguments)


def _list_steps(request: ValidationRequest, baseline: Target | None) -> list[str]:
    """All steps of a validation."""
    candidate = request.evaluators.candidate
    running = [f"running on {candidate.name}", *([f"running on {baseline.name}"] if baseline else [])]
    steps = {
        TRUTH: True, JUDGING: True, REFERENCE: request.reference is not None, GENERATION: request.generate is not None,
        NODES: True, SPEED: request.speed, SEARCH: request.culprit and baseline is not None,
        ADVICE: request.advice and bool(candidate.provider), NODE_ADVICE: request.advice and bool(candidate.provider),
    }  # fmt: skip
    return [*running, *(step for step, is_asked in steps.items() if is_asked)]


def _can_run(outcomes: Sequence[ModelOutcome]) -> bool:
    """Whether a session was created."""
    return any(outcome.stage in (DONE, RUN) for outcome in outcomes)


def _request_decoding(
    request: ValidationRequest, model: RunnableModel, original: RunnableModel, trial: Trial
) -> DecodingRequest:
    assert request.generate is not None
    _, level = request.evaluators.unlike(request.level)
    return DecodingRequest(model, original, trial, request.generate, request.level, level, request.override)


def _measure_speed(
    phases: Phases, sessions: ModelSessions, model: RunnableModel, tried: Sequence[Trial],
    outcomes: Sequence[ModelOutcome], level: Level,
) -> Speed | None:  # fmt: skip
    """How fast a target runs the first trial that the candidate ran; None where none was, or it is not asked."""
    at = next((at for at, outcome in enumerate(outcomes) if outcome.is_done), None)
    if at is None or SPEED not in phases.planned or phases.is_spent:
        return None
    outcome = sessions.run(model.run, tried[at].inputs, level=level, folder=model.folder, seconds=speed.SECONDS)
    return speed.speed(sessions.target.name, outcome, sessions.resident_bytes())


def _with_runtime_findings(inspection: Inspection, sessions: ModelSessions, model: RunnableModel) -> Inspection:
    """The inspection with what the candidate's runtime and provider say of the model; a callable says nothing."""
    provider = sessions.target.provider
    if not provider:
        return inspection
    inspection = inspection.with_findings(inspect.against(inspection, inspect.limits(sessions)))
    inspection = inspection.with_findings(inspect.cost_of_dimensions(inspection, provider))
    return inspection.with_findings(inspect.unresolved_reshapes(model.graph, provider))


def _place(
    model: RunnableModel, provider: str | None, outcomes: Sequence[ModelOutcome], trial: Trial
) -> Placement | None:
    """The placement of a model; None for a callable. trial: the first."""
    if provider is None:
        return None
    assignment = next((outcome.assignment for outcome in outcomes if outcome.assignment is not None), None)
    return placement.place(model.graph, provider, assignment, trial.shapes)


def _name_timed_trial(tried: Sequence[Trial], outcomes: Sequence[ModelOutcome]) -> str:
    return next((trial.name for trial, outcome in zip(tried, outcomes, strict=False) if outcome.is_done), "")


def _shapes(outcomes: Sequence[ModelOutcome]) -> dict[str, tuple[int, ...]]:
    """Output -> its shape in the first trial that has it."""
    return {name: value.shape for outcome in reversed(outcomes) for name, value in outcome.outputs.items()}


def _free_memory(sessions: ModelSessions, inspection: Inspection) -> None:
    """End the session of a large model, so that there is memory for the next one."""
    if inspection.bytes > LARGE_BYTES:
        sessions.end_worker()


def _step(trial: Trial, target: Target, outcome: ModelOutcome, changed: tuple[str, ...]) -> Step:
    """changed: outputs that the second run changed and had to keep."""
    return Step(trial.name, target.name, outcome.stage, outcome.during, outcome.message, outcome.create_s,
                outcome.run_s, outcome.unwritten, changed, tuple(outcome.outputs),
                trial.instead is not None)  # fmt: skip


def _extend_thresholds(found: Validation, trial: Trial, bounds: Mapping[str, Threshold]) -> dict[str, Threshold]:
    """The thresholds of the outputs, extended by the model's sensitivity, or replaced by its noise, where that was
    measured in this trial."""
    judged = [each for each in found.verdicts if each.trial == trial.name and each.against == verdict.ORACLE]
    sensitive = {
        each.output: verdict.extend_threshold(each.threshold, each.sensitivity)
        for each in judged
        if each.sensitivity is not None
    }
    noisy = {each.output: each.threshold for each in judged if each.threshold.source is ThresholdSource.NOISE}
    return {**bounds, **sensitive, **noisy}


def _first_failing(found: Validation, tried: Sequence[Trial], outcomes: Sequence[ModelOutcome]) -> int:
    """The index of the first trial that is not right."""
    wrong = {judged.trial for judged in found.verdicts if judged.wrong}
    steady = {step.trial for step in found.steps if step.target == found.target
              and not (step.unwritten or step.repeat_differs)}  # fmt: skip
    return next(
        index
        for index, outcome in enumerate(outcomes)
        if not outcome.is_done or tried[index].name not in steady or tried[index].name in wrong
    )


def in_agreement(culprit: Culprit, found: Validation) -> Culprit:
    """The culprit, which says why no node is named where an output is wrong nevertheless."""
    if culprit.kind not in (Kind.RIGHT, Kind.ACCUMULATED):
        return culprit
    why = next((f"'{judged.output}' ({judged.trial}): {judged.why}" for judged in found.verdicts if judged.wrong), "")
    by_truth = all(judged.against == verdict.ORACLE for judged in found.verdicts if judged.wrong)
    if culprit.kind == Kind.RIGHT and by_truth:
        words = (
            "no node is named: nodes are compared with the baseline, with which the candidate agrees. The oracle finds "
            f"the outputs wrong: {why}"
        )
    else:
        words = f"no single node is wrong, but the outputs are: {why}. {culprit.words[:1].upper()}{culprit.words[1:]}"
    return replace(culprit, words=words)
