"""The HTML report of a run: one file that needs nothing else, and escapes all that it shows.

Headline, fingerprint, matrix, accuracy and findings are written out and need no script. The cases are embedded as
compressed data (see embedded_data.py), and the page unpacks a chunk of them when one of its cases is opened. Escaping,
style, charts and the page's policy are the shell's.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO

from epcheck.conformance.records.case_facts import qualified_name
from epcheck.conformance.records.run import Run
from epcheck.conformance.records.terms import EXPECTED, FAILURE, FIXED, NOTED, OK
from epcheck.reports.page import shell
from epcheck.reports.page.chart import POINTS, Chart, Series
from epcheck.reports.page.device_claims import Claims, claims
from epcheck.reports.page.embedded_data import CaseIndex, EmbeddedRepros, RecordChunks, ReproArchiver
from epcheck.reports.runs.accuracy import AccuracyProfile, ErrorStatistics
from epcheck.reports.runs.dtypes import dtype_order
from epcheck.reports.runs.headline import headline
from epcheck.reports.runs.report import Entry, spool
from epcheck.reports.runs.summary import NOTHING_RAN, WORST_FIRST, Cell, Summary, TargetSummary

SCRIPTS = (
    "shell/shell_data.js",
    "run/page_data.js",
    "run/page_list.js",
    "run/page_operator.js",
    "run/page_graph.js",
    "run/page_case.js",
    "run/page_main.js",
)
VIRTUAL_LIST = "vendor/virtual-core/virtual-core.iife.min.js"

SYMBOLS = {FAILURE: "✕", FIXED: "▲", EXPECTED: "≈", NOTED: "i", OK: "✓", NOTHING_RAN: "–"}
MEANINGS = {
    FAILURE: "conformance failure",
    FIXED: "an expectation that no longer fails",
    EXPECTED: "expected deviation",
    NOTED: "remark",
    OK: "nothing wrong",
    NOTHING_RAN: "no case ran on it",
}


class RunPage:
    """The page in the making. The chunks of records wait on disk: they are most of the page, and stand near its end.

    archive: makes what a case is reproduced with, for download; without one the page has the commands only.
    """

    def __init__(self, run: Run, file: IO[bytes], stack: ExitStack, archive: ReproArchiver | None = None) -> None:
        self._run = run
        self._file = file
        self._index = CaseIndex()
        self._chunks = RecordChunks(spool(file, stack))
        self._repros = EmbeddedRepros(archive)

    def add(self, entry: Entry) -> None:
        self._index.add(entry.record, entry.finding)
        self._chunks.add(entry.record, entry.line)
        self._repros.add(entry.record, entry.finding)

    def finish(self, summary: Summary) -> None:
        shell.write(
            self._file,
            "run/page.html.j2",
            scripts=SCRIPTS,
            styles=("shell/shell_views.css", "run/page.css"),
            libraries=(VIRTUAL_LIST,),
            run=self._run,
            summary=summary,
            headline=headline(self._run, summary),
            state=_state(self._run, summary),
            matrix=_matrix,
            accuracy_charts=_accuracy_charts,
            facts=_facts(self._run),
            claims=_claims(self._run),
            symbols=SYMBOLS,
            meanings=MEANINGS,
            index=self._index.packed(summary),
            chunks=self._chunks.packed(),
            repros=self._repros.packed(),
        )


@dataclass(frozen=True)
class _Cell:
    """The cases of an operator, in all its versions, whose first varied dtype is the same."""

    passes: int
    total: int
    worst: str


@dataclass(frozen=True)
class _Matrix:
    """Operators x dtypes of one candidate: an operator that varies several dtypes stands at the first of them."""

    dtypes: tuple[str, ...]
    rows: tuple[tuple[str, str, dict[str, _Cell]], ...]
    """Operator, its worst reading, and its cells by dtype."""


def _matrix(target: TargetSummary) -> _Matrix:
    together: dict[str, dict[str, list[Cell]]] = {}
    for cell in target.matrix:
        row = together.setdefault(qualified_name(cell.operator, cell.domain), {})
        row.setdefault(cell.dtype.partition("-")[0], []).append(cell)
    rows = {operator: {dtype: _joined(cells) for dtype, cells in row.items()} for operator, row in together.items()}
    dtypes = {dtype for row in rows.values() for dtype in row}
    return _Matrix(
        tuple(sorted(dtypes, key=dtype_order)),
        tuple(
            (operator, _worst(cell.worst for cell in row.values()), row)
            for operator, row in sorted(rows.items(), key=lambda item: ("::" in item[0], item[0]))
        ),
    )


def _joined(cells: Iterable[Cell]) -> _Cell:
    cells = tuple(cells)
    return _Cell(sum(c.passes for c in cells), sum(c.total for c in cells), _worst(c.worst for c in cells))


def _worst(readings: Iterable[str]) -> str:
    return min(readings, key=(*WORST_FIRST, NOTHING_RAN).index)


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
        links=tuple(shell.query(operator=p.operator, dtype=p.dtype) for p in ordered),
    )


def _max(spread: ErrorStatistics | None) -> float | None:
    return None if spread is None else spread.max


def _state(run: Run, summary: Summary) -> str:
    """The headline's colour: `failure`, `incomplete` or `ok`."""
    if summary.missing or run.status != "complete" or not summary.recorded:
        return "incomplete"
    return "failure" if summary.by_reading.get(FAILURE) else "ok"


def _facts(run: Run) -> list[tuple[str, list[str]]]:
    """The fingerprint by row: a fact, and what each target says of it, in the order of `run.targets`."""
    names = dict.fromkeys(name for facts in run.targets.values() for name, value in facts.items() if value)
    return [(name, [str(facts.get(name, "")) for facts in run.targets.values()]) for name in names]


def _claims(run: Run) -> list[tuple[str, Claims]]:
    """The targets whose device claims what it supports, beside what is documented."""
    claimed = ((name, claims(facts)) for name, facts in run.targets.items())
    return [(name, claims_of_device) for name, claims_of_device in claimed if claims_of_device is not None]
