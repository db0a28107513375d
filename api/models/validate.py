"""Do models load on targets, where does each node run, are the outputs right; if not, which nodes are wrong."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from epcheck.api.interruption import CLOSING_S, interruptible
from epcheck.api.models import ci_files
from epcheck.api.models.examining.examination import BudgetSpent, ExaminationError, examine
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
from epcheck.api.models.validation_state import SUFFIX, keep_model, read_state, write_state
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
from epcheck.models.gate.limits import GateLimits, find_broken_limits, find_missing_steps, of_table
from epcheck.models.validation import document, page
from epcheck.models.validation.departures import VALUES_SUFFIX, Comparison
from epcheck.models.validation.validate import (
    ValidationRequest,
    reduce_arguments,
    validate_arguments,
    validate_model,
)
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
    session. budget: seconds for the whole call, after which no step begins and the one under way is ended; None for
    that of epcheck.toml, or no end. resume: go on with what `state` has of a validation that was interrupted, or ran
    out of its budget; state: that file, by default beside the page. speed: measure latency, memory and the slowest
    nodes of both targets. config: where [validate] and the tables of targets are; None for `epcheck.toml` of the
    working directory, if there is one. html, json: files that are written, of one model file on one target with
    everything about it. junit, sarif, markdown, annotations: files that are written; the last three name a model by its
    path from the working directory, as services of CI know it. None writes none.
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
    generate: Annotated[
        int | None,
        Option("Decode so many tokens with the cache of a language model, in every mode.", metavar="N", minimum=1,
               maximum=512, panel=JUDGE),
    ] = None  # fmt: skip
    advice: Annotated[
        bool, Option("Try changes that would place the remaining nodes on the provider.", panel=JUDGE)
    ] = True
    deadline_s: StepDeadline = DEADLINE_S
    speed: Annotated[bool, Option("Measure latency, memory and the slowest nodes of both targets.", panel=JUDGE)] = (
        False
    )
    budget: Annotated[
        float | None,
        Option("Time limit for the whole command; what is known is written.", metavar="SECONDS", minimum=1,
               panel=MACHINE),
    ] = None  # fmt: skip
    resume: Annotated[
        bool, Option("Continue a validation that was interrupted or out of its budget.", panel=MACHINE)
    ] = False
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
    state: Annotated[
        Path | None,
        Option("The file for --resume. Default: the page's name with .state.json.", metavar="FILE", folder=False,
               panel=OUTPUT),
    ] = None  # fmt: skip
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

    @property
    def state_file(self) -> Path | None:
        """Where a validation that does not end is kept; None where no file is written beside which it could be."""
        return self.state or (self.html and self.html.with_name(f"{self.html.name}{SUFFIX}"))


class ValidationInterrupted(KeyboardInterrupt):
    """A validation was interrupted: `gate` has what is known, which is written."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self.gate = gate


def validate(options: ValidateOptions, *, progress: Progress = SILENT) -> Gate:
    """Validate every model on every target, hold it against the limits of epcheck.toml, and write what is asked for.

    A call that is interrupted, or out of its budget, writes what is known, and the state with which `resume` goes on.

    Raises OptionError where there is no model, TargetError for a target or an `epcheck.toml` that cannot be used,
    StateError for a state that does not belong to the call; ValidationInterrupted. A model or target that cannot be
    used is a part of the result, and the others are validated nevertheless; a single model on a single target raises
    ModelFileError, ExaminationError, FeedError, DimsError, NotADecoderError, TargetDown.
    """
    if options.reference and options.reference.suffix == VALUES_SUFFIX and not (options.feeds or options.expect):
        raise OptionError(f"the values in '{options.reference}' are those of some feeds: name these with --feeds")
    limits = of_table(load_config(options.config).get("validate", {}))
    limits = replace(limits, strict_nodes=limits.strict_nodes or options.strict_nodes,
                     budget=limits.budget if options.budget is None else options.budget)  # fmt: skip
    models = tuple(find_models(options.models))
    with progress.working() as say:
        evaluators = [
            choose(target, options.baseline, options.vulkan, options.config) for target in options.targets or (None,)
        ]
        requests = {}
        for name, path in models:
            feeds = options.feeds if len(models) == 1 else _find_feeds(options.feeds, name)
            for targets in evaluators:
                requests[name, targets.candidate.name] = _make_request(options, limits, path, feeds, targets)
        checking = _Checking(options, limits, requests, say)
        with interruptible(CLOSING_S):
            try:
                checking.run()
            except KeyboardInterrupt:
                checking.stop()
                raise ValidationInterrupted(checking.close()) from None
            return checking.close()


class _Checking:
    """The validations of one call, one after the other. requests: by model and target."""

    def __init__(
        self,
        options: ValidateOptions,
        limits: GateLimits,
        requests: Mapping[tuple[str, str], ValidationRequest],
        say: Callable[[str], None],
    ) -> None:
        """Raises StateError."""
        self._options, self._limits, self._requests, self._say = options, limits, requests, say
        self._began = time.monotonic()
        self._checked: dict[tuple[str, str], CheckedModel] = {}
        self._known = self._read_state()
        self._stopped = ""

    def run(self) -> None:
        """Validate each model on each target, as long as the budget lasts."""
        for key, request in self._requests.items():
            earlier = self._known.get(key)
            if earlier is not None and not earlier.left_out:
                self._checked[key] = self._judge(key, restore_own_facts(earlier, request))
                continue
            remaining = self._remaining_s()
            if remaining is not None and remaining <= 0:
                self._stopped = self._say_spent()
                return
            self._checked[key] = self._validate(key, replace(request, budget_s=remaining, known=earlier))
            if not self._checked[key].is_finished:
                self._stopped = self._stopped or self._say_stopped(self._checked[key])
            elif len(self._checked) < len(self._requests):
                self._write_state()

    def stop(self) -> None:
        """The call was interrupted."""
        self._stopped = "interrupted"

    def close(self) -> Gate:
        """The result, which is written with the state of what is not finished."""
        checked = [self._checked.get(key) or self._leave_out(key) for key in self._requests]
        gate = Gate(tuple(checked), self._limits, notice_of(self._options.config), self._stopped)
        if all(each.is_finished for each in checked):
            if self._options.state_file is not None:
                self._options.state_file.unlink(missing_ok=True)
        else:
            self._write_state()
        write_documents(gate, self._options)
        return gate

    def _validate(self, key: tuple[str, str], request: ValidationRequest) -> CheckedModel:
        """Validate a model on a target and hold it against the limits."""
        try:
            found = examine_model(request, self._options.own_process, self._say, partial(self._keep, key))
        except BudgetSpent:
            self._stopped = self._say_spent()
            return self._leave_out(key)
        except EpcheckError as error:
            known = self._known.get(key)
            if isinstance(error, ExaminationError) and known is not None and known is not request.known and known.steps:
                return self._judge(key, replace(known, stopped=str(error)))
            if self._options.is_single:
                raise
            return CheckedModel(key[0], request.model, key[1], None, str(error))
        self._known.pop(key, None)
        return self._judge(key, replace(found, stopped=self._say_spent() if found.left_out else ""))

    def _keep(self, key: tuple[str, str], known: Validation) -> None:
        """Keep what is known of the model that is being validated."""
        self._known[key] = restore_own_facts(known, self._requests[key])

    def _judge(self, key: tuple[str, str], found: Validation) -> CheckedModel:
        missing = find_missing_steps(found, self._limits)
        return CheckedModel(
            key[0], self._requests[key].model, key[1], found, "", find_broken_limits(found, self._limits),
            passes_unjudged(self._limits), missing,
        )  # fmt: skip

    def _leave_out(self, key: tuple[str, str]) -> CheckedModel:
        """A model that is not finished: with what is known of it, if anything is."""
        found = self._known.get(key)
        if found is not None:
            return self._judge(key, replace(found, stopped=self._stopped))
        return CheckedModel(key[0], self._requests[key].model, key[1], None, f"not validated: {self._stopped}",
                            is_begun=False)  # fmt: skip

    def _remaining_s(self) -> float | None:
        budget = self._limits.budget
        return None if budget is None else budget - (time.monotonic() - self._began)

    def _say_stopped(self, checked: CheckedModel) -> str:
        return checked.validation.stopped if checked.validation else self._say_spent()

    def _say_spent(self) -> str:
        return f"the budget of {self._limits.budget:g} s is spent"

    def _read_state(self) -> dict[tuple[str, str], Validation]:
        if not self._options.resume:
            return {}
        if self._options.state_file is None:
            raise OptionError("--resume needs the state of the validation that was interrupted: --state FILE")
        return read_state(self._options.state_file, self._requests)

    def _write_state(self) -> None:
        if self._options.state_file is None:
            return
        known = {**self._known, **{key: each.validation for key, each in self._checked.items() if each.validation}}
        write_state(self._options.state_file, [keep_model(key[0], self._requests[key], validation)
                                               for key, validation in known.items()])  # fmt: skip


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
        options.reference, generate=options.generate,
    )  # fmt: skip


def examine_model(
    request: ValidationRequest,
    own_process: bool,
    say: Callable[[str], None],
    keep: Callable[[Validation], None] = lambda _known: None,
) -> Validation:
    """Validate a model, in a process of its own where that is asked for. keep: takes what is known after each step.
    Raises BudgetSpent where the budget of the request is spent within a step."""
    if not own_process:
        return validate_model(request, say, keep)
    targets, budget = request.evaluators.targets, math.inf if request.budget_s is None else request.budget_s
    validation = examine(validate_model, request, request.model, say, request.deadline_s, targets, keep, budget)
    return restore_own_facts(validation, request)


def restore_own_facts(validation: Validation, request: ValidationRequest) -> Validation:
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
        reduce_args=(*own, *trial) if validation.reduce_args else (), validate_args=validate_arguments(request),
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
    single = gate.checked[0].validation if options.is_single else None
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
