"""The summary of a run in the terminal: what is wrong comes last, directly above the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from epcheck import reports
from epcheck.api.runs.result import RunResult
from epcheck.cli.terminal.colours import COLOURS
from epcheck.cli.terminal.plain import printable, safe
from epcheck.conformance.records.case_facts import qualified_name
from epcheck.conformance.records.terms import FAILURE, FIXED, FLAKY, OK
from epcheck.reports.notes import folded
from epcheck.reports.runs.causes import Cause
from epcheck.reports.runs.summary import NOT_RUN

CAUSES = 12
"""Causes of failures that the summary lists; the report has all."""

OPERATORS = 25
"""Up to so many operators each has its row; of more only those have one in which something is to be done."""

NOTES = 5
"""Kinds of notes that the summary lists; the report has all."""

TO_DO = (FAILURE, FLAKY, FIXED)
"""Readings that ask for something to be done."""


def show(console: Console, result: RunResult) -> None:
    """The verdicts of a run: a table by operator, notes, the causes of failures, the verdict, where the report is."""
    run, folder = result.run, result.folder
    for target in result.summary.targets:
        console.print(safe(target.target), style="italic", soft_wrap=True, highlight=False)
        console.print(_table(target))
    notes = folded(run.notes)
    for note in notes[:NOTES]:
        console.print(f"[blue]note[/] {safe(str(note))}", soft_wrap=True, highlight=False)
    if len(notes) > NOTES:
        console.print(f"… and {len(notes) - NOTES} more kinds of notes in the report", highlight=False)
    for entry in run.stale:
        console.print(f"[cyan]stale expectation[/] {safe(entry)}", soft_wrap=True)
    for target in result.summary.targets:
        _show_causes(console, target)
    for since in result.since:
        whose = f"{since.target} " if len(result.since) > 1 else ""
        console.print(safe(f"{whose}{since.sentence}"), soft_wrap=True, highlight=False)
    console.print(safe(reports.headline(run, result.summary)), soft_wrap=True, style="bold")
    if result.too_flaky:
        console.print("The flaky cases fail this run: --max-flaky says how many are tolerated.", soft_wrap=True)
    if result.strict and result.summary.by_reading.get(FIXED):
        console.print("Expectations that no longer fail fail a strict run: take them out.", soft_wrap=True)
    if run.status != "complete":
        console.print(f"Take it up again with: epcheck run --resume {safe(str(folder))}", soft_wrap=True)
    console.print(f"Report: {safe(str(folder / 'report.html'))}", soft_wrap=True, highlight=False)


def _show_causes(console: Console, target: reports.TargetSummary) -> None:
    causes = [cause for cause in target.causes if cause.reading in TO_DO]
    for cause in causes[:CAUSES]:
        console.print(_cause(cause), soft_wrap=True, highlight=False)
    if len(causes) > CAUSES:
        console.print(f"… and {len(causes) - CAUSES} more causes in the report", highlight=False)


def _cause(cause: Cause) -> str:
    cases = f"{cause.cases:,} case{'s' if cause.cases > 1 else ''}"
    blame = ", ".join(name or "nobody" for name in cause.blames)
    place = f" ({safe(cause.place)})" if cause.place and cause.place not in cause.operators else ""
    more = f" and {len(cause.operators) - 3} more" if len(cause.operators) > 3 else ""
    text = printable(cause.text)
    lines = [
        f"[{COLOURS[cause.reading]}]{cause.reading}[/] {safe(', '.join(cause.operators[:3]))}{more}{place}, {cases}, "
        f"{', '.join(cause.statuses)}, blame: {blame}: {escape(text[:300])}{'…' if len(text) > 300 else ''}"
    ]
    if cause.common:
        lines.append(f"  all have {safe(', '.join(cause.common))}")
    return "\n".join([*lines, f"  smallest: {safe(cause.repro)}"])


def _table(target: reports.TargetSummary) -> Table:
    """A row for each operator, or of many for those in which something is to be done, and one for all together."""
    rows = _counts(target)
    kept = list(rows) if len(rows) <= OPERATORS else [name for name in rows if rows[name].keys() & set(TO_DO)]
    readings = [reading for reading in COLOURS if reading != OK and target.by_reading.get(reading)]
    table = Table(box=None, pad_edge=False)
    table.add_column("operator")
    for name in ("cases", "pass", *readings):
        table.add_column(name.replace("-", " "), justify="right", style=COLOURS.get(name, ""))
    columns = ("cases", "pass", *readings)
    for operator in kept:
        table.add_row(safe(operator), *(_number(rows[operator], name) for name in columns))
    total = sum((rows[operator] for operator in rows), Counter[str]())
    if len(rows) > 1:
        table.add_row(f"all {len(rows)} operators", *(_number(total, name) for name in columns), style="bold")
    return table


def _counts(target: reports.TargetSummary) -> Mapping[str, Counter[str]]:
    """Operator -> its cases, those that pass, and those of each reading."""
    rows: dict[str, Counter[str]] = {}
    for cell in target.matrix:
        row = rows.setdefault(qualified_name(cell.operator, cell.domain), Counter())
        row.update({"cases": cell.total, "pass": cell.passes, NOT_RUN: cell.not_run})
    for finding in target.findings:
        rows[finding.operator][finding.reading] += len(finding.case_ids)
    return {operator: +row for operator, row in rows.items()}


def _number(row: Mapping[str, int], name: str) -> str:
    return f"{row[name]:,}" if row.get(name) else "-"
