"""Does a model load on a target, where does it run, is it right; if not, which node is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from epcheck.api.models.examining.examination import examine
from epcheck.api.models.option_types import (
    Agreement,
    Atol,
    Candidate,
    Dims,
    FeedsFile,
    OptimisationLevel,
    Rtol,
    Seeds,
    Snr,
    StepDeadline,
)
from epcheck.api.models.written_files import page_bytes, write_files
from epcheck.api.option import Option
from epcheck.api.option_types import OwnProcess, Vulkan
from epcheck.api.progress import SILENT, Progress
from epcheck.conformance.records import strict_json
from epcheck.conformance.targets.target import Target
from epcheck.models.accuracy.thresholds import Override
from epcheck.models.execution.evaluators import Evaluators, choose
from epcheck.models.execution.session import DEADLINE_S
from epcheck.models.feeds.trials import SEEDS, Feeding
from epcheck.models.validation import page
from epcheck.models.validation import validate as validation
from epcheck.models.validation.document import document
from epcheck.models.validation.validate import Manner, reduce_arguments
from epcheck.models.validation.validation import Validation as Validation


@dataclass(frozen=True)
class ValidateOptions:
    """Which model, on what, with which feeds, and what is right.

    model: always given; it is left out as a part of ValidateModelsOptions alone. target, baseline: specifications or
    targets; None for the best of this machine, and the CPU provider. dims: dynamic dimension -> sizes, every
    combination of which is tried. seeds: of generated feeds. rtol, atol, snr (dB), agreement: in place of our own
    thresholds; an output within either of rtol and atol is right. culprit: look for the nodes at fault. advice: try
    what would place nodes that are not on the provider. deadline_s: seconds for each step of a session. speed: measure
    latency, memory and the slowest nodes of both targets. config: where the tables of targets are; None for
    `epcheck.toml` of the working directory. html, json: files that are written; None writes none.
    """

    model: Annotated[Path, Option("An ONNX model; its external data lies beside it.", argument=True)] = Path()
    target: Candidate = None
    baseline: Annotated[
        str | Target | None, Option("Target to compare with; 'none': the oracle alone judges.", parse=str)
    ] = None
    feeds: FeedsFile = None
    dims: Dims = field(default_factory=dict)
    seeds: Seeds = SEEDS
    level: OptimisationLevel = "all"
    rtol: Rtol = None
    atol: Atol = None
    snr: Snr = None
    agreement: Agreement = None
    culprit: Annotated[bool, Option("Look for the node at fault.")] = True
    advice: Annotated[bool, Option("Try what would place the nodes that are not on the provider.")] = True
    deadline_s: StepDeadline = DEADLINE_S
    speed: Annotated[bool, Option("Measure latency, memory and the slowest nodes of both targets.")] = False
    vulkan: Vulkan = None
    config: Annotated[Path | None, Option("Another epcheck.toml.", folder=False)] = None
    html: Annotated[Path | None, Option("Write the page here. Default: MODEL.validation.html")] = None
    json: Annotated[Path | None, Option("Write everything as JSON here.")] = None
    own_process: OwnProcess = True


def validate(options: ValidateOptions, *, progress: Progress = SILENT) -> Validation:
    """Validate a model on a target, and write the page and the JSON document where that is asked for.

    Raises ModelFileError, ExaminationError, FeedError, DimsError for files and options that cannot be used;
    TargetError, TargetDown.
    """
    with progress.working() as say:
        evaluators = choose(options.target, options.baseline, options.vulkan, options.config)
        request = _Request(options, evaluators)
        if options.own_process:
            found = examine(_validate, request, options.model, say, options.deadline_s, evaluators.targets)
            found = _with_what_we_know(found, options, evaluators)
        else:
            found = _validate(request, say)
    files = {options.html: page_bytes(page.render(found))} if options.html else {}
    if options.json:
        files[options.json] = strict_json.dumps(document(found)).encode()
    write_files(files)
    return found


@dataclass(frozen=True)
class _Request:
    options: ValidateOptions
    evaluators: Evaluators


def _validate(request: _Request, say: Callable[[str], None]) -> Validation:
    options = request.options
    feeding = Feeding(options.feeds, options.seeds, options.dims)
    override = Override(options.rtol, options.atol, options.snr, options.agreement)
    manner = Manner(options.level, override, options.culprit, options.deadline_s, options.speed,
                    options.advice)  # fmt: skip
    return validation.validate(options.model, request.evaluators, feeding, manner, say)


def _with_what_we_know(found: Validation, options: ValidateOptions, evaluators: Evaluators) -> Validation:
    """The validation with what is our own to say: a process that a model has taken over names no file, target or
    argument of a command."""
    path, candidate, baseline = options.model.absolute(), evaluators.candidate, evaluators.unlike(options.level)[0]
    again = reduce_arguments(evaluators, options.level, options.deadline_s)
    return replace(
        found, path=path, inspection=replace(found.inspection, path=path), target=candidate.name,
        provider=candidate.provider, baseline=baseline.name if baseline else None, level=options.level,
        configuration=evaluators.configuration,
        reduce_args=(*again, *_trial_arguments(found.reduce_args[len(again) :], options)) if found.reduce_args else (),
    )  # fmt: skip


def _trial_arguments(arguments: Sequence[str], options: ValidateOptions) -> Iterator[str]:
    """Which feeds `epcheck reduce` takes: those of the options, or a seed and sizes."""
    for flag, value in zip(arguments[::2], arguments[1::2], strict=False):
        is_of_feeds = options.feeds is not None and Path(value) in (options.feeds, options.feeds / Path(value).name)
        is_known = {"--feeds": is_of_feeds, "--seed": value.isdecimal(), "--dim": "=" in value}
        if is_known.get(flag):
            yield from (flag, value)


def default_page(model: Path) -> Path:
    """Where the command line writes the page of a model, beside it."""
    return model.with_name(f"{model.name}.validation.html")
