"""The exit code that a result ends a command with."""

from __future__ import annotations

from collections.abc import Sequence

from epcheck.api.runs.result import INTERRUPTED as RUN_INTERRUPTED
from epcheck.api.runs.result import RunResult
from epcheck.cli.terminal.failure import CANNOT, FAILURES, GOOD, INTERRUPTED
from epcheck.reports.diff import assessment
from epcheck.reports.diff.assessment import Assessment

OF_RESULT = {
    assessment.GOOD: GOOD,
    assessment.FIRST: GOOD,
    assessment.WORSE: FAILURES,
    assessment.SAME: GOOD,
    assessment.DIFFERS: FAILURES,
}
"""What the result of a comparison ends a command with; a run that says nothing is never good."""


def of_run(result: RunResult) -> int:
    if result.run.status == RUN_INTERRUPTED:
        return INTERRUPTED
    if not result.complete:
        return CANNOT
    return GOOD if result.conforms else FAILURES


def of_assessments(assessments: Sequence[Assessment]) -> int:
    """0 all as good as before or without a difference, 1 one is worse or differs, 2 one could not be compared."""
    return max((OF_RESULT.get(found.result, CANNOT) for found in assessments), default=CANNOT)
