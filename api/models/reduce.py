"""The smallest part of a model that still fails, as a folder that anybody can run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import onnx

from epcheck.api.models.examining.examination import examine
from epcheck.api.models.option_types import Candidate, MostSeconds, MostSessions, OptimisationLevel, StepDeadline
from epcheck.api.models.parsing import sizes_of
from epcheck.api.option import Option
from epcheck.api.option_types import OwnProcess, Vulkan
from epcheck.api.progress import SILENT
from epcheck.conformance.records.repro_command import quote_command
from epcheck.conformance.targets.target import Target
from epcheck.conformance.test_data import model_file
from epcheck.models.execution import evaluators
from epcheck.models.execution.runner import make_runners
from epcheck.models.execution.session import DEADLINE_S, ModelSessions
from epcheck.models.feeds import feeds
from epcheck.models.feeds.trials import Feeding
from epcheck.models.graph import feedable
from epcheck.models.graph.feed import Feed
from epcheck.models.validation.validate import ValidationRequest, validate_model
from epcheck.models.validation.validation import RIGHT, UNJUDGED
from epcheck.models.wrong_nodes import bundle
from epcheck.models.wrong_nodes.options import Limits, SearchOptions
from epcheck.models.wrong_nodes.reduce import Reduced as Reduced
from epcheck.models.wrong_nodes.reduce import ReduceError, reduce_model


@dataclass(frozen=True)
class ReduceOptions:
    """Which model, on what, with which feeds, and how long. model: always given; it is left out as a part of
    ReportBugOptions alone. feeds: a file or folder, or input name -> value. deadline_s: seconds for each step of a
    session. out: the folder that is made; None writes none. own_process: examine the model in a process of its own,
    with bounds."""

    model: Annotated[Path, Option("An ONNX model that fails on the target.", argument=True, required=True)] = Path()
    target: Candidate = None
    baseline: Annotated[str | Target | None, Option("Target with the right results.", parse=str)] = None
    feeds: Annotated[
        Path | Mapping[str, Feed] | None,
        Option("An .npz or a folder of ONNX test data. Default: generated.", flags=("--feeds",), parse=Path),
    ] = None
    seed: Annotated[int, Option("Seed of generated feeds.")] = 0
    dims: Annotated[
        Mapping[str, int],
        Option(
            "Size of a dynamic dimension; repeat for more.",
            flags=("--dim",),
            metavar="NAME=SIZE",
            parse=sizes_of,
            many=True,
        ),
    ] = field(default_factory=dict)
    level: OptimisationLevel = "all"
    sessions: MostSessions = Limits.sessions
    seconds: MostSeconds = Limits.seconds
    deadline_s: StepDeadline = DEADLINE_S
    vulkan: Vulkan = None
    out: Annotated[Path | None, Option("Folder to write.")] = Path("reduced")
    own_process: OwnProcess = True


def reduce(options: ReduceOptions) -> Reduced:
    """Shrink a model to the smallest part on which the candidate differs from the baseline, or ends, with the values
    that this part really receives; write it with a script that needs onnxruntime only.

    Raises ReduceError where nothing fails, by the same verdict as `validate`; ModelFileError, ExaminationError,
    FeedError, DimsError for files and options that cannot be used; TargetError, and TargetDown when a target cannot be
    started.
    """
    asked = evaluators.choose(options.target, options.baseline, options.vulkan)
    request = _Request(options, asked)
    if options.own_process:
        reduced = examine(_reduce, request, options.model, SILENT.say, options.deadline_s, asked.targets)
    else:
        reduced = _reduce(request)
    if options.out is not None:
        bundle.write(reduced, options.out, asked.candidate.provider or "CPUExecutionProvider")
    return reduced


@dataclass(frozen=True)
class _Request:
    options: ReduceOptions
    evaluators: evaluators.Evaluators


def _reduce(request: _Request, _say: Callable[[str], None] = SILENT.say) -> Reduced:
    options, asked = request.options, request.evaluators
    path = options.model
    parsed = model_file.parse(path)
    size = model_file.bytes_of(parsed, path)
    model, _ = feedable.add_casts(parsed)
    if asked.baseline is None:
        raise ReduceError("a baseline is required; name one with --baseline")
    inputs = _inputs(options, model)
    feeding = Feeding(inputs=inputs, is_generated=options.feeds is None)
    found = validate_model(
        ValidationRequest(
            path, asked, feeding, options.level, culprit=False, deadline_s=options.deadline_s, advice=False
        )
    )
    if found.status in (RIGHT, UNJUDGED):
        raise ReduceError(f"nothing to reduce: {found.headline}")
    folder = path.resolve().parent if any(True for _ in model_file.external_tensors(model)) else None
    with ExitStack() as resources:
        candidates, baselines = (
            resources.enter_context(ModelSessions(target, options.deadline_s))
            for target in (asked.candidate, asked.baseline)
        )
        ask = make_runners(candidates, baselines, folder, size)
        limits = Limits(sessions=options.sessions, seconds=options.seconds)
        return reduce_model(model, inputs, *ask, SearchOptions(options.level, limits, folder))


def _inputs(options: ReduceOptions, model: onnx.ModelProto) -> Mapping[str, Feed]:
    values: Mapping[str, Feed | None]
    match options.feeds:
        case None:
            values = feeds.generate(model, options.seed, options.dims)
        case Path() as path:
            (first, *_) = feeds.read(path, model)
            values = first.inputs
        case known:
            values = known
    return {name: value for name, value in values.items() if value is not None}


def replay_command(options: ReduceOptions) -> str:
    """The command line that shows the failure once more: that of the script, or of `epcheck replay` for a target whose
    sessions the script cannot make."""
    candidate = evaluators.choose(options.target, options.baseline, options.vulkan).candidate
    folder = options.out or Path()
    if candidate.makes_sessions:
        return quote_command("python", str(folder / "run.py"))
    return quote_command("epcheck", "replay", str(folder), "--target", candidate.name)


def words(reduced: Reduced) -> str:
    """What fails, and how, in a sentence or two."""
    return bundle.words(reduced)
