"""What is left of a run: its folder, and whether the candidates conform."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from epcheck.conformance.records.record import Record
from epcheck.conformance.records.terms import FAILURE, FIXED, FLAKY
from epcheck.reports import Reported, read_records

COMPLETE, INTERRUPTED = "complete", "interrupted"
"""Values of `RunResult.run.status`; others begin with `failed: ` and say why."""


@dataclass(frozen=True)
class RunResult(Reported):
    """A run that is over, and its reports.

    folder: of the run. run: what `run.json` says. summary: what its records say. since: what became of cases since
    earlier runs. strict: whether an expectation that no
    longer fails, or that matches no case, is a failure, and so is a flaky case. max_flaky: how many flaky cases are
    tolerated; None for any number, and for none where the run is strict. strict_accuracy: whether an accuracy
    suspicion is a failure.
    """

    strict: bool = False
    max_flaky: int | None = None
    strict_accuracy: bool = False

    @classmethod
    def of(
        cls, reported: Reported, strict: bool, max_flaky: int | None = None, *, strict_accuracy: bool = False
    ) -> Self:
        parts = reported.folder, reported.run, reported.summary, reported.since
        return cls(*parts, strict, max_flaky, strict_accuracy)

    @property
    def complete(self) -> bool:
        """Whether every planned case has a record."""
        return self.run.status == COMPLETE and not self.summary.missing

    @property
    def conforms(self) -> bool:
        """Whether the run is complete and has no conformance failure, and no more flaky cases than are tolerated."""
        bad = {FAILURE, FIXED} if self.strict else {FAILURE}
        failing = self.summary.by_reading.keys() & bad or (self.strict and self.run.stale)
        return self.complete and not failing and not self.too_flaky and not self.too_inaccurate

    @property
    def too_inaccurate(self) -> bool:
        """Whether a target has accuracy suspicions, and those fail the run."""
        return self.strict_accuracy and any(target.suspicions for target in self.summary.targets)

    @property
    def too_flaky(self) -> bool:
        """Whether more cases are flaky than are tolerated."""
        tolerated = 0 if self.strict and self.max_flaky is None else self.max_flaky
        return tolerated is not None and self.summary.by_reading.get(FLAKY, 0) > tolerated

    def records(self) -> Iterator[Record]:
        """Every record of the run, one at a time, in the order they were written. Raises StoreError."""
        return read_records(self.folder)
