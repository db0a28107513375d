"""The fault of a model: the part of it that still fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from epcheck.api.bug_reports.fault import BugReportError, Fault
from epcheck.api.models.reduce import ReduceOptions, reduce, words
from epcheck.api.models.validate import examine_model
from epcheck.api.progress import SILENT
from epcheck.conformance.records.repro_command import folder_name
from epcheck.models.execution.evaluators import choose
from epcheck.models.execution.model_outcome import CREATE, RUN
from epcheck.models.feeds.trials import Feeding
from epcheck.models.validation.validate import ValidationRequest
from epcheck.models.validation.validation import RIGHT, UNJUDGED, Validation
from epcheck.models.wrong_nodes.reduce import MISMATCH, UNSTEADY, Reduced
from epcheck.reports.bug_report.issue import Answer, Issue, title
from epcheck.reports.runs.fingerprint import parts_of

LINE = 300
"""Characters of a message in a table."""

STATUSES = {MISMATCH: "wrong output", UNSTEADY: "outputs change between runs", CREATE: "session creation fails",
            RUN: "run fails", "crash": "process ends", "timeout": "does not end"}  # fmt: skip
"""Status of a reduced model -> in words of a title."""


def fault(model: Path, options: ReduceOptions, out: Path) -> Fault:
    """The fault of a model, reduced and written below `out`. Raises BugReportError where nothing fails, and what
    `validate` and `reduce` raise."""
    found = _validate(model, options)
    if found.status in (RIGHT, UNJUDGED):
        raise BugReportError(f"nothing to report: {found.headline}")
    name = folder_name(model.name)[:60]
    folder = out / name / "repro"
    reduced = reduce(replace(options, model=model, target=found.target, out=folder))
    provider = found.provider or found.target
    operators = ", ".join(dict.fromkeys(node.op_type for node in reduced.nodes))
    status = STATUSES.get(reduced.status, reduced.status)
    issue = Issue(
        title=title(provider, f"{operators}: {status}{f' ({reduced.difference})' if reduced.difference else ''}"),
        summary=f"A part of the model '{model.name}' is not right on {provider}: {words(reduced).rstrip('.')}.",
        expected=_describe_expectation(found),
        message=_message(found),
        facts=tuple(_facts(found, reduced)),
        answers=(
            Answer(found.target, status),
            *((Answer(found.baseline, *_of_baseline(found)),) if found.baseline else ()),
        ),
        provider=provider,
        fingerprint=parts_of(found.facts.get(found.target, {})),
        archive="",
        folder="",
        notes=("Its values are those that the part received within the model.",),
    )
    return Fault(name, folder, found.target, issue)


def _validate(model: Path, options: ReduceOptions) -> Validation:
    feeds = options.feeds if isinstance(options.feeds, Path) else None
    sizes = {name: (size,) for name, size in options.dims.items()}
    request = ValidationRequest(
        model, choose(options.target or None, options.baseline, options.vulkan),
        Feeding(feeds, (options.seed,), sizes), options.level, culprit=False, advice=False,
    )  # fmt: skip
    return examine_model(request, options.own_process, SILENT.say)


def _describe_expectation(found: Validation) -> str:
    if found.baseline and any(step.target == found.baseline and step.during for step in found.steps):
        return f"'{found.baseline}' does not run the model either: what the ONNX standard says of the node"
    against = f"the values that '{found.baseline}' gives" if found.baseline else "the true values"
    return f"{against}, within the errors that allowed_*.pb of the attached folder allow"


def _of_baseline(found: Validation) -> tuple[str, str]:
    """Status and words: the baseline says what is right, as long as it runs the model."""
    failed = next((step for step in found.steps if step.target == found.baseline and step.during), None)
    return ("judged as right", "") if failed is None else (f"fails in {failed.during}", failed.message[:LINE])


def _message(found: Validation) -> str:
    return next((step.message for step in found.steps if step.target == found.target and step.message), "")


def _facts(found: Validation, reduced: Reduced) -> list[tuple[str, str]]:
    opsets = ", ".join(f"{domain} {version}" for domain, version in found.inspection.opsets)
    return [
        ("nodes", ", ".join(map(str, reduced.nodes))),
        ("graph optimisation", reduced.level),
        ("opsets", opsets),
        ("the whole model was made by", found.inspection.producer),
        ("by optimisation level", ", ".join(f"{level}: {result}" for level, result in reduced.culprit.levels.items())),
    ]
