"""The HTML report of a run: one file that needs nothing else, and escapes all that it shows.

Headline, fingerprint, matrix, accuracy and findings are written out and need no script. The cases are embedded as
compressed data (see embedded_data.py), and the page unpacks a chunk of them when one of its cases is opened. Escaping,
style, charts and the page's policy are the shell's.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from epcheck.conformance.records.run import Run
from epcheck.conformance.records.terms import EXPECTED, FAILURE, FIXED, FLAKY, NOTED, OK
from epcheck.reports.cause_changes import describe_causes
from epcheck.reports.causes.cause import Cause
from epcheck.reports.dtypes import dtype_order
from epcheck.reports.family import Family, no_family
from epcheck.reports.notes import fold_notes
from epcheck.reports.page import shell
from epcheck.reports.page.chart import POINTS, Chart, Series
from epcheck.reports.page.device_claims import Claims, claims
from epcheck.reports.page.embedded_data import CaseIndex, EmbeddedRepros, RecordChunks, ReproArchiver
from epcheck.reports.page.matrix import matrix_of, side_by_side
from epcheck.reports.report_links import NO_LINKS
from epcheck.reports.runs.accuracy import AccuracyProfile, ErrorStatistics
from epcheck.reports.runs.headline import describe_problem, figures_of
from epcheck.reports.runs.report import Entry, spool
from epcheck.reports.runs.summary import NOT_RUN, WORST_FIRST, Summary, TargetSummary
from epcheck.reports.since import BROKE, Comparison

SCRIPTS = (
    "shell/shell_data.js",
    "run/page_data.js",
    "run/page_list.js",
    "run/page_targets.js",
    "run/page_operator.js",
    "run/page_graph.js",
    "run/page_sort.js",
    "run/page_case.js",
    "run/page_pair.js",
    "run/page_matrix.js",
    "run/page_main.js",
)
VIRTUAL_LIST = "vendor/virtual-core/virtual-core.iife.min.js"

TO_EXPLAIN = (FAILURE, FLAKY, FIXED, EXPECTED)
"""Readings of the records that the page has with all their values and digits."""

READABLE = 10_000.0
"""ULP up to which charts of errors reach; the page of an operator (page_operator.js) has the same."""

MOST_CAUSES = 300
"""Causes of a reading that the page writes out; the list of cases has all."""

SYMBOLS = {FAILURE: "✕", FLAKY: "≠", FIXED: "▲", EXPECTED: "≈", NOTED: "i", OK: "✓", NOT_RUN: "–"}
MEANINGS = {
    FAILURE: "conformance failure",
    FLAKY: "flaky: repeated runs differ",
    FIXED: "an expectation that no longer fails",
    EXPECTED: "expected deviation",
    NOTED: "remark",
    OK: "nothing wrong",
    NOT_RUN: "not applicable: the provider does not take it",
}


class RunPage:
    """The page in the making. The chunks of records wait on disk: they are most of the page, and stand near its end.

    archive: makes what a case is reproduced with, for download; without one the page has the commands only.
    comparison: with earlier runs. family: of an operator, by which the matrix is divided.
    """

    def __init__(
        self,
        run: Run,
        file: IO[bytes],
        stack: ExitStack,
        archive: ReproArchiver | None = None,
        comparison: Comparison | None = None,
        family: Family = no_family,
    ) -> None:
        self._run = run
        self._family = family
        self._comparison = comparison
        self._file = file
        self._index = CaseIndex()
        self._chunks = RecordChunks(spool(file, stack))
        self._repros = EmbeddedRepros(archive)

    def add(self, entry: Entry) -> None:
        self._index.add(entry.record, entry.finding, entry.cause.key if entry.cause else "")
        self._chunks.add(entry.record, entry.line, entry.is_example or entry.record.reading in TO_EXPLAIN)
        self._repros.add(entry.record, entry.finding)
        if self._comparison:
            self._comparison.add(entry.record, entry.cause)

    def finish(self, summary: Summary) -> None:
        since = self._comparison.result() if self._comparison else ()
        links = self._comparison.links(Path(self._file.name)) if self._comparison else NO_LINKS
        self._index.compare(since, links)
        shell.write(
            self._file,
            "run/page.html.j2",
            scripts=SCRIPTS,
            styles=("shell/shell_views.css", "run/page.css"),
            libraries=(VIRTUAL_LIST,),
            run=self._run,
            summary=summary,
            problem=describe_problem(self._run, summary),
            figures=[figures_of(target) for target in summary.targets],
            chips=_chips(summary),
            state=_state(self._run, summary),
            matrix=lambda target: matrix_of(target, self._family),
            side_by_side=side_by_side(summary.targets),
            accuracy_charts=_accuracy_charts,
            facts=_facts(self._run),
            claims=_claims(self._run),
            symbols=SYMBOLS,
            meanings=MEANINGS,
            readings=WORST_FIRST,
            notes=fold_notes(self._run.notes),
            by_key=lambda findings: {finding.key: finding for finding in findings},
            most_causes=MOST_CAUSES,
            since=since,
            links=links,
            describe_causes=describe_causes,
            cause_changes={(each.target, change.title): change for each in since for change in each.causes},
            became=self._index.became,
            worse_first=self._worse_first,
            index=self._index.pack(summary, self._run),
            chunks=self._chunks.pack(),
            repros=self._repros.pack(),
        )

    def _worse_first(self, causes: Sequence[Cause]) -> list[Cause]:
        """Causes with cases that broke before the others."""
        return sorted(causes, key=lambda cause: BROKE not in self._index.became.get(cause.key, {}))


def _accuracy_charts(run: Run, target: TargetSummary) -> list[Chart]:
    """The largest errors of candidate and baseline by operator, a chart for each dtype, the most inaccurate first."""
    by_dtype: dict[str, list[AccuracyProfile]] = {}
    for profile in target.accuracy:
        by_dtype.setdefault(profile.dtype.partition("-")[0], []).append(profile)
    return [_accuracy_chart(run, target.target, dtype, by_dtype[dtype]) for dtype in sorted(by_dtype, key=dtype_order)]


def _accuracy_chart(run: Run, target: str, dtype: str, profiles: list[AccuracyProfile]) -> Chart:
    ordered = sorted(profiles, key=lambda p: (-p.candidate.max if p.candidate else 1.0, p.operator, p.dtype))
    candidate = Series(target, tuple(_max(p.candidate) for p in ordered))
    baseline = Series(f"{run.baseline} (baseline)", tuple(_max(p.baseline) for p in ordered))
    return Chart(
        title=f"Largest error in {dtype}",
        labels=tuple(p.operator if p.dtype == dtype else f"{p.operator} {p.dtype}" for p in ordered),
        series=(candidate, baseline) if any(p.baseline for p in ordered) else (candidate,),
        unit="ULP",
        kind=POINTS,
        log=True,
        foot=0.1,
        most=READABLE,
        links=tuple(shell.query(operator=p.operator, dtype=p.dtype) for p in ordered),
    )


def _max(spread: ErrorStatistics | None) -> float | None:
    return None if spread is None else spread.max


def _chips(summary: Summary) -> list[tuple[int, str]]:
    """What is counted besides the readings: number and words."""
    counted = [
        (sum(target.excused for target in summary.targets), "pass only within a published absolute tolerance"),
        (sum(target.shared for target in summary.targets), "causes that the baseline shows too"),
    ]
    return [(number, words) for number, words in counted if number]


def _state(run: Run, summary: Summary) -> str:
    """The headline's colour: `failure`, `flaky`, `incomplete` or `ok`."""
    if summary.missing or run.status != "complete" or not summary.recorded:
        return "incomplete"
    if summary.by_reading.get(FAILURE):
        return "failure"
    return "flaky" if summary.by_reading.get(FLAKY) else "ok"


def _facts(run: Run) -> list[tuple[str, list[str]]]:
    """The fingerprint by row: a fact, and what each target says of it, in the order of `run.targets`."""
    names = dict.fromkeys(name for facts in run.targets.values() for name, value in facts.items() if value)
    return [(name, [str(facts.get(name, "")) for facts in run.targets.values()]) for name in names]


def _claims(run: Run) -> list[tuple[str, Claims]]:
    """The targets whose device claims what it supports, beside what is documented."""
    claimed = ((name, claims(facts)) for name, facts in run.targets.items())
    return [(name, claims_of_device) for name, claims_of_device in claimed if claims_of_device is not None]
