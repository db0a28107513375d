"""Do models load on targets, where does each node run, are the outputs right; if not, which nodes are wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from epcheck.api.models import ci_files
from epcheck.api.models.examining.examination import examine
from epcheck.api.models.option_types import (
    Agreement,
    Atol,
    Dims,
    OptimisationLevel,
    Rtol,
    Seeds,
    Snr,
    StepDeadline,
)
from epcheck.api.models.written_files import page_bytes, write_files
from epcheck.api.option import JUDGE, MACHINE, OUTPUT, SELECT, Option, OptionError
from epcheck.api.option_types import AnnotationsFile, JUnitFile, MarkdownFile, OwnProcess, Vulkan
from epcheck.api.progress import SILENT, Progress
from epcheck.conformance.records import strict_json
from epcheck.conformance.targets.config import load_config, notice_of
from epcheck.conformance.targets.target import Target
from epcheck.generators.error import EpcheckError
from epcheck.models.accuracy.thresholds import Override
from epcheck.models.execution.evaluators import Evaluators, choose
from epcheck.models.execution.session import DEADLINE_S
from epcheck.models.feeds.trials import SEEDS, Feeding
from epcheck.models.gate import gate as gates
from epcheck.models.gate import junit, sarif
from epcheck.models.gate import page as gate_page
from epcheck.models.gate.gate import CANNOT_TELL as CANNOT_TELL
from epcheck.models.gate.gate import FAILS as FAILS
from epcheck.models.gate.gate import PASSES as PASSES
from epcheck.models.gate.gate import CheckedModel, passes_unjudged
from epcheck.models.gate.gate import Gate as Gate
from epcheck.models.gate.limits import GateLimits, find_broken_limits, of_table
from epcheck.models.validation import document, page
from epcheck.models.validation.departures import VALUES_SUFFIX, Comparison
from epcheck.models.validation.validate import ValidationRequest, reduce_arguments, validate_model
from epcheck.models.validation.validation import Validation as Validation
from epcheck.reports.ci.annotation import write_annotations


@dataclass(frozen=True)
class ValidateOptions:
    """Which models, on what, with which feeds, what is right, and what is written.

    models: files, and folders of which all `.onnx` files are taken. targets, baseline: specifications or targets; none
    for the best of this machine, and the CPU provider. expect: where the outputs are that are expected of the feeds, of
    one model; `output_*.pb` next to `input_*.pb` are read without it. reference: the model that it was made from, or an
    .npz of values of the feeds, by their names in the model. dims:
    dynamic dimension -> sizes, every combination of which is tried. seeds: of generated feeds. rtol, atol, snr (dB),
    agreement: in place of the thresholds of epcheck.toml and ours; an output within either of rtol and atol is right.
    culprit: look for the nodes at fault. strict_nodes: a node that is wrong alone fails a model whose outputs are
    right. advice: try what would place nodes that are not on the provider. deadline_s: seconds for each step of a
    session. speed: measure latency, memory and the slowest nodes of both targets. config: where [validate] and the
    tables of targets are; None for `epcheck.toml` of the working directory, if there is one. html, json: files that are
    written, of one model file on one target with everything about it. junit, sarif, markdown, annotations: files that
    are written; the last three name a model by its path from the working directory, as services of CI know it. None
    writes none.
    """

    models: Annotated[
        tuple[Path, ...], Option("ONNX models, and folders of models.", argument=True, metavar="MODEL...")
    ]
    targets: Annotated[
        tuple[str | Target, ...],
        Option(
            "Candidate; repeat for more. Default: the best.",
            flags=("--target", "-t"),
            metavar="TARGET",
            parse=str,
            panel=SELECT,
        ),
    ] = ()
    baseline: Annotated[
        str | Target | None,
        Option("Target to compare with; 'none' for the oracle alone.", metavar="TARGET", parse=str, panel=JUDGE),
    ] = None
    feeds: Annotated[
        Path | None,
        Option(
            "An .npz or a folder of ONNX test data; for several models, a folder with MODEL.npz or MODEL.",
            metavar="FEEDS",
            panel=SELECT,
        ),
    ] = None
    expect: Annotated[
        Path | None,
        Option(
            "Expected outputs: an .npz, or a folder with output_*.pb. It may have the feeds as well.",
            metavar="OUTPUTS",
            panel=SELECT,
        ),
    ] = None
    reference: Annotated[
        Path | None,
        Option(
            "The model that this one was made from, or an .npz of values by their names in this one.",
            metavar="MODEL",
            folder=False,
            panel=JUDGE,
        ),
    ] = None
    dims: Dims = field(default_factory=dict)
    seeds: Seeds = SEEDS
    level: OptimisationLevel = "all"
    rtol: Rtol = None
    atol: Atol = None
    snr: Snr = None
    agreement: Agreement = None
    culprit: Annotated[bool, Option("Find the wrong nodes.", panel=JUDGE)] = True
    strict_nodes: Annotated[
        bool, Option("Fail where a node alone is beyond its bound, also if the outputs are right.", panel=JUDGE)
    ] = False
    advice: Annotated[
        bool, Option("Try changes that would place the remaining nodes on the provider.", panel=JUDGE)
    ] = True
    deadline_s: StepDeadline = DEADLINE_S
    speed: Annotated[bool, Option("Measure latency, memory and the slowest nodes of both targets.", panel=JUDGE)] = (
        False
    )
    vulkan: Vulkan = None
    own_process: OwnProcess = True
    config: Annotated[
        Path | None,
        Option("Use this epcheck.toml, with limits for models.", metavar="FILE", folder=False, panel=MACHINE),
    ] = None
    html: Annotated[
        Path | None,
        Option(
            "Write the page to this file. Default: MODEL.validation.html, or validation.html.",
            metavar="FILE",
            folder=False,
            panel=OUTPUT,
        ),
    ] = None
    json: Annotated[
        Path | None, Option("Write the full result as JSON to this file.", metavar="FILE", folder=False, panel=OUTPUT)
    ] = None
    junit: JUnitFile = None
    sarif: Annotated[
        Path | None, Option("Write SARIF 2.1.0, for code scanning.", metavar="FILE", folder=False, panel=OUTPUT)
    ] = None
    markdown: MarkdownFile = None
    annotations: AnnotationsFile = None

    @property
    def is_single(self) -> bool:
        """Whether it is one file on one target."""
        return len(self.models) == 1 and not self.models[0].is_dir() and len(self.targets) < 2

    @property
    def default_page(self) -> Path:
        """Where the command line writes the page: that of a single model beside it."""
        model = self.models[0]
        return model.with_name(f"{model.name}.validation.html") if self.is_single else Path("validation.html")


def validate(options: ValidateOptions, *, progress: Progress = SILENT) -> Gate:
    """Validate every model on every target, hold it against the limits of epcheck.toml, and write what is asked for.

    Raises OptionError where there is no model, TargetError for a target or an `epcheck.toml` that cannot be used. A
    model or target that cannot be used is a part of the result, and the others are validated nevertheless; a single
    model on a single target raises ModelFileError, ExaminationError, FeedError, DimsError, TargetDown.
    """
    if options.reference and options.reference.suffix == VALUES_SUFFIX and not (options.feeds or options.expect):
        raise OptionError(f"the values in '{options.reference}' are those of some feeds: name these with --feeds")
    limits = of_table(load_config(options.config).get("validate", {}))
    limits = replace(limits, strict_nodes=limits.strict_nodes or options.strict_nodes)
    models = tuple(find_models(options.models))
    with progress.working() as say:
        evaluators = [
            choose(target, options.baseline, options.vulkan, options.config) for target in options.targets or (None,)
        ]
        checked = []
        for name, path in models:
            feeds = options.feeds if len(models) == 1 else _find_feeds(options.feeds, name)
            for targets in evaluators:
                request = _make_request(options, limits, path, feeds, targets)
                checked.append(_check_model(name, request, limits, options, say))
    gate = Gate(tuple(checked), limits, notice_of(options.config))
    write_documents(gate, options)
    return gate


def find_models(paths: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """(name, path) of each model: a file by its name, one in a folder by its path in it. Raises OptionError."""
    counts: dict[str, int] = {}
    for path in paths:
        files = sorted(path.rglob("*.onnx")) if path.is_dir() else [path]
        if not files:
            raise OptionError(f"'{path}' has no .onnx file")
        for file in files:
            name = file.relative_to(path).as_posix() if path.is_dir() else file.name
            counts[name] = counts.get(name, 0) + 1
            yield name if counts[name] == 1 else f"{name} ({counts[name]})", file


def _find_feeds(folder: Path | None, name: str) -> Path | None:
    """The feeds of one of several models; None where the folder has none of that name."""
    if folder is None:
        return None
    places = (folder / f"{Path(name).with_suffix('')}.npz", folder / Path(name).with_suffix(""))
    return next((place for place in places if place.exists()), None)


def _make_request(
    options: ValidateOptions, limits: GateLimits, path: Path, feeds: Path | None, evaluators: Evaluators
) -> ValidationRequest:
    return ValidationRequest(
        path, evaluators, Feeding(feeds, options.seeds, options.dims, expect=options.expect), options.level,
        limits.override(Override(options.rtol, options.atol, options.snr, options.agreement)),
        options.culprit, options.deadline_s, options.speed or limits.latency is not None, options.advice,
        options.reference,
    )  # fmt: skip


def _check_model(
    name: str, request: ValidationRequest, limits: GateLimits, options: ValidateOptions, say: Callable[[str], None]
) -> CheckedModel:
    """Validate a model on a target and hold it against the limits."""
    target = request.evaluators.candidate.name
    try:
        validation = examine_model(request, options.own_process, say)
    except EpcheckError as error:
        if options.is_single:
            raise
        return CheckedModel(name, request.model, target, None, str(error))
    return CheckedModel(
        name, request.model, target, validation, "", find_broken_limits(validation, limits), passes_unjudged(limits)
    )


def examine_model(request: ValidationRequest, own_process: bool, say: Callable[[str], None]) -> Validation:
    """Validate a model, in a process of its own where that is asked for."""
    if not own_process:
        return validate_model(request, say)
    validation = examine(validate_model, request, request.model, say, request.deadline_s, request.evaluators.targets)
    return _restore_own_facts(validation, request)


def _restore_own_facts(validation: Validation, request: ValidationRequest) -> Validation:
    """The validation with what is our own to say: a process that a model has taken over names no file, target or
    argument of a command."""
    path, evaluators = request.model.absolute(), request.evaluators
    candidate, baseline = evaluators.candidate, evaluators.unlike(request.level)[0]
    own = reduce_arguments(evaluators, request.level, request.deadline_s)
    trial = _select_feed_arguments(validation.reduce_args[len(own) :], request.feeding.path)
    return replace(
        validation, path=path, inspection=replace(validation.inspection, path=path), target=candidate.name,
        provider=candidate.provider, baseline=baseline.name if baseline else None, level=request.level,
        configuration=evaluators.configuration, reference=_restore_reference(validation, request),
        reduce_args=(*own, *trial) if validation.reduce_args else (),
    )  # fmt: skip


def _restore_reference(validation: Validation, request: ValidationRequest) -> Comparison | None:
    if validation.reference is None or request.reference is None:
        return None
    return replace(validation.reference, path=request.reference)


def _select_feed_arguments(arguments: Sequence[str], feeds: Path | None) -> Iterator[str]:
    """Which feeds `epcheck reduce` takes: those of the request, or a seed and sizes."""
    for flag, value in zip(arguments[::2], arguments[1::2], strict=False):
        is_of_feeds = feeds is not None and Path(value) in (feeds, feeds / Path(value).name)
        is_allowed = {"--feeds": is_of_feeds, "--seed": value.isdecimal(), "--dim": "=" in value}
        if is_allowed.get(flag):
            yield from (flag, value)


def write_documents(gate: Gate, options: ValidateOptions) -> None:
    """Write the files that are asked for. Raises ModelFileError."""
    single = gate.validation if options.is_single else None
    files = {}
    if options.html:
        files[options.html] = page_bytes(page.render(single) if single else gate_page.render(gate))
    if options.json:
        content = document.document(single) if single else gates.document(gate)
        files[options.json] = strict_json.dumps(content).encode()
    if options.junit:
        files[options.junit] = junit.junit(gate).encode()
    if options.sarif:
        files[options.sarif] = sarif.sarif(gate).encode()
    if options.markdown:
        files[options.markdown] = ci_files.step_summary(gate).encode()
    write_files(files)
    if options.annotations:
        write_annotations(options.annotations, ci_files.annotate(gate))
