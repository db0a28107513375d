"""A run as SARIF 2.1.0, for services of code scanning: a result for each cause.

Source of the fields: OASIS, Static Analysis Results Interchange Format Version 2.1.0, sections 3.13 to 3.28.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from epcheck.conformance.records import strict_json
from epcheck.conformance.records.run import Run
from epcheck.conformance.records.terms import FAILURE, FIXED, FLAKY
from epcheck.reports.causes.cause import Cause
from epcheck.reports.runs.run_folder import JOURNAL
from epcheck.reports.runs.summary import Summary

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

RULES = {
    FAILURE: ("error", "Cases fail that nobody expects to fail."),
    FLAKY: ("warning", "Repeated runs of cases differ."),
    FIXED: ("warning", "Cases pass though an expectation says that they fail."),
}
"""Reading of a cause, which is the rule of its result -> the level, and what it says."""


def sarif(run: Run, summary: Summary) -> str:
    """The document. A result has the key, the condition and the command of its cause in `properties`; its place is the
    smallest case, in the journal of the run."""
    rules = [
        {"id": rule, "shortDescription": {"text": text}, "defaultConfiguration": {"level": level}}
        for rule, (level, text) in RULES.items()
    ]
    causes = [cause for target in summary.targets for cause in target.causes if cause.reading in RULES]
    driver = {"name": "epcheck", "version": version("epcheck"), "rules": rules}
    made = {
        "tool": {"driver": driver},
        "columnKind": "utf16CodeUnits",
        "automationDetails": {"id": f"epcheck/{', '.join(run.candidates)}/{run.run_id}"},
        "invocations": [{"executionSuccessful": run.status == "complete" and not summary.missing}],
        "results": [_result(cause) for cause in causes],
    }
    return strict_json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [made]}) + "\n"


def _result(cause: Cause) -> dict[str, Any]:
    cases = f"{cause.cases:,} case{'s' if cause.cases > 1 else ''} of {', '.join(cause.operators)}"
    text = f"{cause.target}: {cause.full_title} ({cases})"
    place = {"artifactLocation": {"uri": JOURNAL}, "region": {"startLine": 1}}
    return {
        "ruleId": cause.reading,
        "ruleIndex": list(RULES).index(cause.reading),
        "level": RULES[cause.reading][0],
        "message": {"text": _text(text)},
        "locations": [
            {"physicalLocation": place, "logicalLocations": [{"name": _text(cause.smallest), "kind": "member"}]}
        ],
        "partialFingerprints": {"epcheck/v1": f"{cause.target}/{cause.key}"},
        "properties": {
            "cause": cause.key,
            "condition": cause.condition,
            "evidence": cause.evidence,
            "symptom": _text(cause.text),
            "reproduce": _text(cause.repro),
        },
    }


def _text(value: str) -> str:
    """Fit for readers of Unicode: a message may hold half a surrogate pair."""
    return value.encode("utf-8", "replace").decode("utf-8")
