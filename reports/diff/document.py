"""A comparison as one JSON document, for programs."""

from __future__ import annotations

from collections.abc import Sequence

from epcheck.conformance.records import strict_json
from epcheck.conformance.records.record import to_json
from epcheck.reports.diff.verdict import Verdict

DIFFERENCE_SCHEMA = 1


def document(verdicts: Sequence[Verdict]) -> bytes:
    """`schema` (DIFFERENCE_SCHEMA; a reader refuses a newer one) and `verdicts`, each a Verdict. Fields that hold their
    default are left out; infinite numbers are `{"$float": "inf"}`."""
    told = {"schema": DIFFERENCE_SCHEMA, "verdicts": to_json(tuple(verdicts))}
    return strict_json.dumps(told).encode("ascii") + b"\n"
