"""The summary of a run in the terminal: what is wrong comes last, directly above the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from epcheck import reports
from epcheck.api.runs.result import INTERRUPTED as RUN_INTERRUPTED
from epcheck.api.runs.result import RunResult
from epcheck.cli.terminal.colours import COLOURS
from epcheck.cli.terminal.exit_codes import CANNOT, FAILURES, GOOD, INTERRUPTED
from epcheck.cli.terminal.terminal import Table, Terminal
from epcheck.cli.terminal.text import Text, cut, text
from epcheck.conformance.records.case_facts import qualified_name
from epcheck.conformance.records.terms import FAILURE, FIXED, FLAKY, OK
from epcheck.reports.causes.cause import Cause
from epcheck.reports.notes import fold_notes
from epcheck.reports.runs.summary import NOT_RUN

CAUSES = 12
"""Causes of failures that the summary lists; the report has all."""

REASON = 300
"""Characters of the text of a cause."""

OPERATORS = 25
"""Up to so many operators each has its row; of more only those have one in which something is to be done."""

SUSPICIONS = 5
"""Accuracy suspicions that the summary lists; the report has all."""

NOTES = 5
"""Kinds of notes that the summary lists; the report has all."""

TO_DO = (FAILURE, FLAKY, FIXED)
"""Readings that ask for something to be done."""


def choose_exit_code(result: RunResult) -> int:
    """The exit code that a run ends a command with."""
    if result.run.status == RUN_INTERRUPTED:
        return INTERRUPTED
    if not result.complete:
        return CANNOT
    return GOOD if result.conforms else FAILURES


def show(terminal: Terminal, result: RunResult) -> None:
    """The verdicts of a run: a table by operator, notes, the causes of failures, and what `show_verdict` shows."""
    run = result.run
    for target in result.summary.targets:
        terminal.print(target.target, style="italic")
        terminal.print_table(_table(target))
    notes = fold_notes(run.notes)
    for note in notes[:NOTES]:
        terminal.print(("note", "blue"), f" {note}")
    if len(notes) > NOTES:
        terminal.print(f"… and {len(notes) - NOTES} more kinds of notes in the report")
    for entry in run.stale:
        terminal.print(("stale expectation", "cyan"), f" {entry}")
    for target in result.summary.targets:
        _show_causes(terminal, target)
    for target in result.summary.targets:
        for suspicion in target.suspicions[:SUSPICIONS]:
            terminal.print(("accuracy suspicion", "yellow"), f" {suspicion.describe(run.baseline or 'the baseline')}")
        if len(target.suspicions) > SUSPICIONS:
            terminal.print(f"… and {len(target.suspicions) - SUSPICIONS} more accuracy suspicions in the report")
    show_verdict(terminal, result)


def show_verdict(terminal: Terminal, result: RunResult) -> None:
    """What changed since earlier runs, the verdict, what to do, and where the report is."""
    run, folder = result.run, result.folder
    for since in result.since:
        whose = f"{since.target} " if len(result.since) > 1 else ""
        terminal.print(f"{whose}{since.sentence}")
    terminal.print(reports.headline(run, result.summary), style="bold")
    if result.too_flaky:
        terminal.print("Flaky cases fail this run. --max-flaky N allows N.")
    if result.too_inaccurate:
        terminal.print("--strict-accuracy: accuracy suspicions fail this run.")
    if result.strict and result.summary.by_reading.get(FIXED):
        terminal.print("--strict: remove the expectations that no longer fail.")
    if run.status != "complete":
        terminal.print(f"Resume with: epcheck run --resume {folder}")
    terminal.print(f"Report: {folder / 'report.html'}")


def _show_causes(terminal: Terminal, target: reports.TargetSummary) -> None:
    causes = [cause for cause in target.causes if cause.reading in TO_DO]
    for cause in causes[:CAUSES]:
        for line in _cause(cause):
            terminal.print(line)
    if len(causes) > CAUSES:
        terminal.print(f"… and {len(causes) - CAUSES} more causes in the report")


def _cause(cause: Cause) -> Iterator[Text]:
    cases = f"{cause.cases:,} case{'s' if cause.cases > 1 else ''}"
    blame = ", ".join(name or "nobody" for name in cause.blames)
    place = f" ({cause.place})" if cause.place and cause.place not in cause.operators else ""
    more = f" and {len(cause.operators) - 3} more" if len(cause.operators) > 3 else ""
    yield text(
        (cause.reading, COLOURS[cause.reading]),
        f" {', '.join(cause.operators[:3])}{more}{place}, {cases}, {', '.join(cause.statuses)}, blame: {blame}: "
        f"{cut(cause.title, REASON)}",
    )
    if cause.evidence:
        yield text(f"  {cut(cause.evidence, REASON)}")
    yield text(f"  smallest: {cause.repro}")


def _table(target: reports.TargetSummary) -> Table:
    """A row for each operator, or of many for those in which something is to be done, and one for all together."""
    rows = _counts(target)
    kept = list(rows) if len(rows) <= OPERATORS else [name for name in rows if rows[name].keys() & set(TO_DO)]
    readings = [reading for reading in COLOURS if reading != OK and target.by_reading.get(reading)]
    table = Table()
    table.add_column("operator")
    for name in ("cases", "pass", *readings):
        table.add_column(name.replace("-", " "), right=True, style=COLOURS.get(name, ""))
    columns = ("cases", "pass", *readings)
    for operator in kept:
        table.add_row(operator, *(_number(rows[operator], name) for name in columns))
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
