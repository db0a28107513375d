"""One outcome, as far as two runs are compared by it: small, so that two whole suites fit into memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, Self

from epcheck.conformance.records.record import Record, accuracy_of


class Row(NamedTuple):
    """A record without what only its own report shows.

    operator: the key, `com.microsoft::Gelu`. create_s, run_s: seconds of the candidate, None where it did not come so
    far. ulp_max: the worst element of the candidate's outputs in ULP, None where nothing has a bound in ULP.
    placement: what `placement_of` says. cause: the title of its cause, None where nothing is to be said.
    """

    case_id: str
    operator: str
    since_version: int
    dtype: str
    sample: str
    status: str
    blame: str
    reading: str
    reason: str
    create_s: float | None = None
    run_s: float | None = None
    ulp_max: float | None = None
    placement: str | None = None
    cause: str | None = None

    @classmethod
    def of(cls, record: Record, cause: str | None = None) -> Self:
        """The row of a record. cause: the title of its cause."""
        case, candidate = record.case, record.candidate
        accuracy = accuracy_of(case, candidate)
        return cls(
            case_id=case.case_id,
            operator=case.operator_key,
            since_version=case.since_version,
            dtype=case.dtype,
            sample=case.sample,
            status=record.status,
            blame=record.blame,
            reading=record.reading,
            reason=record.reason,
            create_s=candidate.create_s,
            run_s=candidate.run_s,
            ulp_max=None if accuracy is None else accuracy.max_ulp,
            placement=placement_of(candidate.assignment),
            cause=cause,
        )


def placement_of(assignment: Iterable[tuple[str, str]] | None) -> str | None:
    """Where the nodes of a session went, the same for the same nodes in any order: `DmlExecutionProvider: Cast x2,
    Slice`. None where the runtime keeps no record."""
    if assignment is None:
        return None
    by_provider: dict[str, Counter[str]] = {}
    for provider, operator in assignment:
        by_provider.setdefault(provider, Counter())[operator] += 1
    return "; ".join(
        f"{provider}: {', '.join(f'{name} x{n}' if n > 1 else name for name, n in sorted(counts.items()))}"
        for provider, counts in sorted(by_provider.items())
    )
