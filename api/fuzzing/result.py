"""What a search for faults found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from epcheck.conformance.fuzzing.fault import Fault


@dataclass(frozen=True)
class FuzzResult:
    """What a search found.

    target: its name. facts: what its worker reports of itself. seconds: of the whole call. judged, rate: nodes, and
    nodes a second while nothing was made small. statuses: how many nodes have each. draws: what became of the draws.
    faults: the new ones first. folders: where each fault's files are, in the same order. interrupted: why the search
    ended before its time; empty where it did not.
    """

    target: str
    facts: Mapping[str, str]
    seed: int
    seconds: float
    judged: int
    rate: float
    statuses: Mapping[str, int]
    draws: Mapping[str, int]
    replayed: int
    open_examples: int
    faults: tuple[Fault, ...]
    folders: tuple[Path, ...]
    out: Path
    interrupted: str = ""

    @property
    def conforms(self) -> bool:
        """Whether no fault was found but those that resemble a recorded deviation or that the baseline shows too."""
        return not any(fault.is_new for fault in self.faults)

    @property
    def shared(self) -> int:
        """How many faults the baseline shows too."""
        return sum(fault.cause.shared for fault in self.faults)
