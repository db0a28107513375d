"""The words of a record: statuses, blames, and readings of a status."""

from __future__ import annotations

PASS, MISMATCH, UNPLACED, REFUSED, CRASH, TIMEOUT, SKIPPED = (
    "pass", "mismatch", "unplaced", "refused", "crash", "timeout", "skipped",
)  # fmt: skip

FLAKY, ORDER_DEPENDENT, VARIANT_DEPENDENT, USAGE_DEPENDENT = (
    "flaky", "order-dependent", "variant-dependent", "usage-dependent",
)  # fmt: skip


STATUSES = (
    PASS, MISMATCH, UNPLACED, REFUSED, CRASH, TIMEOUT, FLAKY, ORDER_DEPENDENT, VARIANT_DEPENDENT, USAGE_DEPENDENT,
    SKIPPED,
)  # fmt: skip


DEPENDENT = (VARIANT_DEPENDENT, USAGE_DEPENDENT)
"""Statuses of a case that is right in its ordinary way and differs in another: the second where all that differ are
uses of sessions."""


USES = ("threads", "reruns", "lifecycle", "weights", "options")
"""The axes on which sessions are used as applications use them, in the order in which they are shown."""


SAME, CLOSE, DIFFERS, UNSTEADY, NOT_RUN = "same", "close", "differs", "unsteady", "skipped"
"""How a variant of a case compares with the ordinary way: the same answer; other bits that are right as well; another
result, which was confirmed alone; another result that does not come again; or it was not run, for the stated reason."""


NOBODY, CANDIDATE, BASELINE, BOTH, ORACLES_DISAGREE = "", "candidate", "baseline", "both", "oracles-disagree"


BLAMES = (NOBODY, CANDIDATE, BASELINE, BOTH, ORACLES_DISAGREE)


LOWERING, BELOW, UNSUPPORTED, DIFFERENTLY, NOT_CALLED = "lowering", "directml", "unsupported", "differently", ""
"""Whose fault a failure of DirectML's provider is, told by DirectML itself: called directly it is right, so the
lowering is wrong; it fails alike, so DirectML or the driver is wrong; it does not take such an operator, so the
provider should not have called it; it fails in another way; or it was not called."""


OK, FAILURE, EXPECTED, FIXED, NOTED = "ok", "failure", "expected", "fixed", "noted"


READINGS = (OK, FAILURE, FLAKY, EXPECTED, FIXED, NOTED)
"""A status read against the claim and the expectation: `failure` is a conformance failure nobody expected, `flaky` one
that comes and goes when the case is repeated, `expected` one that is recorded with its reason, `fixed` an expectation
that no longer fails, `noted` a remark (a pass where nothing is claimed, a wrong baseline), `ok` all the rest."""


FAILING = (FAILURE, FLAKY, EXPECTED)
"""The readings of a candidate that is wrong, be that expected or not."""
