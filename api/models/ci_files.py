"""What a CI step shows of a gate: annotations beside the models' files, and the summary of the step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from epcheck.models.gate.gate import FAILS, PASSES, CheckedModel, Gate
from epcheck.models.validation.formatting import number, percent
from epcheck.reports.ci.annotation import ERROR, LONGEST, WARNING, Annotation, at_most
from epcheck.reports.ci.step_summary import NO_SIGN, SIGNS
from epcheck.reports.markdown import code, escape_markdown, row

FAULTS = 3
"""Faults of a model that the summary lists."""

PART = 60
"""Characters of a sentence of an annotation that are kept in any case."""

SHOWN = 50
"""Models that the summary lists; the page has all."""


def annotate(gate: Gate, root: Path | None = None) -> tuple[Annotation, ...]:
    """At most ten, one for each model and target that does not pass or has a wrong node, what fails first. root: of the
    repository; None for the working directory."""
    base = _base(root)
    wrong = sorted(_noteworthy(gate), key=lambda each: each.result != FAILS)
    return at_most([_annotation(checked, base) for checked in wrong])


def step_summary(gate: Gate, root: Path | None = None) -> str:
    """Markdown: a row for each model and target, then what to do about those that do not pass. root: as above."""
    return "\n".join(_lines(gate, _base(root)))


def _noteworthy(gate: Gate) -> Iterator[CheckedModel]:
    """What does not pass, or has a wrong node."""
    return (checked for checked in gate.checked if checked.result != PASSES or checked.has_wrong_nodes)


def _base(root: Path | None) -> Path:
    return (root or Path()).resolve()


def _relative(text: str, base: Path) -> str:
    """The text with the paths of files below `base` as they are from there."""
    return text.replace(f"{base}{os.sep}", "")


def _annotation(checked: CheckedModel, base: Path) -> Annotation:
    path = checked.path.resolve()
    file = path.relative_to(base).as_posix() if path.is_relative_to(base) else ""
    level = ERROR if checked.result == FAILS else WARNING
    title = f"{checked.name} on {checked.target}: {checked.status}"
    return Annotation(level, title, "\n".join(_sentences(checked, base)), file)


def _sentences(checked: CheckedModel, base: Path) -> Iterator[str]:
    """What is wrong, where, what to do, and the command that shows it again, of the first fault; and how many more
    there are, with paths from `base`. All fit: what is cut are sentences, and no command that leaves room for them."""
    fault, *more = checked.faults or (None,)
    command = _relative(f"reproduce: {fault.command if fault else checked.command}", base)
    left = f"{len(more)} more: see the page" if more else ""
    sentences = [_relative(checked.words, base)]
    if fault is not None:
        rest = (part for part in fault.parts if part[1] != fault.command and part[1] not in checked.words)
        sentences += (_relative(f"{title}: {text}", base) for title, text in rest)
    most = max(PART, (LONGEST - len(command) - len(left)) // len(sentences) - 1)
    yield from (text if len(text) <= most else f"{text[: most - 1]}…" for text in sentences)
    yield command
    yield from (left,) if left else ()


def _lines(gate: Gate, base: Path) -> Iterator[str]:
    sign = {PASSES: SIGNS[True], FAILS: SIGNS[False]}.get(gate.result, NO_SIGN)
    yield f"## {sign} epcheck validate: {escape_markdown(gate.headline)}"
    yield ""
    yield row(("model", "target", "result", "placed", "error"))
    yield row(("---", "---", "---", "---:", "---:"))
    for checked in gate.checked[:SHOWN]:
        found = checked.validation
        figures = (percent(found.placed_share), number(found.error)) if found else ("", "")
        yield row(map(escape_markdown, (checked.name, checked.target, checked.status, *figures)))
    yield ""
    if len(gate.checked) > SHOWN:
        yield f"… and {len(gate.checked) - SHOWN:,} more: see the page."
        yield ""
    wrong = list(_noteworthy(gate))
    for checked in wrong[:SHOWN]:
        words = _relative(f"{checked.name} on {checked.target}: {checked.words}", base)
        yield f"- {escape_markdown(words)}"
        for fault in checked.faults[:FAULTS]:
            where = f"{fault.where}: " if fault.where and fault.where not in checked.words else ""
            remedy = escape_markdown(_relative(f"{where}{fault.remedy}", base))
            yield f"  - {remedy}; reproduce: {code(_relative(fault.command, base))}"
        if len(checked.faults) > FAULTS:
            yield f"  - and {len(checked.faults) - FAULTS} more: see the page"
    yield from ("",) if wrong else ()
