"""Does a model load on a target, where does it run, is it right; if not, which node is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from epcheck.api.models.examination import examined
from epcheck.api.models.parsing import level_of, only_target, ranges_of
from epcheck.api.option import Option
from epcheck.api.option_types import OwnProcess, Vulkan
from epcheck.api.progress import SILENT, Progress
from epcheck.conformance.records import strict_json
from epcheck.conformance.targets.target import Target
from epcheck.models.accuracy.thresholds import Override
from epcheck.models.execution.asking import LEVELS
from epcheck.models.execution.evaluators import choose
from epcheck.models.execution.session import DEADLINE_S, Level
from epcheck.models.feeds.trials import SEEDS, Feeding
from epcheck.models.validation import page
from epcheck.models.validation import validate as validation
from epcheck.models.validation.document import document
from epcheck.models.validation.validate import Manner
from epcheck.models.validation.validation import Validation as Validation


@dataclass(frozen=True)
class ValidateOptions:
    """Which model, on what, with which feeds, and what is right.

    model: always given; it is left out as a part of ValidateModelsOptions alone. target, baseline: specifications or
    targets; None for the best of this machine, and the CPU provider. dims: dynamic dimension -> sizes, every
    combination of which is tried. seeds: of generated feeds. rtol, atol, snr (dB), agreement: in place of our own
    thresholds; an output within either of rtol and atol is right. culprit: look for the nodes at fault. advice: try
    what would place nodes that are not on the provider. deadline_s: seconds for each step of a session. speed: measure
    latency, memory and the slowest nodes of both targets. html, json: files that are written; None writes none.
    """

    model: Annotated[Path, Option("An ONNX model; its external data lies beside it.", argument=True)] = Path()
    target: Annotated[
        str | Target | None,
        Option("Candidate. Default: the best.", flags=("--target", "-t"), parse=only_target, many=True),
    ] = None
    baseline: Annotated[
        str | Target | None, Option("Target to compare with; 'none': the oracle alone judges.", parse=str)
    ] = None
    feeds: Annotated[
        Path | None, Option("An .npz or a folder of ONNX test data; generated otherwise.", flags=("--feeds",))
    ] = None
    dims: Annotated[
        Mapping[str, Sequence[int]],
        Option("Sizes of a dynamic dimension; repeat.", flags=("--dim",), metavar="NAME=SIZE,...", parse=ranges_of,
               many=True),
    ] = field(default_factory=dict)  # fmt: skip
    seeds: Annotated[tuple[int, ...], Option("Of generated feeds; repeat. Default: 0 and 1.", flags=("--seed",))] = (
        SEEDS
    )
    level: Annotated[Level, Option(f"Graph optimisation: {', '.join(LEVELS)}.", parse=level_of)] = "all"
    rtol: Annotated[float | None, Option("Relative error that is allowed, in place of ours.", minimum=0)] = None
    atol: Annotated[
        float | None, Option("Absolute error that is allowed; without --rtol it alone counts.", minimum=0)
    ] = None
    snr: Annotated[float | None, Option("Signal to noise in dB that is wanted, in place of ours.")] = None
    agreement: Annotated[
        float | None, Option("Share of equal elements that integer outputs need.", minimum=0, maximum=1)
    ] = None
    culprit: Annotated[bool, Option("Look for the node at fault.")] = True
    advice: Annotated[bool, Option("Try what would place the nodes that are not on the provider.")] = True
    deadline_s: Annotated[float, Option("Seconds for each step of a session.", flags=("--timeout",), minimum=1)] = (
        DEADLINE_S
    )
    speed: Annotated[bool, Option("Measure latency, memory and the slowest nodes of both targets.")] = False
    vulkan: Vulkan = None
    html: Annotated[Path | None, Option("Write the page here. Default: MODEL.validation.html")] = None
    json: Annotated[Path | None, Option("Write everything as JSON here.")] = None
    own_process: OwnProcess = True


def validate(options: ValidateOptions, *, progress: Progress = SILENT) -> Validation:
    """Validate a model on a target, and write the page and the JSON document where that is asked for.

    Raises ModelFileError, ExaminationError, FeedError, DimsError for files and options that cannot be used;
    TargetError, TargetDown.
    """
    with progress.working() as say:
        if not options.own_process:
            return _validate(options, say)
        return examined(_validate, options, options.model, say, options.deadline_s)


def _validate(options: ValidateOptions, say: Callable[[str], None]) -> Validation:
    evaluators = choose(options.target, options.baseline, options.vulkan)
    feeding = Feeding(options.feeds, options.seeds, options.dims)
    override = Override(options.rtol, options.atol, options.snr, options.agreement)
    manner = Manner(options.level, override, options.culprit, options.deadline_s, options.speed,
                    options.advice)  # fmt: skip
    found = validation.validate(options.model, evaluators, feeding, manner, say)
    if options.html:
        page.write(found, options.html)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(strict_json.dumps(document(found)), encoding="utf-8")
    return found


def default_page(model: Path) -> Path:
    """Where the command line writes the page of a model, beside it."""
    return model.with_name(f"{model.name}.validation.html")
