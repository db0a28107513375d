"""Which cases may share a session: those that will probably end alike, by what is claimed, expected and known."""

from __future__ import annotations

from collections.abc import Mapping

from epcheck.conformance.judging import claim
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.targets.target import Target

PLACE_ONLY = b"place only "
"""What the groups begin with whose cases are only placed."""

TOGETHER = (terms.MISMATCH, terms.FLAKY, terms.ORDER_DEPENDENT)
"""Statuses that leave the session to others: cases that will probably end so share one, apart from those that pass."""


class Grouping:
    """Groups the cases of a run; learns from what targets decline."""

    def __init__(self) -> None:
        self._declined: set[tuple[str, ...]] = set()
        self._lacking: set[tuple[str, str]] = set()

    def note_declined(self, prepared: PreparedCase, target: Target, dtype: str = "") -> None:
        """The target does not take such a case: no other session shall fail by one of its kind. dtype: the one that its
        device lacks, if that is why; then by none that has the dtype."""
        self._declined.add(_kind(prepared, target))
        if dtype:
            self._lacking.add((target.name, dtype))

    def group(
        self,
        prepared: PreparedCase,
        target: Target,
        status: str,
        facts: Mapping[str, str],
    ) -> bytes:
        """With which other cases this one may share a session; empty for none.

        Cases that will probably be declined are only placed, many in one session that may fall back to CPU.
        Not one that must or may be refused, which refuses the whole model, nor a graph that is optimised. Not one that
        will probably fail, with those that will not. And cases with an empty output keep to themselves: fetched beside
        one, DirectML's provider returns every other output of the session as it found the memory (docs/findings.md).
        status: the one it will probably have. facts: what the target's worker reports of itself.
        """
        if prepared.must_be_refused or prepared.may_be_refused or not prepared.graph or prepared.level:
            return b""
        if status == terms.UNPLACED and claim.can_show_placement(target, facts):
            return PLACE_ONLY + prepared.shell
        if self._declined and _kind(prepared, target) in self._declined:
            return b""
        if self._lacking and any((target.name, dtype) in self._lacking for dtype in prepared.types.values()):
            return b""
        if status != terms.PASS and status not in TOGETHER:
            return b""
        return b"%s %s %s" % (status.encode(), prepared.emptiness, prepared.shell) if prepared.emptiness else b""


def _kind(prepared: PreparedCase, target: Target) -> tuple[str, ...]:
    """What a target takes or declines alike: an operator version with its dtypes."""
    case = prepared.case
    return target.name, case.domain, case.operator, str(case.since_version), case.dtype
