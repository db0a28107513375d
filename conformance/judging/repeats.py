"""The runs of a case that answers differently when it is repeated, and what they say together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from epcheck.conformance.judging import verdict
from epcheck.conformance.preparation.prepared_case import Prepared
from epcheck.conformance.records import record
from epcheck.conformance.records.outcome import CRASHED, TIMED_OUT, Outcome
from epcheck.conformance.records.record import Opinion
from epcheck.conformance.targets.target import Target

LOST = (CRASHED, TIMED_OUT)
"""Outcomes that end the worker."""

MOST = 3
"""Of the five runs of a case whose answer changes."""


@dataclass(frozen=True)
class Attempts:
    """The runs of a case whose first two disagree: after other cases in one worker, after others in a second (with
    nothing before, if the first one ended), in the first one again, and with nothing before: twice, or never."""

    first: Outcome
    elsewhere: Outcome
    again: Outcome
    alone: tuple[Outcome, ...]

    def status(self) -> str:
        """`order-dependent` when a history that changed the answer does so again and the answer alone is steady, as far
        as that was asked."""
        first, elsewhere, again = (o.signature() for o in (self.first, self.elsewhere, self.again))
        alone = {o.signature() for o in self.alone}
        if not alone:
            return record.ORDER_DEPENDENT if first == again else record.FLAKY
        if len(alone) == 1 and ((first == again and again not in alone) or not alone.intersection((elsewhere, first))):
            return record.ORDER_DEPENDENT
        return record.FLAKY

    def steady(self) -> Outcome | None:
        """The one answer of all runs in which the worker did not end, if those are most: what ran before, or something
        outside, may have ended the others."""
        answers = [outcome for outcome in self.in_order() if outcome.kind not in LOST]
        if len(answers) < MOST or len({outcome.signature() for outcome in answers}) > 1:
            return None
        return answers[0]

    def in_order(self) -> tuple[Outcome, ...]:
        return self.first, self.elsewhere, self.again, *self.alone


def unsteady(prepared: Prepared, target: Target, attempts: Attempts) -> Opinion:
    """The opinion of a case whose answer changed on repetition."""
    judged = [verdict.opinion(prepared, target, outcome) for outcome in attempts.in_order()]
    worst = next((o for o in judged if o.status != record.PASS), judged[0])
    status = attempts.status()
    how = "what it answers depends on what ran before" if status == record.ORDER_DEPENDENT else "its answer changes"
    said = ", ".join(o.status for o in judged[:3])
    if attempts.alone:
        said += f"; alone {', '.join(o.status for o in judged[3:])}"
    return replace(worst, status=status, message=f"{how} ({said}): {worst.message}", attempts=len(judged))
