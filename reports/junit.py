"""JUnit XML, for the pages that CI systems make of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement

from epcheck.conformance.record import CRASH, EXPECTED, FAILURE, FIXED, NOTED, SKIPPED, TIMEOUT, UNPLACED, Record
from epcheck.reports.store import read_records, read_run, write_beside
from epcheck.reports.summary import Tally, headline
from epcheck.reports.text import visible


def write_junit(folder: Path, path: Path | None = None, *, strict: bool = False) -> Path:
    """Write the run as JUnit XML (default: `junit.xml` in its folder): one testsuite for each candidate, one testcase
    for each record with the operator as classname and the case id as name.

    A conformance failure is a `failure`, or an `error` when the process crashed or did not answer. `skipped` are
    expected deviations and cases that did not run on the candidate. A fixed expectation fails with `strict` only. A
    run that is not complete has an `error` of its own, so missing cases never look like success.

    Raises StoreError when the run cannot be read or the file cannot be written.
    """
    run, path = read_run(folder), path or folder / "junit.xml"
    root = Element("testsuites", name="epcheck", time=f"{run.duration_s:.3f}")
    suites: dict[str, Element] = {}
    tally = Tally()
    for record in read_records(folder):
        tally.add(record)
        target = record.candidate.target
        suite = suites.get(target)
        if suite is None:
            suite = suites[target] = SubElement(root, "testsuite", name=visible(target), timestamp=visible(run.started))
            properties = SubElement(suite, "properties")
            for name, value in run.targets.get(target, {}).items():
                SubElement(properties, "property", name=visible(str(name)), value=visible(str(value)))
        suite.append(_testcase(record, strict))
    summary = tally.summary(run)
    if summary.missing or run.status != "complete" or not summary.recorded:
        suite = SubElement(root, "testsuite", name="epcheck run")
        case = SubElement(suite, "testcase", classname="epcheck", name="the run is complete")
        SubElement(case, "error", type="incomplete", message=visible(headline(run, summary)))
    for suite in root:
        _count(suite)
    _count(root)
    write_beside(path, lambda file: ElementTree(root).write(file, encoding="utf-8", xml_declaration=True))
    return path


def _testcase(record: Record, strict: bool) -> Element:
    seconds = (record.candidate.create_s or 0.0) + (record.candidate.run_s or 0.0)
    operator, name = visible(record.case.operator), visible(record.case_id)
    case = Element("testcase", classname=operator, name=name, time=f"{seconds:.6f}")
    reason = visible(record.reason)
    if record.reading == FAILURE or (record.reading == FIXED and strict):
        tag = "error" if record.status in (CRASH, TIMEOUT) else "failure"
        kind = "fixed" if record.reading == FIXED else record.status
        SubElement(case, tag, type=kind, message=reason).text = visible(_details(record))
    elif record.reading == EXPECTED:
        why = record.expectation.reason if record.expectation else ""
        SubElement(case, "skipped", type="expected", message=visible(f"{record.reason} (expected: {why})"))
    elif record.status in (SKIPPED, UNPLACED):
        SubElement(case, "skipped", type=record.status, message=reason)
    elif record.reading in (NOTED, FIXED):
        SubElement(case, "system-out").text = f"{record.reading}: {reason}"
    return case


def _details(record: Record) -> str:
    lines = [record.reason, f"blame: {record.blame or 'nobody'}", f"reproduce with: {record.case.repro}"]
    for difference in record.candidate.differences:
        lines.append(f"{difference.output}: {difference.wrong} of {difference.total} elements are wrong")
        lines += [f"  at {list(m.at)}: expected {m.expected}, got {m.got}" for m in difference.first]
    if record.candidate.message:
        lines.append(record.candidate.message)
    if record.candidate.log_tail:
        lines += ["log:", record.candidate.log_tail]
    return "\n".join(lines)


def _count(element: Element) -> None:
    found = Counter(child.tag for case in element.iter("testcase") for child in case)
    element.set("tests", str(sum(1 for _ in element.iter("testcase"))))
    for tag, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        element.set(name, str(found[tag]))
