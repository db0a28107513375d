"""A trend as a page: rates over the nights as charts, what broke and what came with it, machines side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from epcheck.conformance.records.terms import FAILURE
from epcheck.reports.page import shell
from epcheck.reports.page.chart import Chart, Mark, Series
from epcheck.reports.report_links import NO_LINKS, ReportLinks
from epcheck.reports.runs.run_folder import replacing
from epcheck.reports.store.machines import Machine
from epcheck.reports.store.nights import Completeness
from epcheck.reports.trend import sections
from epcheck.reports.trend.trend import Trend

FAMILY_CHARTS = 12
"""Families that have a chart: those whose rate moved most."""

MARKS = 40
"""Changes of drivers and runtimes that are marked in a chart; the newest ones."""

CASES = 200
"""Cases of an event that are listed; the JSON document has all."""


def write_html(trend: Trend, path: Path, root: Path | None = None) -> Path:
    """Write the trend as one self-contained page. Raises StoreError.

    root: where run folders are; cases are linked to the reports of those that are there.
    """
    links = NO_LINKS if root is None else ReportLinks(path, {run_id: root / run_id for run_id in _run_ids(trend)})
    with replacing(path) as file:
        shell.write(
            file,
            "trend/trend.html.j2",
            trend=trend,
            links=links,
            sentences=sections,
            broken=[event for event in trend.events if event.broke and event.lasting],
            sections={section.title: section for section in sections.sections(trend, most=1000)},
            rates=_chart(trend, "Pass rate: passing / (passing + failing) cases", "%", _rates, _marks(trend)),
            failures=_in_red(_chart(trend, "Failing cases, relative to the first night", "cases", _more_failures)),
            families=[
                _chart(trend, family, "points", partial(_points, family=family)) for family in _find_most_moved(trend)
            ],
            most=CASES,
        )
    return path


def _run_ids(trend: Trend) -> set[str]:
    """The runs in which a listed case failed."""
    events = {event.failing_run_id for event in trend.events}
    return events | {night.run_id for night in trend.single_nights}


Values = Callable[[Machine], dict[str, float | None]]
"""The numbers of a machine by the labels of its nights."""


def _chart(trend: Trend, title: str, unit: str, values: Values, marks: tuple[Mark, ...] = ()) -> Chart:
    """One line for each machine, with a gap where it did not run."""
    found = [(machine.name, values(machine)) for machine in trend.machines]
    series = tuple(Series(name, tuple(each.get(label) for label in trend.labels)) for name, each in found)
    return Chart(title, trend.labels, series, unit, marks=marks)


def _in_red(chart: Chart) -> Chart:
    """A chart of failures: red where it has one line, whose colour tells it from no other."""
    lone = len(chart.series) == 1
    return replace(chart, series=tuple(replace(series, reading=FAILURE) for series in chart.series)) if lone else chart


def _rates(machine: Machine) -> dict[str, float | None]:
    return {night.label: None if (rate := night.rate()) is None else 100 * rate for night in machine.nights}


def _more_failures(machine: Machine) -> dict[str, float | None]:
    """Against the first whole night: what moves is small beside what always fails."""
    failing = {
        night.label: float(night.counts.failing) for night in machine.nights if night.completeness is Completeness.WHOLE
    }
    start = next(iter(failing.values()), 0.0)
    return {label: number - start for label, number in failing.items()}


def _points(machine: Machine, family: str) -> dict[str, float | None]:
    """By how many percentage points the rate of a family differs from that of the first whole night."""
    rates = {night.label: rate for night in machine.nights if (rate := night.rate(family)) is not None}
    start = next(iter(rates.values()), 0.0)
    return {label: round(100 * (rate - start), 6) for label, rate in rates.items()}


def _marks(trend: Trend) -> tuple[Mark, ...]:
    """What changed on which machines, one mark for each night."""
    night_indices = {label: index for index, label in enumerate(trend.labels)}
    changes: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for machine in trend.machines:
        for night in machine.nights:
            if night.changed:
                changes[night_indices[night.label]]["; ".join(map(str, night.changed))].append(machine.name)
    newest = sorted(changes.items())[-MARKS:]
    return tuple(
        Mark(index, "; ".join(f"{', '.join(names)}: {what}" for what, names in of_night.items()))
        for index, of_night in newest
    )


def _find_most_moved(trend: Trend) -> list[str]:
    """Families whose rate was not the same in all nights, in the order of how far it moved."""
    moved = {}
    for family in trend.families:
        spans = [
            max(rates) - min(rates)
            for machine in trend.machines
            if (rates := [rate for night in machine.nights if (rate := night.rate(family)) is not None])
        ]
        if spans and max(spans) > 0:
            moved[family] = max(spans)
    return sorted(moved, key=lambda family: -moved[family])[:FAMILY_CHARTS]
