"""A run as Markdown, for the summary of a CI step: the verdict, what it rests on, and the causes of what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from epcheck.conformance.records.run import Run
from epcheck.conformance.records.terms import EXPECTED, FAILURE, FIXED, FLAKY, PASS
from epcheck.reports.causes.cause import Cause
from epcheck.reports.ci.from_run import operators_of
from epcheck.reports.markdown import code, escape_markdown, row
from epcheck.reports.runs.fingerprint import release_of
from epcheck.reports.runs.headline import headline
from epcheck.reports.runs.summary import WORST_FIRST, Summary, TargetSummary

SHOWN = 10
"""Causes that are written out, of all candidates together; the page has all."""

REASON = 240
"""Characters of a cause."""

SIGNS = {True: "✅", False: "❌"}
NO_SIGN = "⚠️"

TO_DO = (FAILURE, FLAKY, FIXED)
"""Readings that ask for something to be done."""

FACTS = ("adapter", "driver", "graphics_stack", "processor", "os")
"""Facts of a target that the table of targets has, as far as there is room: the first two of them that are known."""


def step_summary(run: Run, summary: Summary) -> str:
    """The run as Markdown, that ends with a newline."""
    return "\n".join(_lines(run, summary))


def _lines(run: Run, summary: Summary) -> Iterator[str]:
    yield f"## {_sign(run, summary)} epcheck: {escape_markdown(', '.join(run.candidates))}"
    yield ""
    yield escape_markdown(headline(run, summary))
    yield ""
    readings = [reading for reading in WORST_FIRST if summary.by_reading.get(reading) and reading != "ok"]
    yield row(("target", "release", "on", "cases", "pass", *(reading.replace("-", " ") for reading in readings)))
    yield row(("---", "---", "---", *["---:"] * (2 + len(readings))))
    for target in summary.targets:
        yield row(_target(target, run.targets.get(target.target, {}), readings))
    yield ""
    yield from _causes([cause for target in summary.targets for cause in target.causes], len(run.candidates) > 1)
    for entry in run.stale:
        yield f"- stale expectation, no case has it: {escape_markdown(entry)}"
    yield from ("",) if run.stale else ()


def _sign(run: Run, summary: Summary) -> str:
    if run.status != "complete" or summary.missing or not summary.recorded:
        return NO_SIGN
    return SIGNS[not summary.by_reading.get(FAILURE)]


def _target(target: TargetSummary, facts: Mapping[str, str], readings: Sequence[str]) -> Iterator[str]:
    yield escape_markdown(target.target)
    yield escape_markdown(release_of(facts))
    yield escape_markdown(", ".join(list(dict.fromkeys(facts[name] for name in FACTS if facts.get(name)))[:2]))
    yield f"{target.recorded:,}"
    yield f"{target.by_status.get(PASS, 0):,}"
    yield from (f"{target.by_reading.get(reading, 0):,}" for reading in readings)


def _causes(causes: Sequence[Cause], several: bool) -> Iterator[str]:
    wrong = sorted((cause for cause in causes if cause.reading in TO_DO), key=lambda cause: TO_DO.index(cause.reading))
    if wrong:
        head = ("", "cases", "operators", "blame", "why", "smallest case")
        yield row((*head, "target") if several else head)
        yield row("---" for _ in (*head, *(["target"] * several)))
        for cause in wrong[:SHOWN]:
            yield row((*_cause(cause), *([escape_markdown(cause.target)] * several)))
        yield ""
    if len(wrong) > SHOWN:
        yield f"… and {len(wrong) - SHOWN:,} more causes: see the report."
        yield ""
    expected = [cause for cause in causes if cause.reading == EXPECTED]
    if expected:
        yield f"<details><summary>{_describe_counts(expected)}</summary>"
        yield ""
        for cause in sorted(expected, key=lambda cause: -cause.cases)[:SHOWN]:
            yield f"- {cause.cases:,} of {escape_markdown(operators_of(cause))}: {escape_markdown(_short(cause.text))}"
        yield from [f"- … and {len(expected) - SHOWN:,} more: see the report"] if len(expected) > SHOWN else []
        yield ""
        yield "</details>"
        yield ""


def _cause(cause: Cause) -> Iterator[str]:
    yield cause.reading
    yield f"{cause.cases:,}"
    yield escape_markdown(operators_of(cause))
    yield ", ".join(name or "nobody" for name in cause.blames)
    place = "" if cause.place in ("", *cause.operators) else f" ({escape_markdown(cause.place)})"
    yield f"{escape_markdown(_short(cause.title))}{place}"
    yield code(cause.repro)


def _describe_counts(causes: Sequence[Cause]) -> str:
    cases = sum(cause.cases for cause in causes)
    kinds = f"{len(causes):,} cause{'s' if len(causes) > 1 else ''}"
    return f"{cases:,} expected deviation{'s' if cases > 1 else ''} of {kinds}"


def _short(text: str) -> str:
    return text if len(text) <= REASON else f"{text[: REASON - 1]}…"
