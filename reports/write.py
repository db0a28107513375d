"""The reports of a run, made from its journal in one pass, however many they are; of a large run, in two processes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from epcheck.conformance.records.run import Run
from epcheck.reports import data_process
from epcheck.reports.family import Family, no_family
from epcheck.reports.ort_conformance.report import ConformanceReport
from epcheck.reports.page.embedded_data import ReproArchiver
from epcheck.reports.page.html import RunPage
from epcheck.reports.runs.causes import find_causes_of_run
from epcheck.reports.runs.json_document import Document
from epcheck.reports.runs.junit import JUnit
from epcheck.reports.runs.parquet import Outcomes
from epcheck.reports.runs.report import Entry, ReportFactory
from epcheck.reports.runs.run_folder import OUTCOMES, StoreError, read_lines, read_run, replacing
from epcheck.reports.runs.summary import Summary, Tally
from epcheck.reports.since import Comparison, Since

HTML, JUNIT, JSON = "report.html", "junit.xml", "report.json"
"""Where the reports of a run stand in its folder, beside OUTCOMES."""


@dataclass(frozen=True)
class Reported:
    """A run whose reports are made. summary: what its records say. since: what became of cases since earlier runs, of
    each target that these have; empty where none was compared with."""

    folder: Path
    run: Run
    summary: Summary
    since: tuple[Since, ...] = ()


def write_all(
    folder: Path,
    archive: ReproArchiver | None = None,
    comparison: Comparison | None = None,
    family: Family = no_family,
) -> Reported:
    """(Re)make every report of a run in its folder, whatever state the run is in.

    archive: makes the zip files in the page with which failing cases are reproduced. comparison: with earlier runs,
    which the page shows. family: of an operator, by which the page divides its matrix.

    Raises StoreError when the run cannot be read, and then leaves all as it was; or when files cannot be written: then
    it names each of them, and the others are made.
    """
    page = {folder / HTML: partial(RunPage, archive=archive, comparison=comparison, family=family)}
    with data_process.start_data_process(folder) as process:
        if process is None:
            return _with(comparison, _write(folder, {**page, **_data_reports(folder)}))
        try:
            reported, of_page = _write(folder, page), ""
        except StoreError as error:
            reported, of_page = None, str(error)
        of_data = process.problems()
    if of_data is None:
        write_data(folder)
    if reported is None or of_data:
        raise StoreError("; ".join(dict.fromkeys(filter(None, (of_page, of_data)))))
    return _with(comparison, reported)


def _with(comparison: Comparison | None, reported: Reported) -> Reported:
    return reported if comparison is None else replace(reported, since=comparison.result())


def write_data(folder: Path) -> None:
    """(Re)make the reports of a run that are no page: Parquet, JUnit XML and JSON. Raises StoreError, as write_all."""
    _write(folder, _data_reports(folder))


def _data_reports(folder: Path) -> dict[Path, ReportFactory]:
    factories: dict[str, ReportFactory] = {OUTCOMES: Outcomes, JUNIT: JUnit, JSON: Document}
    return {folder / name: factory for name, factory in factories.items()}


def write_outcomes(folder: Path, path: Path | None = None) -> Path:
    """Write the run as Parquet (see Outcomes; default: `outcomes.parquet` in its folder).

    Raises StoreError when the run cannot be read or the file cannot be written, as all of these do.
    """
    return _write_one(folder, path or folder / OUTCOMES, Outcomes)


def write_html(
    folder: Path,
    path: Path | None = None,
    *,
    archive: ReproArchiver | None = None,
    comparison: Comparison | None = None,
    family: Family = no_family,
) -> Path:
    """Write the run as one self-contained page (default: `report.html` in its folder). Raises StoreError.

    archive, comparison, family: as of write_all.
    """
    return _write_one(
        folder, path or folder / HTML, partial(RunPage, archive=archive, comparison=comparison, family=family)
    )


def write_junit(folder: Path, path: Path | None = None, *, strict: bool = False) -> Path:
    """Write the run as JUnit XML (see JUnit; default: `junit.xml` in its folder). Raises StoreError.

    strict: an expectation that no longer fails is a failure.
    """
    return _write_one(folder, path or folder / JUNIT, partial(JUnit, strict=strict))


def write_json(folder: Path, path: Path | None = None) -> Path:
    """Write the run as one JSON document (see Document; default: `report.json` in its folder). Raises StoreError."""
    return _write_one(folder, path or folder / JSON, Document)


def write_ort_conformance(folder: Path, path: Path, profiles: Mapping[str, str | None] | None = None) -> Path:
    """Write one of ONNX Runtime's conformance results for every record, as JSON (see ConformanceReport).

    profiles: target -> SHA-256 of its provider profile, in hexadecimal; None where it has none. Raises StoreError.
    """
    return _write_one(folder, path, partial(ConformanceReport, profiles=profiles))


def _write_one(folder: Path, path: Path, factory: ReportFactory) -> Path:
    _write(folder, {path: factory})
    return path


def _write(folder: Path, factories: Mapping[Path, ReportFactory]) -> Reported:
    """Make the reports of a run. factories: of each report, by its path."""
    run, tally = read_run(folder), Tally(find_causes_of_run(folder))
    with closing(_Drafts(_draft(run, path, factory) for path, factory in factories.items())) as drafts:
        for line, record in read_lines(folder):
            drafts.send(Entry(line.rstrip(), record, *tally.add(record)))
        summary = tally.summary(run)
        drafts.send(summary)
    if drafts.problems:
        raise StoreError("; ".join(drafts.problems))
    return Reported(folder, run, summary)


_Draft = Generator[None, Entry | Summary, None]


def _draft(run: Run, path: Path, factory: ReportFactory) -> _Draft:
    """A report in the making: it is sent every entry, then the summary, and ends. Raises StoreError."""
    with ExitStack() as stack:
        report = factory(run, stack.enter_context(replacing(path)), stack)
        while isinstance(item := (yield), Entry):
            report.add(item)
        report.finish(item)


class _Drafts:
    """Reports in the making, each of which may fail alone. problems: a sentence for each that did."""

    def __init__(self, drafts: Iterable[_Draft]) -> None:
        self.problems: list[str] = []
        self._open = list(drafts)
        self._each(next)

    def send(self, item: Entry | Summary) -> None:
        """To every draft that has not ended."""
        self._each(lambda draft: draft.send(item))

    def close(self) -> None:
        """Give up those that have not ended; what was in their places is still there."""
        with ExitStack() as each:
            for draft in self._open:
                each.callback(draft.close)

    def _each(self, step: Callable[[_Draft], None]) -> None:
        for draft in tuple(self._open):
            try:
                step(draft)
            except (StoreError, StopIteration) as end:
                self._open.remove(draft)
                self.problems += [str(end)] if isinstance(end, StoreError) else []
