"""A run, and each of its candidates, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from epcheck.conformance.records.run import Run
from epcheck.conformance.records.terms import EXPECTED, FAILURE, FIXED, FLAKY, NOTED, PASS
from epcheck.reports.causes.cause import Cause
from epcheck.reports.runs.summary import NOT_RUN, Summary, TargetSummary
from epcheck.reports.text import format_share


def headline(run: Run, summary: Summary) -> str:
    """The run in one sentence for each candidate, and before it what keeps it from being a whole run."""
    return " ".join(sentences(run, summary))


def sentences(run: Run, summary: Summary) -> list[str]:
    """Those of the headline."""
    problem = describe_problem(run, summary)
    targets = map(target_headline, summary.targets) if summary.recorded else ()
    return [*([problem] if problem else []), *targets]


def describe_problem(run: Run, summary: Summary) -> str:
    """What keeps it from being a whole run, in a sentence; empty where nothing does."""
    if summary.recorded == 0:
        why = {"complete": "none was planned", "running": "the run has not finished"}.get(
            run.status, f"the run {_describe_end(run)}"
        )
        return f"Nothing ran (0 of {summary.planned:,} cases): {why}."
    if summary.missing or run.status != "complete":
        return f"Incomplete ({summary.recorded:,} of {summary.planned:,} cases): {_so(run)}."
    return ""


class TargetFigures(NamedTuple):
    """The figures of a candidate that come first: of each the number, what it counts, and the reading whose colour it
    has, empty for none."""

    target: str
    figures: tuple[tuple[str, str, str], ...]


def figures_of(target: TargetSummary) -> TargetFigures:
    """Failures, their causes, and the share of cases that pass: of those that gave a result."""
    failures, causes = target.by_reading.get(FAILURE, 0), len(target.causes_of(FAILURE))
    rate = target.rate
    found = [(f"{failures:,}", "failure" if failures == 1 else "failures", FAILURE if failures else "")]
    found += [(f"{causes:,}", "cause" if causes == 1 else "causes", "")] if causes else []
    found.append(("nothing", "gave a result", "") if rate is None else (format_share(rate), "pass", ""))
    return TargetFigures(target.target, tuple(found))


def target_headline(target: TargetSummary) -> str:
    """One candidate in one sentence."""
    if target.recorded == 0:
        return f"{target.target}: no case recorded."
    passes, idle = target.by_status.get(PASS, 0), target.by_reading.get(NOT_RUN, 0)
    parts = []
    for reading, singular, plural in (
        (FAILURE, "conformance failure", "conformance failures"),
        (FLAKY, "flaky case", "flaky cases"),
        (FIXED, "expectation that no longer fails", "expectations that no longer fail"),
        (EXPECTED, "expected deviation", "expected deviations"),
        (NOTED, "remark", "remarks"),
    ):
        if count := target.by_reading.get(reading, 0):
            grouped = _count_causes(target.causes_of(reading)) if reading in (FAILURE, EXPECTED) else ""
            parts.append(f"{count:,} {singular if count == 1 else plural}{grouped}")
    if not target.by_reading.get(FAILURE):
        parts.insert(0, "no conformance failure" if passes else "nothing proven")
    by_floor = f" ({target.excused:,} only within a published absolute tolerance)" if target.excused else ""
    parts.append(f"{passes:,} of {target.recorded:,} cases pass{by_floor}")
    if idle:
        parts.append(f"{idle:,} not applicable (the provider does not take them)")
    return f"{target.target}: {', '.join(parts)}."


def _count_causes(causes: Sequence[Cause]) -> str:
    """` (5 causes)`; those that the baseline shows alike are counted apart."""
    own, shared = (sum(cause.shared is each for cause in causes) for each in (False, True))
    parts = [f"{own:,} cause{'s' if own > 1 else ''}"] if own else []
    if shared:
        parts.append(f"{shared:,} {'more ' if own else 'cause' + 's' * (shared > 1) + ' '}that the baseline shows too")
    return f" ({', '.join(parts)})" if parts else ""


def _so(run: Run) -> str:
    return {"complete": "the run says that it is complete", "running": "the run is still going or was killed"}.get(
        run.status, f"the run {_describe_end(run)}"
    )


def _describe_end(run: Run) -> str:
    return "was interrupted" if run.status == "interrupted" else run.status
