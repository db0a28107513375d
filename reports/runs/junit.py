"""JUnit XML, for the pages that CI systems make of it."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from typing import IO
from xml.sax.saxutils import escape

from epcheck.conformance.records.record import Record
from epcheck.conformance.records.run import Run
from epcheck.conformance.records.terms import (
    CRASH,
    DIFFERS,
    EXPECTED,
    FAILURE,
    FIXED,
    FLAKY,
    NOTED,
    SKIPPED,
    TIMEOUT,
    UNPLACED,
    UNSTEADY,
)
from epcheck.reports.causes.cause import Cause
from epcheck.reports.runs.headline import headline
from epcheck.reports.runs.report import Entry, spool
from epcheck.reports.runs.summary import Summary
from epcheck.reports.text import visible

COUNTED = {"tests": "tests", "failure": "failures", "error": "errors", "skipped": "skipped"}
"""What of a suite is counted, `tests` or the tag of what testcases hold, and the attribute for the number."""

_IN_QUOTES = {'"': "&quot;", "\n": "&#10;", "\t": "&#09;"}


class JUnit:
    """One testsuite for each candidate, one testcase for each record with the operator, `com.microsoft::Gelu` for
    example, as classname and the case id as name.

    A conformance failure is a `failure`, or an `error` when the process crashed or did not answer. `skipped` are
    expected deviations and cases that did not run on the candidate. A fixed expectation and a
    flaky case fail with `strict` only; else a flaky case is skipped. A
    run that is not complete has an `error` of its own, so missing cases never look like success.

    The counts stand before what they count, and candidates take turns: each suite waits in a file of its own. Jenkins'
    schema (junit-10.xsd of its xUnit plugin) has no `skipped` for all suites together.
    """

    def __init__(self, run: Run, file: IO[bytes], stack: ExitStack, *, strict: bool = False) -> None:
        self._run = run
        self._file = file
        self._stack = stack
        self._strict = strict
        self._suites: dict[str, _Suite] = {}

    def add(self, entry: Entry) -> None:
        target = entry.record.candidate.target
        if target not in self._suites:
            self._suites[target] = self._suite(target)
        self._suites[target].add(*_testcase(entry.record, entry.cause, self._strict))

    def finish(self, summary: Summary) -> None:
        run, suites = self._run, list(self._suites.values())
        if summary.missing or run.status != "complete" or not summary.recorded:
            suites.append(self._incomplete(headline(run, summary)))
        total = sum((suite.counts for suite in suites), Counter[str]())
        counts = {name: count for name, count in _format_counts(total).items() if name != "skipped"}
        head = _head("testsuites", {"name": "epcheck", "time": f"{run.duration_s:.3f}", **counts})
        self._file.write(f"<?xml version='1.0' encoding='utf-8'?>\n<{head}>".encode())
        for suite in suites:
            suite.copy_to(self._file)
        self._file.write(b"</testsuites>")

    def _suite(self, target: str) -> _Suite:
        facts = self._run.targets.get(target, {})
        properties = "".join(_element("property", {"name": name, "value": value}) for name, value in facts.items())
        suite = _Suite({"name": target, "timestamp": self._run.started}, spool(self._file, self._stack))
        suite.write(_element("properties", {}, properties))
        return suite

    def _incomplete(self, why: str) -> _Suite:
        suite = _Suite({"name": "epcheck run"}, spool(self._file, self._stack))
        error = _element("error", {"type": "incomplete", "message": why})
        suite.add(_element("testcase", {"classname": "epcheck", "name": "the run is complete"}, error), "error")
        return suite


class _Suite:
    """A testsuite in the making. counts: of its testcases as `tests`, and of the tags in them."""

    def __init__(self, attributes: Mapping[str, str], inside: IO[bytes]) -> None:
        self.counts = Counter[str]()
        self._attributes = attributes
        self._inside = inside

    def add(self, testcase: str, tag: str) -> None:
        """Take a testcase that holds `tag`, or nothing."""
        self.counts.update(("tests", tag))
        self.write(testcase)

    def write(self, element: str) -> None:
        """Take an element that is not counted."""
        self._inside.write(element.encode())

    def copy_to(self, file: IO[bytes]) -> None:
        file.write(f"<{_head('testsuite', {**self._attributes, **_format_counts(self.counts)})}>".encode())
        self._inside.seek(0)
        shutil.copyfileobj(self._inside, file)
        file.write(b"</testsuite>")


def _format_counts(counts: Counter[str]) -> dict[str, str]:
    return {name: str(counts[tag]) for tag, name in COUNTED.items()}


def _testcase(record: Record, cause: Cause | None, strict: bool) -> tuple[str, str]:
    """The element of a record, and the tag of what it holds."""
    seconds = (record.candidate.create_s or 0.0) + (record.candidate.run_s or 0.0)
    attributes = {"classname": record.case.operator_key, "name": record.case_id, "time": f"{seconds:.6f}"}
    tag, inside = _result(record, cause, strict)
    return _element("testcase", attributes, inside), tag


def _result(record: Record, cause: Cause | None, strict: bool) -> tuple[str, str]:
    """The tag and the element of a record's result; both empty for a case with which nothing is wrong."""
    reason = record.reason
    if record.reading == FAILURE or (record.reading in (FIXED, FLAKY) and strict):
        tag = "error" if record.status in (CRASH, TIMEOUT) else "failure"
        kind = "fixed" if record.reading == FIXED else record.status
        return tag, _element(tag, {"type": kind, "message": reason}, _text(_details(record, cause)))
    if record.reading == EXPECTED:
        known = record.expectation
        where = f" where {known.when}" if known and known.when else ""
        why = f"expected{where}: {known.reason if known else ''}"
        return "skipped", _element("skipped", {"type": "expected", "message": f"{reason} ({why})"})
    if record.reading == FLAKY:
        return "skipped", _element("skipped", {"type": FLAKY, "message": reason})
    if record.status in (SKIPPED, UNPLACED):
        return "skipped", _element("skipped", {"type": record.status, "message": reason})
    if record.reading in (NOTED, FIXED):
        return "system-out", _element("system-out", {}, _text(f"{record.reading}: {reason}"))
    return "", ""


def _details(record: Record, cause: Cause | None) -> str:
    lines = [record.reason, f"blame: {record.blame or 'nobody'}", f"reproduce with: {record.case.repro}"]
    if cause:
        lines.append(f"cause {cause.key}: {cause.text}")
        lines += [f"condition: {cause.condition} ({cause.evidence})"] if cause.condition else []
    for difference in record.candidate.differences:
        lines.append(f"{difference.output}: {difference.wrong} of {difference.total} elements are wrong")
        lines += [f"  at {list(m.at)}: expected {m.expected}, got {m.got}" for m in difference.first]
    lines += [f"{v.variant}: {v.state}: {v.reason}" for v in record.variants if v.state in (DIFFERS, UNSTEADY)]
    if record.candidate.message:
        lines.append(record.candidate.message)
    if record.candidate.log_tail:
        lines += ["log:", record.candidate.log_tail]
    return "\n".join(lines)


def _element(tag: str, attributes: Mapping[str, str], inside: str = "") -> str:
    """inside: XML."""
    head = _head(tag, attributes)
    return f"<{head}>{inside}</{tag}>" if inside else f"<{head} />"


def _head(tag: str, attributes: Mapping[str, str]) -> str:
    return tag + "".join(f' {name}="{escape(visible(value), _IN_QUOTES)}"' for name, value in attributes.items())


def _text(text: str) -> str:
    return escape(visible(text))
