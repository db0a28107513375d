"""What became of the cases of a run since earlier runs, as data: `reports.earlier` compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from epcheck.conformance.records.record import Record
from epcheck.reports.cause_changes import CauseChange, describe_causes
from epcheck.reports.causes.cause import Cause
from epcheck.reports.report_links import ReportLinks

BROKE, FIRST_SEEN, STILL, REPAIRED = "broke", "first seen", "failed before", "repaired"
"""What became of a case since the newest earlier run that has it. BROKE: it fails or is flaky and was right;
FIRST_SEEN: it fails, and no earlier run has it; STILL: it fails and was wrong, expected or not; REPAIRED: it was wrong
and is right."""

IN_ORDER = (BROKE, FIRST_SEEN, REPAIRED, STILL)


@dataclass(frozen=True)
class Earlier:
    """An earlier run of a target. changed: what changed in driver, runtime or system from the one before it, in a
    sentence; empty where nothing did."""

    run_id: str
    started: str
    changed: str


@dataclass(frozen=True)
class Since:
    """A target beside its earlier runs. runs: the newest first. changed: what changed since the newest, in a sentence;
    empty where nothing did. became: case id -> one of IN_ORDER. history: case id -> the status in each of `runs`, empty
    where that has no record; of every case that is or was wrong. causes: of failures, beside those before."""

    target: str
    runs: tuple[Earlier, ...]
    changed: str
    became: Mapping[str, str]
    history: Mapping[str, tuple[str, ...]]
    causes: tuple[CauseChange, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """How many cases became each of IN_ORDER, without those that none did."""
        found = {what: sum(each == what for each in self.became.values()) for what in IN_ORDER}
        return {what: number for what, number in found.items() if number}

    @property
    def sentence(self) -> str:
        """`since 2026-11-22 09:00 UTC: 2 broke; causes: 1 new, 2 still there. Changed: driver: 535 → 540.`"""
        counts = ", ".join(f"{number:,} {what}" for what, number in self.counts.items())
        moment = self.runs[0].started[:16].replace("T", " ")
        parts = "; ".join(filter(None, (counts or "nothing broke", describe_causes(self.causes))))
        return f"since {moment} UTC: {parts}. {self.changed}".strip()


class Comparison(Protocol):
    """Takes each record of a run, and then compares them with those of earlier runs."""

    def add(self, record: Record, cause: Cause | None) -> None:
        """Take a record of the run, and its cause."""

    def result(self) -> tuple[Since, ...]:
        """One for each target that an earlier run has, too."""

    def links(self, page: Path) -> ReportLinks:
        """The addresses of the earlier reports from a page."""
