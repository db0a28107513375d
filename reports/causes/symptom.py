"""What a target does wrong with a case, without what changes from case to case.

The kind of a symptom is what a reader sees first: wrong values, a process that ends, a refusal. Its detail tells faults
apart that have one kind: the runtime's own message without names of nodes, shapes and addresses, or which elements are
wrong. A fault has one kind and often several details: another process, another exit code of the same signal, and
another type in a message are the same fault.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from epcheck.conformance.records.opinion import Difference, Opinion
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.terms import (
    BASELINE,
    CRASH,
    FLAKY,
    MISMATCH,
    OK,
    ORDER_DEPENDENT,
    PASS,
    REFUSED,
    TIMEOUT,
    UNPLACED,
    USAGE_DEPENDENT,
    VARIANT_DEPENDENT,
)
from epcheck.reports.runtime_message import SOURCE_LINE, readable

WRONG_VALUES, WRONG_SHAPE, WRONG_DTYPE, ACCEPTED = (
    "wrong values", "wrong shape", "wrong dtype", "accepts what must be refused",
)  # fmt: skip
KINDS = {
    CRASH: "the process ends", TIMEOUT: "does not end in time", FLAKY: "the answer changes when the case is repeated",
    ORDER_DEPENDENT: "the answer depends on the cases before it", REFUSED: "is refused", UNPLACED: "is not placed",
    VARIANT_DEPENDENT: "the answer depends on how the case is run",
    USAGE_DEPENDENT: "the answer depends on how sessions are used",
}  # fmt: skip
"""Status -> the kind of its symptom; a mismatch has one of those above."""

LONGEST = 400
"""Characters of a message that tell details apart."""

SHARE = 0.9
"""Of the cases of a cause, those that a pattern of wrong elements has to fit."""

EVERY, LAST, FIRST = "every element is wrong", "the last element is wrong", "the first element is wrong"
PLACES = (EVERY, LAST, FIRST)
"""Patterns that say which elements are wrong; the others say what they are."""

_NAME = re.compile(r"'[^'\n]{1,80}'|\"[^\"\n]{1,80}\"")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b|\b[0-9A-F]{12,16}\b")
_SHAPE = re.compile(r"(?<!\w)[{\[(]\s*(?:-?\d+(?:\s*,\s*-?\d+)*\s*,?\s*)?[}\])]")
_REPEATS = re.compile(r" \((?:[a-z-]+(?:, |; alone )?)+\)(?=: )")
"""How each repetition of a case went whose answer changes."""
_DTYPE = re.compile(r"\b(?:bfloat16|float(?:16|32|64)?|double|u?int(?:2|4|8|16|32|64)|bool)\b")
_NUMBER = re.compile(
    rf"(?P<kept>{SOURCE_LINE.pattern}|\b8[0-9A-Fa-f]{{7}}\b|\b(?:code|signal) -?\d+)|"
    r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])|(?<=_)\d+(?:_\d+)*(?!\w)"
)
"""A number that changes from case to case, also at the end of a name (QNN calls a graph
`QNNExecutionProvider_10835740570103152242_1_0`); `kept` are those that tell details apart: a line of source code, an
HRESULT, how a process ended."""
_BOUND_SOURCE = re.compile(r" \([^()]*(?:\([^()]*\)[^()]*)*\)$")
_WRONG_ELEMENTS = re.compile(r"^\d+ of \d+ elements (?:is|are) wrong; ")
_ENDED = re.compile(
    r"\b(?:exit code (?P<code>\d+)|(?:killed by )?signal (?P<signal>\d+)|(?P<status>0x[0-9a-fA-F]{8}))\b"
)
_SIGNALS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV"}
_STATUSES = {"0xc0000005": "SIGSEGV", "0xc0000094": "SIGFPE", "0xc000001d": "SIGILL", "0xc0000409": "SIGABRT"}
"""NTSTATUS that a process of Windows ends with -> the signal of POSIX for the same fault."""


@dataclass(frozen=True)
class Symptom:
    """kind: as of KINDS, or one of a mismatch. detail: what tells it apart from others of its kind. end: the signal of
    a process that ended, or its exit code. patterns: what holds of its wrong elements."""

    kind: str
    detail: str = ""
    end: str = ""
    patterns: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The kind; one word for wrong values, shapes and dtypes, all of which one fault may give."""
        return WRONG_VALUES if self.kind in (WRONG_SHAPE, WRONG_DTYPE) else self.kind


def symptom_of(record: Record) -> Symptom:
    """The symptom of a candidate that is not right."""
    return _symptom(record, record.candidate)


def describe_remark(record: Record) -> str:
    """Why a record is noted, in words that are the same for every case of one cause; empty where it is a failure."""
    candidate, baseline = record.candidate, record.baseline
    if record.reading == OK:
        return ""
    if record.blame == BASELINE and baseline is not None:
        return f"{baseline.target} is wrong: {_symptom(record, baseline).detail}"
    if record.status == PASS and candidate.excused and record.claimed is not False:
        return f"right only within a published absolute tolerance: {candidate.excused[0].floor}"
    return "passes, but the provider does not claim it" if record.status == PASS else ""


def _symptom(record: Record, opinion: Opinion) -> Symptom:
    if opinion.status == MISMATCH:
        return _mismatch(opinion)
    kind = KINDS.get(opinion.status, opinion.status)
    if opinion.status == UNPLACED and not SOURCE_LINE.search(opinion.message):
        return Symptom(kind, stem(record.reason.partition(": ")[2].partition("; ")[0]) or "not placed")
    if opinion.status == CRASH:
        return Symptom(kind, _detail(record, opinion), _end(opinion.message))
    return Symptom(kind, _detail(record, opinion) or stem(record.reason))


def _mismatch(opinion: Opinion) -> Symptom:
    if not opinion.differences:
        return Symptom(ACCEPTED, stem(opinion.message.removeprefix("accepted what must be refused: ")))
    first = opinion.differences[0]
    if first.reason.startswith("the dtype is "):
        return Symptom(WRONG_DTYPE, first.reason)
    if first.reason.startswith("the shape is "):
        return Symptom(WRONG_SHAPE, stem(first.reason))
    if not first.total or (not first.first and not first.wrong):
        return Symptom(ACCEPTED if "refused" in first.reason else WRONG_VALUES, stem(first.reason))
    detail = stem(_WRONG_ELEMENTS.sub("", _BOUND_SOURCE.sub("", first.reason)))
    return Symptom(WRONG_VALUES, detail, patterns=tuple(_patterns(first)))


def _patterns(difference: Difference) -> Iterator[str]:
    """What holds of the wrong elements of an output."""
    shown = difference.first
    if difference.wrong == difference.total > 1:
        yield EVERY
    if difference.wrong == 1 and shown and difference.total > 1:
        if shown[0].at == tuple(size - 1 for size in difference.shape):
            yield LAST
        elif not any(shown[0].at):
            yield FIRST
    if not shown:
        return
    if all(float_of(wrong.got) == 0 for wrong in shown):
        yield "gives 0"
    if all(wrong.got == "nan" for wrong in shown):
        yield "gives NaN"
    if all(wrong.expected.startswith("nan") for wrong in shown):
        yield "where NaN is expected"
    pairs = [(float_of(wrong.expected.partition(" ")[0]), float_of(wrong.got)) for wrong in shown]
    known = [(expected, got) for expected, got in pairs if expected is not None and got is not None]
    if len(known) == len(shown):
        if all(expected == -got != 0 for expected, got in known):
            yield "the sign is wrong"
        if "int" in difference.dtype and all(abs(expected - got) == 1 for expected, got in known):
            yield "off by 1"


def float_of(text: str) -> float | None:
    """The number that a text is; None where it is none."""
    try:
        return float(text)
    except ValueError:
        return None


def describe_patterns(symptoms: Iterable[Symptom]) -> str:
    """The patterns that fit nearly all cases, in words; empty where none does."""
    symptoms = tuple(symptoms)
    counted = Counter(pattern for symptom in symptoms for pattern in symptom.patterns)
    return ", ".join(pattern for pattern, count in counted.items() if count >= SHARE * len(symptoms))


def _end(message: str) -> str:
    """How a process ended: a signal by its name, or an exit code."""
    found = _ENDED.search(message)
    if found is None:
        return ""
    if found["status"]:
        return _STATUSES.get(found["status"].lower(), found["status"])
    number = int(found["signal"] or found["code"])
    signal = number if found["signal"] else number - 128
    return _SIGNALS.get(signal, found[0])


def _detail(record: Record, opinion: Opinion) -> str:
    repeated = opinion.status in (FLAKY, ORDER_DEPENDENT)
    message = stem(_REPEATS.sub("", opinion.message) if repeated else opinion.message)
    if SOURCE_LINE.search(message):  # one line is one cause, whichever operator it was reached by
        message = re.sub(rf"(?<![\w.:<]){re.escape(record.case.operator)}(?![\w.:<])", "…", message)
    return message


def stem(message: str) -> str:
    """The message without what changes from case to case; lines of source code and HRESULTs stay."""
    plain = readable(message.strip().partition("\n")[0])
    for pattern, mark in ((_NAME, "…"), (_ADDRESS, "…"), (_SHAPE, "[…]"), (_DTYPE, "dtype")):
        plain = pattern.sub(lambda found, mark=mark: found[0] if SOURCE_LINE.search(found[0]) else mark, plain)  # type: ignore[misc]
    plain = _NUMBER.sub(lambda found: found["kept"] or "…", " ".join(plain.split()))
    return plain[:LONGEST]
