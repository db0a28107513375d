"""A comparison as JUnit XML: one testsuite for each target, one testcase for each group of cases that changed alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from epcheck.conformance.records.repro_command import repro_command
from epcheck.conformance.records.terms import CRASH, TIMEOUT
from epcheck.reports.diff.assessment import NOT_RUN as TARGET_NOT_RUN
from epcheck.reports.diff.assessment import Assessment
from epcheck.reports.diff.classification import FLAPPING, NOT_RUN, REGRESSION, STILL
from epcheck.reports.diff.difference import Difference, Group
from epcheck.reports.diff.formatting import format_change, format_count
from epcheck.reports.diff.wording import wording
from epcheck.reports.faults import formats
from epcheck.reports.faults.fault_search import FaultSearch
from epcheck.reports.text import visible

SKIPPED = (NOT_RUN, FLAPPING, STILL)
"""Kinds that are neither a failure nor a success of this night."""


def junit(assessments: Sequence[Assessment], searches: Sequence[FaultSearch] = ()) -> bytes:
    """A new failure is a `failure`, or an `error` where the process crashed or did not answer; a target that did not
    run to its end is an `error`. What is not run, flaky or still failing is `skipped`, with its reason.

    A testcase has its cause's name, or that of its samples, the same every night whatever becomes of them, so that a CI
    system has a history of it; a second group of the same name has its key as well. Jenkins' schema (junit-10.xsd of
    its xUnit plugin) has no `skipped` for all suites together.
    """
    root = Element("testsuites", name="epcheck, compared")
    for assessment in assessments:
        suite = SubElement(root, "testsuite", name=visible(assessment.target))
        suite.extend(_testcases(assessment))
    root.extend(formats.testsuites(searches))
    for suite in root:
        _count(suite, [suite])
    _count(root, list(root))
    del root.attrib["skipped"]
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _testcases(assessment: Assessment) -> Iterator[Element]:
    whole = Element("testcase", classname="epcheck", name="the target ran to its end")
    if assessment.result == TARGET_NOT_RUN:
        SubElement(whole, "error", type=assessment.result, message=visible(assessment.sentences))
    yield whole
    named: set[tuple[str, str]] = set()
    if assessment.difference is None:
        return
    for group in assessment.difference.groups:
        name = group.cause or group.sample
        again = (group.operator, name) in named
        named.add((group.operator, name))
        name = f"{name} ({group.key})" if again else name
        yield _testcase(group, name, assessment.difference)


def _testcase(group: Group, name: str, difference: Difference) -> Element:
    words = wording(difference.sides)
    testcase = Element("testcase", classname=visible(group.operator), name=visible(name))
    tag = "skipped" if group.kind in SKIPPED else ""
    if group.kind == REGRESSION:
        tag = "error" if group.newer in (CRASH, TIMEOUT) else "failure"
    if tag:
        change = format_change(group, words.between)
        what = f"{change}, {format_count(len(group.case_ids))}: {group.why}"
        element = SubElement(testcase, tag, type=visible(words.names[group.kind]), message=visible(what))
        element.text = visible(_details(group, difference))
    return testcase


def _details(group: Group, difference: Difference) -> str:
    lines = [group.reason, f"blame: {group.blame or 'nobody'}"]
    lines.append(f"reproduce with: {repro_command(group.case_ids[0], difference.newer.target)}")
    for change in difference.causes:
        if change.title == group.cause:
            lines.append(f"cause: {change.what}{f', before: {change.was}' if change.was else ''}")
    return "\n".join([*lines, *group.case_ids])


def _count(element: Element, suites: Sequence[Element]) -> None:
    counted = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    for name, tag in counted.items():
        element.set(name, str(sum(len(suite.findall(f".//{tag}")) for suite in suites)))
