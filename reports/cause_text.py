"""Why a record is not simply right, in words that are the same for every case of one cause.

An expected deviation has the reason that its expectation gives. Any other has the runtime's own message without what
changes from case to case (names of nodes, shapes, addresses), and the place below the provider: the line of source code
that the message names, or else, on DirectML, its operator that the node is lowered to, or else the operator itself.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.terms import BASELINE, FLAKY, MISMATCH, OK, ORDER_DEPENDENT, PASS, UNPLACED
from epcheck.reports.runtime_message import SOURCE_LINE, readable

_NAME = re.compile(r"'[^'\n]{1,80}'|\"[^\"\n]{1,80}\"")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b|\b[0-9A-F]{12,16}\b")
_SHAPE = re.compile(r"(?<!\w)[{\[(]\s*(?:-?\d+(?:\s*,\s*-?\d+)*\s*,?\s*)?[}\])]")
_REPEATS = re.compile(r" \((?:[a-z-]+(?:, |; alone )?)+\)(?=: )")
"""How each repetition of a case went whose answer changes."""
_OF_DTYPE = "the dtype is "
_DTYPE = re.compile(r"\b(?:bfloat16|float(?:16|32|64)?|double|u?int(?:2|4|8|16|32|64)|bool)\b")
_NUMBER = re.compile(
    rf"(?P<kept>{SOURCE_LINE.pattern}|\b8[0-9A-Fa-f]{{7}}\b|\b(?:code|signal) -?\d+)|"
    r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])"
)
"""A number that changes from case to case; `kept` are those that tell causes apart: a line of source code, an HRESULT,
how a process ended."""
_BOUND_SOURCE = re.compile(r" \([^()]*(?:\([^()]*\)[^()]*)*\)$")
_WRONG_ELEMENTS = re.compile(r"^\d+ of \d+ elements (?:is|are) wrong; ")
_DIRECTML = "DmlExecutionProvider"

CHANGING = (FLAKY, ORDER_DEPENDENT)

LONGEST = 400
"""Characters of a message that tell causes apart."""


class CauseText(NamedTuple):
    """text: why, without what changes from case to case. place: below the provider, empty where `text` says it all.
    link: of the finding, where an expectation has one."""

    text: str
    place: str = ""
    link: str = ""


def cause_text(record: Record) -> CauseText | None:
    """The cause of what is not simply right about a record; None for the reading `ok`."""
    if record.reading == OK:
        return None
    if record.expectation is not None:
        return CauseText(record.expectation.reason, link=record.expectation.link)
    candidate, baseline = record.candidate, record.baseline
    if record.blame == BASELINE and baseline is not None:
        return CauseText(f"{baseline.target} is wrong: {_failure(record, baseline)}", _place(record, baseline))
    if record.status == PASS and candidate.excused and record.claimed is not False:
        return CauseText(f"right only within a published absolute tolerance: {candidate.excused[0].floor}")
    if record.status == PASS:
        return CauseText("passes, but the provider does not claim it")
    if record.status == UNPLACED and not SOURCE_LINE.search(candidate.message):
        return CauseText(_stem(record.reason.partition(": ")[2].partition("; ")[0]) or "not placed", _operator(record))
    return CauseText(_failure(record, candidate) or _stem(record.reason), _place(record, candidate))


def _failure(record: Record, opinion: Opinion) -> str:
    if opinion.status == MISMATCH and opinion.differences:
        reason = _WRONG_ELEMENTS.sub("wrong values: ", _BOUND_SOURCE.sub("", opinion.differences[0].reason))
        return reason if reason.startswith(_OF_DTYPE) else _stem(reason)
    message = _stem(_REPEATS.sub("", opinion.message) if opinion.status in CHANGING else opinion.message)
    if SOURCE_LINE.search(message):  # one line is one cause, whichever operator it was reached by
        message = re.sub(rf"(?<![\w.:<]){re.escape(record.case.operator)}(?![\w.:<])", "…", message)
    return message


def _stem(message: str) -> str:
    """The message without what changes from case to case; lines of source code and HRESULTs stay."""
    plain = readable(message.strip().partition("\n")[0])
    for pattern, mark in ((_NAME, "…"), (_ADDRESS, "…"), (_SHAPE, "[…]"), (_DTYPE, "dtype")):
        plain = pattern.sub(lambda found, mark=mark: found[0] if SOURCE_LINE.search(found[0]) else mark, plain)  # type: ignore[misc]
    plain = _NUMBER.sub(lambda found: found["kept"] or "…", " ".join(plain.split()))
    return plain[:LONGEST]


def _place(record: Record, opinion: Opinion) -> str:
    """`DML_SLICE1_OPERATOR_DESC`, or the operator; empty where the message names a line of source code."""
    if opinion.message and SOURCE_LINE.search(opinion.message):
        return ""
    providers = {provider for provider, _ in opinion.assignment or ()}
    if opinion is record.candidate and record.case.directml is not None and (not providers or _DIRECTML in providers):
        return record.case.directml.name
    return _operator(record)


def _operator(record: Record) -> str:
    return record.case.operator_key
