"""Which opinions are repeated before they are reported."""

from __future__ import annotations

from epcheck.conformance.judging.repeats import needs_confirmation
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.targets.target import Target
from tests.conformance.judged_cases import CLAIMED, DIRECTML, SILENT, UNCLAIMED


def test_every_failure_is_confirmed_but_not_the_refusal_of_an_unclaimed_node() -> None:
    def confirmed(status: str, case: PreparedCase, target: Target = DIRECTML) -> bool:
        return needs_confirmation(case, target, Opinion("dml", status))

    assert not confirmed("pass", CLAIMED)
    for status in ("mismatch", "refused", "crash", "timeout", "flaky"):
        assert confirmed(status, CLAIMED)
        assert confirmed(status, UNCLAIMED)
    assert confirmed("unplaced", CLAIMED)
    assert not confirmed("unplaced", UNCLAIMED)
    assert not confirmed("unplaced", UNCLAIMED, SILENT)
    assert confirmed("refused", UNCLAIMED, SILENT)


def test_what_the_device_lacks_is_not_asked_for_twice() -> None:
    message = "[ONNXRuntimeError] : 1 : FAIL : Program Add requires f16 but the device does not support it."
    assert not needs_confirmation(CLAIMED, DIRECTML, Opinion("dml", "refused", message=message))
    assert needs_confirmation(CLAIMED, DIRECTML, Opinion("dml", "mismatch", message=message))
