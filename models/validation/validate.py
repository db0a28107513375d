"""Will a model run on a provider, where, and is it right: everything about one model, in the order of the questions.

validation = validate(Path("model.onnx"), target="dml")
validation.status                     # "right", "wrong", "fails", "refused"
validation.placement.elsewhere        # nodes that are not on the provider, and why
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx
from onnx import inliner

from epcheck.conformance.targets.target import Target
from epcheck.conformance.test_data import model_file
from epcheck.models.accuracy import thresholds, verdict
from epcheck.models.accuracy.thresholds import Override
from epcheck.models.accuracy.verdict import Verdict
from epcheck.models.bisection.bisect import Culprit, first_wrong_node
from epcheck.models.execution import sides
from epcheck.models.execution.asking import askers
from epcheck.models.execution.session import CREATE, DEADLINE_S, STEPS, Answer, Level, Sessions
from epcheck.models.execution.sides import LARGE_BYTES, Sides
from epcheck.models.feeds.trials import Trial, trials
from epcheck.models.graph import values
from epcheck.models.graph.feed import Feed
from epcheck.models.inspection import inspect
from epcheck.models.inspection.inspect import Inspection
from epcheck.models.oracle import oracle
from epcheck.models.oracle.oracle import OracleError
from epcheck.models.placement import placement
from epcheck.models.placement.placement import Placement

RIGHT, WRONG, FAILS, REFUSED = "right", "wrong", "fails", "refused"

SEEDS = (0, 1)

ORACLE_OPERATIONS = 200_000_000
"""The oracle is asked for models of at most so many multiplications and additions: seconds."""

NAMED_BYTES = 1 << 30
"""A model without names for its nodes gets them, and travels as bytes, where it is no larger than this."""


@dataclass(frozen=True)
class Step:
    """One trial on one target. stage, during, message: as in `session.Answer`."""

    trial: str
    target: str
    stage: str
    during: str
    message: str
    create_s: float | None
    run_s: float | None
    unwritten: tuple[str, ...]
    repeat_differs: tuple[str, ...]


@dataclass(frozen=True)
class Validation:
    """Everything that was found out about a model on a target.

    facts: target -> what its worker says of itself. placement: None for a callable, which has no provider. truth: who
    says what is right, or why no oracle does. culprit: the node at fault, where something is wrong.
    again: arguments of `epcheck reduce` that bring about what is wrong, empty where nothing is. seconds: part -> how
    long it took.
    """

    path: Path
    target: str
    baseline: str | None
    provider: str | None
    level: Level
    facts: Mapping[str, Mapping[str, str]]
    inspection: Inspection
    placement: Placement | None
    steps: tuple[Step, ...]
    verdicts: tuple[Verdict, ...]
    truth: str
    culprit: Culprit | None
    again: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """`refused`: it does not load. `fails`: a run ends with an error, or anything in a crash or a hang. `wrong`: an
        output is not right, is not written, or changes in a second run. `right`."""
        own = [step for step in self.steps if step.target == self.target]
        if any(step.stage == CREATE for step in own):
            return REFUSED
        if any(step.during for step in own):
            return FAILS
        steady = not any(step.unwritten or step.repeat_differs for step in own)
        return RIGHT if steady and all(one.right for one in self.verdicts) else WRONG

    @property
    def _ends_in_creation(self) -> bool:
        return any(step.target == self.target and step.during == STEPS[CREATE] for step in self.steps)

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        name, where = self.path.name, self.provider or self.target
        match self.status:
            case "refused":
                return f"{name} does not load on {where}"
            case "fails" if self._ends_in_creation:
                return f"{name} does not load on {where}: session creation does not survive it"
            case "fails":
                return f"{name} loads on {where}, but does not run"
            case "wrong":
                return f"{name} runs on {where}, but its outputs are not right"
        if self.placement is None or not self.placement.elsewhere:
            return f"{name} runs on {where} and is right"
        away, all_ = len(self.placement.elsewhere), len([one for one in self.placement.nodes if one.provider])
        return f"{name} runs and is right; {away} of its {all_} nodes are not on {where}"


@dataclass(frozen=True)
class Subject:
    """A model as it is run: as its file, or as a copy whose nodes have names and whose functions are put in place.

    graph: what analyses look at. folder: where the external data of a copy is.
    """

    graph: onnx.ModelProto
    run: onnx.ModelProto | Path
    folder: Path | None

    @property
    def folder_of_data(self) -> Path | None:
        """Where a copy of the graph finds its external data; None where it has none."""
        return self.folder if any(True for _ in model_file.external_tensors(self.graph)) else None


def validate(
    model: Path,
    target: str | Target | None = None,
    baseline: str | Target | None = None,
    feeds: Path | None = None,
    dims: Mapping[str, Sequence[int]] | None = None,
    seeds: Sequence[int] = SEEDS,
    level: Level = "all",
    override: Override | None = None,
    bisect: bool = True,
    deadline_s: float = DEADLINE_S,
    vulkan: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Validation:
    """Answer every question about a model on a target.

    target, baseline: as on the command line, or targets; by default the best of this machine, and the CPU provider.
    feeds: an .npz or a folder of ONNX test data, in place of generated feeds. dims: dynamic dimension -> sizes, every
    combination of which is tried. seeds: of generated feeds. level: of graph optimisation. override: thresholds to use
    in place of ours. bisect: look for the node at fault. deadline_s: seconds for each step of a session. vulkan:
    the ICD file of the Vulkan driver that the lab uses instead of its own. say: told what is being done.

    Raises ModelFileError, FeedError, DimsError for files and arguments that cannot be used; TargetError, TargetDown.
    """
    asked = sides.choose(target, baseline, vulkan)
    path = model.absolute()
    proto = model_file.parse(path)
    clock = _Clock(say)
    with clock("looking at the file"):
        inspection = inspect.inspect(path, proto)
        subject = _subject(path, proto)
        tried = list(trials(subject.graph, feeds, seeds, dims or {}))
    chosen = asked.for_size(inspection.bytes)
    candidate, (against, against_level) = chosen.candidate, chosen.unlike(level)
    with ExitStack() as resources:
        sessions = resources.enter_context(Sessions(candidate, deadline_s))
        with clock(f"running on {candidate.name}"):
            answers = _run(sessions, subject, tried, level)
            if candidate.provider:
                inspection = inspection.with_findings(inspect.against(inspection, inspect.limits(sessions)))
                inspection = inspection.with_findings(inspect.cost_of_dimensions(inspection, candidate.provider))
                reshapes = inspect.unresolved_reshapes(subject.graph, candidate.provider)
                inspection = inspection.with_findings(reshapes)
            if inspection.bytes > LARGE_BYTES:
                sessions.rest()
        facts = {candidate.name: sessions.facts}
        others: list[Answer] = []
        other = None
        if against is not None:
            other = resources.enter_context(Sessions(against, deadline_s))
            with clock(f"running on {against.name}"):
                others = _run(other, subject, tried[: len(answers)], against_level)
            facts[against.name] = other.facts
            if inspection.bytes > LARGE_BYTES:
                other.rest()
        with clock("computing the truth"):
            truths, truth = _truths(subject, tried, inspection)
        with clock("judging"):
            placed = _place(subject, candidate, answers, tried)
            bounds = thresholds.of_outputs(values.inferred(subject.graph, tried[0].shapes))
            bounds = {name: (override or Override()).apply(one) for name, one in bounds.items()}
            verdicts = tuple(
                one
                for trial, mine, theirs, true in zip(tried, answers, others, truths, strict=False)
                if mine.is_done and theirs.is_done
                for one in verdict.judge(trial.name, mine.outputs, theirs.outputs, true, bounds)
            )
        steps = tuple(
            _step(trial, who.name, answer)
            for who, said in ((candidate, answers), (against, others))
            if who is not None
            for trial, answer in zip(tried, said, strict=False)
        )
        found = Validation(
            path, candidate.name, against.name if against else None, candidate.provider, level, facts, inspection,
            placed, steps, verdicts, truth, None, seconds=clock.seconds,
        )  # fmt: skip
        if found.status == RIGHT or other is None:
            return found
        at = _first_failing(found, tried, answers)
        found = replace(found, again=_again(chosen, tried[at], level, vulkan))
        if not bisect:
            return found
        with clock("looking for the node at fault"):
            ask = askers(sessions, other, subject.folder_of_data, inspection.bytes)
            culprit = first_wrong_node(
                subject.graph, tried[at].inputs, *ask, level=level, answer=answers[at], folder=subject.folder_of_data
            )
    return replace(found, culprit=culprit)


class _Clock:
    """Says what is being done, and keeps how long it took."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.seconds: dict[str, float] = {}
        self._say = say
        self._part, self._started = "", 0.0

    def __call__(self, part: str) -> _Clock:
        self._part = part
        return self

    def __enter__(self) -> None:
        self._say(self._part)
        self._started = time.monotonic()

    def __exit__(self, *_exception: object) -> None:
        self.seconds[self._part] = time.monotonic() - self._started


def _subject(path: Path, model: onnx.ModelProto) -> Subject:
    graph = model
    if model.functions:
        graph = inliner.inline_local_functions(model)
    if model.ByteSize() <= NAMED_BYTES:
        graph = placement.named(graph)
    if graph is model:
        return Subject(model, path, path.parent)
    has_external = any(True for _ in model_file.external_tensors(graph))
    return Subject(graph, graph, path.parent if has_external else None)


def _run(sessions: Sessions, subject: Subject, tried: Sequence[Trial], level: Level) -> list[Answer]:
    """The answers, up to the first one that is none: what follows would be the same."""
    answers: list[Answer] = []
    folder = None if isinstance(subject.run, Path) else subject.folder
    for trial in tried:
        answers.append(sessions.run(subject.run, trial.inputs, level=level, folder=folder))
        if answers[-1].stage == CREATE or not sessions.is_warm:
            break
    return answers


def _truths(
    subject: Subject, tried: Sequence[Trial], inspection: Inspection
) -> tuple[list[Mapping[str, Feed] | None], str]:
    """What the oracle says of each trial, as long as it is quick, and a sentence about it."""
    found: list[Mapping[str, Feed] | None] = [None] * len(tried)
    if inspection.bytes > LARGE_BYTES:
        return found, "the model is too large for an oracle"
    try:
        model = subject.graph
        if any(True for _ in model_file.external_tensors(model)):
            model = model_file.load(inspection.path)
        answer = oracle.evaluate(model, tried[0].inputs, max_operations=ORACLE_OPERATIONS)
    except (OracleError, model_file.ModelFileError) as error:
        return found, f"no oracle knows the truth of this model: {error}"
    found[0] = answer.values
    return found, f"an oracle in float64 computed the truth of the first trial ({answer.operations:.2g} operations)"


def _place(subject: Subject, candidate: Target, answers: Sequence[Answer], tried: Sequence[Trial]) -> Placement | None:
    if candidate.provider is None:
        return None
    assignment = next((answer.assignment for answer in answers if answer.assignment is not None), None)
    return placement.place(subject.graph, candidate.provider, assignment, tried[0].shapes)


def _step(trial: Trial, target: str, answer: Answer) -> Step:
    return Step(trial.name, target, answer.stage, answer.during, answer.message, answer.create_s, answer.run_s,
                answer.unwritten, answer.repeat_differs)  # fmt: skip


def _first_failing(found: Validation, tried: Sequence[Trial], answers: Sequence[Answer]) -> int:
    """The index of the first trial that is not as it should be."""
    wrong = {one.trial for one in found.verdicts if not one.right}
    return next(
        index
        for index, answer in enumerate(answers)
        if not answer.is_done or answer.repeat_differs or answer.unwritten or tried[index].name in wrong
    )


def _again(chosen: Sides, trial: Trial, level: Level, vulkan: Path | None) -> tuple[str, ...]:
    words = ["--target", chosen.candidate.name]
    if chosen.baseline is not None:
        words += ["--baseline", chosen.baseline.name]
    if level != "all":
        words += ["--level", level]
    if vulkan is not None:
        words += ["--vulkan", str(vulkan)]
    return (*words, *trial.arguments)
