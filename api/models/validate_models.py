"""Many models on many targets: one page, one document, and a result that thresholds decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from epcheck.api.models import ci_files
from epcheck.api.models.validate import ValidateOptions, validate
from epcheck.api.models.written_files import page_bytes, write_files
from epcheck.api.option import Group, Option, OptionError
from epcheck.api.option_types import AnnotationsFile, JUnitFile, MarkdownFile
from epcheck.api.progress import SILENT, Progress
from epcheck.conformance.records import strict_json
from epcheck.conformance.targets.config import load_config, notice_of
from epcheck.conformance.targets.target import Target
from epcheck.generators.error import EpcheckError
from epcheck.models.accuracy.thresholds import Override
from epcheck.models.execution.evaluators import choose
from epcheck.models.gate import junit, page, sarif
from epcheck.models.gate.gate import CANNOT_TELL as CANNOT_TELL
from epcheck.models.gate.gate import FAILS as FAILS
from epcheck.models.gate.gate import PASSES as PASSES
from epcheck.models.gate.gate import CheckedModel, document, passes_unjudged
from epcheck.models.gate.gate import Gate as Gate
from epcheck.models.gate.limits import GateLimits, broken, of_table
from epcheck.reports.ci.annotation import write_annotations

EACH = Group(
    ("baseline", "feeds", "dims", "seeds", "level", "rtol", "atol", "snr", "agreement", "culprit", "advice",
     "deadline_s", "speed", "vulkan", "own_process"),
    {"feeds": Option("An .npz or a folder of ONNX test data; of several models a folder with MODEL.npz or MODEL.",
                     flags=("--feeds",))},
)  # fmt: skip


@dataclass(frozen=True)
class ValidateModelsOptions:
    """Which models, on what, how each is validated, and what is written.

    models: files, and folders of which all `.onnx` files are taken. targets: specifications or targets; none for the
    best of this machine. each: how each model is validated; its `model`, `target`, `config`, `html` and `json` are not
    used. config: where [validate] and the tables of targets are; None for `epcheck.toml` of the working directory, if
    there is one. html, json, junit, sarif, markdown, annotations: files that are written; None writes none. The last
    three name a model by its path from the working directory, as services of CI know it.
    """

    models: Annotated[
        tuple[Path, ...], Option("ONNX models, and folders of models.", argument=True, metavar="MODEL...")
    ]
    targets: Annotated[
        tuple[str | Target, ...],
        Option("Candidate; repeat for more. Default: the best.", flags=("--target", "-t"), parse=str),
    ] = ()
    each: Annotated[ValidateOptions, EACH] = field(default_factory=ValidateOptions)
    config: Annotated[Path | None, Option("Another epcheck.toml; its [validate] has the limits.", folder=False)] = None
    html: Annotated[
        Path | None, Option("Write the page here. Default: MODEL.validation.html, or validation.html.", folder=False)
    ] = None
    json: Annotated[Path | None, Option("Write everything as JSON here.", folder=False)] = None
    junit: JUnitFile = None
    sarif: Annotated[Path | None, Option("Write SARIF 2.1.0, for code scanning.", metavar="FILE", folder=False)] = None
    markdown: MarkdownFile = None
    annotations: AnnotationsFile = None


def validate_models(options: ValidateModelsOptions, *, progress: Progress = SILENT) -> Gate:
    """Validate every model on every target, and write page, document and JUnit XML where that is asked for. A model or
    target that cannot be used is part of the result; the others are validated nevertheless.

    Raises OptionError where there is no model, TargetError for a target or an `epcheck.toml` that cannot be used.
    """
    limits = limits_of(options.config)
    paths = tuple(models_of(options.models))
    targets: tuple[str | Target | None, ...] = options.targets or (None,)
    for target in targets:
        choose(target, options.each.baseline, options.each.vulkan, options.config)
    checked = [
        check(_of_model(options, limits, name, path, target, len(paths)), name, limits, progress)
        for name, path in paths
        for target in targets
    ]
    gate = Gate(tuple(checked), limits, notice_of(options.config))
    write(gate, options)
    return gate


def is_single(options: ValidateModelsOptions) -> bool:
    """Whether it is one file on one target, whose page has all answers and whose document is that of a validation."""
    return len(options.models) == 1 and not options.models[0].is_dir() and len(options.targets) < 2


def validate_single(options: ValidateModelsOptions, *, progress: Progress = SILENT) -> Gate:
    """A gate of one file on one target (`is_single`). Raises as `validate` does, and TargetError for an `epcheck.toml`
    that cannot be used."""
    (path,), limits = options.models, limits_of(options.config)
    target = options.targets[0] if options.targets else None
    each = replace(options.each, model=path, target=target, config=options.config, html=options.html,
                   json=options.json)  # fmt: skip
    found = validate(limited(each, limits), progress=progress)
    checked = CheckedModel(path.name, path, found.target, found, "", broken(found, limits), passes_unjudged(limits))
    gate = Gate((checked,), limits, notice_of(options.config))
    write(gate, replace(options, html=None, json=None))
    return gate


def limits_of(config: Path | None) -> GateLimits:
    """The limits of an `epcheck.toml`. Raises TargetError."""
    return of_table(load_config(config).get("validate", {}))


def models_of(paths: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """(name, path) of each model: a file by its name, one in a folder by its path in it. Raises OptionError."""
    seen: dict[str, int] = {}
    for path in paths:
        found = sorted(path.rglob("*.onnx")) if path.is_dir() else [path]
        if not found:
            raise OptionError(f"'{path}' has no .onnx file")
        for each in found:
            name = each.relative_to(path).as_posix() if path.is_dir() else each.name
            seen[name] = seen.get(name, 0) + 1
            yield name if seen[name] == 1 else f"{name} ({seen[name]})", each


def limited(options: ValidateOptions, limits: GateLimits) -> ValidateOptions:
    """The options of a model, with the thresholds of its outputs, and its speed where that has a limit."""
    chosen = limits.override(Override(options.rtol, options.atol, options.snr, options.agreement))
    return replace(
        options, rtol=chosen.relative, atol=chosen.absolute, snr=chosen.snr_db, agreement=chosen.agreement,
        speed=options.speed or limits.latency is not None,
    )  # fmt: skip


def check(options: ValidateOptions, name: str, limits: GateLimits, progress: Progress = SILENT) -> CheckedModel:
    """Validate a model on a target and hold it against the limits."""
    asked = options.target.name if isinstance(options.target, Target) else options.target
    try:
        found = validate(options, progress=progress)
    except EpcheckError as error:
        target = asked or choose(None, options.baseline, options.vulkan, options.config).candidate.name
        return CheckedModel(name, options.model, target, None, str(error))
    return CheckedModel(
        name, options.model, asked or found.target, found, "", broken(found, limits), passes_unjudged(limits)
    )


def write(gate: Gate, options: ValidateModelsOptions) -> None:
    """The files that are asked for."""
    if options.html is not None:
        write_files({options.html: page_bytes(page.render(gate))})
    if options.json is not None:
        _write(options.json, strict_json.dumps(document(gate)))
    if options.junit is not None:
        _write(options.junit, junit.junit(gate))
    if options.sarif is not None:
        _write(options.sarif, sarif.sarif(gate))
    if options.markdown is not None:
        _write(options.markdown, ci_files.step_summary(gate))
    if options.annotations is not None:
        write_annotations(options.annotations, ci_files.annotate(gate))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _of_model(
    options: ValidateModelsOptions, limits: GateLimits, name: str, path: Path, target: str | Target | None, count: int
) -> ValidateOptions:
    feeds = options.each.feeds
    if feeds is not None and count > 1:
        places = (feeds / f"{Path(name).with_suffix('')}.npz", feeds / Path(name).with_suffix(""))
        feeds = next((place for place in places if place.exists()), None)
    return limited(replace(options.each, model=path, target=target, feeds=feeds, config=options.config, html=None,
                           json=None), limits)  # fmt: skip
