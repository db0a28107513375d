"""The progress of calls in the terminal: of a run, of the lab's installation, of what is being done to a model."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

from epcheck.api.progress import InstallationStep
from epcheck.cli.terminal.colours import COLOURS
from epcheck.cli.terminal.progress_log import lines_of
from epcheck.cli.terminal.terminal import Terminal, Words
from epcheck.cli.terminal.text import cut, printable
from epcheck.conformance.records.record import Record
from epcheck.models.validation.names import shorten_words
from epcheck.reports.causes.symptom import Symptom, symptom_of
from epcheck.reports.runtime_message import readable

SHOWN_FAILURES, SHOWN_REASON = 10, 160
"""Causes whose first failure is shown while the run goes on, and characters of its reason."""

SHOWN_S = 0.1
"""The bar moves so often, in seconds; a record may come every tenth of a millisecond."""


class TerminalProgress:
    """`epcheck.api.Progress` on a terminal. Where it is no terminal, sentences and steps are lines of a log, and a run
    has a line every half minute."""

    def __init__(self, terminal: Terminal, keeps_steps: bool = False) -> None:
        """keeps_steps: the steps of an installation stay when it is over."""
        self._terminal = terminal
        self._keeps_steps = keeps_steps
        self._symptoms: set[tuple[str, Symptom]] = set()

    def say(self, sentence: str) -> None:
        self._terminal.print(sentence)

    @contextmanager
    def recording(self, planned: int, done: int) -> Iterator[Callable[[str], None]]:
        if not self._terminal.is_screen:
            with lines_of(planned, done, self._terminal.print) as take:
                yield take
            return
        columns = (BarColumn(), MofNCompleteColumn(), Words("counts"), TimeElapsedColumn(), TimeRemainingColumn())
        with self._terminal.progress(*columns, transient=True) as bars:
            yield RecordBar(bars, planned, done).take

    def report_failure(self, record: Record) -> None:
        """A line for the first failure of each operator and symptom, up to SHOWN_FAILURES of them."""
        symptom = record.case.operator_key, replace(symptom_of(record), patterns=())
        if symptom in self._symptoms or len(self._symptoms) == SHOWN_FAILURES:
            return
        self._symptoms.add(symptom)
        reason = cut(readable(printable(record.reason)), SHOWN_REASON)
        reading = (record.reading, COLOURS[record.reading])
        self._terminal.print(reading, f" {record.case_id} ({record.status}): {reason}")
        if len(self._symptoms) == SHOWN_FAILURES:
            self._terminal.print("further failures are counted only; see the report")

    @contextmanager
    def installing(self) -> Iterator[LabProgress]:
        with LabProgress(self._terminal, transient=not self._keeps_steps) as bars:
            yield bars

    @contextmanager
    def working(self) -> Iterator[Callable[[str], None]]:
        if not self._terminal.is_terminal:
            yield lambda _words: None
            return
        with self._terminal.working() as show:
            yield lambda words: show(shorten_words(words))


class RecordBar:
    """A bar over the records of a run, with how many there are of each reading."""

    def __init__(self, bars: Progress, planned: int, done: int) -> None:
        self._bars = bars
        self._task = bars.add_task("starting workers", total=planned, completed=done)
        self._counts: Counter[str] = Counter()
        self._done = done
        self._shown = 0.0

    def take(self, reading: str) -> None:
        self._counts[reading] += 1
        now = time.monotonic()
        if now - self._shown >= SHOWN_S:
            self._shown = now
            counts = [(f"{count} {reading} ", COLOURS[reading]) for reading, count in sorted(self._counts.items())]
            self._bars.update(self._task, completed=self._done + self._counts.total(), counts=counts)


class LabProgress:
    """One line for each step of an install, with sizes; in a log, one plain line for each message of a step. Nothing is
    shown before the first report."""

    def __init__(self, terminal: Terminal, transient: bool = False) -> None:
        """transient: the lines vanish with the end of the install."""
        step = Words("step", Column(ratio=1, no_wrap=True, overflow="ellipsis"))
        sizes = Words("sizes", Column(no_wrap=True, min_width=16))
        self._terminal = terminal
        self._bars = terminal.progress(
            step, sizes, TimeElapsedColumn(), expand=True, transient=transient, disable=not terminal.is_terminal
        )
        self._rows: list[TaskID] = []
        self._messages: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._rows:
            self._bars.stop()

    def __call__(self, report: InstallationStep) -> None:
        line = f"[{report.index}/{report.total}] {report.step}: {report.message}".rstrip(": ")
        if not self._rows:
            self._bars.start()
        for _ in range(len(self._rows), report.total):
            self._rows.append(self._bars.add_task("", total=None, start=False, visible=False))
        row = self._rows[report.index - 1]
        if report.step not in self._messages:
            self._bars.start_task(row)
        if report.message != self._messages.get(report.step, "") and not self._terminal.is_terminal:
            self._terminal.print(f"{line} {_sizes(report)}".rstrip())
        self._messages[report.step] = report.message
        self._bars.update(row, step=(line,), sizes=(_sizes(report),), visible=True)
        if report.ended:
            self._bars.stop_task(row)


def _sizes(report: InstallationStep) -> str:
    """`12.3 / 238 MB`, or what is known of it."""
    known = [f"{count / 1e6:.1f}" for count in (report.bytes_done, report.bytes_total) if count]
    return f"{' / '.join(known)} MB" if known else ""
