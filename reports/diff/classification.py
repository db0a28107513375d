"""What became of a case from one run to another, by its status and reading in both.

A *regression* is a reading that became `failure`, or a pass that became anything else. It is none when the case was
skipped or not reached (it is *not run*), when it is flaky (that is listed), and when an expectation was written since
then (*tolerated*). An expectation that was there before does not hide anything: a case that passed in spite of it reads
`fixed`, and breaking again is a regression.
"""

from __future__ import annotations

from collections.abc import Mapping

from epcheck.conformance.records.terms import EXPECTED, FAILURE, FIXED, FLAKY, NOTED, OK, PASS, SKIPPED
from epcheck.reports.diff.row import Row

REGRESSION, NOT_RUN, FLAPPING, TOLERATED, REPAIRED, OTHERWISE, APPEARED, VANISHED, STILL = (
    "new failure", "not run", "flaky", "tolerated", "fixed", "changed", "appeared", "vanished", "still failing",
)  # fmt: skip

KINDS: Mapping[str, str] = {
    REGRESSION: "passed before, fails now",
    NOT_RUN: "skipped, or not reached because the run ended early",
    FLAPPING: "repeated runs differ",
    TOLERATED: "an expectation was added, covers both results, or no longer applies",
    REPAIRED: "failed before, passes now",
    OTHERWISE: "another status, but not from a pass to a failure",
    APPEARED: "not in the older run",
    VANISHED: "not in the newer run, which is complete",
    STILL: "fails in both runs",
}
"""What may be said of a case in two runs, in reading order; of all other cases nothing is said."""


def classify(older: Row | None, newer: Row | None, cut_short: bool = False, flaky: bool = False) -> str:
    """What is to be said of a case: one of KINDS, or nothing.

    cut_short: the newer run did not come to its end. flaky: the case is known to change without a cause.
    """
    if older is None:
        return APPEARED
    if newer is None:
        return NOT_RUN if cut_short else VANISHED
    if FLAKY in (older.status, newer.status) or (flaky and older.status != newer.status):
        return FLAPPING
    if newer.reading == FAILURE:
        return STILL if older.reading == FAILURE else REGRESSION
    if older.status == newer.status and (
        older.reading == newer.reading or {older.reading, newer.reading} == {OK, NOTED}
    ):
        return ""
    if newer.status == SKIPPED:
        return NOT_RUN
    if older.status == PASS or newer.status == PASS:
        return _passing_once(older, newer)
    return TOLERATED if newer.reading == EXPECTED and older.reading == FAILURE else OTHERWISE


def _passing_once(older: Row, newer: Row) -> str:
    """Of a case that passes in at least one of the runs, and is no failure in the newer one."""
    if newer.status == older.status:
        return ""  # only what is expected of it, or of the baseline, has changed
    if older.status == PASS:
        return TOLERATED if newer.reading == EXPECTED and older.reading != FIXED else REGRESSION
    if older.status == SKIPPED:
        return OTHERWISE
    return TOLERATED if older.reading == EXPECTED and newer.reading != FIXED else REPAIRED
