"""A comparison as one self-contained page (see `shell`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from epcheck.conformance.records.repro_command import repro_command
from epcheck.reports.diff.assessment import DIFFERS, FIRST, GOOD, NOT_RUN, SAME, WORSE, Assessment
from epcheck.reports.diff.classification import FLAPPING, KINDS, REGRESSION, REPAIRED, STILL, TOLERATED
from epcheck.reports.diff.classification import NOT_RUN as NOT_RUN_CASES
from epcheck.reports.diff.difference import Difference
from epcheck.reports.diff.formatting import (
    PHASES,
    format_accuracy,
    format_bisect,
    format_change,
    format_count,
    format_run,
    format_speed,
)
from epcheck.reports.diff.wording import wording
from epcheck.reports.faults.fault_search import FaultSearch
from epcheck.reports.page import shell
from epcheck.reports.page.chart import BARS, Chart, Series
from epcheck.reports.report_links import NO_LINKS, ReportLinks

STATES = {GOOD: "ok", FIRST: "ok", WORSE: "failure", NOT_RUN: "incomplete", SAME: "ok", DIFFERS: "noted"}
"""Result of an assessment -> the style class of its headline."""

CHARTED = {REGRESSION: "failure", STILL: "failure", REPAIRED: "ok"}
"""The kinds that the chart by operator has, and the readings whose colours they have there."""

READINGS = {REGRESSION: "failure", STILL: "failure", FLAPPING: "flaky", REPAIRED: "ok", TOLERATED: "expected"}
"""Kinds of groups -> the readings whose colours they have."""

AT_ONCE, GROUPS, LINES, CASES = 8, 200, 200, 20
"""Groups of a kind that are seen without a click; groups of a kind, lines of a drift and cases of a group that the page
has; the JSON document has all."""

OPERATORS = 25
"""Operators that the chart has, those with the most changes first."""


def write_page(
    file: IO[bytes],
    title: str,
    assessments: Sequence[Assessment],
    links: ReportLinks = NO_LINKS,
    searches: Sequence[FaultSearch] = (),
) -> None:
    """Write the page of one assessment or several. links: into the reports of the runs. searches: for faults."""
    shell.write(
        file,
        "diff/difference.html.j2",
        styles=("shell/shell_views.css", "diff/difference.css"),
        heading=title,
        links=links,
        assessments=assessments,
        searches=searches,
        states=STATES,
        kinds=KINDS,
        readings=READINGS,
        changes_of=lambda difference: {change.title: change for change in difference.causes},
        words=[wording(assessment.difference.sides if assessment.difference else None) for assessment in assessments],
        phases=PHASES,
        charts={
            assessment.target: by_operator(assessment.difference) for assessment in assessments if assessment.difference
        },
        urgent=(REGRESSION, NOT_RUN_CASES, FLAPPING),
        most={"at_once": AT_ONCE, "groups": GROUPS, "lines": LINES, "cases": CASES},
        format={
            "accuracy": format_accuracy,
            "bisect": format_bisect,
            "count": format_count,
            "repro": repro_command,
            "run": format_run,
            "speed": format_speed,
            "change": format_change,
        },
    )


def by_operator(difference: Difference) -> Chart | None:
    """How many cases of each operator broke, still fail or were fixed; None where none did."""
    counts: dict[str, dict[str, int]] = {}
    for group in difference.of(*CHARTED):
        for operator, count in group.operators.items():
            counts.setdefault(operator, dict.fromkeys(CHARTED, 0))[group.kind] += count
    if not counts:
        return None
    names = wording(difference.sides).names
    largest = sorted(counts, key=lambda operator: (-counts[operator][REGRESSION], -sum(counts[operator].values())))
    shown = tuple(largest[:OPERATORS])
    counted = {kind: reading for kind, reading in CHARTED.items() if any(counts[name][kind] for name in shown)}
    series = tuple(
        Series(names[kind], tuple(float(counts[operator][kind]) for operator in shown), reading)
        for kind, reading in counted.items()
    )
    rest = f" ({len(shown)} of {len(counts)} operators)" if len(shown) < len(counts) else ""
    kind = f", {series[0].name}" if len(series) == 1 else ""
    return Chart(f"Cases by operator{kind}{rest}", shown, series, unit="cases", kind=BARS)
