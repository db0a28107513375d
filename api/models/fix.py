"""Change a model so that a target takes it and computes it right: every change that was tried and helps."""

from __future__ import annotations

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
from epcheck.api.models.validate import restore_own_facts
from epcheck.api.models.written_files import write_files, write_parts
from epcheck.api.option import Option, OptionError
from epcheck.api.option_types import JsonFile, OwnProcess, Vulkan
from epcheck.api.progress import SILENT, Progress
from epcheck.conformance.records import strict_json
from epcheck.conformance.targets.target import Target
from epcheck.models.accuracy.thresholds import Override
from epcheck.models.execution.evaluators import choose
from epcheck.models.execution.session import DEADLINE_S
from epcheck.models.feeds.trials import SEEDS, Feeding
from epcheck.models.fix.fix import FixRequest, fix_model
from epcheck.models.fix.fixed import FIXED as FIXED
from epcheck.models.fix.fixed import NOTHING as NOTHING
from epcheck.models.fix.fixed import REMAINS as REMAINS
from epcheck.models.fix.fixed import UNJUDGED as UNJUDGED
from epcheck.models.fix.fixed import Fixed as Fixed
from epcheck.models.fix.fixed import document
from epcheck.models.validation.validate import ValidationRequest


@dataclass(frozen=True)
class FixOptions:
    """Which model, for which target, and where the fixed one goes.

    target, baseline: specifications or targets; None for the best of this machine, and the CPU provider. out: the file
    of the fixed model, which is written where something was changed; None writes none. dry_run: write nothing. sizes:
    the sizes of the inputs may be fixed, to those of the first feeds. dims, seeds, rtol, atol, snr, agreement,
    deadline_s: as in ValidateOptions. json: a file that is written.
    """

    model: Annotated[Path, Option("An ONNX model, with its external data beside it.", argument=True)]
    target: Candidate = None
    baseline: Annotated[
        str | Target | None, Option("Target to compare with; 'none' for the oracle alone.", metavar="TARGET", parse=str)
    ] = None
    out: Annotated[
        Path | None,
        Option("Write the fixed model to this file, and its external data to FILE.data.", flags=("--out", "-o"),
               metavar="FILE", folder=False),
    ] = None  # fmt: skip
    dry_run: Annotated[bool, Option("Print what would be changed, and write no model.", flags=("--dry-run",))] = False
    sizes: Annotated[
        bool,
        Option("Fix dynamic sizes of the inputs where that places nodes.", flags=("--fixed-sizes/--dynamic-sizes",)),
    ] = True
    feeds: FeedsFile = None
    dims: Dims = field(default_factory=dict)
    seeds: Seeds = SEEDS
    level: OptimisationLevel = "all"
    rtol: Rtol = None
    atol: Atol = None
    snr: Snr = None
    agreement: Agreement = None
    deadline_s: StepDeadline = DEADLINE_S
    vulkan: Vulkan = None
    json: JsonFile = None
    own_process: OwnProcess = True


def fix(options: FixOptions, *, progress: Progress = SILENT) -> Fixed:
    """Validate a model on a target, apply every change that was tried there and helps, validate the changed model on
    the truth of the original, and write it.

    Raises OptionError for an output that is the input, or for none without `dry_run`; ModelFileError, ExaminationError,
    FeedError, DimsError for files and options that cannot be used; TargetError, TargetDown.
    """
    _check_output(options)
    with progress.working() as say:
        request = _make_request(options)
        asked = request.validation
        if options.own_process:
            found = examine(fix_model, request, options.model, say, options.deadline_s, asked.evaluators.targets)
            found = replace(found, path=asked.model.absolute(), before=restore_own_facts(found.before, asked),
                            after=restore_own_facts(found.after, asked), written=None)  # fmt: skip
        else:
            found = fix_model(request, say)
    if options.out is not None and not options.dry_run and found.model is not None:
        if found.data:
            parts = [(part.file, part.offset, part.length, part.target) for part in found.data]
            write_parts(options.out.with_name(request.data_name), options.model.absolute().parent, parts)
        write_files({options.out: found.model})
        found = replace(found, written=options.out)
    if options.json:
        write_files({options.json: strict_json.dumps(document(found)).encode()})
    return replace(found, model=None, data=())


def _check_output(options: FixOptions) -> None:
    if options.out is None:
        if not options.dry_run:
            raise OptionError("no output is named; write --out FILE, or --dry-run")
        return
    if options.out.resolve() == options.model.resolve() or _is_same_file(options.out, options.model):
        raise OptionError(f"--out '{options.out}' is the model itself, which is never overwritten; name another file")


def _is_same_file(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:  # one of them is not there
        return False


def _make_request(options: FixOptions) -> FixRequest:
    evaluators = choose(options.target, options.baseline, options.vulkan)
    override = Override(options.rtol, options.atol, options.snr, options.agreement)
    feeding = Feeding(options.feeds, options.seeds, options.dims)
    validation = ValidationRequest(
        options.model, evaluators, feeding, options.level, override, deadline_s=options.deadline_s
    )
    out = options.out or options.model.with_name(f"fixed.{options.model.name}")
    return FixRequest(validation, options.sizes, f"{out.name}.data")
