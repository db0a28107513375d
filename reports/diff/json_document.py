"""A comparison as one JSON document, for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from epcheck.conformance.records import strict_json
from epcheck.conformance.records.typed_json import to_json
from epcheck.reports.diff.assessment import Assessment
from epcheck.reports.faults import formats
from epcheck.reports.faults.fault_search import FaultSearch

DIFFERENCE_SCHEMA = 3


def document(assessments: Sequence[Assessment], searches: Sequence[FaultSearch] = ()) -> bytes:
    """`schema` (DIFFERENCE_SCHEMA; a reader refuses a newer one), `assessments`, and, where there are any, `searches`
    for faults.

    An assessment has `target`, `result`, `summary` (the sentences) and `difference`, a Difference, where there is one.
    Fields that hold their default are left out; infinite numbers are `{"$float": "inf"}`.
    """
    fields: dict[str, Any] = {
        "schema": DIFFERENCE_SCHEMA,
        "assessments": [_describe_assessment(assessment) for assessment in assessments],
    }
    if searches:
        fields["searches"] = formats.documents(searches)
    return strict_json.dumps(fields).encode("ascii") + b"\n"


def _describe_assessment(assessment: Assessment) -> dict[str, Any]:
    fields = {"target": assessment.target, "result": assessment.result, "summary": assessment.sentences}
    if assessment.difference is None:
        return fields
    return {**fields, "difference": to_json(assessment.difference)}
