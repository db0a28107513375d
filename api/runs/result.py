"""What is left of a run: its folder, and whether the candidates conform."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from epcheck.conformance.records.record import Record
from epcheck.conformance.records.terms import FAILURE, FIXED
from epcheck.reports import Reported, read_records

COMPLETE, INTERRUPTED = "complete", "interrupted"
"""Values of `RunResult.run.status`; others begin with `failed: ` and say why."""


@dataclass(frozen=True)
class RunResult(Reported):
    """A run that is over, and its reports.

    folder: of the run. run: what `run.json` says. summary: what its records say. strict: whether an expectation that no
    longer fails, or that matches no case, is a failure.
    """

    strict: bool = False

    @classmethod
    def of(cls, reported: Reported, strict: bool) -> Self:
        return cls(reported.folder, reported.run, reported.summary, strict)

    @property
    def complete(self) -> bool:
        """Whether every planned case has a record."""
        return self.run.status == COMPLETE and not self.summary.missing

    @property
    def conforms(self) -> bool:
        """Whether the run is complete and has no conformance failure."""
        bad = {FAILURE, FIXED} if self.strict else {FAILURE}
        failing = self.summary.by_reading.keys() & bad or (self.strict and self.run.stale)
        return self.complete and not failing

    def records(self) -> Iterator[Record]:
        """Every record of the run, one at a time, in the order they were written. Raises StoreError."""
        return read_records(self.folder)
