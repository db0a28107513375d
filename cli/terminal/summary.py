"""The summary of a run in the terminal."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from epcheck import reports
from epcheck.api.runs.result import RunResult
from epcheck.api.suite.repro import repro_command
from epcheck.cli.terminal.colours import COLOURS
from epcheck.cli.terminal.plain import printable, safe
from epcheck.conformance.records.case_facts import qualified_name
from epcheck.conformance.records.terms import FAILURE, FIXED, OK

FINDINGS = 12
"""Groups of failures that the summary lists; the report has all."""


def show(console: Console, result: RunResult) -> None:
    """The verdicts of a run: a table by operator, the groups of failures, where the report is."""
    run, folder = result.run, result.folder
    for target in result.summary.targets:
        console.print(_table(target))
        failures = [f for f in target.findings if f.reading in (FAILURE, FIXED)]
        for finding in failures[:FINDINGS]:
            count = len(finding.case_ids)
            reason = printable(finding.reason)
            cases = f"{count} case{'s' if count > 1 else ''}"
            console.print(
                f"[{COLOURS[finding.reading]}]{finding.reading}[/] {escape(finding.operator)} "
                f"{escape(finding.sample)} ({cases}, blame: {finding.blame or 'nobody'}): "
                f"{escape(reason[:300])}{'…' if len(reason) > 300 else ''}\n"
                f"  reproduce: {escape(repro_command(finding.case_ids[0]))}",
                soft_wrap=True,
                highlight=False,
            )
        if len(failures) > FINDINGS:
            console.print(f"… and {len(failures) - FINDINGS} more groups in the report")
    for entry in run.stale:
        console.print(f"[cyan]stale expectation[/] {escape(entry)}", soft_wrap=True)
    for note in run.notes:
        console.print(f"[blue]note[/] {safe(note)}", soft_wrap=True, highlight=False)
    console.print(safe(reports.headline(run, result.summary)), soft_wrap=True, style="bold")
    if run.status != "complete":
        console.print(f"Take it up again with: epcheck run --resume {escape(str(folder))}", soft_wrap=True)
    console.print(f"Report: {escape(str(folder / 'report.html'))}", soft_wrap=True, highlight=False)


def _table(target: reports.TargetSummary) -> Table:
    table = Table(title=safe(target.target), title_justify="left", box=None, pad_edge=False)
    table.add_column("operator")
    readings = [reading for reading in COLOURS if reading != OK and target.by_reading.get(reading)]
    for name in ("cases", "pass", *readings):
        table.add_column(name, justify="right", style=COLOURS.get(name, ""))
    cases, passes, noteworthy = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    for cell in target.matrix:
        operator = qualified_name(cell.operator, cell.domain)
        cases[operator] += cell.total
        passes[operator] += cell.passes
    for finding in target.findings:
        noteworthy[finding.operator, finding.reading] += len(finding.case_ids)
    for operator, count in cases.items():
        cells = (count, passes[operator], *(noteworthy[operator, reading] for reading in readings))
        table.add_row(safe(operator), *(str(cell or "-") for cell in cells))
    return table
