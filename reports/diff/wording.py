"""The words of a comparison: of two nights, of which one is earlier, or of two sides that stand side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from epcheck.conformance.records.run import Run
from epcheck.reports.diff.classification import (
    APPEARED,
    FLAPPING,
    KINDS,
    NOT_RUN,
    OTHERWISE,
    REGRESSION,
    REPAIRED,
    STILL,
    TOLERATED,
    VANISHED,
)
from epcheck.reports.runs.fingerprint import Changed, provider_of, release_of


@dataclass(frozen=True)
class Sides:
    """What two compared targets are called where neither is the other at an earlier time: two providers, two releases
    of one, or two targets of one run. No difference between them is a regression."""

    older: str
    newer: str


@dataclass(frozen=True)
class Wording:
    """older, newer: what the two are called. names, meanings: of each of KINDS. between: stands between the status of
    the older and that of the newer. accuracy, speed, placement: headings. takes: the head of the column of times.
    differing: of the fingerprints."""

    older: str
    newer: str
    names: Mapping[str, str]
    meanings: Mapping[str, str]
    between: str
    accuracy: str
    speed: str
    placement: str
    takes: str
    differing: str

    @property
    def columns(self) -> tuple[str, str]:
        """The heads of two columns."""
        return ("before", "now") if self is NIGHTS else (self.older, self.newer)


NIGHTS = Wording(
    "Before", "Now", {kind: kind for kind in KINDS}, KINDS, " → ", "less accurate, but passes", "speed",
    "placement", "takes now", "What changed on the machine",
)  # fmt: skip
"""Of two nights."""


def wording(sides: Sides | None) -> Wording:
    """The words for two sides; for two nights where there are none."""
    if sides is None:
        return NIGHTS
    older, newer = sides.older, sides.newer
    names = {
        REGRESSION: f"worse on {newer}",
        NOT_RUN: f"not run on {newer}",
        FLAPPING: "flaky",
        TOLERATED: "tolerated on one",
        REPAIRED: f"worse on {older}",
        OTHERWISE: "otherwise different",
        APPEARED: f"only on {newer}",
        VANISHED: f"only on {older}",
        STILL: "failing on both",
    }
    meanings = {
        **KINDS,
        REGRESSION: f"no failure on {older}",
        TOLERATED: "an expectation covers one side, or both results",
        REPAIRED: f"right on {newer}",
        OTHERWISE: "different statuses, but no difference between pass and failure",
        APPEARED: f"{older} has no record of it",
        VANISHED: f"{newer} has no record of it",
    }
    return Wording(
        older, newer, names, meanings, " / ", f"less accurate on {newer}, but right on both",
        f"speed of {newer} relative to {older}", f"placement on {older} and on {newer}", f"takes on {newer}",
        "What differs on the machines",
    )  # fmt: skip


def sides_of(older: tuple[Run, str], newer: tuple[Run, str]) -> Sides | None:
    """The sides of two (run, name of its target): None for the same release of the same provider in two runs, or where
    the releases are not known."""
    providers = provider_of(*older), provider_of(*newer)
    releases = tuple(release_of(run.targets.get(target, {})) for run, target in (older, newer))
    same_run = older[0].run_id == newer[0].run_id and older[1] != newer[1]
    if providers[0] == providers[1] and (releases[0] == releases[1] or not all(releases)) and not same_run:
        return None
    names = [f"{provider} {release}".strip() for provider, release in zip(providers, releases, strict=True)]
    return Sides(names[0], names[1]) if names[0] != names[1] else Sides(older[1], newer[1])


def describe_differing(changed: tuple[Changed, ...]) -> str:
    """What differs between the fingerprints of two sides, in one sentence; empty where nothing does."""
    parts = [f"{change.part}: {change.older or 'none'} / {change.newer or 'none'}" for change in changed]
    return f"Not the same: {'; '.join(parts)}." if parts else ""
