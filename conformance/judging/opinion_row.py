"""An opinion as a row of the cache. What rows look like is part of their key: see `cache.code_digest`."""

from __future__ import annotations

from epcheck.conformance.records import strict_json, typed_json
from epcheck.conformance.records.accuracy import Accuracy
from epcheck.conformance.records.opinion import Difference, Excused, Opinion

OpinionRow = tuple[
    str, str, str, str, tuple[tuple[str, str], ...] | None, float | None, float | None, int, str, int,
    tuple[int, float, float, tuple[int, ...]] | None, str, str,
]  # fmt: skip
"""Status, stage, message, differences as JSON, assignment, seconds of creation and run, attempts, end of the log, cases
in the session, accuracy, what only floors accept as JSON, bits of the outputs."""


def to_row(opinion: Opinion, answer: str) -> OpinionRow:
    """An opinion, and the bits of the outputs it is of, as the cache has them: in nothing but builtin types."""
    o = opinion
    differences = strict_json.dumps(typed_json.to_json(o.differences)) if o.differences else ""
    excused = strict_json.dumps(typed_json.to_json(o.excused)) if o.excused else ""
    a = o.accuracy
    accuracy = None if a is None else (a.elements, a.max_ulp, a.sum_ulp, a.counts)
    return (
        o.status, o.stage, o.message, differences, o.assignment, o.create_s, o.run_s, o.attempts, o.log_tail, o.shared,
        accuracy, excused, answer,
    )  # fmt: skip


def from_row(target: str, row: OpinionRow) -> tuple[Opinion, str]:
    """The opinion and the bits that `to_row` took. Raises ValueError when the row is none."""
    try:
        (
            status, stage, message, text, assignment, create_s, run_s, attempts, log_tail, shared, accuracy, floors,
            answer,
        ) = row  # fmt: skip
        excused = [typed_json.read(Excused, item) for item in strict_json.loads(floors)] if floors else []
        differences = [typed_json.read(Difference, item) for item in strict_json.loads(text)] if text else []
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"not an opinion: {error!r}") from error
    opinion = Opinion(
        target, status, stage, message, tuple(differences), assignment, create_s, run_s, attempts, log_tail, shared,
        remembered=True, accuracy=None if accuracy is None else Accuracy(*accuracy),
        excused=tuple(excused),
    )  # fmt: skip
    return opinion, str(answer)
