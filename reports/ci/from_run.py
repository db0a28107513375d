"""What the annotations of a run say: a cause is one, however many cases it has."""

from __future__ import annotations

from epcheck.conformance.records.run import Run
from epcheck.conformance.records.terms import FAILURE, FIXED, FLAKY
from epcheck.reports.causes.cause import Cause
from epcheck.reports.ci.annotation import ERROR, WARNING, Annotation, at_most
from epcheck.reports.runs.headline import headline
from epcheck.reports.runs.summary import Summary

LEVELS = {FAILURE: ERROR, FLAKY: WARNING, FIXED: WARNING}
"""Reading -> the level of its annotations; of other readings there are none."""

OPERATORS = 3
"""Operators that a title names."""


def annotate(run: Run, summary: Summary) -> tuple[Annotation, ...]:
    """At most ten, failures first. A run that says nothing, or has not ended, has one that says so."""
    found = [] if run.status == "complete" and not summary.missing else [_incomplete(run, summary)]
    causes = [cause for target in summary.targets for cause in target.causes if cause.reading in LEVELS]
    causes.sort(key=lambda cause: (list(LEVELS).index(cause.reading), -cause.cases))
    return at_most((*found, *map(_of_cause, causes)))


def _incomplete(run: Run, summary: Summary) -> Annotation:
    return Annotation(ERROR, f"epcheck: the run is {run.status}", headline(run, summary))


def _of_cause(cause: Cause) -> Annotation:
    cases = f"{cause.cases:,} case{'s' if cause.cases > 1 else ''}"
    title = f"{cause.target}: {cause.reading}, {cases} of {operators_of(cause)}"
    lines = [cause.title, cause.evidence, f"smallest: {cause.repro}", cause.link]
    if cause.place and cause.place not in cause.operators:
        lines.insert(1, f"at {cause.place}")
    return Annotation(LEVELS[cause.reading], title, "\n".join(filter(None, lines)))


def operators_of(cause: Cause) -> str:
    """The operators of a cause, the first three by name."""
    more = len(cause.operators) - OPERATORS
    return ", ".join(cause.operators[:OPERATORS]) + (f" and {more} more" if more > 0 else "")
