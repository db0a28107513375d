"""A comparison as one self-contained page (see `shell`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from epcheck.reports.diff.difference import KINDS, REGRESSION, REPAIRED, STILL, Difference
from epcheck.reports.diff.verdict import FIRST, GOOD, NOT_RUN, WORSE, Verdict
from epcheck.reports.diff.words import (
    PHASES,
    accuracy_in_words,
    cases_in_words,
    side_in_words,
    speed_in_words,
    step_in_words,
)
from epcheck.reports.page import shell
from epcheck.reports.page.chart import BARS, Chart, Series

STATES = {GOOD: "ok", FIRST: "ok", WORSE: "failure", NOT_RUN: "incomplete"}
"""Verdict -> the look of its headline."""

CHARTED = (REGRESSION, STILL, REPAIRED)
"""The kinds that the chart by operator has."""

GROUPS, LINES, CASES = 200, 200, 20
"""Groups of a kind, lines of a drift and cases of a group that the page has; the JSON document has all."""

OPERATORS = 25
"""Operators that the chart has, those with the most changes first."""


def write_page(file: IO[bytes], title: str, verdicts: Sequence[Verdict]) -> None:
    """Write the page of one verdict or several."""
    shell.write(
        file,
        "diff/difference.html.j2",
        styles=("diff/difference.css",),
        heading=title,
        verdicts=verdicts,
        states=STATES,
        kinds=KINDS,
        phases=PHASES,
        charts={verdict.target: by_operator(verdict.difference) for verdict in verdicts if verdict.difference},
        most={"groups": GROUPS, "lines": LINES, "cases": CASES},
        words={
            "accuracy": accuracy_in_words,
            "cases": cases_in_words,
            "side": side_in_words,
            "speed": speed_in_words,
            "step": step_in_words,
        },
    )


def by_operator(difference: Difference) -> Chart | None:
    """How many cases of each operator broke, still fail or were fixed; None where none did."""
    counts: dict[str, dict[str, int]] = {}
    for group in difference.of(*CHARTED):
        of_operator = counts.setdefault(group.operator, dict.fromkeys(CHARTED, 0))
        of_operator[group.kind] += len(group.case_ids)
    if not counts:
        return None
    largest = sorted(counts, key=lambda operator: (-counts[operator][REGRESSION], -sum(counts[operator].values())))
    shown = tuple(largest[:OPERATORS])
    series = tuple(Series(kind, tuple(float(counts[operator][kind]) for operator in shown)) for kind in CHARTED)
    rest = f" ({len(shown)} of {len(counts)} operators)" if len(shown) < len(counts) else ""
    return Chart(f"Cases by operator{rest}", shown, series, unit="cases", kind=BARS)
