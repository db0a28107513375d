"""Repeats: which opinion needs one, and what the runs of a case say together whose answers differ."""

from __future__ import annotations

from dataclasses import dataclass, replace

from epcheck.conformance.judging import claim
from epcheck.conformance.judging.device_limit import lacking_feature
from epcheck.conformance.judging.opinion import opinion
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.outcome import CRASHED, DONE, TIMED_OUT, Outcome
from epcheck.conformance.targets.target import Target

LOST = (CRASHED, TIMED_OUT)
"""Outcomes that end the worker."""

FROM_OUTSIDE = tuple(f"killed by {name}" for name in ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"))
"""How a process ends that somebody else ends: no fault of its own raises such a signal. (The system also ends one so
when it has no memory left; such a case ends every worker that runs it.)"""


def needs_confirmation(prepared: PreparedCase, target: Target, first: Opinion) -> bool:
    """Whether an opinion has to be repeated before it is reported: every failure, but not a refusal to take a node
    that the target never promised to take, nor one for want of a feature that the device lacks."""
    if (
        first.status == terms.PASS
        or (target.calls_directml and first.status == terms.UNPLACED)
        or lacking_feature(first)
    ):
        return False
    return first.status != terms.UNPLACED or claim.is_promised(prepared, target)


def confirms(prepared: PreparedCase, first: Outcome, second: Outcome) -> bool:
    """Whether a repeat confirms the first run: the same answer, or any two answers where there must be none."""
    if prepared.must_be_refused and first.kind == second.kind == DONE:
        return True
    return first.signature() == second.signature()


def was_ended_from_outside(outcome: Outcome) -> bool:
    """Whether the worker was ended by somebody else: a person, a script, the system."""
    return outcome.kind == CRASHED and outcome.message.endswith(FROM_OUTSIDE)


@dataclass(frozen=True)
class Attempts:
    """The runs of a case whose first two disagree.

    first: after other cases in one worker. elsewhere: after other cases in a second worker; with nothing before, if
    the first one ended. again: in the first worker once more. alone: with nothing before, twice or not at all.
    """

    first: Outcome
    elsewhere: Outcome
    again: Outcome
    alone: tuple[Outcome, ...]

    def status(self) -> str:
        """`order-dependent` when a history that changed the answer does so again and the answer alone is steady, as far
        as that was asked; `flaky` otherwise."""
        first, elsewhere, again = (o.signature() for o in (self.first, self.elsewhere, self.again))
        alone = {o.signature() for o in self.alone}
        if not alone:
            return terms.ORDER_DEPENDENT if first == again else terms.FLAKY
        if len(alone) == 1 and ((first == again and again not in alone) or not alone.intersection((elsewhere, first))):
            return terms.ORDER_DEPENDENT
        return terms.FLAKY

    def steady(self) -> Outcome | None:
        """The one answer of all runs in which the worker did not end, if those are most: what ran before, or something
        outside, may have ended the others. Runs whose worker somebody else ended do not count."""
        counted = [outcome for outcome in self.in_order() if not was_ended_from_outside(outcome)]
        answers = [outcome for outcome in counted if outcome.kind not in LOST]
        if 2 * len(answers) <= len(counted) or len({outcome.signature() for outcome in answers}) > 1:
            return None
        return answers[0]

    def always_lost(self) -> bool:
        """Whether no run has an answer."""
        return all(outcome.kind in LOST for outcome in self.in_order())

    def lost(self) -> Outcome | None:
        """The first run that ended its worker."""
        return next((outcome for outcome in self.in_order() if outcome.kind in LOST), None)

    def in_order(self) -> tuple[Outcome, ...]:
        """All runs."""
        return self.first, self.elsewhere, self.again, *self.alone


def judge_attempts(prepared: PreparedCase, target: Target, attempts: Attempts) -> tuple[Opinion, Outcome, str]:
    """What all runs of a case together say, the outcome that says it, and a note of an accident, empty for none: a
    worker that ended in the smaller part of five runs is no answer of the case."""
    steady, lost, runs = attempts.steady(), attempts.lost(), len(attempts.in_order())
    if attempts.always_lost():
        return opinion(prepared, target, attempts.again, attempts=runs), attempts.again, ""
    if lost is None or steady is None:
        return unsteady(prepared, target, attempts), attempts.first, ""
    others = opinion(prepared, target, steady, attempts=runs)
    note = (
        f"{target.name}: a worker ended while it ran {prepared.case.id} ({lost.message}); other runs of it say: "
        f"{others.status}"
    )
    return others, steady, note


def unsteady(prepared: PreparedCase, target: Target, attempts: Attempts) -> Opinion:
    """The opinion of a case whose answer changed on repetition."""
    judged = [opinion(prepared, target, outcome) for outcome in attempts.in_order()]
    worst = next((o for o in judged if o.status != terms.PASS), judged[0])
    status = attempts.status()
    how = "the result depends on earlier runs" if status == terms.ORDER_DEPENDENT else "the result changes between runs"
    statuses = ", ".join(o.status for o in judged[:3])
    if attempts.alone:
        statuses += f"; alone {', '.join(o.status for o in judged[3:])}"
    return replace(worst, status=status, message=f"{how} ({statuses}): {worst.message}", attempts=len(judged))
