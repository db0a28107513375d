"""Searches for faults in the formats of a night's reports."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from epcheck.reports.faults.fault_search import FaultSearch, FoundFault
from epcheck.reports.markdown import escape_markdown, row
from epcheck.reports.text import visible

SHOWN, REASON = 10, 200
"""Faults that Markdown lists, and characters of a reason; the page and the JSON document have all."""

HEAD = ("operator", "status", "blame", "reason", "folder")


def markdown_lines(searches: Sequence[FaultSearch]) -> Iterator[str]:
    """Each search with its new faults and those that are still there."""
    for search in searches:
        yield f"## {escape_markdown(search.title)}"
        yield ""
        yield escape_markdown(search.sentences)
        yield ""
        listed = (*search.new, *search.again)
        if not listed:
            continue
        yield row(HEAD)
        yield row("---" for _ in HEAD)
        yield from (row(map(escape_markdown, _cells(fault))) for fault in listed[:SHOWN])
        yield ""
        if len(listed) > SHOWN:
            yield f"… and {len(listed) - SHOWN:,} more"
            yield ""


def documents(searches: Sequence[FaultSearch]) -> list[dict[str, Any]]:
    """The searches in JSON's own types."""
    return [dataclasses.asdict(search) for search in searches]


def testsuites(searches: Sequence[FaultSearch]) -> Iterator[Element]:
    """A testsuite for each search: a fault is `skipped`, with its reason, since a search fails no night; a search that
    ended early is an `error`."""
    for search in searches:
        suite = Element("testsuite", name=visible(search.title))
        whole = SubElement(suite, "testcase", classname="epcheck", name="the search ran to its end")
        if search.ended:
            SubElement(whole, "error", type="ended early", message=visible(search.ended))
        for fault in (*search.new, *search.again):
            testcase = SubElement(suite, "testcase", classname=visible(fault.operator), name=f"fault {fault.id}")
            kind = "found before" if fault.replayed else "new fault"
            found = SubElement(testcase, "skipped", type=kind, message=visible(f"{fault.status}: {fault.reason}"))
            found.text = visible(f"blame: {fault.blame or 'nobody'}\n{fault.folder}")
        yield suite


def _cells(fault: FoundFault) -> tuple[str, ...]:
    reason = fault.reason if len(fault.reason) <= REASON else f"{fault.reason[: REASON - 1]}…"
    return fault.operator, fault.status, fault.blame or "nobody", reason, fault.folder
