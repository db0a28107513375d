"""What a verdict is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from epcheck.conformance.records import terms
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.record import Direct, VariantResult
from epcheck.conformance.targets.expectation import Expectation

FINE = (terms.PASS, terms.UNPLACED, terms.SKIPPED)
"""Statuses of a baseline that is not wrong."""


class Evidence(msgspec.Struct, frozen=True):
    """All that is known of a case on one candidate.

    baseline: None where there is none, or the candidate is the baseline. oracles: what each further oracle says of the
    suite's own. echoes: the oracles whose answer is the candidate's, bit by bit. expectations: of the candidate, those
    whose glob matches the case. direct: what explains the failure. variants: what came of the case in other ways.
    """

    candidate: Opinion
    baseline: Opinion | None = None
    oracles: Mapping[str, str] = {}
    echoes: Sequence[str] = ()
    expectations: Sequence[Expectation] = ()
    direct: Direct | None = None
    variants: Sequence[VariantResult] = ()

    @property
    def is_baseline_wrong(self) -> bool:
        """Whether there is a baseline that does not give what must come out, though it takes the node."""
        return self.baseline is not None and self.baseline.status not in FINE
