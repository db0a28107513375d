"""The result of a record, one of five.

The words and what they mean are those of ONNX Runtime's design of an operator conformance suite for execution
providers (docs/design/webgpu_ep_extraction/test_ownership_and_conformance/ep_operator_conformance_design.md in its
repository, pull request 32213, "Result semantics").
"""

from __future__ import annotations

from epcheck.conformance.records.record import Record
from epcheck.conformance.records.terms import EXPECTED, FAILURE, FLAKY, REFUSED, SKIPPED, UNPLACED
from epcheck.conformance.records.terms import PASS as STATUS_PASS

PASS, UNSUPPORTED, FAIL, EXCLUDED, NOT_RUN = "PASS", "UNSUPPORTED", "FAIL", "EXCLUDED", "NOT_RUN"

RESULTS = (PASS, UNSUPPORTED, FAIL, EXCLUDED, NOT_RUN)
"""PASS: the provider executed the node and all outputs are right. UNSUPPORTED: it did not take a case that it does not
claim. FAIL: wrong outputs, a crash, no answer in time, a refusal or another provider's nodes where it claims support,
or a result that changes. EXCLUDED: an expectation matched, with its reason. NOT_RUN: the case could not be executed."""


def result_of(record: Record) -> str:
    """The one result of a record.

    A case that passes though a failure was expected is a PASS: the exclusion is out of date. Crashes and time-outs are
    a FAIL of their case, because a worker process is lost with them and not the run.
    """
    if record.status == SKIPPED:
        return NOT_RUN
    if record.reading in (FAILURE, FLAKY):
        return FAIL
    if record.reading == EXPECTED:
        return EXCLUDED
    if record.status == STATUS_PASS:
        return PASS
    return UNSUPPORTED if record.status in (UNPLACED, REFUSED) else FAIL
