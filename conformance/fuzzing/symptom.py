"""What a failure looks like, without what differs from node to node: numbers, names, places."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from epcheck.conformance.records import terms
from epcheck.conformance.records.case_condition import holds
from epcheck.conformance.records.facts import describe_case
from epcheck.conformance.records.opinion import Difference
from epcheck.conformance.records.record import Record
from epcheck.conformance.targets.expectation import Expectation, may_match
from epcheck.generators.case_pattern import matches

VARIABLE = re.compile(
    r"\b0x[0-9a-fA-F]+\b|\([-\d, ]*\)|'[^']*'|\"[^\"]*\"|\{[^{}]*\}|\[[^\[\]]*\]|/\S+/|[-+]?\d[\d.e+x]*"
)
"""What differs between two refusals of one cause: addresses, shapes, quoted names, folders, numbers."""

LONGEST = 160
"""Characters of a message that tell one refusal from another."""


@dataclass(frozen=True)
class Symptom:
    """operator: `Operator.key`. status: of the candidate. words: what is wrong, without numbers."""

    operator: str
    status: str
    words: str


def symptom(record: Record) -> Symptom:
    """What the failure looks like."""
    operator = record.case.operator if not record.case.domain else f"{record.case.domain}::{record.case.operator}"
    return Symptom(operator, record.status, _words(record))


def _words(record: Record) -> str:
    candidate = record.candidate
    if record.status == terms.MISMATCH and candidate.differences:
        return ", ".join(dict.fromkeys(map(kind_of, candidate.differences)))
    if record.status in (terms.FLAKY, terms.ORDER_DEPENDENT):
        return ""
    return " ".join(VARIABLE.sub("#", candidate.message).split())[:LONGEST]


def kind_of(difference: Difference) -> str:
    """What kind of difference it is: of form, NaN, infinity, sign of zero, precision, or of values."""
    if not difference.first:
        return difference.reason.partition(" is ")[0]
    pairs = [(_number(m.expected), _number(m.got), m.ulp) for m in difference.first]
    if any(math.isnan(expected) != math.isnan(got) for expected, got, _ in pairs):
        return "NaN"
    if any(math.isinf(expected) != math.isinf(got) for expected, got, _ in pairs):
        return "infinity"
    if all(expected == got == 0 for expected, got, _ in pairs):
        return "sign of zero"
    errors = [ulp for *_, ulp in pairs if ulp is not None]
    lost = PRECISION_ULP if difference.dtype in ("float32", "float64") else NARROW_PRECISION_ULP
    return "precision" if errors and max(errors) < lost else "values"


PRECISION_ULP, NARROW_PRECISION_ULP = 4096.0, 32.0
"""Errors below this are lost digits, above it another result; of float32 and float64, and of narrower types."""


def _number(text: str) -> float:
    try:
        return float(text.partition(" ")[0])
    except ValueError:  # True, False
        return 0.0 if text.startswith("F") else 1.0


def resembling(record: Record, expectations: Iterable[Expectation]) -> Expectation | None:
    """A recorded deviation of the same operator with the same status: the fault is probably it. One that states no
    condition names cases, not what they have in common, so this is a hint, never a verdict; where values are wrong, it
    has to be of the same version and dtypes. One that states a condition has to hold.
    """
    case_id, facts = record.case_id, describe_case(record.case)
    start, head = case_id.rpartition("/")[0] + "/", f"{case_id.partition('/')[0].rpartition('-')[0]}-"
    of_values = any(difference.first for difference in record.candidate.differences)
    for entry in expectations:
        if entry.status == record.status and may_match(entry, head):
            if entry.where:
                if matches(case_id, entry.case) and holds(entry.where, facts):
                    return entry
                continue
            parts = entry.case.split("/")
            if len(parts) > 2 and (not of_values or matches(start, "/".join(parts[:-1]) + "/*")):
                return entry
    return None
