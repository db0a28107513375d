"""What commands show in the terminal: live progress of a run and of the lab's installation, a summary of the store."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column, Table

from epcheck import reports
from epcheck.cli.terminal.plain import printable, safe
from epcheck.conformance import lab
from epcheck.conformance.records.record import EXPECTED, FAILURE, FIXED, NOTED, OK
from epcheck.conformance.test_data import repro

COLOURS = {OK: "green", FAILURE: "bold red", EXPECTED: "yellow", FIXED: "cyan", NOTED: "blue"}
SHOWN_S = 0.1
"""The bar moves so often, in seconds; a record may come every tenth of a millisecond."""

FINDINGS = 12
"""Groups of failures that the summary lists; the report has all."""


class Display:
    """The live part; silent without a console."""

    def __init__(self, console: Console | None) -> None:
        self._console = console
        self._bars: Progress | None = None
        self._task: TaskID | None = None
        self._counts: Counter[str] = Counter()
        self._done = 0
        self._shown = 0.0

    def say(self, sentence: str) -> None:
        """One line."""
        if self._console:
            self._console.print(escape(sentence), soft_wrap=True)

    @contextmanager
    def progress(self, planned: int, done: int) -> Iterator[None]:
        """A bar over `planned` records, `done` of which an earlier run left."""
        if self._console is None:
            yield
            return
        self._done = done
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, TimeRemainingColumn(), console=self._console, transient=True) as self._bars:
            self._task = self._bars.add_task("starting workers", total=planned, completed=done)
            yield

    def take(self, reading: str) -> None:
        """Count a record and move the bar."""
        self._counts[reading] += 1
        now = time.monotonic()
        if self._bars is not None and self._task is not None and now - self._shown >= SHOWN_S:
            self._shown = now
            words = " ".join(f"[{COLOURS[k]}]{n} {k}[/]" for k, n in sorted(self._counts.items()))
            self._bars.update(self._task, completed=self._done + self._counts.total(), description=words)

    @contextmanager
    def lab_progress(self) -> Iterator[LabDisplay | None]:
        """What shows the progress of an installation in the lab."""
        if self._console is None:
            yield None
            return
        with LabDisplay(self._console, transient=True) as bars:
            yield bars


class LabDisplay:
    """One line for each step of an install, with sizes; in a log, one plain line for each message. Nothing is shown
    before the first report."""

    def __init__(self, console: Console, transient: bool = False) -> None:
        """transient: the lines vanish with the end of the install."""
        text = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        sizes = TextColumn("{task.fields[sizes]}", table_column=Column(no_wrap=True, min_width=16))
        self._console = console
        self._bars = Progress(TextColumn("{task.description}", table_column=text), sizes, TimeElapsedColumn(),
                              console=console, expand=True, transient=transient,
                              disable=not console.is_terminal)  # fmt: skip
        self._said = ("", "")
        self._task = self._bars.add_task("", total=None, sizes="")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._said[0]:
            self._bars.stop()

    def __call__(self, report: lab.Progress) -> None:
        line = f"[{report.index}/{report.total}] {report.step}: {report.message}".rstrip(": ")
        step, message = self._said
        if not step:
            self._bars.start()
        if report.message and (report.step, report.message) != (step, message) and not self._console.is_terminal:
            self._console.print(line, _sizes(report), markup=False, highlight=False, soft_wrap=True)
        if step and report.step != step:
            self._bars.stop_task(self._task)
            self._task = self._bars.add_task("", total=None, sizes="")
        self._said = (report.step, report.message)
        self._bars.update(self._task, description=escape(line), sizes=_sizes(report))


def _sizes(report: lab.Progress) -> str:
    """`12.3 / 238 MB`, or what is known of it."""
    known = [f"{count / 1e6:.1f}" for count in (report.bytes_done, report.bytes_total) if count]
    return f"{' / '.join(known)} MB" if known else ""


def summary(console: Console, reported: reports.Reported) -> None:
    """The verdicts of a run: a table by operator, the groups of failures, where the report is."""
    run, folder = reported.run, reported.folder
    for target in reported.summary.targets:
        console.print(_table(target))
        failures = [f for f in target.findings if f.reading in (FAILURE, FIXED)]
        for finding in failures[:FINDINGS]:
            count = len(finding.case_ids)
            said = printable(finding.reason)
            cases = f"{count} case{'s' if count > 1 else ''}"
            console.print(
                f"[{COLOURS[finding.reading]}]{finding.reading}[/] {escape(finding.operator)} "
                f"{escape(finding.sample)} ({cases}, blame: {finding.blame or 'nobody'}): "
                f"{escape(said[:300])}{'…' if len(said) > 300 else ''}\n"
                f"  reproduce: {escape(repro.command(finding.case_ids[0]))}",
                soft_wrap=True,
                highlight=False,
            )
        if len(failures) > FINDINGS:
            console.print(f"… and {len(failures) - FINDINGS} more groups in the report")
    for entry in run.stale:
        console.print(f"[cyan]stale expectation[/] {escape(entry)}", soft_wrap=True)
    for note in run.notes:
        console.print(f"[blue]note[/] {safe(note)}", soft_wrap=True, highlight=False)
    console.print(safe(reports.headline(run, reported.summary)), soft_wrap=True, style="bold")
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
        operator = f"{cell.domain}::{cell.operator}" if cell.domain else cell.operator
        cases[operator] += cell.total
        passes[operator] += cell.passes
    for finding in target.findings:
        noteworthy[finding.operator, finding.reading] += len(finding.case_ids)
    for operator, count in cases.items():
        cells = (count, passes[operator], *(noteworthy[operator, reading] for reading in readings))
        table.add_row(safe(operator), *(str(cell or "-") for cell in cells))
    return table
